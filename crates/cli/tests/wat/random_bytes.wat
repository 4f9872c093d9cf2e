;; Has the beginning of its memory filled with random bytes, and traps if that fails or the last eight of them are 0.
(module
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (memory (export "memory") 1 (; pages ;))
  (func (export "_start")
    (if (call $random (i32.const 0) (i32.const 64 (; bytes ;))) (then unreachable))
    (if (i64.eqz (i64.load (i32.const 56 (; last ;)))) (then unreachable))))
