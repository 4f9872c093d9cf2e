;; Counts launches in the image: one word for all threads, and one for each.
(module
  (import "gpu" "thread" (func $thread (result i32)))
  (import "gpu" "threads" (func $threads (result i32)))
  (import "gpu" "group" (func $group (result i32)))
  (global $sp (mut i32) (i32.const 65536))
  (memory 1)
  (func $number (result i32) (i32.add (i32.mul (call $group) (call $threads)) (call $thread)))
  (func $slot (param i32) (result i32) (i32.add (local.get 0) (i32.mul (call $number) (i32.const 4))))
  (data (i32.const 100) "\05\00\00\00")
  (func (export "tick")
    (drop (i32.atomic.rmw.add (i32.const 100) (i32.const 1)))
    (i32.store offset=4096 (call $slot (i32.const 0)) (i32.add (i32.load offset=4096 (call $slot (i32.const 0))) (call $thread)))))
