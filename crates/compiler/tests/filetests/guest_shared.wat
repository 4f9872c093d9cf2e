;;! build = "exact-interleaved"
;;! check = "ptx"
;;! function = "asks"
(module
  (func $add (export "gpu-run:shared_add_32") (param i32 i32) (result i32) (i32.const 0))
  (func $max (export "gpu-run:shared_max_64") (param i32 i64) (result i64) (i64.const 0))
  (func $swap (export "gpu-run:shared_compare_exchange_64") (param i32 i64 i64) (result i64) (i64.const 0))
  (func $load (export "gpu-run:shared_load_32") (param i32) (result i32) (i32.const 0))
  (func $store (export "gpu-run:shared_store_32") (param i32 i32))
  (func $fence (export "gpu-run:fence"))
  (func (export "asks_add") (param i32 i32) (result i32) (call $add (local.get 0) (local.get 1)))
  (func (export "asks_max") (param i32 i64) (result i64) (call $max (local.get 0) (local.get 1)))
  (func (export "asks_swap") (param i32 i64 i64) (result i64) (call $swap (local.get 0) (local.get 1) (local.get 2)))
  (func (export "asks_copy") (call $fence) (call $store (i32.const 4) (call $load (i32.const 0)))))
