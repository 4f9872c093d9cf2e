;; Writes "GPU_RUN_INSTANCE=<digit>" and a newline; the digit is at 2065.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_get" (func $environ_get (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  ;; writes `length` bytes at `at` to `fd`
  (func $write (param $fd i32) (param $at i32) (param $length i32)
    (i32.store (i32.const 0) (local.get $at))
    (i32.store (i32.const 4) (local.get $length))
    (drop (call $fd_write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8))))
  (func $main (export "_start")
    (drop (call $environ_get (i32.const 1024) (i32.const 2048)))
    (i32.store8 (i32.const 2066) (i32.const 10))
    (call $write (i32.const 1) (i32.const 2048) (i32.const 19))))
