(module
  (func (export "trunc") (param f64) (result i32) (i32.trunc_f64_s (local.get 0)))
  (func (export "trunc_sat") (param f32) (result i64) (i64.trunc_sat_f32_u (local.get 0)))
  (func (export "convert") (param i64) (result f32) (f32.convert_i64_u (local.get 0)))
  (func (export "wrap") (param i64) (result i32) (i32.wrap_i64 (local.get 0)))
  (func (export "demote") (param f64) (result f32) (f32.demote_f64 (local.get 0))))
;; trunc as CLIF:
;;   function u0:0(i64, f64) -> i32 system_v {
;;                                   block0(v0: i64, v1: f64):
;;   @0064                               v3 = fcmp eq v1, v1
;;   @0064                               trapz v3, user8
;;   @0064                               v4 = f64const -0x1.0000000200000p31
;;   @0064                               v6 = fcmp gt v1, v4  ; v4 = -0x1.0000000200000p31
;;   @0064                               v5 = f64const 0x1.0000000000000p31
;;   @0064                               v7 = fcmp lt v1, v5  ; v5 = 0x1.0000000000000p31
;;   @0064                               v8 = band v6, v7
;;   @0064                               trapz v8, user7
;;   @0065                               jump block1
;;
;;                                   block1:
;;   @0064                               v9 = fcvt_to_sint_sat.i32 v1
;;   @0065                               return v9
;;   }
;; trunc as PTX:
;;   // trunc
;;   .func (.reg .b32 %out) f0_trunc (.reg .b64 %a0, .reg .f64 %a1)
;;   {
;;       .reg .b32 %r<2>;  .reg .b64 %d<1>;  .reg .pred %p<5>;
;;   $B0:
;;       setp.eq.f64 %p0, %a1, %a1;
;;       @!%p0 bra $X0;
;;       setp.gt.f64 %p1, %a1, 0dC1E0000000200000;
;;       setp.lt.f64 %p2, %a1, 0d41E0000000000000;
;;       and.pred %p3, %p1, %p2;
;;       @!%p3 bra $X1;
;;   $B1:
;;       cvt.rzi.s32.f64 %r1, %a1;
;;       setp.nan.f64 %p4, %a1, %a1;
;;       selp.b32 %r0, 0, %r1, %p4;
;;       mov.b32 %out, %r0;
;;       ret;
;;   $X0:
;;       mov.b64 %d0, 0x0800000000000064;
;;       st.global.u64 [%a0+8], %d0;
;;       exit;
;;   $X1:
;;       mov.b64 %d0, 0x0700000000000064;
;;       st.global.u64 [%a0+8], %d0;
;;       exit;
;;   }
;; trunc_sat as CLIF:
;;   function u0:1(i64, f32) -> i64 system_v {
;;                                   block0(v0: i64, v1: f32):
;;   @006c                               jump block1
;;
;;                                   block1:
;;   @006a                               v3 = fcvt_to_uint_sat.i64 v1
;;   @006c                               return v3
;;   }
;; trunc_sat as PTX:
;;   // trunc_sat
;;   .func (.reg .b64 %out) f1_trunc_sat (.reg .b64 %a0, .reg .f32 %a1)
;;   {
;;       .reg .b64 %d<2>;  .reg .pred %p<1>;
;;   $B0:
;;   $B1:
;;       cvt.rzi.u64.f32 %d1, %a1;
;;       setp.nan.f32 %p0, %a1, %a1;
;;       selp.b64 %d0, 0, %d1, %p0;
;;       mov.b64 %out, %d0;
;;       ret;
;;   }
;; convert as CLIF:
;;   function u0:2(i64, i64) -> f32 system_v {
;;                                   block0(v0: i64, v1: i64):
;;   @0072                               jump block1
;;
;;                                   block1:
;;   @0071                               v3 = fcvt_from_uint.f32 v1
;;   @0072                               return v3
;;   }
;; convert as PTX:
;;   // convert
;;   .func (.reg .f32 %out) f2_convert (.reg .b64 %a0, .reg .b64 %a1)
;;   {
;;       .reg .f32 %f<1>;
;;   $B0:
;;   $B1:
;;       cvt.rn.f32.u64 %f0, %a1;
;;       mov.f32 %out, %f0;
;;       ret;
;;   }
;; wrap as CLIF:
;;   function u0:3(i64, i64) -> i32 system_v {
;;                                   block0(v0: i64, v1: i64):
;;   @0078                               jump block1
;;
;;                                   block1:
;;   @0077                               v3 = ireduce.i32 v1
;;   @0078                               return v3
;;   }
;; wrap as PTX:
;;   // wrap
;;   .func (.reg .b32 %out) f3_wrap (.reg .b64 %a0, .reg .b64 %a1)
;;   {
;;       .reg .b32 %r<1>;
;;   $B0:
;;   $B1:
;;       cvt.u32.u64 %r0, %a1;
;;       mov.b32 %out, %r0;
;;       ret;
;;   }
;; demote as CLIF:
;;   function u0:4(i64, f64) -> f32 system_v {
;;                                   block0(v0: i64, v1: f64):
;;   @007e                               jump block1
;;
;;                                   block1:
;;   @007d                               v4 = fdemote.f32 v1
;;   @007d                               v6 = fcmp uno v4, v4
;;   @007d                               v5 = f32const +NaN
;;   @007d                               v3 = select v6, v5, v4  ; v5 = +NaN
;;   @007e                               return v3
;;   }
;; demote as PTX:
;;   // demote
;;   .func (.reg .f32 %out) f4_demote (.reg .b64 %a0, .reg .f64 %a1)
;;   {
;;       .reg .f32 %f<2>;  .reg .pred %p<1>;
;;   $B0:
;;   $B1:
;;       cvt.rn.f32.f64 %f0, %a1;
;;       setp.nan.f32 %p0, %f0, %f0;
;;       selp.f32 %f1, 0f7FC00000, %f0, %p0;
;;       mov.f32 %out, %f1;
;;       ret;
;;   }
