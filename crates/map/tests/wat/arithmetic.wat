;; Reads 64 pairs of f64, and writes each one's quotient and the first one's square root.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start") (local $at i32)
    (i32.store (i32.const 0) (i32.const 64)) (i32.store (i32.const 4) (i32.const 1024))
    (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (loop $next
      (f64.store offset=1088 (local.get $at) (f64.div (f64.load offset=64 (local.get $at)) (f64.load offset=72 (local.get $at))))
      (f64.store offset=1096 (local.get $at) (f64.sqrt (f64.load offset=64 (local.get $at))))
      (br_if $next (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 16))) (i32.const 1024))))
    (i32.store (i32.const 0) (i32.const 1088))
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
