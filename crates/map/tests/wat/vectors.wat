;; Vectors at multiples of 4, as they are promised to be, and at any address, which nothing promises.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start") (local $at i32)
    (i32.store (i32.const 0) (i32.const 100)) (i32.store (i32.const 4) (i32.const 1000))
    (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (local.set $at (i32.add (i32.const 2000) (i32.mul (i32.const 4) (i32.load (i32.const 8)))))
    (v128.store align=4 (local.get $at) (v128.const i32x4 0x64636261 0x68676665 0x6c6b6a69 0x706f6e6d))
    (v128.store offset=16 align=4 (local.get $at) (i8x16.add (v128.load align=4 (local.get $at)) (v128.load64_splat offset=4 align=4 (local.get $at))))
    (v128.store offset=33 align=1 (local.get $at) (v128.load offset=3 align=1 (local.get $at)))
    (i32.store (i32.const 0) (local.get $at)) (i32.store (i32.const 4) (i32.const 50))
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
