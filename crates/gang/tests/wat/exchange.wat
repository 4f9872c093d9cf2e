;; Every thread reads what its neighbour wrote before the barrier, five times.
(module
  (import "gpu" "thread" (func $thread (result i32)))
  (import "gpu" "threads" (func $threads (result i32)))
  (import "gpu" "group" (func $group (result i32)))
  (import "gpu" "barrier" (func $barrier))
  (global $sp (mut i32) (i32.const 65536))
  (memory 1)
  (func $number (result i32) (i32.add (i32.mul (call $group) (call $threads)) (call $thread)))
  (func $slot (param i32) (result i32) (i32.add (local.get 0) (i32.mul (call $number) (i32.const 4))))
  (func (export "exchange") (local $round i32)
    (loop $again
      (i32.store (call $slot (i32.const 0)) (i32.add (call $thread) (local.get $round)))
      (call $barrier)
      (i32.store offset=8192 (call $slot (i32.const 0))
        (i32.load (i32.mul (i32.const 4) (i32.and (i32.const 1023) (i32.add (call $thread) (i32.const 7))))))
      (call $barrier)
      (local.set $round (i32.add (local.get $round) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $round) (i32.const 5))))))
