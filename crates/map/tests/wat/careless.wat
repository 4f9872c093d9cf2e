;; Stores and loads where the instructions' promise of alignment is broken if stdin has an odd length, and past the memory's end if it begins
;; with `!`.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start") (local $n i32)
    (i32.store (i32.const 0) (i32.const 100)) (i32.store (i32.const 4) (i32.const 1000))
    (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (local.set $n (i32.load (i32.const 8)))
    (if (i32.eq (i32.load8_u (i32.const 100)) (i32.const 33)) (then (i32.store (i32.const 65533) (i32.const 1))))
    (i32.store align=4 (i32.add (i32.const 2000) (local.get $n)) (i32.const 0x64636261))
    (i64.store align=1 (i32.add (i32.const 2005) (local.get $n)) (i64.load align=1 (i32.add (i32.const 2000) (local.get $n))))
    (i32.store16 align=1 (i32.add (i32.const 2015) (local.get $n)) (i32.const 0x7978))
    (i32.store (i32.const 0) (i32.add (i32.const 2000) (local.get $n))) (i32.store (i32.const 4) (i32.const 20))
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
