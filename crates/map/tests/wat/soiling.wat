;; Prints a hash of all its memory as it begins, and leaves none of it as it was. The segment that comes first is not the lowest, so that nothing is
;; expected to stay.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 4093) "second, and not aligned") (data (i32.const 16) "first") (data (i32.const 60001) "the last")
  (func (export "_start") (local $at i32) (local $hash i32)
    (loop $bytes
      (local.set $hash (i32.add (i32.mul (local.get $hash) (i32.const 31)) (i32.load8_u (local.get $at))))
      (i32.store8 (local.get $at) (i32.const 0xa5))
      (br_if $bytes (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 1))) (i32.const 65536))))
    (i32.store (i32.const 0) (i32.const 100)) (i32.store (i32.const 4) (i32.const 4)) (i32.store (i32.const 100) (local.get $hash))
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
