;; Copies stdin to stdout until its end.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  ;; writes `length` bytes at `at` to `fd`
  (func $write (param $fd i32) (param $at i32) (param $length i32)
    (i32.store (i32.const 0) (local.get $at))
    (i32.store (i32.const 4) (local.get $length))
    (drop (call $fd_write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8))))
  (func $main (export "_start")
    (loop $again
      (i32.store (i32.const 0) (i32.const 4096)) (i32.store (i32.const 4) (i32.const 4))
      (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 12)))
      (call $write (i32.const 1) (i32.const 4096) (i32.load (i32.const 12)))
      (br_if $again (i32.load (i32.const 12))))))
