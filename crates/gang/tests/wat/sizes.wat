;; Sizes, clocks and bulk operations.
(module
  (import "gpu" "processor" (func $processor (result i32)))
  (import "gpu" "clock" (func $clock (result i64)))
  (import "gpu" "cycles" (func $cycles (result i64)))
  (global $sp (mut i32) (i32.const 65536))
  (memory 1)
  (func (export "run")
    (i32.store (i32.const 0) (memory.size))
    (i32.store (i32.const 4) (memory.grow (i32.const 1)))
    (i32.store (i32.const 8) (memory.grow (i32.const 0)))
    (i64.store (i32.const 16) (call $clock))
    (if (i64.lt_u (call $cycles) (call $cycles)) (then (i32.store (i32.const 24) (call $processor)))))
  (func (export "bulk") (memory.fill (i32.const 1000) (i32.const 7) (i32.const 100)) (memory.copy (i32.const 3001) (i32.const 1000) (i32.const 50))))
