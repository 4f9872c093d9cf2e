;; Groups arrive at a counter; the first thread of each waits for the others.
(module
  (import "gpu" "thread" (func $thread (result i32)))
  (import "gpu" "threads" (func $threads (result i32)))
  (import "gpu" "group" (func $group (result i32)))
  (import "gpu" "groups" (func $groups (result i32)))
  (import "gpu" "barrier" (func $barrier))
  (import "gpu" "sleep" (func $sleep (param i32)))
  (import "gpu" "fence" (func $fence))
  (global $sp (mut i32) (i32.const 65536))
  (memory 1)
  (func $number (result i32) (i32.add (i32.mul (call $group) (call $threads)) (call $thread)))
  (func $slot (param i32) (result i32) (i32.add (local.get 0) (i32.mul (call $number) (i32.const 4))))
  (func $grid_barrier (param $round i32)
    (call $fence)
    (call $barrier)
    (if (i32.eqz (call $thread)) (then
      (drop (i32.atomic.rmw.add (i32.const 0) (i32.const 1)))
      (block $open
        (loop $wait
          (br_if $open (i32.ge_u (i32.atomic.load (i32.const 0)) (i32.mul (local.get $round) (call $groups))))
          (call $sleep (i32.const 100))
          (br $wait)))))
    (call $barrier)
    (call $fence))
  (func (export "run") (local $i i32)
    (local.set $i (i32.const 1))
    (loop $again
      (i32.store offset=1024 (call $slot (i32.const 0)) (local.get $i))
      (call $grid_barrier (i32.sub (i32.mul (local.get $i) (i32.const 2)) (i32.const 1)))
      ;; What the next group wrote.
      (i32.store offset=32768 (call $slot (i32.const 0))
        (i32.load offset=1024 (i32.mul (i32.const 4)
          (i32.rem_u (i32.add (call $number) (call $threads)) (i32.mul (call $groups) (call $threads))))))
      (if (i32.ne (i32.load offset=32768 (call $slot (i32.const 0))) (local.get $i)) (then (unreachable)))
      (call $grid_barrier (i32.mul (local.get $i) (i32.const 2)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.le_u (local.get $i) (i32.const 20))))))
