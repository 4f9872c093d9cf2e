;; Thread 0 echoes: the host's number is at 0, the answer at 64; a number that is negative ends it.
(module
  (import "gpu" "thread" (func $thread (result i32)))
  (import "gpu" "threads" (func $threads (result i32)))
  (import "gpu" "group" (func $group (result i32)))
  (import "gpu" "sleep" (func $sleep (param i32)))
  (import "gpu" "fence_system" (func $fence_system))
  (import "gpu" "bus_load" (func $bus_load (param i32) (result i64)))
  (import "gpu" "bus_store" (func $bus_store (param i32 i64)))
  (import "gpu" "bus_put" (func $bus_put (param i32 i64)))
  (import "gpu" "bus_load2" (func $bus_load2 (param i32 i32)))
  (import "gpu" "bus_put2" (func $bus_put2 (param i32 i64 i64)))
  (global $sp (mut i32) (i32.const 65536))
  (memory 1)
  (func $number (result i32) (i32.add (i32.mul (call $group) (call $threads)) (call $thread)))
  (func (export "echo") (local $seen i64) (local $new i64)
    (if (i32.eqz (call $number)) (then
      (block $end
        (loop $again
          (local.set $new (call $bus_load (i32.const 0)))
          (if (i64.eq (local.get $new) (local.get $seen)) (then (call $sleep (i32.const 100)) (br $again)))
          (br_if $end (i64.lt_s (local.get $new) (i64.const 0)))
          (local.set $seen (local.get $new))
          (call $bus_store (i32.const 64) (i64.mul (local.get $new) (i64.const 3)))
          (br $again))))))
  (func (export "pairs") (local $at i32)
    (if (i32.eqz (call $number)) (then
      (call $bus_load2 (i32.const 128) (i32.const 1024))
      (call $fence_system)
      (call $bus_put2 (i32.const 144) (i64.load (i32.const 1032)) (i64.load (i32.const 1024)))
      (call $bus_put (i32.const 160) (i64.const 7)))))
  (func (export "outside") (drop (call $bus_load (i32.const 4096))))
  (func (export "skewed") (drop (call $bus_load (i32.const 4)))))
