(module (memory $a 1) (memory $b 1)
  (func (export "load") (param i32) (result i32) (i32.load $b (local.get 0)))
  (func (export "copy") (param i32 i32 i32) (memory.copy $a $b (local.get 0) (local.get 1) (local.get 2))))
;; load as CLIF:
;;   function u0:0(i64, i32) -> i32 system_v {
;;       region0 = 2 "header"
;;       region1 = 4 "bus"
;;       sig0 = (i64, i64, i32, i32) -> i64 system_v
;;       fn0 = colocated u2:7 sig0
;;
;;                                   block0(v0: i64, v1: i32):
;;   @003a                               v4 = load.i64 notrap aligned region0 v0+256
;;   @003a                               v5 = iconst.i64 4
;;   @003a                               v6 = icmp ult v4, v5  ; v5 = 4
;;   @003a                               trapnz v6, user2
;;   @003a                               v3 = uextend.i64 v1
;;   @003a                               v7 = isub v4, v5  ; v5 = 4
;;   @003a                               v8 = icmp ugt v3, v7
;;   @003a                               trapnz v8, user2
;;   @003a                               v12 = load.i64 notrap aligned region0 v0+272
;;   @003a                               v15 = iconst.i32 3
;;   @003a                               v16 = band v1, v15  ; v15 = 3
;;   @003a                               brif v16, block2, block3
;;
;;                                   block2:
;;                                       v23 = iadd.i64 v0, v12
;;   @003a                               v17 = iconst.i32 4
;;   @003a                               v18 = call fn0(v0, v23, v1, v17)  ; v17 = 4
;;   @003a                               jump block4(v18)
;;
;;                                   block3:
;;   @003a                               v13 = iadd.i64 v0, v12
;;   @003a                               v20 = iadd v13, v3
;;   @003a                               v21 = uload32 notrap aligned region1 v20
;;   @003a                               jump block4(v21)
;;
;;                                   block4(v14: i64):
;;   @003e                               jump block1
;;
;;                                   block1:
;;   @003a                               v22 = ireduce.i32 v14
;;   @003e                               return v22
;;   }
;; load as PTX:
;;   // load
;;   .func (.reg .b32 %out) f0_load (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<3>;  .reg .b64 %d<11>;  .reg .pred %p<3>;
;;   $B0:
;;       ld.global.u64 %d0, [%a0+256];
;;       setp.lt.u64 %p0, %d0, 4;
;;       @%p0 bra $X0;
;;       cvt.u64.u32 %d1, %a1;
;;       sub.u64 %d2, %d0, 4;
;;       setp.gt.u64 %p1, %d1, %d2;
;;       @%p1 bra $X0;
;;       ld.global.u64 %d3, [%a0+272];
;;       and.b32 %r0, %a1, 3;
;;       setp.ne.u32 %p2, %r0, 0;
;;       @!%p2 bra $B3;
;;   $B2:
;;       add.u64 %d4, %a0, %d3;
;;       call (%d5), rt_LoadIn, (%a0, %d4, %a1, 4);
;;       mov.b64 %d9, %d5;
;;       bra $B4;
;;   $B3:
;;       add.u64 %d6, %a0, %d3;
;;       add.u64 %d7, %d6, %d1;
;;       ld.global.u32 %r2, [%d7];
;;       cvt.u64.u32 %d8, %r2;
;;       mov.b64 %d9, %d8;
;;   $B4:
;;   $B1:
;;       cvt.u32.u64 %r1, %d9;
;;       mov.b32 %out, %r1;
;;       ret;
;;   $X0:
;;       mov.b64 %d10, 0x020000000000003A;
;;       st.global.u64 [%a0+8], %d10;
;;       exit;
;;   }
;; copy as CLIF:
;;   function u0:1(i64, i32, i32, i32) system_v {
;;       region0 = 2 "header"
;;       sig0 = (i64, i32, i32, i32, i64, i64) system_v
;;       fn0 = colocated u2:4 sig0
;;
;;                                   block0(v0: i64, v1: i32, v2: i32, v3: i32):
;;   @0047                               v7 = load.i64 notrap aligned region0 v0+32
;;   @0047                               v4 = uextend.i64 v1
;;   @0047                               v5 = uextend.i64 v3
;;   @0047                               v6 = iadd v4, v5
;;   @0047                               v8 = icmp ugt v6, v7
;;   @0047                               trapnz v8, user2
;;   @0047                               v9 = load.i64 notrap aligned region0 v0+256
;;   @0047                               v10 = uextend.i64 v2
;;   @0047                               v12 = iadd v10, v5
;;   @0047                               v13 = icmp ugt v12, v9
;;   @0047                               trapnz v13, user2
;;   @0047                               v18 = load.i64 notrap aligned region0 v0+272
;;   @0047                               v14 = iconst.i64 384
;;   @0047                               v15 = iadd v0, v14  ; v14 = 384
;;   @0047                               v19 = iadd v0, v18
;;   @0047                               call fn0(v0, v1, v2, v3, v15, v19)
;;   @004b                               jump block1
;;
;;                                   block1:
;;   @004b                               return
;;   }
;; copy as PTX:
;;   // copy
;;   .func f1_copy (.reg .b64 %a0, .reg .b32 %a1, .reg .b32 %a2, .reg .b32 %a3)
;;   {
;;       .reg .b64 %d<11>;  .reg .pred %p<2>;
;;   $B0:
;;       ld.global.u64 %d0, [%a0+32];
;;       cvt.u64.u32 %d1, %a1;
;;       cvt.u64.u32 %d2, %a3;
;;       add.u64 %d3, %d1, %d2;
;;       setp.gt.u64 %p0, %d3, %d0;
;;       @%p0 bra $X0;
;;       ld.global.u64 %d4, [%a0+256];
;;       cvt.u64.u32 %d5, %a2;
;;       add.u64 %d6, %d5, %d2;
;;       setp.gt.u64 %p1, %d6, %d4;
;;       @%p1 bra $X0;
;;       ld.global.u64 %d7, [%a0+272];
;;       add.u64 %d8, %a0, 384;
;;       add.u64 %d9, %a0, %d7;
;;       call rt_CopyIn, (%a0, %a1, %a2, %a3, %d8, %d9);
;;   $B1:
;;       ret;
;;   $X0:
;;       mov.b64 %d10, 0x0200000100000047;
;;       st.global.u64 [%a0+8], %d10;
;;       exit;
;;   }
