;; Grows by as many pages as stdin's digit says, traps if anything is in its memory, and fills all of it.
(module
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func $look (local $at i32)
    (local.set $at (i32.const 1024))
    (loop $next
      (if (i64.ne (i64.load (local.get $at)) (i64.const 0)) (then unreachable))
      (local.set $at (i32.add (local.get $at) (i32.const 8)))
      (br_if $next (i32.lt_u (local.get $at) (i32.shl (memory.size) (i32.const 16))))))
  (func (export "_start")
    (call $look)
    (i32.store (i32.const 0) (i32.const 100)) (i32.store (i32.const 4) (i32.const 1))
    (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (drop (memory.grow (i32.sub (i32.load8_u (i32.const 100)) (i32.const 48))))
    (call $look)
    (memory.fill (i32.const 1024) (i32.const 165) (i32.sub (i32.shl (memory.size) (i32.const 16)) (i32.const 1024)))))
