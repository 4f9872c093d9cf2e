;; Thread 1 writes at 2048, and traps once the first thread, which waits again and again, has waited.
(module
  (import "wasi" "thread-spawn" (func $spawn (param i32) (result i32)))
  (import "env" "memory" (memory 1 4 shared))
  (export "memory" (memory 0))
  (global $mine (mut i32) (i32.const 5))
  (func $trap unreachable)
  (func (export "wasi_thread_start") (param $id i32) (param $arg i32)
    (global.set $mine (i32.const 6))
    (i32.store (i32.const 2048) (local.get $arg))
    (loop $l (br_if $l (i32.eqz (memory.atomic.notify (i32.const 64) (i32.const 1)))))
    (call $trap))
  (func $wait
    (loop $l (drop (memory.atomic.wait32 (i32.const 64) (i32.const 0) (i64.const -1))) (br $l)))
  (func (export "_start")
    (drop (call $spawn (i32.const 77)))
    (call $wait)))
