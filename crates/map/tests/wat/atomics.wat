;; Atomic accesses of every width, and what they leave.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "abcdefgh")
  (func (export "_start")
    (drop (i32.atomic.rmw.add (i32.const 16) (i32.const 1)))
    (drop (i32.atomic.rmw8.xchg_u (i32.const 21) (i32.const 70)))
    (drop (i32.atomic.rmw16.cmpxchg_u (i32.const 22) (i32.const 0x6867) (i32.const 0x4847)))
    (i64.atomic.store (i32.const 24) (i64.atomic.rmw.cmpxchg (i32.const 16) (i64.const 0) (i64.const 1)))
    (i32.store (i32.const 0) (i32.const 16)) (i32.store (i32.const 4) (i32.const 16))
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
