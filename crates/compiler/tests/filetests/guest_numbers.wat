;;! check = "ptx"
;;! function = "asks"
;; A function that is exported by a name that gpu-run knows is an operation, if its type is right, too.
(module
  (func $instance (export "gpu-run:instance") (result i64) (i64.const 0))
  (func $lane (export "gpu-run:lane") (result i32) (i32.const 0))
  (func $time (export "gpu-run:device_time") (result i64) (i64.const 0))
  (func $threads (export "gpu-run:threads") (param i32) (result i32) (i32.const 1))
  (func (export "asks_instance") (result i64) (call $instance))
  (func (export "asks_lane") (result i32) (call $lane))
  (func (export "asks_time") (result i64) (call $time))
  (func (export "asks_of_another_type") (result i32) (call $threads (i32.const 1))))
