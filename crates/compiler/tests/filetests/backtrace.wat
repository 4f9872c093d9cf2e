;;! build = "exact-interleaved"
;;! backtrace = "on"
(module
  (func $leaf (param i32) (if (local.get 0) (then unreachable)))
  ;; Before a call its place and the depth, after it the depth again. A tail call notes nothing.
  (func (export "f") (param i32)
    (call $leaf (local.get 0))
    (return_call $leaf (i32.const 1))))
;; leaf as CLIF:
;;   function u0:0(i64, i32) system_v {
;;                                   block0(v0: i64, v1: i32):
;;   @0022                               trapnz v1, user1
;;   @0022                               jump block3
;;
;;                                   block3:
;;   @0025                               jump block4
;;
;;                                   block4:
;;   @0026                               jump block1
;;
;;                                   block1:
;;   @0026                               return
;;   }
;; leaf as PTX:
;;   // leaf
;;   .func f0_leaf (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<2>;  .reg .b64 %d<1>;  .reg .pred %p<1>;
;;   $B0:
;;       setp.ne.u32 %p0, %a1, 0;
;;       @%p0 bra $X0;
;;   $B3:
;;   $B4:
;;   $B1:
;;       ret;
;;   $X0:
;;       mov.b64 %d0, 0x0100000000000022;
;;       mov.b64 {%r0, %r1}, %d0;
;;       st.global.u32 [%a0+256], %r0;
;;       st.global.u32 [%a0+384], %r1;
;;       exit;
;;   }
;; f as CLIF:
;;   function u2:31(i64, i32) system_v {
;;       region0 = 2 "header"
;;       sig0 = (i64, i32) system_v
;;       fn0 = colocated u0:0 sig0
;;
;;                                   block0(v0: i64, v1: i32):
;;   @0028                               v2 = load.i32 notrap aligned region0 v0+2304
;;   @0028                               v3 = get_stack_pointer.i64
;;   @0028                               v4 = ireduce.i32 v3
;;   @0028                               v5 = iconst.i32 -8
;;   @0028                               v6 = iadd v4, v5  ; v5 = -8
;;   @0028                               v7 = icmp ult v6, v2
;;   @0028                               trapnz v7, user9
;;   @0028                               v8 = load.i32 notrap aligned region0 v0+8192
;;   @002b                               v17 = iconst.i32 43
;;   @002b                               v14 = iconst.i64 8448
;;   @002b                               v15 = iadd v0, v14  ; v14 = 8448
;;   @002b                               v9 = iconst.i32 63
;;   @002b                               v10 = band v8, v9  ; v9 = 63
;;   @002b                               v11 = uextend.i64 v10
;;                                       v21 = iconst.i64 7
;;                                       v22 = ishl v11, v21  ; v21 = 7
;;   @002b                               v16 = iadd v15, v22
;;   @002b                               store notrap aligned region0 v17, v16  ; v17 = 43
;;   @002b                               v18 = iconst.i32 1
;;   @002b                               v19 = iadd v8, v18  ; v18 = 1
;;   @002b                               store notrap aligned region0 v19, v0+8192
;;   @002b                               call fn0(v0, v1)
;;   @002b                               store notrap aligned region0 v8, v0+8192
;;   @002f                               call fn0(v0, v18)  ; v18 = 1
;;   @002f                               return
;;   }
;; f as PTX:
;;   // f
;;   .func f1_f (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<9>;  .reg .b64 %d<6>;  .reg .pred %p<1>;
;;   $B0:
;;       ld.global.u32 %r0, [%a0+2304];
;;       stacksave.u32 %r6;
;;       cvt.u64.u32 %d0, %r6;
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
;;       st.global.u32 [%d4], 43;
;;       add.u32 %r5, %r3, 1;
;;       st.global.u32 [%a0+8192], %r5;
;;       call f0_leaf, (%a0, %a1);
;;       st.global.u32 [%a0+8192], %r3;
;;       call f0_leaf, (%a0, 1);
;;       ret;
;;   $X0:
;;       mov.b64 %d5, 0x0900000100000028;
;;       mov.b64 {%r7, %r8}, %d5;
;;       st.global.u32 [%a0+256], %r7;
;;       st.global.u32 [%a0+384], %r8;
;;       exit;
;;   }
