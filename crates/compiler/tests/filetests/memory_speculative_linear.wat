;;! build = "speculative-linear"
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
;;       .reg .b32 %r<5>;  .reg .b64 %d<4>;  .reg .pred %p<1>;
;;       add.u64 %d1, %a0, 384;
;;       ld.global.u32 %r1, [%a0+32];
;;   $B0:
;;       sub.u32 %r2, %r1, 12;
;;       shf.r.wrap.b32 %r3, %a1, %a1, 2;
;;       shr.u32 %r4, %r2, 2;
;;       setp.gt.u32 %p0, %r3, %r4;
;;       @%p0 exit;
;;       cvt.u64.u32 %d2, %a1;
;;       add.u64 %d3, %d1, %d2;
;;       ld.global.u32 %r0, [%d3+8];
;;   $B1:
;;       mov.b32 %out, %r0;
;;       ret;
;;   }
;; load_wide as PTX:
;;   // load_wide
;;   .func (.reg .b64 %out) f1_load_wide (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<4>;  .reg .b64 %d<5>;  .reg .pred %p<1>;
;;       add.u64 %d2, %a0, 384;
;;       ld.global.u32 %r0, [%a0+32];
;;   $B0:
;;       sub.u32 %r1, %r0, 8;
;;       shf.r.wrap.b32 %r2, %a1, %a1, 3;
;;       shr.u32 %r3, %r1, 3;
;;       setp.gt.u32 %p0, %r2, %r3;
;;       @%p0 exit;
;;       cvt.u64.u32 %d3, %a1;
;;       add.u64 %d4, %d2, %d3;
;;       ld.global.u64 %d1, [%d4];
;;   $B1:
;;       mov.b64 %out, %d1;
;;       ret;
;;   }
;; load_byte as PTX:
;;   // load_byte
;;   .func (.reg .b32 %out) f2_load_byte (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<3>;  .reg .b64 %d<4>;  .reg .pred %p<1>;
;;       add.u64 %d1, %a0, 384;
;;       ld.global.u32 %r1, [%a0+32];
;;   $B0:
;;       sub.u32 %r2, %r1, 1;
;;       setp.gt.u32 %p0, %a1, %r2;
;;       @%p0 exit;
;;       cvt.u64.u32 %d2, %a1;
;;       add.u64 %d3, %d1, %d2;
;;       ld.global.s8 %r0, [%d3];
;;   $B1:
;;       mov.b32 %out, %r0;
;;       ret;
;;   }
;; store as PTX:
;;   // store
;;   .func f3_store (.reg .b64 %a0, .reg .b32 %a1, .reg .b32 %a2)
;;   {
;;       .reg .b32 %r<4>;  .reg .b64 %d<4>;  .reg .pred %p<1>;
;;       add.u64 %d1, %a0, 384;
;;       ld.global.u32 %r0, [%a0+32];
;;   $B0:
;;       sub.u32 %r1, %r0, 4;
;;       shf.r.wrap.b32 %r2, %a1, %a1, 2;
;;       shr.u32 %r3, %r1, 2;
;;       setp.gt.u32 %p0, %r2, %r3;
;;       @%p0 exit;
;;       cvt.u64.u32 %d2, %a1;
;;       add.u64 %d3, %d1, %d2;
;;       st.global.u32 [%d3], %a2;
;;   $B1:
;;       ret;
;;   }
;; unaligned as PTX:
;;   // unaligned
;;   .func (.reg .b32 %out) f4_unaligned (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<8>;  .reg .b64 %d<4>;  .reg .pred %p<1>;
;;       add.u64 %d1, %a0, 384;
;;       ld.global.u32 %r1, [%a0+32];
;;   $B0:
;;       sub.u32 %r2, %r1, 4;
;;       setp.gt.u32 %p0, %a1, %r2;
;;       @%p0 exit;
;;       and.b32 %r3, %a1, -4;
;;       cvt.u64.u32 %d2, %r3;
;;       add.u64 %d3, %d1, %d2;
;;       shl.b32 %r4, %a1, 3;
;;       ld.global.u32 %r5, [%d3];
;;       ld.global.u32 %r6, [%d3+4];
;;       shf.r.wrap.b32 %r7, %r5, %r6, %r4;
;;       mov.b32 %r0, %r7;
;;   $B1:
;;       mov.b32 %out, %r0;
;;       ret;
;;   }
;; twice as PTX:
;;   // twice
;;   .func (.reg .b32 %out) f5_twice (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<7>;  .reg .b64 %d<4>;  .reg .pred %p<1>;
;;       add.u64 %d1, %a0, 384;
;;       ld.global.u32 %r3, [%a0+32];
;;   $B0:
;;       sub.u32 %r4, %r3, 8;
;;       shf.r.wrap.b32 %r5, %a1, %a1, 2;
;;       shr.u32 %r6, %r4, 2;
;;       setp.gt.u32 %p0, %r5, %r6;
;;       @%p0 exit;
;;       cvt.u64.u32 %d2, %a1;
;;       add.u64 %d3, %d1, %d2;
;;       ld.global.u32 %r0, [%d3];
;;       ld.global.u32 %r1, [%d3+4];
;;   $B1:
;;       add.u32 %r2, %r0, %r1;
;;       mov.b32 %out, %r2;
;;       ret;
;;   }
