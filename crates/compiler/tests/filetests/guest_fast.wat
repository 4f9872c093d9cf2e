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
;; asks_all as PTX:
;;   // asks_all
;;   .func (.reg .f32 %out) f5_asks_all (.reg .b64 %a0, .reg .f32 %a1)
;;   {
;;       .reg .f32 %f<5>;
;;   $B0:
;;       sin.approx.f32 %f0, %a1;
;;       cos.approx.f32 %f1, %f0;
;;       ex2.approx.f32 %f2, %f1;
;;       lg2.approx.f32 %f3, %f2;
;;       rsqrt.approx.f32 %f4, %f3;
;;   $B1:
;;       mov.f32 %out, %f4;
;;       ret;
;;   }
