;; Lanes that share a warp meet before outermost loops, and in those that are large; not behind an atomic operation.
;;! build = "threads"
;;! check = "ptx"
;;! function = "loop"
(module
  (import "env" "memory" (memory 1 4 shared))
  (import "wasi" "thread-spawn" (func $spawn (param i32) (result i32)))
  (func (export "wasi_thread_start") (param i32 i32))
  (func (export "_start"))

  (func (export "loop_in_loop") (param $n i32) (result i32)
    (local $i i32) (local $j i32) (local $sum i32)
    (loop $outer
      (local.set $j (i32.load (local.get $i)))
      (loop $inner
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 3)) (local.get $j)))
        (br_if $inner (local.tee $j (i32.and (i32.sub (local.get $j) (i32.const 1)) (local.get $sum)))))
      (br_if $outer (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 4))) (local.get $n))))
    (local.get $sum))

  (func (export "loop_that_waits") (param $at i32)
    (loop $spin
      (br_if $spin (i32.atomic.rmw.cmpxchg (local.get $at) (i32.const 0) (i32.const 1)))))

  (func (export "loop_behind_a_lock") (param $at i32) (result i32)
    (local $sum i32)
    (drop (i32.atomic.rmw.add (local.get $at) (i32.const 1)))
    (loop $on
      (local.set $sum (i32.add (local.get $sum) (i32.load (local.get $at))))
      (br_if $on (local.tee $at (i32.load offset=4 (local.get $at)))))
    (local.get $sum)))
