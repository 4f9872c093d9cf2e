(module (memory 1 1 shared)
  (func (export "add") (param i32 i32) (result i32) (i32.atomic.rmw.add (local.get 0) (local.get 1)))
  (func (export "exchange_byte") (param i32 i32) (result i32) (i32.atomic.rmw8.xchg_u (local.get 0) (local.get 1)))
  (func (export "fence") (atomic.fence)))
;; add as CLIF:
;;   function u0:0(i64, i32, i32) -> i32 system_v {
;;       region0 = 2 "header"
;;       region1 = 1 "guest"
;;
;;                                   block0(v0: i64, v1: i32, v2: i32):
;;   @004a                               v6 = iconst.i32 3
;;   @004a                               v7 = band v1, v6  ; v6 = 3
;;   @004a                               trapnz v7, user15
;;   @004a                               v13 = load.i64 notrap aligned region0 v0+32
;;   @004a                               v8 = uextend.i64 v1
;;   @004a                               v11 = iconst.i64 4
;;   @004a                               v12 = iadd v8, v11  ; v11 = 4
;;   @004a                               v14 = icmp ugt v12, v13
;;   @004a                               trapnz v14, user2
;;   @004a                               fence
;;   @004a                               v15 = iconst.i64 384
;;   @004a                               v16 = iadd v0, v15  ; v15 = 384
;;   @004a                               v19 = iadd v16, v8
;;   @004a                               v20 = atomic_rmw.i32 add v19, v2
;;   @004e                               jump block1
;;
;;                                   block1:
;;   @004e                               return v20
;;   }
;; add as PTX:
;;   // add
;;   .func (.reg .b32 %out) f0_add (.reg .b64 %a0, .reg .b32 %a1, .reg .b32 %a2)
;;   {
;;       .reg .b32 %r<2>;  .reg .b64 %d<6>;  .reg .pred %p<2>;
;;   $B0:
;;       and.b32 %r0, %a1, 3;
;;       setp.ne.u32 %p1, %r0, 0;
;;       @%p1 bra $X0;
;;       ld.global.u64 %d0, [%a0+32];
;;       cvt.u64.u32 %d1, %a1;
;;       add.u64 %d2, %d1, 4;
;;       setp.gt.u64 %p0, %d2, %d0;
;;       @%p0 bra $X1;
;;       fence.sc.sys;
;;       add.u64 %d3, %a0, 384;
;;       add.u64 %d4, %d3, %d1;
;;       atom.acq_rel.sys.global.add.u32 %r1, [%d4], %a2;
;;   $B1:
;;       mov.b32 %out, %r1;
;;       ret;
;;   $X0:
;;       mov.b64 %d5, 0x0F0000000000004A;
;;       st.global.u64 [%a0+8], %d5;
;;       exit;
;;   $X1:
;;       mov.b64 %d5, 0x020000000000004A;
;;       st.global.u64 [%a0+8], %d5;
;;       exit;
;;   }
;; exchange_byte as CLIF:
;;   function u0:1(i64, i32, i32) -> i32 system_v {
;;       region0 = 2 "header"
;;       region1 = 1 "guest"
;;
;;                                   block0(v0: i64, v1: i32, v2: i32):
;;   @0055                               v9 = load.i64 notrap aligned region0 v0+32
;;   @0055                               v4 = uextend.i64 v1
;;   @0055                               v7 = iconst.i64 1
;;   @0055                               v8 = iadd v4, v7  ; v7 = 1
;;   @0055                               v10 = icmp ugt v8, v9
;;   @0055                               trapnz v10, user2
;;   @0055                               fence
;;   @0055                               v11 = iconst.i64 384
;;   @0055                               v12 = iadd v0, v11  ; v11 = 384
;;   @0055                               v15 = iadd v12, v4
;;   @0055                               v16 = iconst.i64 -4
;;   @0055                               v17 = band v15, v16  ; v16 = -4
;;   @0055                               v23 = atomic_load.i32 notrap aligned region1 v17
;;                                       v44 = ireduce.i32 v0
;;                                       v46 = iconst.i32 384
;;                                       v47 = iadd v44, v46  ; v46 = 384
;;                                       v50 = iadd v47, v1
;;   @0055                               v19 = iconst.i32 3
;;   @0055                               v20 = band v50, v19  ; v19 = 3
;;   @0055                               v22 = ishl v20, v19  ; v19 = 3
;;   @0055                               v26 = iconst.i32 255
;;   @0055                               jump block2(v23)
;;
;;                                   block2(v24: i32):
;;                                       v52 = band.i64 v15, v16  ; v16 = -4
;;   @0055                               v25 = ushr v24, v22
;;                                       v53 = iconst.i32 255
;;                                       v54 = band v25, v53  ; v53 = 255
;;   @0055                               v28 = bxor v54, v2
;;                                       v55 = band v28, v53  ; v53 = 255
;;   @0055                               v31 = ishl v55, v22
;;   @0055                               v32 = bxor v24, v31
;;   @0055                               v33 = atomic_cas v52, v24, v32
;;   @0055                               v34 = icmp ne v33, v24
;;   @0055                               brif v34, block3, block4
;;
;;                                   block3:
;;   @0055                               jump block2(v33)
;;
;;                                   block4:
;;   @0059                               jump block1
;;
;;                                   block1:
;;   @0055                               v35 = ushr.i32 v33, v22
;;                                       v56 = iconst.i32 255
;;                                       v57 = band v35, v56  ; v56 = 255
;;   @0059                               return v57
;;   }
;; exchange_byte as PTX:
;;   // exchange_byte
;;   .func (.reg .b32 %out) f1_exchange_byte (.reg .b64 %a0, .reg .b32 %a1, .reg .b32 %a2)
;;   {
;;       .reg .b32 %r<19>;  .reg .b64 %d<8>;  .reg .pred %p<2>;
;;   $B0:
;;       ld.global.u64 %d0, [%a0+32];
;;       cvt.u64.u32 %d1, %a1;
;;       add.u64 %d2, %d1, 1;
;;       setp.gt.u64 %p0, %d2, %d0;
;;       @%p0 bra $X0;
;;       fence.sc.sys;
;;       add.u64 %d3, %a0, 384;
;;       add.u64 %d4, %d3, %d1;
;;       and.b64 %d5, %d4, -4;
;;       ld.acquire.sys.global.u32 %r0, [%d5];
;;       cvt.u32.u64 %r1, %a0;
;;       add.u32 %r2, %r1, 384;
;;       add.u32 %r3, %r2, %a1;
;;       and.b32 %r4, %r3, 3;
;;       shl.b32 %r5, %r4, 3;
;;       mov.b32 %r6, %r0;
;;   $B2:
;;       and.b64 %d6, %d4, -4;
;;       and.b32 %r16, %r5, 31;
;;       shr.u32 %r7, %r6, %r16;
;;       and.b32 %r8, %r7, 255;
;;       xor.b32 %r9, %r8, %a2;
;;       and.b32 %r10, %r9, 255;
;;       and.b32 %r17, %r5, 31;
;;       shl.b32 %r11, %r10, %r17;
;;       xor.b32 %r12, %r6, %r11;
;;       atom.acq_rel.sys.global.cas.b32 %r13, [%d6], %r6, %r12;
;;       setp.ne.u32 %p1, %r13, %r6;
;;       @!%p1 bra $B4;
;;   $B3:
;;       mov.b32 %r6, %r13;
;;       bra $B2;
;;   $B4:
;;   $B1:
;;       and.b32 %r18, %r5, 31;
;;       shr.u32 %r14, %r13, %r18;
;;       and.b32 %r15, %r14, 255;
;;       mov.b32 %out, %r15;
;;       ret;
;;   $X0:
;;       mov.b64 %d7, 0x0200000100000055;
;;       st.global.u64 [%a0+8], %d7;
;;       exit;
;;   }
;; fence as CLIF:
;;   function u0:2(i64) system_v {
;;                                   block0(v0: i64):
;;   @005c                               fence
;;   @005f                               jump block1
;;
;;                                   block1:
;;   @005f                               return
;;   }
;; fence as PTX:
;;   // fence
;;   .func f2_fence (.reg .b64 %a0)
;;   {
;;   $B0:
;;       fence.sc.sys;
;;   $B1:
;;       ret;
;;   }
