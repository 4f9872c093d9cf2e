;; All threads count at the same addresses: with atomics, and under a lock.
(module
  (import "gpu" "thread" (func $thread (result i32)))
  (import "gpu" "threads" (func $threads (result i32)))
  (import "gpu" "group" (func $group (result i32)))
  (import "gpu" "sleep" (func $sleep (param i32)))
  (import "gpu" "fence" (func $fence))
  (global $sp (mut i32) (i32.const 65536))
  (memory 1)
  (func $number (result i32) (i32.add (i32.mul (call $group) (call $threads)) (call $thread)))
  (func (export "count") (local $i i32)
    (loop $again
      (drop (i32.atomic.rmw.add (i32.const 16) (i32.const 1)))
      (drop (i64.atomic.rmw.add (i32.const 24) (i64.const 3)))
      (drop (i32.atomic.rmw8.add_u (i32.const 33) (i32.const 1)))
      (drop (i32.atomic.rmw.xor (i32.const 40) (call $number)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const 9)))))
  (func (export "lock") (local $i i32)
    (loop $again
      (block $have
        (loop $spin
          (br_if $have (i32.eqz (i32.atomic.rmw.cmpxchg (i32.const 0) (i32.const 0) (i32.const 1))))
          (call $sleep (i32.const 20))
          (br $spin)))
      (call $fence)
      (i32.store (i32.const 4) (i32.add (i32.load (i32.const 4)) (i32.const 1)))
      (call $fence)
      (i32.atomic.store (i32.const 0) (i32.const 0))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const 2))))))