;; loop_in_loop as PTX:
;;   // loop_in_loop
;;   .func (.reg .b32 %out) f3_loop_in_loop (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<25>;  .reg .b64 %d<20>;  .reg .pred %p<9>;
;;       mov.u32 %r14, %laneid;
;;       mov.u64 %d2, warp_state;
;;       mad.wide.u32 %d3, %r14, 8, %d2;
;;       ld.shared.u64 %d4, [%d3+416];
;;       ld.shared.u32 %r16, [%d3+672];
;;       shr.u32 %r15, %r16, 2;
;;   $B0:
;;       activemask.b32 %r17;
;;       setp.ne.u32 %p1, %r17, 4294967295;
;;       @%p1 bra $L0;
;;   $L1:
;;       ld.shared.u64 %d0, [%d3+1184];
;;       mov.b32 %r0, 64;
;;       mov.b32 %r1, 0;
;;       mov.b32 %r2, 0;
;;   $B2:
;;       activemask.b32 %r18;
;;       ld.shared.u32 %r19, [warp_state+4];
;;       add.u32 %r3, %r0, -64;
;;       setp.le.s32 %p2, %r3, 0;
;;       setp.eq.u32 %p3, %r19, 2147508234;
;;       or.pred %p2, %p2, %p3;
;;       @%p2 bra $L2;
;;   $L3:
;;       shf.r.wrap.b32 %r21, %r1, %r1, 2;
;;       setp.ge.u32 %p5, %r21, %r15;
;;       @%p5 bra $L4;
;;       cvt.u64.u32 %d5, %r1;
;;       add.u64 %d6, %d4, %d5;
;;       ld.global.u32 %r4, [%d6];
;;   $L5:
;;       mov.b32 %r5, %r3;
;;       mov.b32 %r6, %r2;
;;       mov.b32 %r7, %r4;
;;   $B4:
;;       add.u32 %r8, %r5, -1;
;;       setp.le.s32 %p6, %r8, 0;
;;       @%p6 bra $L6;
;;   $L7:
;;       sub.u32 %r9, %r7, 1;
;;       mul.lo.u32 %r10, %r6, 3;
;;       add.u32 %r11, %r10, %r7;
;;       and.b32 %r12, %r9, %r11;
;;       setp.ne.u32 %p8, %r12, 0;
;;       @!%p8 bra $B6;
;;       mov.b32 %r5, %r8;
;;       mov.b32 %r6, %r11;
;;       mov.b32 %r7, %r12;
;;       bra $B4;
;;   $B6:
;;   $B5:
;;       add.u32 %r13, %r1, 4;
;;       setp.lt.u32 %p0, %r13, %a1;
;;       @!%p0 bra $B7;
;;       mov.b32 %r0, %r8;
;;       mov.b32 %r1, %r13;
;;       mov.b32 %r2, %r11;
;;       bra $B2;
;;   $B7:
;;   $B3:
;;   $B1:
;;       mov.b32 %out, %r11;
;;       ret;
;;   $L0:
;;       call step_meet, (2147508228);
;;       bra $L1;
;;   $L2:
;;       call (%r20), look_word, (%d0, 2147508234, %r18);
;;       setp.ne.u32 %p4, %r20, 0;
;;       @%p4 bra $X0;
;;       mov.b32 %r3, 4096;
;;       bra $L3;
;;   $L4:
;;       call (%r22), cold_load_4, (%a0, %r1, 0, 144115200960757937);
;;       mov.b32 %r4, %r22;
;;       ld.shared.u32 %r23, [%d3+672];
;;       shr.u32 %r15, %r23, 2;
;;       bra $L5;
;;   $L6:
;;       call (%r24), look_word, (%d0, 0, 0);
;;       setp.ne.u32 %p7, %r24, 0;
;;       @%p7 bra $X1;
;;       mov.b32 %r8, 4096;
;;       bra $L7;
;;   $X0:
;;       mov.b64 %d7, 0x0A000003000000AD;
;;       st.global.u64 [%a0+8], %d7;
;;       ld.global.u64 %d8, [%a0+248];
;;       ld.global.u64 %d9, [%a0+24];
;;       ld.global.u64 %d10, [%a0+88];
;;       add.u64 %d11, %d9, 1;
;;       atom.relaxed.gpu.global.cas.b64 %d12, [%d8+-240], 0, %d11;
;;       st.relaxed.gpu.global.u32 [%d10], 1;
;;       add.u64 %d13, %d8, -240;
;;       call wake_word, (%d13);
;;       exit;
;;   $X1:
;;       mov.b64 %d7, 0x0A000003000000B6;
;;       st.global.u64 [%a0+8], %d7;
;;       ld.global.u64 %d14, [%a0+248];
;;       ld.global.u64 %d15, [%a0+24];
;;       ld.global.u64 %d16, [%a0+88];
;;       add.u64 %d17, %d15, 1;
;;       atom.relaxed.gpu.global.cas.b64 %d18, [%d14+-240], 0, %d17;
;;       st.relaxed.gpu.global.u32 [%d16], 1;
;;       add.u64 %d19, %d14, -240;
;;       call wake_word, (%d19);
;;       exit;
;;   }
;; loop_that_waits as PTX:
;;   // loop_that_waits
;;   .func f4_loop_that_waits (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<8>;  .reg .b64 %d<34>;  .reg .pred %p<7>;
;;       mov.u32 %r5, %laneid;
;;       mov.u64 %d13, warp_state;
;;       mad.wide.u32 %d14, %r5, 8, %d13;
;;   $B0:
;;       activemask.b32 %r6;
;;       setp.ne.u32 %p2, %r6, 4294967295;
;;       @%p2 bra $L0;
;;   $L1:
;;       ld.shared.u64 %d0, [%d14+1184];
;;       cvt.u64.u32 %d1, %a1;
;;       ld.shared.u64 %d3, [%d14+416];
;;       add.u64 %d5, %d3, %d1;
;;       mov.b32 %r1, 64;
;;   $B2:
;;       add.u32 %r2, %r1, -512;
;;       setp.le.s32 %p3, %r2, 0;
;;       @%p3 bra $L2;
;;   $L3:
;;       and.b32 %r3, %a1, 3;
;;       setp.ne.u32 %p5, %r3, 0;
;;       @%p5 bra $X1;
;;       ld.shared.u64 %d6, [%d14+928];
;;       add.u64 %d7, %d1, 4;
;;       setp.gt.u64 %p0, %d7, %d6;
;;       @%p0 bra $B4;
;;   $B5:
;;       fence.sc.gpu;
;;       atom.acquire.gpu.global.cas.b32 %r4, [%d5], 0, 1;
;;       setp.ne.u32 %p6, %r4, 0;
;;       @!%p6 bra $B6;
;;       mov.b32 %r1, %r2;
;;       bra $B2;
;;   $B6:
;;   $B3:
;;   $B1:
;;       ret;
;;   $B4:
;;       ld.acquire.gpu.global.u64 %d9, [%d3+-256];
;;       st.shared.u64 [%d14+928], %d9;
;;       max.u64 %d10, %d9, 4096;
;;       sub.u64 %d11, %d10, 4096;
;;       st.shared.u64 [%d14+672], %d11;
;;       add.u64 %d12, %d1, 4;
;;       setp.gt.u64 %p1, %d12, %d9;
;;       @%p1 bra $X2;
;;       bra $B5;
;;   $L0:
;;       call step_meet, (2147516418);
;;       bra $L1;
;;   $L2:
;;       call (%r7), look_word, (%d0, 1, 0);
;;       setp.ne.u32 %p4, %r7, 0;
;;       @%p4 bra $X0;
;;       mov.b32 %r2, 4096;
;;       bra $L3;
;;   $X0:
;;       mov.b64 %d15, 0x0A000004000000E1;
;;       st.global.u64 [%a0+8], %d15;
;;       ld.global.u64 %d16, [%a0+248];
;;       ld.global.u64 %d17, [%a0+24];
;;       ld.global.u64 %d18, [%a0+88];
;;       add.u64 %d19, %d17, 1;
;;       atom.relaxed.gpu.global.cas.b64 %d20, [%d16+-240], 0, %d19;
;;       st.relaxed.gpu.global.u32 [%d18], 1;
;;       add.u64 %d21, %d16, -240;
;;       call wake_word, (%d21);
;;       exit;
;;   $X1:
;;       mov.b64 %d15, 0x0F000004000000E9;
;;       st.global.u64 [%a0+8], %d15;
;;       ld.global.u64 %d22, [%a0+248];
;;       ld.global.u64 %d23, [%a0+24];
;;       ld.global.u64 %d24, [%a0+88];
;;       add.u64 %d25, %d23, 1;
;;       atom.relaxed.gpu.global.cas.b64 %d26, [%d22+-240], 0, %d25;
;;       st.relaxed.gpu.global.u32 [%d24], 1;
;;       add.u64 %d27, %d22, -240;
;;       call wake_word, (%d27);
;;       exit;
;;   $X2:
;;       mov.b64 %d15, 0x02000004000000E9;
;;       st.global.u64 [%a0+8], %d15;
;;       ld.global.u64 %d28, [%a0+248];
;;       ld.global.u64 %d29, [%a0+24];
;;       ld.global.u64 %d30, [%a0+88];
;;       add.u64 %d31, %d29, 1;
;;       atom.relaxed.gpu.global.cas.b64 %d32, [%d28+-240], 0, %d31;
;;       st.relaxed.gpu.global.u32 [%d30], 1;
;;       add.u64 %d33, %d28, -240;
;;       call wake_word, (%d33);
;;       exit;
;;   }
;; loop_behind_a_lock as PTX:
;;   // loop_behind_a_lock
;;   .func (.reg .b32 %out) f5_loop_behind_a_lock (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<17>;  .reg .b64 %d<37>;  .reg .pred %p<7>;
;;       mov.u32 %r9, %laneid;
;;       mov.u64 %d13, warp_state;
;;       mad.wide.u32 %d14, %r9, 8, %d13;
;;       ld.shared.u64 %d15, [%d14+416];
;;       ld.shared.u32 %r11, [%d14+672];
;;       shr.u32 %r10, %r11, 2;
;;   $B0:
;;       and.b32 %r0, %a1, 3;
;;       setp.ne.u32 %p2, %r0, 0;
;;       @%p2 bra $X0;
;;       ld.shared.u64 %d0, [%d14+928];
;;       cvt.u64.u32 %d1, %a1;
;;       add.u64 %d2, %d1, 4;
;;       setp.gt.u64 %p0, %d2, %d0;
;;       @%p0 bra $B2;
;;   $B3:
;;       fence.sc.gpu;
;;       ld.shared.u64 %d9, [%d14+416];
;;       add.u64 %d10, %d9, %d1;
;;       atom.acquire.gpu.global.add.u32 %r1, [%d10], 1;
;;       ld.shared.u64 %d11, [%d14+1184];
;;       mov.b32 %r2, 64;
;;       mov.b32 %r3, 0;
;;       mov.b32 %r4, %a1;
;;   $B4:
;;       add.u32 %r5, %r2, -1;
;;       setp.le.s32 %p3, %r5, 0;
;;       @%p3 bra $L0;
;;   $L1:
;;       shf.r.wrap.b32 %r13, %r4, %r4, 2;
;;       setp.ge.u32 %p5, %r13, %r10;
;;       cvt.u64.u32 %d16, %r4;
;;       add.u64 %d17, %d15, %d16;
;;       @%p5 bra $L2;
;;       ld.global.u32 %r6, [%d17];
;;       ld.global.u32 %r7, [%d17+4];
;;   $L3:
;;       add.u32 %r8, %r3, %r6;
;;       setp.ne.u32 %p6, %r7, 0;
;;       @!%p6 bra $B6;
;;       mov.b32 %r2, %r5;
;;       mov.b32 %r3, %r8;
;;       mov.b32 %r4, %r7;
;;       bra $B4;
;;   $B6:
;;   $B5:
;;   $B1:
;;       mov.b32 %out, %r8;
;;       ret;
;;   $B2:
;;       ld.shared.u64 %d3, [%d14+416];
;;       ld.acquire.gpu.global.u64 %d5, [%d3+-256];
;;       st.shared.u64 [%d14+928], %d5;
;;       max.u64 %d6, %d5, 4096;
;;       sub.u64 %d7, %d6, 4096;
;;       st.shared.u64 [%d14+672], %d7;
;;       add.u64 %d8, %d1, 4;
;;       setp.gt.u64 %p1, %d8, %d5;
;;       @%p1 bra $X2;
;;       bra $B3;
;;   $L0:
;;       call (%r12), look_word, (%d11, 0, 0);
;;       setp.ne.u32 %p4, %r12, 0;
;;       @%p4 bra $X1;
;;       mov.b32 %r5, 4096;
;;       bra $L1;
;;   $L2:
;;       call (%r14), cold_load_4, (%a0, %r4, 0, 144115209550692612);
;;       mov.b32 %r6, %r14;
;;       call (%r15), cold_load_4, (%a0, %r4, 4, 144115209550692620);
;;       mov.b32 %r7, %r15;
;;       ld.shared.u32 %r16, [%d14+672];
;;       shr.u32 %r10, %r16, 2;
;;       bra $L3;
;;   $X0:
;;       mov.b64 %d18, 0x0F000005000000F9;
;;       st.global.u64 [%a0+8], %d18;
;;       ld.global.u64 %d19, [%a0+248];
;;       ld.global.u64 %d20, [%a0+24];
;;       ld.global.u64 %d21, [%a0+88];
;;       add.u64 %d22, %d20, 1;
;;       atom.relaxed.gpu.global.cas.b64 %d23, [%d19+-240], 0, %d22;
;;       st.relaxed.gpu.global.u32 [%d21], 1;
;;       add.u64 %d24, %d19, -240;
;;       call wake_word, (%d24);
;;       exit;
;;   $X1:
;;       mov.b64 %d18, 0x0A000005000000FE;
;;       st.global.u64 [%a0+8], %d18;
;;       ld.global.u64 %d25, [%a0+248];
;;       ld.global.u64 %d26, [%a0+24];
;;       ld.global.u64 %d27, [%a0+88];
;;       add.u64 %d28, %d26, 1;
;;       atom.relaxed.gpu.global.cas.b64 %d29, [%d25+-240], 0, %d28;
;;       st.relaxed.gpu.global.u32 [%d27], 1;
;;       add.u64 %d30, %d25, -240;
;;       call wake_word, (%d30);
;;       exit;
;;   $X2:
;;       mov.b64 %d18, 0x02000005000000F9;
;;       st.global.u64 [%a0+8], %d18;
;;       ld.global.u64 %d31, [%a0+248];
;;       ld.global.u64 %d32, [%a0+24];
;;       ld.global.u64 %d33, [%a0+88];
;;       add.u64 %d34, %d32, 1;
;;       atom.relaxed.gpu.global.cas.b64 %d35, [%d31+-240], 0, %d34;
;;       st.relaxed.gpu.global.u32 [%d33], 1;
;;       add.u64 %d36, %d31, -240;
;;       call wake_word, (%d36);
;;       exit;
;;   }
