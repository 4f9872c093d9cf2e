(module
  (func (export "add") (param f32 f32) (result f32) (f32.add (local.get 0) (local.get 1)))
  (func (export "min") (param f64 f64) (result f64) (f64.min (local.get 0) (local.get 1)))
  (func (export "copysign") (param f32 f32) (result f32) (f32.copysign (local.get 0) (local.get 1)))
  (func (export "nearest") (param f64) (result f64) (f64.nearest (local.get 0)))
  (func (export "bits_are_seen") (param f32 f32) (result i32) (i32.reinterpret_f32 (f32.mul (local.get 0) (local.get 1)))))
;; add as CLIF:
;;   function u0:0(i64, f32, f32) -> f32 system_v {
;;                                   block0(v0: i64, v1: f32, v2: f32):
;;   @0068                               jump block1
;;
;;                                   block1:
;;   @0067                               v5 = fadd.f32 v1, v2
;;   @0067                               v7 = fcmp uno v5, v5
;;   @0067                               v6 = f32const +NaN
;;   @0067                               v4 = select v7, v6, v5  ; v6 = +NaN
;;   @0068                               return v4
;;   }
;; add as PTX:
;;   // add
;;   .func (.reg .f32 %out) f0_add (.reg .b64 %a0, .reg .f32 %a1, .reg .f32 %a2)
;;   {
;;       .reg .f32 %f<2>;  .reg .pred %p<1>;
;;   $B0:
;;   $B1:
;;       add.rn.f32 %f0, %a1, %a2;
;;       setp.nan.f32 %p0, %f0, %f0;
;;       selp.f32 %f1, 0f7FC00000, %f0, %p0;
;;       mov.f32 %out, %f1;
;;       ret;
;;   }
;; min as CLIF:
;;   function u0:1(i64, f64, f64) -> f64 system_v {
;;                                   block0(v0: i64, v1: f64, v2: f64):
;;   @0070                               jump block1
;;
;;                                   block1:
;;   @006f                               v5 = fmin.f64 v1, v2
;;   @006f                               v7 = fcmp uno v5, v5
;;   @006f                               v6 = f64const +NaN
;;   @006f                               v4 = select v7, v6, v5  ; v6 = +NaN
;;   @0070                               return v4
;;   }
;; min as PTX:
;;   // min
;;   .func (.reg .f64 %out) f1_min (.reg .b64 %a0, .reg .f64 %a1, .reg .f64 %a2)
;;   {
;;       .reg .f64 %g<4>;  .reg .pred %p<2>;
;;   $B0:
;;   $B1:
;;       setp.nan.f64 %p1, %a1, %a2;
;;       add.rn.f64 %g2, %a1, %a2;
;;       min.f64 %g3, %a1, %a2;
;;       selp.f64 %g0, %g2, %g3, %p1;
;;       setp.nan.f64 %p0, %g0, %g0;
;;       selp.f64 %g1, 0d7FF8000000000000, %g0, %p0;
;;       mov.f64 %out, %g1;
;;       ret;
;;   }
;; copysign as CLIF:
;;   function u0:2(i64, f32, f32) -> f32 system_v {
;;                                   block0(v0: i64, v1: f32, v2: f32):
;;   @0078                               jump block1
;;
;;                                   block1:
;;   @0077                               v4 = fcopysign.f32 v1, v2
;;   @0078                               return v4
;;   }
;; copysign as PTX:
;;   // copysign
;;   .func (.reg .f32 %out) f2_copysign (.reg .b64 %a0, .reg .f32 %a1, .reg .f32 %a2)
;;   {
;;       .reg .f32 %f<1>;
;;   $B0:
;;   $B1:
;;       copysign.f32 %f0, %a2, %a1;
;;       mov.f32 %out, %f0;
;;       ret;
;;   }
;; nearest as CLIF:
;;   function u0:3(i64, f64) -> f64 system_v {
;;                                   block0(v0: i64, v1: f64):
;;   @007e                               jump block1
;;
;;                                   block1:
;;   @007d                               v4 = nearest.f64 v1
;;   @007d                               v6 = fcmp uno v4, v4
;;   @007d                               v5 = f64const +NaN
;;   @007d                               v3 = select v6, v5, v4  ; v5 = +NaN
;;   @007e                               return v3
;;   }
;; nearest as PTX:
;;   // nearest
;;   .func (.reg .f64 %out) f3_nearest (.reg .b64 %a0, .reg .f64 %a1)
;;   {
;;       .reg .f64 %g<2>;  .reg .pred %p<1>;
;;   $B0:
;;   $B1:
;;       cvt.rni.f64.f64 %g0, %a1;
;;       setp.nan.f64 %p0, %g0, %g0;
;;       selp.f64 %g1, 0d7FF8000000000000, %g0, %p0;
;;       mov.f64 %out, %g1;
;;       ret;
;;   }
;; bits_are_seen as CLIF:
;;   function u0:4(i64, f32, f32) -> i32 system_v {
;;                                   block0(v0: i64, v1: f32, v2: f32):
;;   @0087                               jump block1
;;
;;                                   block1:
;;   @0085                               v6 = fmul.f32 v1, v2
;;   @0085                               v8 = fcmp uno v6, v6
;;   @0085                               v7 = f32const +NaN
;;   @0085                               v4 = select v8, v7, v6  ; v7 = +NaN
;;   @0086                               v5 = bitcast.i32 v4
;;   @0087                               return v5
;;   }
;; bits_are_seen as PTX:
;;   // bits_are_seen
;;   .func (.reg .b32 %out) f4_bits_are_seen (.reg .b64 %a0, .reg .f32 %a1, .reg .f32 %a2)
;;   {
;;       .reg .b32 %r<1>;  .reg .f32 %f<2>;  .reg .pred %p<1>;
;;   $B0:
;;   $B1:
;;       mul.rn.f32 %f0, %a1, %a2;
;;       setp.nan.f32 %p0, %f0, %f0;
;;       selp.f32 %f1, 0f7FC00000, %f0, %p0;
;;       mov.b32 %r0, %f1;
;;       mov.b32 %out, %r0;
;;       ret;
;;   }
