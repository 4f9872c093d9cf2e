;; Grows its memory by as many pages as stdin's first byte says, writes to the last, and prints 4 of its bytes and what the memory's size was.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start") (local $last i32)
    (i32.store (i32.const 0) (i32.const 100)) (i32.store (i32.const 4) (i32.const 1000))
    (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (i32.store (i32.const 204) (memory.grow (i32.sub (i32.load8_u (i32.const 100)) (i32.const 48))))
    (local.set $last (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 4)))
    (i32.store8 (local.get $last) (i32.const 120))
    (i32.store (i32.const 200) (i32.load (local.get $last)))
    (i32.store (i32.const 0) (i32.const 200)) (i32.store (i32.const 4) (i32.const 8))
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
