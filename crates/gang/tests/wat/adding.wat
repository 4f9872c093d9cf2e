;; Adds a number to every thread's word, through a table, and waits for the host if it is asked to. The table makes slots as large as it is.
(module
  (import "gpu" "thread" (func $thread (result i32)))
  (import "gpu" "sleep" (func $sleep (param i32)))
  (import "gpu" "bus_load" (func $bus_load (param i32) (result i64)))
  (global $sp (mut i32) (i32.const 65536))
  (memory 1)
  (table 1 (; table ;) funcref) (elem (i32.const 0 (; last ;)) $number_to_add)
  (data (i32.const 16) "first")
  (func $number_to_add (result i32) (i32.const 1 (; number ;)))
  (func (export "add") (local $at i32)
    (local.set $at (i32.add (i32.const 4096) (i32.mul (call $thread) (i32.const 4))))
    (i32.store (local.get $at) (i32.add (i32.load (local.get $at)) (call_indirect (result i32) (i32.const 0 (; last ;)))))
    (loop $wait
      (call $sleep (i32.const 1000))
      (br_if $wait (i64.ne (call $bus_load (i32.const 0)) (i64.const 0))))))
