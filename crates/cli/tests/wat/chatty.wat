;; Writes a megabyte for each of two rounds.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 17)
  (func (export "_start") (local $rounds i32) (local $at i32)
    (memory.fill (i32.const 64) (i32.const 0x78) (i32.const 1048575))
    (i32.store8 (i32.const 1048639) (i32.const 10))
    (loop $again
      (local.set $at (i32.const 64))
      (loop $rest
        (i32.store (i32.const 0) (local.get $at))
        (i32.store (i32.const 4) (i32.sub (i32.const 1048640) (local.get $at)))
        (if (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)) (then unreachable))
        (local.set $at (i32.add (local.get $at) (i32.load (i32.const 8))))
        (br_if $rest (i32.lt_u (local.get $at) (i32.const 1048640))))
      (local.set $rounds (i32.add (local.get $rounds) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $rounds) (i32.const 2))))))
