(module
  (func $even (export "even") (param i32) (result i32) (if (result i32) (i32.eqz (local.get 0)) (then (i32.const 1)) (else (return_call $odd (i32.sub (local.get 0) (i32.const 1))))))
  (func $odd (param i32) (result i32) (if (result i32) (i32.eqz (local.get 0)) (then (i32.const 0)) (else (return_call $even (i32.sub (local.get 0) (i32.const 1)))))))
;; even as CLIF:
;;   function u2:30(i64, i32) -> i32 system_v {
;;       region0 = 2 "header"
;;       region1 = 5 "constant"
;;       sig0 = (i64) -> i32 system_v
;;       fn0 = colocated u1:10 sig0
;;
;;                                   block0(v0: i64, v1: i32):
;;   @0023                               v2 = load.i32 notrap aligned region0 v0+72
;;   @0023                               v3 = get_stack_pointer.i64
;;   @0023                               v4 = ireduce.i32 v3
;;   @0023                               v5 = iconst.i32 -8
;;   @0023                               v6 = iadd v4, v5  ; v5 = -8
;;   @0023                               v7 = icmp ult v6, v2
;;   @0023                               trapnz v7, user9
;;   @0023                               v8 = load.i32 notrap aligned region0 v0+80
;;   @0023                               v9 = iconst.i32 -1
;;   @0023                               v10 = iadd v8, v9  ; v9 = -1
;;   @0023                               store notrap aligned region0 v10, v0+80
;;   @0023                               v11 = iconst.i32 0
;;   @0023                               v12 = icmp slt v10, v11  ; v11 = 0
;;   @0023                               brif v12, block1, block2
;;
;;                                   block1 cold:
;;   @0023                               v13 = load.i64 notrap aligned readonly can_move region1 v0+88
;;   @0023                               v14 = call fn0(v13)
;;   @0023                               trapnz v14, user10
;;   @0023                               v15 = iconst.i32 4096
;;   @0023                               store notrap aligned region0 v15, v0+80  ; v15 = 4096
;;   @0023                               jump block2
;;
;;                                   block2:
;;                                       v29 = iconst.i32 0
;;                                       v30 = icmp.i32 eq v1, v29  ; v29 = 0
;;   @0027                               brif v30, block4, block5
;;
;;                                   block4:
;;   @002b                               jump block6
;;
;;                                   block5:
;;   @002e                               v23 = iconst.i32 1
;;   @0030                               v24 = isub.i32 v1, v23  ; v23 = 1
;;   @0031                               store notrap aligned region0 v24, v0+264
;;                                       v28 = iconst.i64 2
;;   @0031                               store notrap aligned region0 v28, v0+256  ; v28 = 2
;;   @0031                               jump block7
;;
;;                                   block6:
;;   @0034                               jump block3
;;
;;                                   block3:
;;                                       v32 = iconst.i32 1
;;   @0034                               return v32  ; v32 = 1
;;
;;                                   block7:
;;                                       v31 = iconst.i32 0
;;   @0034                               return v31  ; v31 = 0
;;   }
;; even as PTX:
;;   // even
;;   .func (.reg .b32 %out) f0_even (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<8>;  .reg .b64 %d<3>;  .reg .pred %p<4>;
;;   $B0:
;;       ld.global.u32 %r0, [%a0+72];
;;       stacksave.u32 %r7;
;;       cvt.u64.u32 %d0, %r7;
;;       cvt.u32.u64 %r1, %d0;
;;       add.u32 %r2, %r1, -8;
;;       setp.lt.u32 %p0, %r2, %r0;
;;       @%p0 bra $X0;
;;       ld.global.u32 %r3, [%a0+80];
;;       add.u32 %r4, %r3, -1;
;;       st.global.u32 [%a0+80], %r4;
;;       setp.lt.s32 %p1, %r4, 0;
;;       @%p1 bra $B1;
;;   $B2:
;;       setp.eq.u32 %p2, %a1, 0;
;;       @!%p2 bra $B5;
;;   $B4:
;;       bra $B6;
;;   $B5:
;;       sub.u32 %r6, %a1, 1;
;;       st.global.u32 [%a0+264], %r6;
;;       st.global.u64 [%a0+256], 2;
;;       bra $B7;
;;   $B6:
;;   $B3:
;;       mov.b32 %out, 1;
;;       ret;
;;   $B7:
;;       mov.b32 %out, 0;
;;       ret;
;;   $B1:
;;       ld.global.u64 %d1, [%a0+88];
;;       ld.global.L1::no_allocate.u32 %r5, [%d1];
;;       setp.ne.u32 %p3, %r5, 0;
;;       @%p3 bra $X1;
;;       st.global.u32 [%a0+80], 4096;
;;       bra $B2;
;;   $X0:
;;       mov.b64 %d2, 0x0900000000000023;
;;       st.global.u64 [%a0+8], %d2;
;;       exit;
;;   $X1:
;;       mov.b64 %d2, 0x0A00000000000023;
;;       st.global.u64 [%a0+8], %d2;
;;       exit;
;;   }
;; odd as CLIF:
;;   function u2:31(i64, i32) -> i32 system_v {
;;       region0 = 2 "header"
;;       region1 = 5 "constant"
;;       sig0 = (i64) -> i32 system_v
;;       fn0 = colocated u1:10 sig0
;;
;;                                   block0(v0: i64, v1: i32):
;;   @0036                               v2 = load.i32 notrap aligned region0 v0+72
;;   @0036                               v3 = get_stack_pointer.i64
;;   @0036                               v4 = ireduce.i32 v3
;;   @0036                               v5 = iconst.i32 -8
;;   @0036                               v6 = iadd v4, v5  ; v5 = -8
;;   @0036                               v7 = icmp ult v6, v2
;;   @0036                               trapnz v7, user9
;;   @0036                               v8 = load.i32 notrap aligned region0 v0+80
;;   @0036                               v9 = iconst.i32 -1
;;   @0036                               v10 = iadd v8, v9  ; v9 = -1
;;   @0036                               store notrap aligned region0 v10, v0+80
;;   @0036                               v11 = iconst.i32 0
;;   @0036                               v12 = icmp slt v10, v11  ; v11 = 0
;;   @0036                               brif v12, block1, block2
;;
;;                                   block1 cold:
;;   @0036                               v13 = load.i64 notrap aligned readonly can_move region1 v0+88
;;   @0036                               v14 = call fn0(v13)
;;   @0036                               trapnz v14, user10
;;   @0036                               v15 = iconst.i32 4096
;;   @0036                               store notrap aligned region0 v15, v0+80  ; v15 = 4096
;;   @0036                               jump block2
;;
;;                                   block2:
;;                                       v29 = iconst.i32 0
;;                                       v30 = icmp.i32 eq v1, v29  ; v29 = 0
;;   @003a                               brif v30, block4, block5
;;
;;                                   block4:
;;   @003e                               jump block6
;;
;;                                   block5:
;;   @0041                               v23 = iconst.i32 1
;;   @0043                               v24 = isub.i32 v1, v23  ; v23 = 1
;;   @0044                               store notrap aligned region0 v24, v0+264
;;                                       v28 = iconst.i64 1
;;   @0044                               store notrap aligned region0 v28, v0+256  ; v28 = 1
;;   @0044                               jump block7
;;
;;                                   block6:
;;   @0047                               jump block3
;;
;;                                   block3:
;;                                       v32 = iconst.i32 0
;;   @0047                               return v32  ; v32 = 0
;;
;;                                   block7:
;;                                       v31 = iconst.i32 0
;;   @0047                               return v31  ; v31 = 0
;;   }
;; odd as PTX:
;;   // odd
;;   .func (.reg .b32 %out) f1_odd (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<8>;  .reg .b64 %d<3>;  .reg .pred %p<4>;
;;   $B0:
;;       ld.global.u32 %r0, [%a0+72];
;;       stacksave.u32 %r7;
;;       cvt.u64.u32 %d0, %r7;
;;       cvt.u32.u64 %r1, %d0;
;;       add.u32 %r2, %r1, -8;
;;       setp.lt.u32 %p0, %r2, %r0;
;;       @%p0 bra $X0;
;;       ld.global.u32 %r3, [%a0+80];
;;       add.u32 %r4, %r3, -1;
;;       st.global.u32 [%a0+80], %r4;
;;       setp.lt.s32 %p1, %r4, 0;
;;       @%p1 bra $B1;
;;   $B2:
;;       setp.eq.u32 %p2, %a1, 0;
;;       @!%p2 bra $B5;
;;   $B4:
;;       bra $B6;
;;   $B5:
;;       sub.u32 %r6, %a1, 1;
;;       st.global.u32 [%a0+264], %r6;
;;       st.global.u64 [%a0+256], 1;
;;       bra $B7;
;;   $B6:
;;   $B3:
;;       mov.b32 %out, 0;
;;       ret;
;;   $B7:
;;       mov.b32 %out, 0;
;;       ret;
;;   $B1:
;;       ld.global.u64 %d1, [%a0+88];
;;       ld.global.L1::no_allocate.u32 %r5, [%d1];
;;       setp.ne.u32 %p3, %r5, 0;
;;       @%p3 bra $X1;
;;       st.global.u32 [%a0+80], 4096;
;;       bra $B2;
;;   $X0:
;;       mov.b64 %d2, 0x0900000100000036;
;;       st.global.u64 [%a0+8], %d2;
;;       exit;
;;   $X1:
;;       mov.b64 %d2, 0x0A00000100000036;
;;       st.global.u64 [%a0+8], %d2;
;;       exit;
;;   }
