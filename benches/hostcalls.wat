;; Counts, then asks the host what time it is, again and again, and prints the answers. It is the real time it asks for: the other clock is the device's own.
;;
;; Between two answers lies one round trip: the host took each time when it answered. `gpu-run bench` puts other numbers in the place of
;; those that are marked, for one warp, for many and for none that calls.
(module
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2 (; pages ;))
  (func (export "_start") (local $at i32) (local $left i32)
    (local.set $left (i32.const 1 (; counts ;)))
    (loop $count
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br_if $count (local.get $left)))
    (local.set $at (i32.const 64))
    (local.set $left (i32.const 10000 (; calls ;)))
    (block $done
      (loop $again
        (br_if $done (i32.eqz (local.get $left)))
        (drop (call $clock (i32.const 0) (i64.const 1) (local.get $at)))
        (local.set $at (i32.add (local.get $at) (i32.const 8)))
        (local.set $left (i32.sub (local.get $left) (i32.const 1)))
        (br $again)))
    (i32.store (i32.const 0) (i32.const 64))
    (i32.store (i32.const 4) (i32.sub (local.get $at) (i32.const 64)))
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
