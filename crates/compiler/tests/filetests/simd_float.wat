(module
  (func (export "mul") (param v128 v128) (result v128) (f32x4.mul (local.get 0) (local.get 1)))
  (func (export "splat") (param f64) (result v128) (f64x2.splat (local.get 0)))
  (func (export "pmin") (param v128 v128) (result v128) (f64x2.pmin (local.get 0) (local.get 1))))
;; mul as CLIF:
;;   function u0:0(i64, i32x4, i32x4) -> i32x4 system_v {
;;                                   block0(v0: i64, v1: i32x4, v2: i32x4):
;;   @0040                               jump block1
;;
;;                                   block1:
;;   @003d                               v12 = extractlane.i32x4 v1, 0
;;   @003d                               v16 = bitcast.f32 v12
;;   @003d                               v4 = extractlane.i32x4 v2, 0
;;   @003d                               v8 = bitcast.f32 v4
;;   @003d                               v32 = fmul v16, v8
;;   @003d                               v34 = fcmp uno v32, v32
;;   @003d                               v33 = f32const +NaN
;;   @003d                               v20 = select v34, v33, v32  ; v33 = +NaN
;;   @003d                               v24 = bitcast.i32 v20
;;   @003d                               v28 = scalar_to_vector.i32x4 v24
;;   @003d                               v13 = extractlane.i32x4 v1, 1
;;   @003d                               v17 = bitcast.f32 v13
;;   @003d                               v5 = extractlane.i32x4 v2, 1
;;   @003d                               v9 = bitcast.f32 v5
;;   @003d                               v35 = fmul v17, v9
;;   @003d                               v37 = fcmp uno v35, v35
;;   @003d                               v21 = select v37, v33, v35  ; v33 = +NaN
;;   @003d                               v25 = bitcast.i32 v21
;;   @003d                               v29 = insertlane v28, v25, 1
;;   @003d                               v14 = extractlane.i32x4 v1, 2
;;   @003d                               v18 = bitcast.f32 v14
;;   @003d                               v6 = extractlane.i32x4 v2, 2
;;   @003d                               v10 = bitcast.f32 v6
;;   @003d                               v38 = fmul v18, v10
;;   @003d                               v40 = fcmp uno v38, v38
;;   @003d                               v22 = select v40, v33, v38  ; v33 = +NaN
;;   @003d                               v26 = bitcast.i32 v22
;;   @003d                               v30 = insertlane v29, v26, 2
;;   @003d                               v15 = extractlane.i32x4 v1, 3
;;   @003d                               v19 = bitcast.f32 v15
;;   @003d                               v7 = extractlane.i32x4 v2, 3
;;   @003d                               v11 = bitcast.f32 v7
;;   @003d                               v41 = fmul v19, v11
;;   @003d                               v43 = fcmp uno v41, v41
;;   @003d                               v23 = select v43, v33, v41  ; v33 = +NaN
;;   @003d                               v27 = bitcast.i32 v23
;;   @003d                               v31 = insertlane v30, v27, 3
;;   @0040                               return v31
;;   }
;; mul as PTX:
;;   // mul
;;   .func (.param .align 8 .b8 %out[32]) f0_mul (.reg .b64 %a0, .reg .b32 %a1, .reg .b32 %a2, .reg .b32 %a3, .reg .b32 %a4, .reg .b32 %a5, .reg .b32 %a6, .reg .b32 %a7, .reg .b32 %a8)
;;   {
;;       .reg .b32 %r<12>;  .reg .f32 %f<16>;  .reg .pred %p<4>;
;;   $B0:
;;   $B1:
;;       mov.b32 %f0, %a1;
;;       mov.b32 %f1, %a5;
;;       mul.rn.f32 %f2, %f0, %f1;
;;       setp.nan.f32 %p0, %f2, %f2;
;;       selp.f32 %f3, 0f7FC00000, %f2, %p0;
;;       mov.b32 %r2, %f3;
;;       mov.b32 %f4, %a2;
;;       mov.b32 %f5, %a6;
;;       mul.rn.f32 %f6, %f4, %f5;
;;       setp.nan.f32 %p1, %f6, %f6;
;;       selp.f32 %f7, 0f7FC00000, %f6, %p1;
;;       mov.b32 %r5, %f7;
;;       mov.b32 %f8, %a3;
;;       mov.b32 %f9, %a7;
;;       mul.rn.f32 %f10, %f8, %f9;
;;       setp.nan.f32 %p2, %f10, %f10;
;;       selp.f32 %f11, 0f7FC00000, %f10, %p2;
;;       mov.b32 %r8, %f11;
;;       mov.b32 %f12, %a4;
;;       mov.b32 %f13, %a8;
;;       mul.rn.f32 %f14, %f12, %f13;
;;       setp.nan.f32 %p3, %f14, %f14;
;;       selp.f32 %f15, 0f7FC00000, %f14, %p3;
;;       mov.b32 %r11, %f15;
;;       st.param.b32 [%out], %r2;
;;       st.param.b32 [%out+8], %r5;
;;       st.param.b32 [%out+16], %r8;
;;       st.param.b32 [%out+24], %r11;
;;       ret;
;;   }
;; splat as CLIF:
;;   function u0:1(i64, f64) -> i32x4 system_v {
;;                                   block0(v0: i64, v1: f64):
;;   @0045                               v3 = bitcast.i64 v1
;;   @0045                               v5, v6 = isplit v3
;;   @0045                               v7, v8 = isplit v3
;;   @0047                               jump block1
;;
;;                                   block1:
;;   @0045                               v9 = scalar_to_vector.i32x4 v5
;;   @0045                               v10 = insertlane v9, v6, 1
;;   @0045                               v11 = insertlane v10, v7, 2
;;   @0045                               v12 = insertlane v11, v8, 3
;;   @0047                               return v12
;;   }
;; splat as PTX:
;;   // splat
;;   .func (.param .align 8 .b8 %out[32]) f1_splat (.reg .b64 %a0, .reg .f64 %a1)
;;   {
;;       .reg .b32 %r<8>;  .reg .b64 %d<1>;
;;   $B0:
;;       mov.b64 %d0, %a1;
;;       mov.b64 {%r4, %r5}, %d0;
;;       mov.b32 %r0, %r4;
;;       mov.b32 %r1, %r5;
;;       mov.b64 {%r6, %r7}, %d0;
;;       mov.b32 %r2, %r6;
;;       mov.b32 %r3, %r7;
;;   $B1:
;;       st.param.b32 [%out], %r0;
;;       st.param.b32 [%out+8], %r1;
;;       st.param.b32 [%out+16], %r2;
;;       st.param.b32 [%out+24], %r3;
;;       ret;
;;   }
;; pmin as CLIF:
;;   function u0:2(i64, i32x4, i32x4) -> i32x4 system_v {
;;                                   block0(v0: i64, v1: i32x4, v2: i32x4):
;;   @004e                               v4 = extractlane v2, 0
;;   @004e                               v5 = extractlane v2, 1
;;   @004e                               v8 = iconcat v4, v5
;;   @004e                               v10 = bitcast.f64 v8
;;   @004e                               v12 = extractlane v1, 0
;;   @004e                               v13 = extractlane v1, 1
;;   @004e                               v16 = iconcat v12, v13
;;   @004e                               v18 = bitcast.f64 v16
;;   @004e                               v20 = fcmp lt v10, v18
;;   @004e                               v21 = select v20, v10, v18
;;   @004e                               v24 = bitcast.i64 v21
;;   @004e                               v26, v27 = isplit v24
;;   @004e                               v6 = extractlane v2, 2
;;   @004e                               v7 = extractlane v2, 3
;;   @004e                               v9 = iconcat v6, v7
;;   @004e                               v11 = bitcast.f64 v9
;;   @004e                               v14 = extractlane v1, 2
;;   @004e                               v15 = extractlane v1, 3
;;   @004e                               v17 = iconcat v14, v15
;;   @004e                               v19 = bitcast.f64 v17
;;   @004e                               v22 = fcmp lt v11, v19
;;   @004e                               v23 = select v22, v11, v19
;;   @004e                               v25 = bitcast.i64 v23
;;   @004e                               v28, v29 = isplit v25
;;   @0051                               jump block1
;;
;;                                   block1:
;;   @004e                               v30 = scalar_to_vector.i32x4 v26
;;   @004e                               v31 = insertlane v30, v27, 1
;;   @004e                               v32 = insertlane v31, v28, 2
;;   @004e                               v33 = insertlane v32, v29, 3
;;   @0051                               return v33
;;   }
;; pmin as PTX:
;;   // pmin
;;   .func (.param .align 8 .b8 %out[32]) f2_pmin (.reg .b64 %a0, .reg .b32 %a1, .reg .b32 %a2, .reg .b32 %a3, .reg .b32 %a4, .reg .b32 %a5, .reg .b32 %a6, .reg .b32 %a7, .reg .b32 %a8)
;;   {
;;       .reg .b32 %r<16>;  .reg .b64 %d<6>;  .reg .f64 %g<6>;  .reg .pred %p<2>;
;;   $B0:
;;       mov.b64 %d0, {%a5, %a6};
;;       mov.b64 %g0, %d0;
;;       mov.b64 %d1, {%a1, %a2};
;;       mov.b64 %g1, %d1;
;;       setp.lt.f64 %p0, %g0, %g1;
;;       selp.f64 %g2, %g0, %g1, %p0;
;;       mov.b64 %d2, %g2;
;;       mov.b64 {%r12, %r13}, %d2;
;;       mov.b32 %r4, %r12;
;;       mov.b32 %r5, %r13;
;;       mov.b64 %d3, {%a7, %a8};
;;       mov.b64 %g3, %d3;
;;       mov.b64 %d4, {%a3, %a4};
;;       mov.b64 %g4, %d4;
;;       setp.lt.f64 %p1, %g3, %g4;
;;       selp.f64 %g5, %g3, %g4, %p1;
;;       mov.b64 %d5, %g5;
;;       mov.b64 {%r14, %r15}, %d5;
;;       mov.b32 %r10, %r14;
;;       mov.b32 %r11, %r15;
;;   $B1:
;;       st.param.b32 [%out], %r4;
;;       st.param.b32 [%out+8], %r5;
;;       st.param.b32 [%out+16], %r10;
;;       st.param.b32 [%out+24], %r11;
;;       ret;
;;   }
