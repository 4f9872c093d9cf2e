;;! build = "exact-interleaved"
;;! backtrace = "on"
;;! function = "caller"
(module
  (type $unary (func (param i32)))
  (table funcref (elem $leaf))
  (func $leaf (param i32) (if (local.get 0) (then unreachable)))
  ;; Before a call its place and the depth plus one, after it the depth.
  (func $caller (export "caller") (param i32)
    (call $leaf (local.get 0))
    (call_indirect (type $unary) (i32.const 1) (i32.const 0))))
;; caller as CLIF:
;;   function u0:1(i64, i32) system_v {
;;       region0 = 2 "header"
;;       region1 = 3 "table"
;;       region2 = 5 "constant"
;;       gv0 = symbol colocated userextname1
;;       sig0 = (i64, i32) system_v
;;       sig1 = (i64, i32) system_v
;;       fn0 = colocated u0:0 sig0
;;
;;                                   block0(v0: i64, v1: i32):
;;   @003f                               v2 = load.i32 notrap aligned region0 v0+2304
;;   @003f                               v3 = get_stack_pointer.i64
;;   @003f                               v4 = ireduce.i32 v3
;;   @003f                               v5 = iconst.i32 -8
;;   @003f                               v6 = iadd v4, v5  ; v5 = -8
;;   @003f                               v7 = icmp ult v6, v2
;;   @003f                               trapnz v7, user9
;;   @003f                               v8 = load.i32 notrap aligned region0 v0+8192
;;   @0042                               v17 = iconst.i32 66
;;   @0042                               v14 = iconst.i64 8448
;;   @0042                               v15 = iadd v0, v14  ; v14 = 8448
;;   @0042                               v9 = iconst.i32 63
;;   @0042                               v10 = band v8, v9  ; v9 = 63
;;   @0042                               v11 = uextend.i64 v10
;;                                       v55 = iconst.i64 7
;;                                       v56 = ishl v11, v55  ; v55 = 7
;;   @0042                               v16 = iadd v15, v56
;;   @0042                               store notrap aligned region0 v17, v16  ; v17 = 66
;;   @0042                               v18 = iconst.i32 1
;;   @0042                               v19 = iadd v8, v18  ; v18 = 1
;;   @0042                               store notrap aligned region0 v19, v0+8192
;;   @0042                               call fn0(v0, v1)
;;   @0042                               store notrap aligned region0 v8, v0+8192
;;   @0048                               v22 = load.i32 notrap aligned region0 v0+0x4100
;;   @0046                               v21 = iconst.i32 0
;;                                       v59 = icmp eq v22, v21  ; v21 = 0
;;   @0048                               trapnz v59, user13
;;   @0048                               v24 = iconst.i64 0x4400
;;   @0048                               v25 = iadd v0, v24  ; v24 = 0x4400
;;   @0048                               v30 = load.i32 notrap aligned region1 v25
;;   @0048                               v31 = load.i32 notrap aligned region1 v25+128
;;   @0048                               v32 = iconcat v30, v31
;;   @0048                               trapz v32, user4
;;   @0048                               v33 = iconst.i64 32
;;   @0048                               v34 = ushr v32, v33  ; v33 = 32
;;   @0048                               trapnz v34, user5
;;   @0048                               v37 = symbol_value.i64 gv0
;;   @0048                               v38 = ireduce.i32 v32
;;   @0048                               v39 = uextend.i64 v38
;;   @0048                               v40 = iconst.i64 3
;;   @0048                               v41 = ishl v39, v40  ; v40 = 3
;;   @0048                               v42 = iadd v37, v41
;;   @0048                               v43 = load.i64 notrap aligned readonly region2 v42-8
;;   @0048                               v52 = iconst.i32 72
;;   @0048                               store notrap aligned region0 v52, v16  ; v52 = 72
;;   @0048                               store notrap aligned region0 v19, v0+8192
;;   @0048                               call_indirect sig1, v43(v0, v18)  ; v18 = 1
;;   @0048                               store notrap aligned region0 v8, v0+8192
;;   @004b                               jump block1
;;
;;                                   block1:
;;   @004b                               return
;;   }
;; caller as PTX:
;;   // caller
;;   .func f1_caller (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<19>;  .reg .b64 %d<14>;  .reg .pred %p<4>;
;;   $P0: .callprototype _ (.reg .b64 _, .reg .b32 _);
;;   $B0:
;;       ld.global.u32 %r0, [%a0+2304];
;;       stacksave.u32 %r10;
;;       cvt.u64.u32 %d0, %r10;
;;       cvt.u32.u64 %r1, %d0;
;;       add.u32 %r2, %r1, -8;
;;       setp.lt.u32 %p0, %r2, %r0;
;;       @%p0 bra $X0;
;;       ld.global.u32 %r3, [%a0+8192];
;;       add.u64 %d1, %a0, 8448;
;;       and.b32 %r4, %r3, 63;
;;       cvt.u64.u32 %d2, %r4;
;;       shl.b64 %d3, %d2, 7;
;;       add.u64 %d4, %d1, %d3;
;;       st.global.u32 [%d4], 66;
;;       add.u32 %r5, %r3, 1;
;;       st.global.u32 [%a0+8192], %r5;
;;       call f0_leaf, (%a0, %a1);
;;       st.global.u32 [%a0+8192], %r3;
;;       ld.global.u32 %r6, [%a0+16640];
;;       setp.eq.u32 %p1, %r6, 0;
;;       @%p1 bra $X1;
;;       ld.global.u32 %r7, [%a0+17408];
;;       ld.global.u32 %r8, [%a0+17536];
;;       mov.b64 %d6, {%r7, %r8};
;;       setp.ne.u64 %p2, %d6, 0;
;;       @!%p2 bra $X2;
;;       shr.u64 %d7, %d6, 32;
;;       setp.ne.u64 %p3, %d7, 0;
;;       @%p3 bra $X3;
;;       mov.u64 %d8, function_table;
;;       cvt.u32.u64 %r9, %d6;
;;       cvt.u64.u32 %d9, %r9;
;;       shl.b64 %d10, %d9, 3;
;;       add.u64 %d11, %d8, %d10;
;;       ld.global.u64 %d12, [%d11+-8];
;;       st.global.u32 [%d4], 72;
;;       st.global.u32 [%a0+8192], %r5;
;;       call %d12, (%a0, 1), $P0;
;;       st.global.u32 [%a0+8192], %r3;
;;   $B1:
;;       ret;
;;   $X0:
;;       mov.b64 %d13, 0x090000010000003F;
;;       mov.b64 {%r11, %r12}, %d13;
;;       st.global.u32 [%a0+256], %r11;
;;       st.global.u32 [%a0+384], %r12;
;;       exit;
;;   $X1:
;;       mov.b64 %d13, 0x0D00000100000048;
;;       mov.b64 {%r13, %r14}, %d13;
;;       st.global.u32 [%a0+256], %r13;
;;       st.global.u32 [%a0+384], %r14;
;;       exit;
;;   $X2:
;;       mov.b64 %d13, 0x0400000100000048;
;;       mov.b64 {%r15, %r16}, %d13;
;;       st.global.u32 [%a0+256], %r15;
;;       st.global.u32 [%a0+384], %r16;
;;       exit;
;;   $X3:
;;       mov.b64 %d13, 0x0500000100000048;
;;       mov.b64 {%r17, %r18}, %d13;
;;       st.global.u32 [%a0+256], %r17;
;;       st.global.u32 [%a0+384], %r18;
;;       exit;
;;   }
