;;! build = "gang"
;;! check = "ptx"
(module (memory 2)
  (func (export "nothing"))
  (func (export "load") (param i32) (result i32) (i32.load offset=8 (local.get 0)))
  (func (export "load_wide") (param i32) (result i64) (i64.load (local.get 0)))
  (func (export "load_byte") (param i32) (result i32) (i32.load8_s (local.get 0)))
  (func (export "store") (param i32 i32) (i32.store (local.get 0) (local.get 1)))
  (func (export "unaligned") (param i32) (result i32) (i32.load align=1 (local.get 0)))
  (func (export "twice") (param i32) (result i32) (i32.add (i32.load (local.get 0)) (i32.load offset=4 (local.get 0)))))
;; nothing as PTX:
;;   // nothing
;;   .func f0_nothing (.reg .b64 %a0)
;;   {
;;   $B0:
;;   $B1:
;;       ret;
;;   }
;; load as PTX:
;;   // load
;;   .func (.reg .b32 %out) f1_load (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<4>;  .reg .b64 %d<6>;  .reg .pred %p<1>;
;;       and.b64 %d1, %a0, -65536;
;;       mov.u32 %r1, %nctaid.y;
;;       mad.wide.u32 %d2, %r1, 65536, %d1;
;;       mov.b32 %r2, 327680;
;;   $B0:
;;       shf.r.wrap.b32 %r3, %a1, %a1, 2;
;;       setp.ge.u32 %p0, %r3, %r2;
;;       @%p0 bra $X0;
;;       cvt.u64.u32 %d3, %a1;
;;       add.u64 %d4, %d2, %d3;
;;       ld.global.u32 %r0, [%d4+8];
;;   $B1:
;;       mov.b32 %out, %r0;
;;       ret;
;;   $X0:
;;       mov.b64 %d5, 0x020000010000007E;
;;       call gang_trap, (%a0, %d5);
;;       exit;
;;   }
;; load_wide as PTX:
;;   // load_wide
;;   .func (.reg .b64 %out) f2_load_wide (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<3>;  .reg .b64 %d<7>;  .reg .pred %p<1>;
;;       and.b64 %d2, %a0, -65536;
;;       mov.u32 %r0, %nctaid.y;
;;       mad.wide.u32 %d3, %r0, 65536, %d2;
;;       mov.b32 %r1, 163840;
;;   $B0:
;;       shf.r.wrap.b32 %r2, %a1, %a1, 3;
;;       setp.ge.u32 %p0, %r2, %r1;
;;       @%p0 bra $X0;
;;       cvt.u64.u32 %d4, %a1;
;;       add.u64 %d5, %d3, %d4;
;;       ld.global.u64 %d1, [%d5];
;;   $B1:
;;       mov.b64 %out, %d1;
;;       ret;
;;   $X0:
;;       mov.b64 %d6, 0x0200000200000086;
;;       call gang_trap, (%a0, %d6);
;;       exit;
;;   }
;; load_byte as PTX:
;;   // load_byte
;;   .func (.reg .b32 %out) f3_load_byte (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<3>;  .reg .b64 %d<6>;  .reg .pred %p<1>;
;;       and.b64 %d1, %a0, -65536;
;;       mov.u32 %r1, %nctaid.y;
;;       mad.wide.u32 %d2, %r1, 65536, %d1;
;;       mov.b32 %r2, 1310720;
;;   $B0:
;;       setp.ge.u32 %p0, %a1, %r2;
;;       @%p0 bra $X0;
;;       cvt.u64.u32 %d3, %a1;
;;       add.u64 %d4, %d2, %d3;
;;       ld.global.s8 %r0, [%d4];
;;   $B1:
;;       mov.b32 %out, %r0;
;;       ret;
;;   $X0:
;;       mov.b64 %d5, 0x020000030000008E;
;;       call gang_trap, (%a0, %d5);
;;       exit;
;;   }
;; store as PTX:
;;   // store
;;   .func f4_store (.reg .b64 %a0, .reg .b32 %a1, .reg .b32 %a2)
;;   {
;;       .reg .b32 %r<3>;  .reg .b64 %d<6>;  .reg .pred %p<1>;
;;       and.b64 %d1, %a0, -65536;
;;       mov.u32 %r0, %nctaid.y;
;;       mad.wide.u32 %d2, %r0, 65536, %d1;
;;       mov.b32 %r1, 327680;
;;   $B0:
;;       shf.r.wrap.b32 %r2, %a1, %a1, 2;
;;       setp.ge.u32 %p0, %r2, %r1;
;;       @%p0 bra $X0;
;;       cvt.u64.u32 %d3, %a1;
;;       add.u64 %d4, %d2, %d3;
;;       st.global.u32 [%d4], %a2;
;;   $B1:
;;       ret;
;;   $X0:
;;       mov.b64 %d5, 0x0200000400000098;
;;       call gang_trap, (%a0, %d5);
;;       exit;
;;   }
;; unaligned as PTX:
;;   // unaligned
;;   .func (.reg .b32 %out) f5_unaligned (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<8>;  .reg .b64 %d<13>;  .reg .pred %p<2>;
;;       and.b64 %d1, %a0, -65536;
;;       mov.u32 %r1, %nctaid.y;
;;       mad.wide.u32 %d2, %r1, 65536, %d1;
;;       mov.b32 %r2, 1310720;
;;   $B0:
;;       setp.ge.u32 %p0, %a1, %r2;
;;       @%p0 bra $X0;
;;       cvt.u64.u32 %d3, %a1;
;;       add.u64 %d4, %d2, %d3;
;;       and.b64 %d5, %d4, 3;
;;       setp.ne.u64 %p1, %d5, 0;
;;       @%p1 bra $L1;
;;       ld.global.u32 %r0, [%d4];
;;       bra $L2;
;;   $L1:
;;       and.b64 %d6, %d4, -8;
;;       ld.global.u64 %d7, [%d6];
;;       ld.global.u64 %d8, [%d6+8];
;;       cvt.u32.u64 %r3, %d4;
;;       and.b32 %r4, %r3, 7;
;;       shl.b32 %r5, %r4, 3;
;;       sub.u32 %r6, 64, %r5;
;;       shr.u64 %d9, %d7, %r5;
;;       shl.b64 %d10, %d8, %r6;
;;       or.b64 %d11, %d9, %d10;
;;       cvt.u32.u64 %r7, %d11;
;;       mov.b32 %r0, %r7;
;;   $L2:
;;   $B1:
;;       mov.b32 %out, %r0;
;;       ret;
;;   $X0:
;;       mov.b64 %d12, 0x02000005000000A0;
;;       call gang_trap, (%a0, %d12);
;;       exit;
;;   }
;; twice as PTX:
;;   // twice
;;   .func (.reg .b32 %out) f6_twice (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<6>;  .reg .b64 %d<6>;  .reg .pred %p<1>;
;;       and.b64 %d1, %a0, -65536;
;;       mov.u32 %r3, %nctaid.y;
;;       mad.wide.u32 %d2, %r3, 65536, %d1;
;;       mov.b32 %r4, 327680;
;;   $B0:
;;       shf.r.wrap.b32 %r5, %a1, %a1, 2;
;;       setp.ge.u32 %p0, %r5, %r4;
;;       @%p0 bra $X0;
;;       cvt.u64.u32 %d3, %a1;
;;       add.u64 %d4, %d2, %d3;
;;       ld.global.u32 %r0, [%d4];
;;       ld.global.u32 %r1, [%d4+4];
;;   $B1:
;;       add.u32 %r2, %r0, %r1;
;;       mov.b32 %out, %r2;
;;       ret;
;;   $X0:
;;       mov.b64 %d5, 0x02000006000000A8;
;;       call gang_trap, (%a0, %d5);
;;       exit;
;;   }
