;;! build = "exact-linear"
(module (memory 2)
  (func (export "load") (param i32) (result i32) (i32.load offset=8 (local.get 0)))
  (func (export "load_wide") (param i32) (result i64) (i64.load (local.get 0)))
  (func (export "load_byte") (param i32) (result i32) (i32.load8_s (local.get 0)))
  (func (export "store") (param i32 i32) (i32.store (local.get 0) (local.get 1)))
  (func (export "unaligned") (param i32) (result i32) (i32.load align=1 (local.get 0)))
  (func (export "twice") (param i32) (result i32) (i32.add (i32.load (local.get 0)) (i32.load offset=4 (local.get 0)))))
;; load as CLIF:
;;   function u0:0(i64, i32) -> i32 system_v {
;;       region0 = 1 "guest"
;;
;;                                   block0(v0: i64, v1: i32):
;;   @006d                               v3 = uextend.i64 v1
;;   @006d                               v4 = load.i32 aligned region0 v3+8
;;   @0070                               jump block1
;;
;;                                   block1:
;;   @0070                               return v4
;;   }
;; load as PTX:
;;   // load
;;   .func (.reg .b32 %out) f0_load (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<6>;  .reg .b64 %d<4>;  .reg .pred %p<1>;
;;       add.u64 %d1, %a0, 384;
;;       ld.global.u32 %r2, [%a0+40];
;;       shr.u32 %r1, %r2, 2;
;;   $B0:
;;       shf.r.wrap.b32 %r3, %a1, %a1, 2;
;;       setp.ge.u32 %p0, %r3, %r1;
;;       @%p0 bra $L0;
;;       cvt.u64.u32 %d2, %a1;
;;       add.u64 %d3, %d1, %d2;
;;       ld.global.u32 %r0, [%d3+8];
;;   $L1:
;;   $B1:
;;       mov.b32 %out, %r0;
;;       ret;
;;   $L0:
;;       call (%r4), cold_load_4, (%a0, %a1, 8, 144115188075855981);
;;       mov.b32 %r0, %r4;
;;       ld.global.u32 %r5, [%a0+40];
;;       shr.u32 %r1, %r5, 2;
;;       bra $L1;
;;   }
;; load_wide as CLIF:
;;   function u0:1(i64, i32) -> i64 system_v {
;;       region0 = 1 "guest"
;;
;;                                   block0(v0: i64, v1: i32):
;;   @0075                               v3 = uextend.i64 v1
;;   @0075                               v4 = load.i64 aligned region0 v3
;;   @0078                               jump block1
;;
;;                                   block1:
;;   @0078                               return v4
;;   }
;; load_wide as PTX:
;;   // load_wide
;;   .func (.reg .b64 %out) f1_load_wide (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<4>;  .reg .b64 %d<6>;  .reg .pred %p<1>;
;;       add.u64 %d2, %a0, 384;
;;       ld.global.u32 %r1, [%a0+40];
;;       shr.u32 %r0, %r1, 3;
;;   $B0:
;;       shf.r.wrap.b32 %r2, %a1, %a1, 3;
;;       setp.ge.u32 %p0, %r2, %r0;
;;       @%p0 bra $L0;
;;       cvt.u64.u32 %d3, %a1;
;;       add.u64 %d4, %d2, %d3;
;;       ld.global.u64 %d1, [%d4];
;;   $L1:
;;   $B1:
;;       mov.b64 %out, %d1;
;;       ret;
;;   $L0:
;;       call (%d5), cold_load_8, (%a0, %a1, 0, 144115192370823285);
;;       mov.b64 %d1, %d5;
;;       ld.global.u32 %r3, [%a0+40];
;;       shr.u32 %r0, %r3, 3;
;;       bra $L1;
;;   }
;; load_byte as CLIF:
;;   function u0:2(i64, i32) -> i32 system_v {
;;       region0 = 1 "guest"
;;
;;                                   block0(v0: i64, v1: i32):
;;   @007d                               v3 = uextend.i64 v1
;;   @007d                               v4 = sload8.i32 aligned region0 v3
;;   @0080                               jump block1
;;
;;                                   block1:
;;   @0080                               return v4
;;   }
;; load_byte as PTX:
;;   // load_byte
;;   .func (.reg .b32 %out) f2_load_byte (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<3>;  .reg .b64 %d<4>;  .reg .pred %p<1>;
;;       add.u64 %d1, %a0, 384;
;;       ld.global.u32 %r1, [%a0+40];
;;   $B0:
;;       setp.ge.u32 %p0, %a1, %r1;
;;       @%p0 bra $L0;
;;       cvt.u64.u32 %d2, %a1;
;;       add.u64 %d3, %d1, %d2;
;;       ld.global.s8 %r0, [%d3];
;;   $L1:
;;   $B1:
;;       mov.b32 %out, %r0;
;;       ret;
;;   $L0:
;;       call (%r2), cold_load_1, (%a0, %a1, 0, 144115196665790589);
;;       cvt.s32.s8 %r0, %r2;
;;       ld.global.u32 %r1, [%a0+40];
;;       bra $L1;
;;   }
;; store as CLIF:
;;   function u0:3(i64, i32, i32) system_v {
;;       region0 = 1 "guest"
;;
;;                                   block0(v0: i64, v1: i32, v2: i32):
;;   @0087                               v3 = uextend.i64 v1
;;   @0087                               store aligned region0 v2, v3
;;   @008a                               jump block1
;;
;;                                   block1:
;;   @008a                               return
;;   }
;; store as PTX:
;;   // store
;;   .func f3_store (.reg .b64 %a0, .reg .b32 %a1, .reg .b32 %a2)
;;   {
;;       .reg .b32 %r<4>;  .reg .b64 %d<4>;  .reg .pred %p<1>;
;;       add.u64 %d1, %a0, 384;
;;       ld.global.u32 %r1, [%a0+40];
;;       shr.u32 %r0, %r1, 2;
;;   $B0:
;;       shf.r.wrap.b32 %r2, %a1, %a1, 2;
;;       setp.ge.u32 %p0, %r2, %r0;
;;       @%p0 bra $L0;
;;       cvt.u64.u32 %d2, %a1;
;;       add.u64 %d3, %d1, %d2;
;;       st.global.u32 [%d3], %a2;
;;   $L1:
;;   $B1:
;;       ret;
;;   $L0:
;;       call cold_store_4, (%a0, %a1, 0, 144115200960757895, %a2);
;;       ld.global.u32 %r3, [%a0+40];
;;       shr.u32 %r0, %r3, 2;
;;       bra $L1;
;;   }
;; unaligned as CLIF:
;;   function u0:4(i64, i32) -> i32 system_v {
;;       region0 = 1 "guest"
;;
;;                                   block0(v0: i64, v1: i32):
;;   @008f                               v3 = uextend.i64 v1
;;   @008f                               v4 = load.i32 region0 v3
;;   @0092                               jump block1
;;
;;                                   block1:
;;   @0092                               return v4
;;   }
;; unaligned as PTX:
;;   // unaligned
;;   .func (.reg .b32 %out) f4_unaligned (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<8>;  .reg .b64 %d<11>;  .reg .pred %p<2>;
;;       add.u64 %d1, %a0, 384;
;;       ld.global.u32 %r1, [%a0+40];
;;   $B0:
;;       setp.ge.u32 %p0, %a1, %r1;
;;       @%p0 bra $L0;
;;       cvt.u64.u32 %d2, %a1;
;;       add.u64 %d3, %d1, %d2;
;;       and.b64 %d4, %d3, 3;
;;       setp.ne.u64 %p1, %d4, 0;
;;       @%p1 bra $L2;
;;       ld.global.u32 %r0, [%d3];
;;       bra $L3;
;;   $L2:
;;       and.b64 %d5, %d3, -8;
;;       ld.global.u64 %d6, [%d5];
;;       ld.global.u64 %d7, [%d5+8];
;;       cvt.u32.u64 %r2, %d3;
;;       and.b32 %r3, %r2, 7;
;;       shl.b32 %r4, %r3, 3;
;;       sub.u32 %r5, 64, %r4;
;;       shr.u64 %d8, %d6, %r4;
;;       shl.b64 %d9, %d7, %r5;
;;       or.b64 %d10, %d8, %d9;
;;       cvt.u32.u64 %r6, %d10;
;;       mov.b32 %r0, %r6;
;;   $L3:
;;   $L1:
;;   $B1:
;;       mov.b32 %out, %r0;
;;       ret;
;;   $L0:
;;       call (%r7), cold_load_4, (%a0, %a1, 0, 144115205255725199);
;;       mov.b32 %r0, %r7;
;;       ld.global.u32 %r1, [%a0+40];
;;       bra $L1;
;;   }
;; twice as CLIF:
;;   function u0:5(i64, i32) -> i32 system_v {
;;       region0 = 1 "guest"
;;
;;                                   block0(v0: i64, v1: i32):
;;   @0097                               v3 = uextend.i64 v1
;;   @0097                               v4 = load.i32 aligned region0 v3
;;   @009c                               v6 = load.i32 aligned region0 v3+4
;;   @00a0                               jump block1
;;
;;                                   block1:
;;   @009f                               v7 = iadd.i32 v4, v6
;;   @00a0                               return v7
;;   }
;; twice as PTX:
;;   // twice
;;   .func (.reg .b32 %out) f5_twice (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<9>;  .reg .b64 %d<4>;  .reg .pred %p<1>;
;;       add.u64 %d1, %a0, 384;
;;       ld.global.u32 %r4, [%a0+40];
;;       shr.u32 %r3, %r4, 2;
;;   $B0:
;;       shf.r.wrap.b32 %r5, %a1, %a1, 2;
;;       setp.ge.u32 %p0, %r5, %r3;
;;       cvt.u64.u32 %d2, %a1;
;;       add.u64 %d3, %d1, %d2;
;;       @%p0 bra $L0;
;;       ld.global.u32 %r0, [%d3];
;;       ld.global.u32 %r1, [%d3+4];
;;   $L1:
;;   $B1:
;;       add.u32 %r2, %r0, %r1;
;;       mov.b32 %out, %r2;
;;       ret;
;;   $L0:
;;       call (%r6), cold_load_4, (%a0, %a1, 0, 144115209550692503);
;;       mov.b32 %r0, %r6;
;;       call (%r7), cold_load_4, (%a0, %a1, 4, 144115209550692508);
;;       mov.b32 %r1, %r7;
;;       ld.global.u32 %r8, [%a0+40];
;;       shr.u32 %r3, %r8, 2;
;;       bra $L1;
;;   }
