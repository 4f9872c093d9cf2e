(module
  (func (export "div") (param f64 f64) (result f64) (f64.div (local.get 0) (local.get 1)))
  (func (export "sqrt") (param f64) (result f64) (f64.sqrt (local.get 0))))
;; div as CLIF:
;;   function u0:0(i64, f64, f64) -> f64 system_v {
;;                                   block0(v0: i64, v1: f64, v2: f64):
;;   @0035                               jump block1
;;
;;                                   block1:
;;   @0034                               v5 = fdiv.f64 v1, v2
;;   @0034                               v7 = fcmp uno v5, v5
;;   @0034                               v6 = f64const +NaN
;;   @0034                               v4 = select v7, v6, v5  ; v6 = +NaN
;;   @0035                               return v4
;;   }
;; div as PTX:
;;   // div
;;   .func (.reg .f64 %out) f0_div (.reg .b64 %a0, .reg .f64 %a1, .reg .f64 %a2)
;;   {
;;       .reg .f64 %g<2>;  .reg .pred %p<1>;
;;   $B0:
;;   $B1:
;;       div.rn.f64 %g0, %a1, %a2;
;;       setp.nan.f64 %p0, %g0, %g0;
;;       selp.f64 %g1, 0d7FF8000000000000, %g0, %p0;
;;       mov.f64 %out, %g1;
;;       ret;
;;   }
;; sqrt as CLIF:
;;   function u0:1(i64, f64) -> f64 system_v {
;;                                   block0(v0: i64, v1: f64):
;;   @003b                               jump block1
;;
;;                                   block1:
;;   @003a                               v4 = sqrt.f64 v1
;;   @003a                               v6 = fcmp uno v4, v4
;;   @003a                               v5 = f64const +NaN
;;   @003a                               v3 = select v6, v5, v4  ; v5 = +NaN
;;   @003b                               return v3
;;   }
;; sqrt as PTX:
;;   // sqrt
;;   .func (.reg .f64 %out) f1_sqrt (.reg .b64 %a0, .reg .f64 %a1)
;;   {
;;       .reg .f64 %g<2>;  .reg .pred %p<1>;
;;   $B0:
;;   $B1:
;;       sqrt.rn.f64 %g0, %a1;
;;       setp.nan.f64 %p0, %g0, %g0;
;;       selp.f64 %g1, 0d7FF8000000000000, %g0, %p0;
;;       mov.f64 %out, %g1;
;;       ret;
;;   }
