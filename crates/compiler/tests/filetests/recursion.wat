(module
  (func $fac (export "fac") (param i64) (result i64)
    (if (result i64) (i64.eqz (local.get 0)) (then (i64.const 1)) (else (i64.mul (local.get 0) (call $fac (i64.sub (local.get 0) (i64.const 1))))))))
;; fac as CLIF:
;;   function u0:0(i64, i64) -> i64 system_v {
;;       region0 = 2 "header"
;;       region1 = 5 "constant"
;;       sig0 = (i64) -> i32 system_v
;;       sig1 = (i64, i64) -> i64 system_v
;;       fn0 = colocated u1:10 sig0
;;       fn1 = colocated u0:0 sig1
;;
;;                                   block0(v0: i64, v1: i64):
;;   @0021                               v2 = load.i32 notrap aligned region0 v0+72
;;   @0021                               v3 = get_stack_pointer.i64
;;   @0021                               v4 = ireduce.i32 v3
;;   @0021                               v5 = iconst.i32 -8
;;   @0021                               v6 = iadd v4, v5  ; v5 = -8
;;   @0021                               v7 = icmp ult v6, v2
;;   @0021                               trapnz v7, user9
;;   @0021                               v8 = load.i32 notrap aligned region0 v0+80
;;   @0021                               v9 = iconst.i32 -1
;;   @0021                               v10 = iadd v8, v9  ; v9 = -1
;;   @0021                               store notrap aligned region0 v10, v0+80
;;   @0021                               v11 = iconst.i32 0
;;   @0021                               v12 = icmp slt v10, v11  ; v11 = 0
;;   @0021                               brif v12, block1, block2
;;
;;                                   block1 cold:
;;   @0021                               v13 = load.i64 notrap aligned readonly can_move region1 v0+88
;;   @0021                               v14 = call fn0(v13)
;;   @0021                               trapnz v14, user10
;;   @0021                               v15 = iconst.i32 4096
;;   @0021                               store notrap aligned region0 v15, v0+80  ; v15 = 4096
;;   @0021                               jump block2
;;
;;                                   block2:
;;   @0024                               v18 = iconst.i64 0
;;   @0024                               v19 = icmp.i64 eq v1, v18  ; v18 = 0
;;   @0025                               brif v19, block4, block5
;;
;;                                   block4:
;;                                       v27 = iconst.i64 1
;;   @0029                               jump block6(v27)  ; v27 = 1
;;
;;                                   block5:
;;   @002e                               v23 = iconst.i64 1
;;   @0030                               v24 = isub.i64 v1, v23  ; v23 = 1
;;   @0031                               v25 = call fn1(v0, v24)
;;   @0033                               v26 = imul.i64 v1, v25
;;   @0034                               jump block6(v26)
;;
;;                                   block6(v21: i64):
;;   @0035                               jump block3(v21)
;;
;;                                   block3(v16: i64):
;;   @0035                               return v16
;;   }
;; fac as PTX:
;;   // fac
;;   .func (.reg .b64 %out) f0_fac (.reg .b64 %a0, .reg .b64 %a1)
;;   {
;;       .reg .b32 %r<8>;  .reg .b64 %d<12>;  .reg .pred %p<4>;
;;   $P0: .callprototype (.reg .b64 _) _ (.reg .b64 _, .reg .b64 _);
;;   $B0:
;;       ld.global.u32 %r0, [%a0+72];
;;       stacksave.u32 %r6;
;;       cvt.u64.u32 %d0, %r6;
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
;;       setp.eq.u64 %p2, %a1, 0;
;;       @!%p2 bra $B5;
;;   $B4:
;;       mov.b64 %d5, 1;
;;       bra $B6;
;;   $B5:
;;       sub.u64 %d2, %a1, 1;
;;       mov.u64 %d7, f0_fac;
;;       mov.u32 %r7, %nctaid.y;
;;       cvt.u64.u32 %d8, %r7;
;;       add.u64 %d9, %d7, %d8;
;;       sub.u64 %d10, %d9, 1;
;;       call (%d3), %d10, (%a0, %d2), $P0;
;;       mul.lo.u64 %d4, %a1, %d3;
;;       mov.b64 %d5, %d4;
;;   $B6:
;;       mov.b64 %d6, %d5;
;;   $B3:
;;       mov.b64 %out, %d6;
;;       ret;
;;   $B1:
;;       ld.global.u64 %d1, [%a0+88];
;;       ld.global.L1::no_allocate.u32 %r5, [%d1];
;;       setp.ne.u32 %p3, %r5, 0;
;;       @%p3 bra $X1;
;;       st.global.u32 [%a0+80], 4096;
;;       bra $B2;
;;   $X0:
;;       mov.b64 %d11, 0x0900000000000021;
;;       st.global.u64 [%a0+8], %d11;
;;       exit;
;;   $X1:
;;       mov.b64 %d11, 0x0A00000000000021;
;;       st.global.u64 [%a0+8], %d11;
;;       exit;
;;   }
