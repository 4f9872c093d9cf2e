(module
  (func (export "endless") (loop $l (br $l)))
  (func (export "count") (param i32) (result i32) (local i32)
    (loop $l (local.set 1 (i32.add (local.get 1) (local.get 0))) (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get 1)))
;; endless as CLIF:
;;   function u0:0(i64) system_v {
;;       region0 = 5 "constant"
;;       sig0 = (i32, i64) -> i32 system_v
;;       fn0 = colocated u1:11 sig0
;;
;;                                   block0(v0: i64):
;;   @0032                               v1 = iconst.i32 64
;;   @0032                               v3 = load.i64 notrap aligned readonly can_move region0 v0+88
;;   @0032                               jump block2(v1)  ; v1 = 64
;;
;;                                   block2(v2: i32):
;;   @0032                               v4 = call fn0(v2, v3)
;;   @0034                               jump block2(v4)
;;   }
;; endless as PTX:
;;   // endless
;;   .func f0_endless (.reg .b64 %a0)
;;   {
;;       .reg .b32 %r<3>;  .reg .b64 %d<2>;  .reg .pred %p<2>;
;;   $B0:
;;       ld.global.u64 %d0, [%a0+88];
;;       mov.b32 %r0, 64;
;;   $B2:
;;       add.u32 %r1, %r0, -1;
;;       setp.le.s32 %p0, %r1, 0;
;;       @%p0 bra $L0;
;;   $L1:
;;       mov.b32 %r0, %r1;
;;       bra $B2;
;;   $L0:
;;       ld.global.L1::no_allocate.u32 %r2, [%d0];
;;       setp.ne.u32 %p1, %r2, 0;
;;       @%p1 bra $X0;
;;       mov.b32 %r1, 4096;
;;       bra $L1;
;;   $X0:
;;       mov.b64 %d1, 0x0A00000000000032;
;;       st.global.u64 [%a0+8], %d1;
;;       exit;
;;   }
;; count as CLIF:
;;   function u0:1(i64, i32) -> i32 system_v {
;;       region0 = 5 "constant"
;;       sig0 = (i32, i64) -> i32 system_v
;;       fn0 = colocated u1:11 sig0
;;
;;                                   block0(v0: i64, v1: i32):
;;   @003c                               v4 = iconst.i32 64
;;                                       v2 = iconst.i32 0
;;   @003c                               v6 = load.i64 notrap aligned readonly can_move region0 v0+88
;;   @0047                               v11 = iconst.i32 1
;;   @003c                               jump block2(v4, v2, v1)  ; v4 = 64, v2 = 0
;;
;;                                   block2(v5: i32, v8: i32, v9: i32):
;;   @003c                               v7 = call fn0(v5, v6)
;;                                       v13 = iconst.i32 1
;;                                       v14 = isub v9, v13  ; v13 = 1
;;   @0042                               v10 = iadd v8, v9
;;   @004c                               brif v14, block2(v7, v10, v14), block4
;;
;;                                   block4:
;;   @004e                               jump block3
;;
;;                                   block3:
;;   @0051                               jump block1
;;
;;                                   block1:
;;   @0051                               return v10
;;   }
;; count as PTX:
;;   // count
;;   .func (.reg .b32 %out) f1_count (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<7>;  .reg .b64 %d<2>;  .reg .pred %p<3>;
;;   $B0:
;;       ld.global.u64 %d0, [%a0+88];
;;       mov.b32 %r0, 64;
;;       mov.b32 %r1, 0;
;;       mov.b32 %r2, %a1;
;;   $B2:
;;       add.u32 %r3, %r0, -1;
;;       setp.le.s32 %p0, %r3, 0;
;;       @%p0 bra $L0;
;;   $L1:
;;       sub.u32 %r4, %r2, 1;
;;       add.u32 %r5, %r1, %r2;
;;       setp.ne.u32 %p2, %r4, 0;
;;       @!%p2 bra $B4;
;;       mov.b32 %r0, %r3;
;;       mov.b32 %r1, %r5;
;;       mov.b32 %r2, %r4;
;;       bra $B2;
;;   $B4:
;;   $B3:
;;   $B1:
;;       mov.b32 %out, %r5;
;;       ret;
;;   $L0:
;;       ld.global.L1::no_allocate.u32 %r6, [%d0];
;;       setp.ne.u32 %p1, %r6, 0;
;;       @%p1 bra $X0;
;;       mov.b32 %r3, 4096;
;;       bra $L1;
;;   $X0:
;;       mov.b64 %d1, 0x0A0000010000003C;
;;       st.global.u64 [%a0+8], %d1;
;;       exit;
;;   }
