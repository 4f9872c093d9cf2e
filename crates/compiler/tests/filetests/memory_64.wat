(module (memory i64 1)
  (func (export "load") (param i64) (result i32) (i32.load offset=4 (local.get 0)))
  (func (export "store") (param i64 i64) (i64.store (local.get 0) (local.get 1))))
;; load as CLIF:
;;   function u0:0(i64, i64) -> i32 system_v {
;;       region0 = 1 "guest"
;;
;;                                   block0(v0: i64, v1: i64):
;;   @0038                               v3 = iconst.i64 32
;;   @0038                               v4 = ushr v1, v3  ; v3 = 32
;;   @0038                               trapnz v4, user2
;;   @0038                               v5 = ireduce.i32 v1
;;   @0038                               v6 = uextend.i64 v5
;;   @0038                               v7 = load.i32 aligned region0 v6+4
;;   @003b                               jump block1
;;
;;                                   block1:
;;   @003b                               return v7
;;   }
;; load as PTX:
;;   // load
;;   .func (.reg .b32 %out) f0_load (.reg .b64 %a0, .reg .b64 %a1)
;;   {
;;       .reg .b32 %r<7>;  .reg .b64 %d<6>;  .reg .pred %p<2>;
;;       add.u64 %d2, %a0, 384;
;;       ld.global.u32 %r3, [%a0+40];
;;       shr.u32 %r2, %r3, 2;
;;   $B0:
;;       shr.u64 %d0, %a1, 32;
;;       setp.ne.u64 %p0, %d0, 0;
;;       @%p0 bra $X0;
;;       cvt.u32.u64 %r0, %a1;
;;       shf.r.wrap.b32 %r4, %r0, %r0, 2;
;;       setp.ge.u32 %p1, %r4, %r2;
;;       @%p1 bra $L0;
;;       cvt.u64.u32 %d3, %r0;
;;       add.u64 %d4, %d2, %d3;
;;       ld.global.u32 %r1, [%d4+4];
;;   $L1:
;;   $B1:
;;       mov.b32 %out, %r1;
;;       ret;
;;   $L0:
;;       call (%r5), cold_load_4, (%a0, %r0, 4, 144115188075855928);
;;       mov.b32 %r1, %r5;
;;       ld.global.u32 %r6, [%a0+40];
;;       shr.u32 %r2, %r6, 2;
;;       bra $L1;
;;   $X0:
;;       mov.b64 %d5, 0x0200000000000038;
;;       st.global.u64 [%a0+8], %d5;
;;       exit;
;;   }
;; store as CLIF:
;;   function u0:1(i64, i64, i64) system_v {
;;       region0 = 1 "guest"
;;
;;                                   block0(v0: i64, v1: i64, v2: i64):
;;   @0042                               v3 = iconst.i64 32
;;   @0042                               v4 = ushr v1, v3  ; v3 = 32
;;   @0042                               trapnz v4, user2
;;   @0042                               v5 = ireduce.i32 v1
;;   @0042                               v6 = uextend.i64 v5
;;   @0042                               store aligned region0 v2, v6
;;   @0045                               jump block1
;;
;;                                   block1:
;;   @0045                               return
;;   }
;; store as PTX:
;;   // store
;;   .func f1_store (.reg .b64 %a0, .reg .b64 %a1, .reg .b64 %a2)
;;   {
;;       .reg .b32 %r<5>;  .reg .b64 %d<6>;  .reg .pred %p<2>;
;;       add.u64 %d2, %a0, 384;
;;       ld.global.u32 %r2, [%a0+40];
;;       shr.u32 %r1, %r2, 3;
;;   $B0:
;;       shr.u64 %d0, %a1, 32;
;;       setp.ne.u64 %p0, %d0, 0;
;;       @%p0 bra $X0;
;;       cvt.u32.u64 %r0, %a1;
;;       shf.r.wrap.b32 %r3, %r0, %r0, 3;
;;       setp.ge.u32 %p1, %r3, %r1;
;;       @%p1 bra $L0;
;;       cvt.u64.u32 %d3, %r0;
;;       add.u64 %d4, %d2, %d3;
;;       st.global.u64 [%d4], %a2;
;;   $L1:
;;   $B1:
;;       ret;
;;   $L0:
;;       call cold_store_8, (%a0, %r0, 0, 144115192370823234, %a2);
;;       ld.global.u32 %r4, [%a0+40];
;;       shr.u32 %r1, %r4, 3;
;;       bra $L1;
;;   $X0:
;;       mov.b64 %d5, 0x0200000100000042;
;;       st.global.u64 [%a0+8], %d5;
;;       exit;
;;   }
