;; Does what its stdin says, two bytes at a time: `g` grows memory by so many pages and writes to the last one, `r` calls itself so many times
;; 8 deep, `p` prints so many KiB, `a` appends a byte to the file `log` so many times. At the end it prints how many pages it has, or exits
;; with 7 if it was refused one.
(module
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (import "wasi_snapshot_preview1" "path_open"
    (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 40) "log")
  (global $log (mut i32) (i32.const 0))
  (func $down (param $left i32) (result i32)
    (if (result i32) (local.get $left)
      (then (i32.add (i32.const 1) (call $down (i32.sub (local.get $left) (i32.const 1)))))
      (else (i32.const 0))))
  (func $write (param $fd i32) (param $at i32) (param $length i32)
    (i32.store (i32.const 0) (local.get $at)) (i32.store (i32.const 4) (local.get $length))
    (if (call $fd_write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8)) (then (call $exit (i32.const 9)))))
  (func $append
    (if (i32.eqz (global.get $log)) (then
      (if (call $path_open (i32.const 3) (i32.const 0) (i32.const 40) (i32.const 3) (i32.const 1)
        (i64.const 64) (i64.const 0) (i32.const 1) (i32.const 48))
        (then (call $exit (i32.const 8))))
      (global.set $log (i32.load (i32.const 48)))))
    (call $write (global.get $log) (i32.const 40) (i32.const 1)))
  (func (export "_start") (local $at i32) (local $end i32) (local $count i32)
    (i32.store (i32.const 0) (i32.const 1024)) (i32.store (i32.const 4) (i32.const 4096))
    (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (local.set $at (i32.const 1024))
    (local.set $end (i32.add (i32.const 1024) (i32.load (i32.const 8))))
    (block $done (loop $next
      (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
      (local.set $count (i32.load8_u offset=1 (local.get $at)))
      (if (i32.eq (i32.load8_u (local.get $at)) (i32.const 0x67)) (then
        (if (i32.eq (memory.grow (local.get $count)) (i32.const -1)) (then (call $exit (i32.const 7))))
        (i32.store8 (i32.sub (i32.shl (memory.size) (i32.const 16)) (i32.const 1)) (i32.const 1))))
      (if (i32.eq (i32.load8_u (local.get $at)) (i32.const 0x72)) (then
        (if (i32.ne (call $down (i32.shl (local.get $count) (i32.const 3))) (i32.shl (local.get $count) (i32.const 3)))
          (then unreachable))))
      (if (i32.eq (i32.load8_u (local.get $at)) (i32.const 0x70)) (then
        (block $out (loop $more
          (br_if $out (i32.eqz (local.get $count)))
          (call $write (i32.const 1) (i32.const 8192) (i32.const 1024))
          (local.set $count (i32.sub (local.get $count) (i32.const 1)))
          (br $more)))))
      (if (i32.eq (i32.load8_u (local.get $at)) (i32.const 0x61)) (then
        (block $out (loop $more
          (br_if $out (i32.eqz (local.get $count)))
          (call $append)
          (local.set $count (i32.sub (local.get $count) (i32.const 1)))
          (br $more)))))
      (local.set $at (i32.add (local.get $at) (i32.const 2)))
      (br $next)))
    (i32.store (i32.const 16) (memory.size))
    (call $write (i32.const 1) (i32.const 16) (i32.const 4))))
