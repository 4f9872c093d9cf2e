;; Writes 1000 bytes at a time to stderr until that fails.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    (i32.store (i32.const 0) (i32.const 100)) (i32.store (i32.const 4) (i32.const 1000))
    (loop $again (br_if $again (i32.eqz (call $fd_write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8)))))))
