;;! build = "exact-interleaved"
;;! check = "ptx"
(module (memory 2)
  (func (export "load") (param i32) (result i32) (i32.load offset=8 (local.get 0)))
  (func (export "load_wide") (param i32) (result i64) (i64.load (local.get 0)))
  (func (export "load_byte") (param i32) (result i32) (i32.load8_s (local.get 0)))
  (func (export "store") (param i32 i32) (i32.store (local.get 0) (local.get 1)))
  (func (export "unaligned") (param i32) (result i32) (i32.load align=1 (local.get 0)))
  (func (export "twice") (param i32) (result i32) (i32.add (i32.load (local.get 0)) (i32.load offset=4 (local.get 0)))))
;; load as PTX:
;;   // load
;;   .func (.reg .b32 %out) f0_load (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<6>;  .reg .b64 %d<3>;  .reg .pred %p<1>;
;;       add.u64 %d1, %a0, 12288;
;;       ld.global.u32 %r2, [%a0+1280];
;;       shr.u32 %r1, %r2, 2;
;;   $B0:
;;       shf.r.wrap.b32 %r3, %a1, %a1, 2;
;;       setp.ge.u32 %p0, %r3, %r1;
;;       @%p0 bra $L0;
;;       mad.wide.u32 %d2, %a1, 32, %d1;
;;       ld.global.u32 %r0, [%d2+256];
;;   $L1:
;;   $B1:
;;       mov.b32 %out, %r0;
;;       ret;
;;   $L0:
;;       call (%r4), cold_load_4, (%a0, %a1, 8, 144115188075855981);
;;       mov.b32 %r0, %r4;
;;       ld.global.u32 %r5, [%a0+1280];
;;       shr.u32 %r1, %r5, 2;
;;       bra $L1;
;;   }
;; load_wide as PTX:
;;   // load_wide
;;   .func (.reg .b64 %out) f1_load_wide (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<6>;  .reg .b64 %d<5>;  .reg .pred %p<1>;
;;       add.u64 %d2, %a0, 12288;
;;       ld.global.u32 %r1, [%a0+1280];
;;       shr.u32 %r0, %r1, 2;
;;   $B0:
;;       shf.r.wrap.b32 %r2, %a1, %a1, 2;
;;       setp.ge.u32 %p0, %r2, %r0;
;;       @%p0 bra $L0;
;;       mad.wide.u32 %d3, %a1, 32, %d2;
;;       ld.global.u32 %r3, [%d3];
;;       ld.global.u32 %r4, [%d3+128];
;;       mov.b64 %d1, {%r3, %r4};
;;   $L1:
;;   $B1:
;;       mov.b64 %out, %d1;
;;       ret;
;;   $L0:
;;       call (%d4), cold_load_8, (%a0, %a1, 0, 144115192370823285);
;;       mov.b64 %d1, %d4;
;;       ld.global.u32 %r5, [%a0+1280];
;;       shr.u32 %r0, %r5, 2;
;;       bra $L1;
;;   }
;; load_byte as PTX:
;;   // load_byte
;;   .func (.reg .b32 %out) f2_load_byte (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<5>;  .reg .b64 %d<5>;  .reg .pred %p<1>;
;;       add.u64 %d1, %a0, 12288;
;;       ld.global.u32 %r1, [%a0+1280];
;;   $B0:
;;       setp.ge.u32 %p0, %a1, %r1;
;;       @%p0 bra $L0;
;;       and.b32 %r2, %a1, -4;
;;       mad.wide.u32 %d2, %r2, 32, %d1;
;;       and.b32 %r3, %a1, 3;
;;       cvt.u64.u32 %d3, %r3;
;;       or.b64 %d4, %d2, %d3;
;;       ld.global.s8 %r0, [%d4];
;;   $L1:
;;   $B1:
;;       mov.b32 %out, %r0;
;;       ret;
;;   $L0:
;;       call (%r4), cold_load_1, (%a0, %a1, 0, 144115196665790589);
;;       cvt.s32.s8 %r0, %r4;
;;       ld.global.u32 %r1, [%a0+1280];
;;       bra $L1;
;;   }
;; store as PTX:
;;   // store
;;   .func f3_store (.reg .b64 %a0, .reg .b32 %a1, .reg .b32 %a2)
;;   {
;;       .reg .b32 %r<4>;  .reg .b64 %d<3>;  .reg .pred %p<1>;
;;       add.u64 %d1, %a0, 12288;
;;       ld.global.u32 %r1, [%a0+1280];
;;       shr.u32 %r0, %r1, 2;
;;   $B0:
;;       shf.r.wrap.b32 %r2, %a1, %a1, 2;
;;       setp.ge.u32 %p0, %r2, %r0;
;;       @%p0 bra $L0;
;;       mad.wide.u32 %d2, %a1, 32, %d1;
;;       st.global.u32 [%d2], %a2;
;;   $L1:
;;   $B1:
;;       ret;
;;   $L0:
;;       call cold_store_4, (%a0, %a1, 0, 144115200960757895, %a2);
;;       ld.global.u32 %r3, [%a0+1280];
;;       shr.u32 %r0, %r3, 2;
;;       bra $L1;
;;   }
;; unaligned as PTX:
;;   // unaligned
;;   .func (.reg .b32 %out) f4_unaligned (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<8>;  .reg .b64 %d<3>;  .reg .pred %p<1>;
;;       add.u64 %d1, %a0, 12288;
;;       ld.global.u32 %r1, [%a0+1280];
;;   $B0:
;;       setp.ge.u32 %p0, %a1, %r1;
;;       @%p0 bra $L0;
;;       and.b32 %r2, %a1, -4;
;;       mad.wide.u32 %d2, %r2, 32, %d1;
;;       shl.b32 %r3, %a1, 3;
;;       ld.global.u32 %r4, [%d2];
;;       ld.global.u32 %r5, [%d2+128];
;;       shf.r.wrap.b32 %r6, %r4, %r5, %r3;
;;       mov.b32 %r0, %r6;
;;   $L1:
;;   $B1:
;;       mov.b32 %out, %r0;
;;       ret;
;;   $L0:
;;       call (%r7), cold_load_4, (%a0, %a1, 0, 144115205255725199);
;;       mov.b32 %r0, %r7;
;;       ld.global.u32 %r1, [%a0+1280];
;;       bra $L1;
;;   }
;; twice as PTX:
;;   // twice
;;   .func (.reg .b32 %out) f5_twice (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<9>;  .reg .b64 %d<3>;  .reg .pred %p<1>;
;;       add.u64 %d1, %a0, 12288;
;;       ld.global.u32 %r4, [%a0+1280];
;;       shr.u32 %r3, %r4, 2;
;;   $B0:
;;       shf.r.wrap.b32 %r5, %a1, %a1, 2;
;;       setp.ge.u32 %p0, %r5, %r3;
;;       mad.wide.u32 %d2, %a1, 32, %d1;
;;       @%p0 bra $L0;
;;       ld.global.u32 %r0, [%d2];
;;       ld.global.u32 %r1, [%d2+128];
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
;;       ld.global.u32 %r8, [%a0+1280];
;;       shr.u32 %r3, %r8, 2;
;;       bra $L1;
;;   }
