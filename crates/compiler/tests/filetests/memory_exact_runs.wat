;;! build = "exact-linear"
(module (memory 2)
  ;; Two roots, one of them computed between the accesses: one test.
  (func (export "copy") (param i32 i32)
    (i32.store (local.get 0) (i32.load (local.get 1)))
    (i32.store (i32.add (local.get 0) (local.get 1)) (i32.load offset=4 (local.get 1))))
  ;; The second root is loaded: a test of its own.
  (func (export "chase") (param i32) (result i32) (i32.load (i32.load (local.get 0))))
  ;; A call may make the memory longer: no run goes on behind it.
  (func (export "around_a_call") (param i32)
    (i32.store (local.get 0) (i32.const 1))
    (i32.store offset=4 (local.get 0) (i32.const 2))
    (call 1 (local.get 0)) drop
    (i32.store offset=8 (local.get 0) (i32.const 3))
    (i32.store offset=12 (local.get 0) (i32.const 4)))
  ;; The trap of a division between two accesses comes between them on both ways.
  (func (export "division") (param i32 i32)
    (i32.store (local.get 0) (i32.const 1))
    (i32.store offset=4 (local.get 0) (i32.div_u (i32.const 7) (local.get 1)))))
;; copy as CLIF:
;;   function u0:0(i64, i32, i32) system_v {
;;       region0 = 1 "guest"
;;
;;                                   block0(v0: i64, v1: i32, v2: i32):
;;   @005b                               v3 = uextend.i64 v2
;;   @005b                               v4 = load.i32 aligned region0 v3
;;   @005e                               v5 = uextend.i64 v1
;;   @005e                               store aligned region0 v4, v5
;;   @0068                               v8 = load.i32 aligned region0 v3+4
;;   @0065                               v6 = iadd v1, v2
;;   @006b                               v9 = uextend.i64 v6
;;   @006b                               store aligned region0 v8, v9
;;   @006e                               jump block1
;;
;;                                   block1:
;;   @006e                               return
;;   }
;; copy as PTX:
;;   // copy
;;   .func f0_copy (.reg .b64 %a0, .reg .b32 %a1, .reg .b32 %a2)
;;   {
;;       .reg .b32 %r<11>;  .reg .b64 %d<10>;  .reg .pred %p<5>;
;;       add.u64 %d3, %a0, 384;
;;       ld.global.u32 %r4, [%a0+40];
;;       shr.u32 %r3, %r4, 2;
;;   $B0:
;;       add.u32 %r2, %a1, %a2;
;;       shf.r.wrap.b32 %r5, %a2, %a2, 2;
;;       setp.ge.u32 %p0, %r5, %r3;
;;       cvt.u64.u32 %d4, %a2;
;;       add.u64 %d5, %d3, %d4;
;;       shf.r.wrap.b32 %r6, %a1, %a1, 2;
;;       setp.ge.u32 %p1, %r6, %r3;
;;       or.pred %p2, %p0, %p1;
;;       cvt.u64.u32 %d6, %a1;
;;       add.u64 %d7, %d3, %d6;
;;       shf.r.wrap.b32 %r7, %r2, %r2, 2;
;;       setp.ge.u32 %p3, %r7, %r3;
;;       or.pred %p4, %p2, %p3;
;;       cvt.u64.u32 %d8, %r2;
;;       add.u64 %d9, %d3, %d8;
;;       @%p4 bra $L0;
;;       ld.global.u32 %r0, [%d5];
;;       st.global.u32 [%d7], %r0;
;;       ld.global.u32 %r1, [%d5+4];
;;       st.global.u32 [%d9], %r1;
;;   $L1:
;;   $B1:
;;       ret;
;;   $L0:
;;       call (%r8), cold_load_4, (%a0, %a2, 0, 144115188075855963);
;;       mov.b32 %r0, %r8;
;;       call cold_store_4, (%a0, %a1, 0, 144115188075855966, %r0);
;;       call (%r9), cold_load_4, (%a0, %a2, 4, 144115188075855976);
;;       mov.b32 %r1, %r9;
;;       call cold_store_4, (%a0, %r2, 0, 144115188075855979, %r1);
;;       ld.global.u32 %r10, [%a0+40];
;;       shr.u32 %r3, %r10, 2;
;;       bra $L1;
;;   }
;; chase as CLIF:
;;   function u0:1(i64, i32) -> i32 system_v {
;;       region0 = 1 "guest"
;;
;;                                   block0(v0: i64, v1: i32):
;;   @0073                               v3 = uextend.i64 v1
;;   @0073                               v4 = load.i32 aligned region0 v3
;;   @0076                               v5 = uextend.i64 v4
;;   @0076                               v6 = load.i32 aligned region0 v5
;;   @0079                               jump block1
;;
;;                                   block1:
;;   @0079                               return v6
;;   }
;; chase as PTX:
;;   // chase
;;   .func (.reg .b32 %out) f1_chase (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<10>;  .reg .b64 %d<7>;  .reg .pred %p<2>;
;;       add.u64 %d2, %a0, 384;
;;       ld.global.u32 %r3, [%a0+40];
;;       shr.u32 %r2, %r3, 2;
;;   $B0:
;;       shf.r.wrap.b32 %r4, %a1, %a1, 2;
;;       setp.ge.u32 %p0, %r4, %r2;
;;       @%p0 bra $L0;
;;       cvt.u64.u32 %d3, %a1;
;;       add.u64 %d4, %d2, %d3;
;;       ld.global.u32 %r0, [%d4];
;;   $L1:
;;       shf.r.wrap.b32 %r7, %r0, %r0, 2;
;;       setp.ge.u32 %p1, %r7, %r2;
;;       @%p1 bra $L2;
;;       cvt.u64.u32 %d5, %r0;
;;       add.u64 %d6, %d2, %d5;
;;       ld.global.u32 %r1, [%d6];
;;   $L3:
;;   $B1:
;;       mov.b32 %out, %r1;
;;       ret;
;;   $L0:
;;       call (%r5), cold_load_4, (%a0, %a1, 0, 144115192370823283);
;;       mov.b32 %r0, %r5;
;;       ld.global.u32 %r6, [%a0+40];
;;       shr.u32 %r2, %r6, 2;
;;       bra $L1;
;;   $L2:
;;       call (%r8), cold_load_4, (%a0, %r0, 0, 144115192370823286);
;;       mov.b32 %r1, %r8;
;;       ld.global.u32 %r9, [%a0+40];
;;       shr.u32 %r2, %r9, 2;
;;       bra $L3;
;;   }
;; around_a_call as CLIF:
;;   function u0:2(i64, i32) system_v {
;;       region0 = 2 "header"
;;       region1 = 1 "guest"
;;       sig0 = (i64, i32) -> i32 system_v
;;       fn0 = colocated u0:1 sig0
;;
;;                                   block0(v0: i64, v1: i32):
;;   @007b                               v2 = load.i32 notrap aligned region0 v0+72
;;   @007b                               v3 = get_stack_pointer.i64
;;   @007b                               v4 = ireduce.i32 v3
;;   @007b                               v5 = iconst.i32 -8
;;   @007b                               v6 = iadd v4, v5  ; v5 = -8
;;   @007b                               v7 = icmp ult v6, v2
;;   @007b                               trapnz v7, user9
;;   @007e                               v8 = iconst.i32 1
;;   @0080                               v9 = uextend.i64 v1
;;   @0080                               store aligned region1 v8, v9  ; v8 = 1
;;   @0085                               v10 = iconst.i32 2
;;   @0087                               store aligned region1 v10, v9+4  ; v10 = 2
;;   @008c                               v12 = call fn0(v0, v1)
;;   @0091                               v13 = iconst.i32 3
;;   @0093                               store aligned region1 v13, v9+8  ; v13 = 3
;;   @0098                               v15 = iconst.i32 4
;;   @009a                               store aligned region1 v15, v9+12  ; v15 = 4
;;   @009d                               jump block1
;;
;;                                   block1:
;;   @009d                               return
;;   }
;; around_a_call as PTX:
;;   // around_a_call
;;   .func f2_around_a_call (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<11>;  .reg .b64 %d<8>;  .reg .pred %p<3>;
;;       add.u64 %d2, %a0, 384;
;;       ld.global.u32 %r5, [%a0+40];
;;       shr.u32 %r4, %r5, 2;
;;   $B0:
;;       ld.global.u32 %r0, [%a0+72];
;;       stacksave.u32 %r6;
;;       cvt.u64.u32 %d0, %r6;
;;       cvt.u32.u64 %r1, %d0;
;;       add.u32 %r2, %r1, -8;
;;       setp.lt.u32 %p0, %r2, %r0;
;;       @%p0 bra $X0;
;;       shf.r.wrap.b32 %r7, %a1, %a1, 2;
;;       setp.ge.u32 %p1, %r7, %r4;
;;       cvt.u64.u32 %d3, %a1;
;;       add.u64 %d4, %d2, %d3;
;;       @%p1 bra $L0;
;;       st.global.u32 [%d4], 1;
;;       st.global.u32 [%d4+4], 2;
;;   $L1:
;;       call (%r3), f1_chase, (%a0, %a1);
;;       shf.r.wrap.b32 %r9, %a1, %a1, 2;
;;       setp.ge.u32 %p2, %r9, %r4;
;;       cvt.u64.u32 %d5, %a1;
;;       add.u64 %d6, %d2, %d5;
;;       @%p2 bra $L6;
;;       st.global.u32 [%d6+8], 3;
;;       st.global.u32 [%d6+12], 4;
;;   $L7:
;;   $B1:
;;       ret;
;;   $L0:
;;       call cold_store_4, (%a0, %a1, 0, 144115196665790592, 1);
;;       call cold_store_4, (%a0, %a1, 4, 144115196665790599, 2);
;;       ld.global.u32 %r8, [%a0+40];
;;       shr.u32 %r4, %r8, 2;
;;       bra $L1;
;;   $L6:
;;       call cold_store_4, (%a0, %a1, 8, 144115196665790611, 3);
;;       call cold_store_4, (%a0, %a1, 12, 144115196665790618, 4);
;;       ld.global.u32 %r10, [%a0+40];
;;       shr.u32 %r4, %r10, 2;
;;       bra $L7;
;;   $X0:
;;       mov.b64 %d7, 0x090000020000007B;
;;       st.global.u64 [%a0+8], %d7;
;;       exit;
;;   }
;; division as CLIF:
;;   function u0:3(i64, i32, i32) system_v {
;;       region0 = 1 "guest"
;;
;;                                   block0(v0: i64, v1: i32, v2: i32):
;;   @00a2                               v3 = iconst.i32 1
;;   @00a4                               v4 = uextend.i64 v1
;;   @00a4                               store aligned region0 v3, v4  ; v3 = 1
;;   @00ad                               trapz v2, user6
;;   @00a9                               v5 = iconst.i32 7
;;   @00ad                               v6 = udiv v5, v2  ; v5 = 7
;;   @00ae                               store aligned region0 v6, v4+4
;;   @00b1                               jump block1
;;
;;                                   block1:
;;   @00b1                               return
;;   }
;; division as PTX:
;;   // division
;;   .func f3_division (.reg .b64 %a0, .reg .b32 %a1, .reg .b32 %a2)
;;   {
;;       .reg .b32 %r<5>;  .reg .b64 %d<5>;  .reg .pred %p<3>;
;;       add.u64 %d1, %a0, 384;
;;       ld.global.u32 %r2, [%a0+40];
;;       shr.u32 %r1, %r2, 2;
;;   $B0:
;;       shf.r.wrap.b32 %r3, %a1, %a1, 2;
;;       setp.ge.u32 %p0, %r3, %r1;
;;       cvt.u64.u32 %d2, %a1;
;;       add.u64 %d3, %d1, %d2;
;;       @%p0 bra $L0;
;;       st.global.u32 [%d3], 1;
;;       setp.ne.u32 %p1, %a2, 0;
;;       @!%p1 bra $X0;
;;       div.u32 %r0, 7, %a2;
;;       st.global.u32 [%d3+4], %r0;
;;   $L1:
;;   $B1:
;;       ret;
;;   $L0:
;;       call cold_store_4, (%a0, %a1, 0, 144115200960757924, 1);
;;       setp.ne.u32 %p2, %a2, 0;
;;       @!%p2 bra $X0;
;;       div.u32 %r0, 7, %a2;
;;       call cold_store_4, (%a0, %a1, 4, 144115200960757934, %r0);
;;       ld.global.u32 %r4, [%a0+40];
;;       shr.u32 %r1, %r4, 2;
;;       bra $L1;
;;   $X0:
;;       mov.b64 %d4, 0x06000003000000AD;
;;       st.global.u64 [%a0+8], %d4;
;;       exit;
;;   }
