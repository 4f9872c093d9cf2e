(module
  (func (export "add") (param v128 v128) (result v128) (i32x4.add (local.get 0) (local.get 1)))
  (func (export "bytes_add_sat") (param v128 v128) (result v128) (i8x16.add_sat_u (local.get 0) (local.get 1)))
  (func (export "shuffle") (param v128 v128) (result v128) (i8x16.shuffle 0 1 2 3 20 21 22 23 8 9 10 11 28 29 30 31 (local.get 0) (local.get 1)))
  (func (export "any") (param v128) (result i32) (v128.any_true (local.get 0))))
;; add as CLIF:
;;   function u0:0(i64, i32x4, i32x4) -> i32x4 system_v {
;;                                   block0(v0: i64, v1: i32x4, v2: i32x4):
;;   @0052                               jump block1
;;
;;                                   block1:
;;   @004f                               v8 = extractlane.i32x4 v1, 0
;;   @004f                               v4 = extractlane.i32x4 v2, 0
;;   @004f                               v12 = iadd v8, v4
;;   @004f                               v16 = scalar_to_vector.i32x4 v12
;;   @004f                               v9 = extractlane.i32x4 v1, 1
;;   @004f                               v5 = extractlane.i32x4 v2, 1
;;   @004f                               v13 = iadd v9, v5
;;   @004f                               v17 = insertlane v16, v13, 1
;;   @004f                               v10 = extractlane.i32x4 v1, 2
;;   @004f                               v6 = extractlane.i32x4 v2, 2
;;   @004f                               v14 = iadd v10, v6
;;   @004f                               v18 = insertlane v17, v14, 2
;;   @004f                               v11 = extractlane.i32x4 v1, 3
;;   @004f                               v7 = extractlane.i32x4 v2, 3
;;   @004f                               v15 = iadd v11, v7
;;   @004f                               v19 = insertlane v18, v15, 3
;;   @0052                               return v19
;;   }
;; add as PTX:
;;   // add
;;   .func (.param .align 8 .b8 %out[32]) f0_add (.reg .b64 %a0, .reg .b32 %a1, .reg .b32 %a2, .reg .b32 %a3, .reg .b32 %a4, .reg .b32 %a5, .reg .b32 %a6, .reg .b32 %a7, .reg .b32 %a8)
;;   {
;;       .reg .b32 %r<12>;
;;   $B0:
;;   $B1:
;;       add.u32 %r2, %a1, %a5;
;;       add.u32 %r5, %a2, %a6;
;;       add.u32 %r8, %a3, %a7;
;;       add.u32 %r11, %a4, %a8;
;;       st.param.b32 [%out], %r2;
;;       st.param.b32 [%out+8], %r5;
;;       st.param.b32 [%out+16], %r8;
;;       st.param.b32 [%out+24], %r11;
;;       ret;
;;   }
;; bytes_add_sat as CLIF:
;;   function u0:1(i64, i32x4, i32x4) -> i32x4 system_v {
;;                                   block0(v0: i64, v1: i32x4, v2: i32x4):
;;   @005b                               jump block1
;;
;;                                   block1:
;;   @0059                               v8 = extractlane.i32x4 v1, 0
;;   @0059                               v12 = iconst.i32 0x7f7f_7f7f
;;   @0059                               v13 = band v8, v12  ; v12 = 0x7f7f_7f7f
;;   @0059                               v4 = extractlane.i32x4 v2, 0
;;   @0059                               v15 = band v4, v12  ; v12 = 0x7f7f_7f7f
;;   @0059                               v16 = iadd v13, v15
;;   @0059                               v17 = bxor v8, v4
;;   @0059                               v18 = iconst.i32 -2139062144
;;   @0059                               v19 = band v17, v18  ; v18 = -2139062144
;;   @0059                               v20 = bxor v16, v19
;;   @0059                               v21 = band v8, v4
;;   @0059                               v22 = bor v8, v4
;;   @0059                               v23 = bnot v20
;;   @0059                               v24 = band v22, v23
;;   @0059                               v25 = bor v21, v24
;;   @0059                               v27 = band v25, v18  ; v18 = -2139062144
;;   @0059                               v28 = iconst.i32 7
;;   @0059                               v29 = ushr v27, v28  ; v28 = 7
;;   @0059                               v30 = iconst.i32 255
;;   @0059                               v31 = imul v29, v30  ; v30 = 255
;;   @0059                               v32 = bor v20, v31
;;   @0059                               v96 = scalar_to_vector.i32x4 v32
;;   @0059                               v9 = extractlane.i32x4 v1, 1
;;   @0059                               v34 = band v9, v12  ; v12 = 0x7f7f_7f7f
;;   @0059                               v5 = extractlane.i32x4 v2, 1
;;   @0059                               v36 = band v5, v12  ; v12 = 0x7f7f_7f7f
;;   @0059                               v37 = iadd v34, v36
;;   @0059                               v38 = bxor v9, v5
;;   @0059                               v40 = band v38, v18  ; v18 = -2139062144
;;   @0059                               v41 = bxor v37, v40
;;   @0059                               v42 = band v9, v5
;;   @0059                               v43 = bor v9, v5
;;   @0059                               v44 = bnot v41
;;   @0059                               v45 = band v43, v44
;;   @0059                               v46 = bor v42, v45
;;   @0059                               v48 = band v46, v18  ; v18 = -2139062144
;;   @0059                               v50 = ushr v48, v28  ; v28 = 7
;;   @0059                               v52 = imul v50, v30  ; v30 = 255
;;   @0059                               v53 = bor v41, v52
;;   @0059                               v97 = insertlane v96, v53, 1
;;   @0059                               v10 = extractlane.i32x4 v1, 2
;;   @0059                               v55 = band v10, v12  ; v12 = 0x7f7f_7f7f
;;   @0059                               v6 = extractlane.i32x4 v2, 2
;;   @0059                               v57 = band v6, v12  ; v12 = 0x7f7f_7f7f
;;   @0059                               v58 = iadd v55, v57
;;   @0059                               v59 = bxor v10, v6
;;   @0059                               v61 = band v59, v18  ; v18 = -2139062144
;;   @0059                               v62 = bxor v58, v61
;;   @0059                               v63 = band v10, v6
;;   @0059                               v64 = bor v10, v6
;;   @0059                               v65 = bnot v62
;;   @0059                               v66 = band v64, v65
;;   @0059                               v67 = bor v63, v66
;;   @0059                               v69 = band v67, v18  ; v18 = -2139062144
;;   @0059                               v71 = ushr v69, v28  ; v28 = 7
;;   @0059                               v73 = imul v71, v30  ; v30 = 255
;;   @0059                               v74 = bor v62, v73
;;   @0059                               v98 = insertlane v97, v74, 2
;;   @0059                               v11 = extractlane.i32x4 v1, 3
;;   @0059                               v76 = band v11, v12  ; v12 = 0x7f7f_7f7f
;;   @0059                               v7 = extractlane.i32x4 v2, 3
;;   @0059                               v78 = band v7, v12  ; v12 = 0x7f7f_7f7f
;;   @0059                               v79 = iadd v76, v78
;;   @0059                               v80 = bxor v11, v7
;;   @0059                               v82 = band v80, v18  ; v18 = -2139062144
;;   @0059                               v83 = bxor v79, v82
;;   @0059                               v84 = band v11, v7
;;   @0059                               v85 = bor v11, v7
;;   @0059                               v86 = bnot v83
;;   @0059                               v87 = band v85, v86
;;   @0059                               v88 = bor v84, v87
;;   @0059                               v90 = band v88, v18  ; v18 = -2139062144
;;   @0059                               v92 = ushr v90, v28  ; v28 = 7
;;   @0059                               v94 = imul v92, v30  ; v30 = 255
;;   @0059                               v95 = bor v83, v94
;;   @0059                               v99 = insertlane v98, v95, 3
;;   @005b                               return v99
;;   }
;; bytes_add_sat as PTX:
;;   // bytes_add_sat
;;   .func (.param .align 8 .b8 %out[32]) f1_bytes_add_sat (.reg .b64 %a0, .reg .b32 %a1, .reg .b32 %a2, .reg .b32 %a3, .reg .b32 %a4, .reg .b32 %a5, .reg .b32 %a6, .reg .b32 %a7, .reg .b32 %a8)
;;   {
;;       .reg .b32 %r<68>;
;;   $B0:
;;   $B1:
;;       and.b32 %r1, %a1, 2139062143;
;;       and.b32 %r3, %a5, 2139062143;
;;       add.u32 %r4, %r1, %r3;
;;       xor.b32 %r5, %a1, %a5;
;;       and.b32 %r6, %r5, -2139062144;
;;       xor.b32 %r7, %r4, %r6;
;;       and.b32 %r8, %a1, %a5;
;;       or.b32 %r9, %a1, %a5;
;;       not.b32 %r10, %r7;
;;       and.b32 %r11, %r9, %r10;
;;       or.b32 %r12, %r8, %r11;
;;       and.b32 %r13, %r12, -2139062144;
;;       shr.u32 %r14, %r13, 7;
;;       mul.lo.u32 %r15, %r14, 255;
;;       or.b32 %r16, %r7, %r15;
;;       and.b32 %r18, %a2, 2139062143;
;;       and.b32 %r20, %a6, 2139062143;
;;       add.u32 %r21, %r18, %r20;
;;       xor.b32 %r22, %a2, %a6;
;;       and.b32 %r23, %r22, -2139062144;
;;       xor.b32 %r24, %r21, %r23;
;;       and.b32 %r25, %a2, %a6;
;;       or.b32 %r26, %a2, %a6;
;;       not.b32 %r27, %r24;
;;       and.b32 %r28, %r26, %r27;
;;       or.b32 %r29, %r25, %r28;
;;       and.b32 %r30, %r29, -2139062144;
;;       shr.u32 %r31, %r30, 7;
;;       mul.lo.u32 %r32, %r31, 255;
;;       or.b32 %r33, %r24, %r32;
;;       and.b32 %r35, %a3, 2139062143;
;;       and.b32 %r37, %a7, 2139062143;
;;       add.u32 %r38, %r35, %r37;
;;       xor.b32 %r39, %a3, %a7;
;;       and.b32 %r40, %r39, -2139062144;
;;       xor.b32 %r41, %r38, %r40;
;;       and.b32 %r42, %a3, %a7;
;;       or.b32 %r43, %a3, %a7;
;;       not.b32 %r44, %r41;
;;       and.b32 %r45, %r43, %r44;
;;       or.b32 %r46, %r42, %r45;
;;       and.b32 %r47, %r46, -2139062144;
;;       shr.u32 %r48, %r47, 7;
;;       mul.lo.u32 %r49, %r48, 255;
;;       or.b32 %r50, %r41, %r49;
;;       and.b32 %r52, %a4, 2139062143;
;;       and.b32 %r54, %a8, 2139062143;
;;       add.u32 %r55, %r52, %r54;
;;       xor.b32 %r56, %a4, %a8;
;;       and.b32 %r57, %r56, -2139062144;
;;       xor.b32 %r58, %r55, %r57;
;;       and.b32 %r59, %a4, %a8;
;;       or.b32 %r60, %a4, %a8;
;;       not.b32 %r61, %r58;
;;       and.b32 %r62, %r60, %r61;
;;       or.b32 %r63, %r59, %r62;
;;       and.b32 %r64, %r63, -2139062144;
;;       shr.u32 %r65, %r64, 7;
;;       mul.lo.u32 %r66, %r65, 255;
;;       or.b32 %r67, %r58, %r66;
;;       st.param.b32 [%out], %r16;
;;       st.param.b32 [%out+8], %r33;
;;       st.param.b32 [%out+16], %r50;
;;       st.param.b32 [%out+24], %r67;
;;       ret;
;;   }
;; shuffle as CLIF:
;;   function u0:2(i64, i32x4, i32x4) -> i32x4 system_v {
;;                                   block0(v0: i64, v1: i32x4, v2: i32x4):
;;   @0074                               jump block1
;;
;;                                   block1:
;;   @0062                               v4 = bitcast.i8x16 little v1
;;   @0062                               v5 = bitcast.i8x16 little v2
;;   @0062                               v6 = shuffle v4, v5, 0x1f1e1d1c0b0a09081716151403020100
;;   @0062                               v7 = bitcast.i32x4 little v6
;;   @0074                               return v7
;;   }
;; shuffle as PTX:
;;   // shuffle
;;   .func (.param .align 8 .b8 %out[32]) f2_shuffle (.reg .b64 %a0, .reg .b32 %a1, .reg .b32 %a2, .reg .b32 %a3, .reg .b32 %a4, .reg .b32 %a5, .reg .b32 %a6, .reg .b32 %a7, .reg .b32 %a8)
;;   {
;;       .reg .b32 %r<4>;
;;   $B0:
;;   $B1:
;;       mov.b32 %r0, %a1;
;;       mov.b32 %r1, %a6;
;;       mov.b32 %r2, %a3;
;;       mov.b32 %r3, %a8;
;;       st.param.b32 [%out], %r0;
;;       st.param.b32 [%out+8], %r1;
;;       st.param.b32 [%out+16], %r2;
;;       st.param.b32 [%out+24], %r3;
;;       ret;
;;   }
;; any as CLIF:
;;   function u0:3(i64, i32x4) -> i32 system_v {
;;                                   block0(v0: i64, v1: i32x4):
;;   @007b                               jump block1
;;
;;                                   block1:
;;   @0079                               v3 = extractlane.i32x4 v1, 0
;;   @0079                               v4 = extractlane.i32x4 v1, 1
;;   @0079                               v7 = bor v3, v4
;;   @0079                               v5 = extractlane.i32x4 v1, 2
;;   @0079                               v6 = extractlane.i32x4 v1, 3
;;   @0079                               v8 = bor v5, v6
;;   @0079                               v9 = bor v7, v8
;;   @0079                               v10 = iconst.i32 0
;;   @0079                               v11 = icmp ne v9, v10  ; v10 = 0
;;   @0079                               v12 = uextend.i32 v11
;;   @007b                               return v12
;;   }
;; any as PTX:
;;   // any
;;   .func (.reg .b32 %out) f3_any (.reg .b64 %a0, .reg .b32 %a1, .reg .b32 %a2, .reg .b32 %a3, .reg .b32 %a4)
;;   {
;;       .reg .b32 %r<8>;  .reg .pred %p<1>;
;;   $B0:
;;   $B1:
;;       or.b32 %r2, %a1, %a2;
;;       or.b32 %r5, %a3, %a4;
;;       or.b32 %r6, %r2, %r5;
;;       setp.ne.u32 %p0, %r6, 0;
;;       selp.b32 %r7, 1, 0, %p0;
;;       mov.b32 %out, %r7;
;;       ret;
;;   }
