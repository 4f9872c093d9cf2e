;;! build = "speculative-local"
;;! check = "ptx"
;;! function = "asks"
(module (memory 1)
  (func $picture (export "gpu-run:picture") (param i32 i32) (result i32) (i32.const 0))
  (func $pixel (export "gpu-run:pixel") (param i32 i32))
  (func $time (export "gpu-run:time") (result f64) (f64.const 0))
  (func (export "asks_picture") (result i32) (call $picture (i32.const 640) (i32.const 360)))
  (func (export "asks_pixel") (param i32) (call $pixel (local.get 0) (i32.const 255)))
  (func (export "asks_time") (result f64) (call $time)))
