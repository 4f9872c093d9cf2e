;;! check = "ptx"
;;! function = "asks"
(module
  (func $sin (export "gpu-run:sin") (param f32) (result f32) (local.get 0))
  (func $cos (export "gpu-run:cos") (param f32) (result f32) (local.get 0))
  (func $exp2 (export "gpu-run:exp2") (param f32) (result f32) (local.get 0))
  (func $log2 (export "gpu-run:log2") (param f32) (result f32) (local.get 0))
  (func $rsqrt (export "gpu-run:rsqrt") (param f32) (result f32) (local.get 0))
  (func (export "asks_all") (param f32) (result f32)
    (call $rsqrt (call $log2 (call $exp2 (call $cos (call $sin (local.get 0))))))))
