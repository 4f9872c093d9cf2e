;; Writes "ok" after 3,000 calls within each other.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 100) "ok\0a")
  (func $down (param $left i32) (result i32)
    (if (result i32) (local.get $left)
      (then (i32.add (i32.const 1) (call $down (i32.sub (local.get $left) (i32.const 1)))))
      (else (i32.const 0))))
  ;; writes `length` bytes at `at` to `fd`
  (func $write (param $fd i32) (param $at i32) (param $length i32)
    (i32.store (i32.const 0) (local.get $at))
    (i32.store (i32.const 4) (local.get $length))
    (drop (call $fd_write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8))))
  (func (export "_start")
    (if (i32.eq (call $down (i32.const 3000)) (i32.const 3000))
      (then (call $write (i32.const 1) (i32.const 100) (i32.const 3))))))
