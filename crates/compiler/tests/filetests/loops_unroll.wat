;;! build = "speculative-interleaved"
;;! check = "ptx"
(module (memory 1)
  (func (export "sum") (param i32) (result i32) (local i32 i32)
    (loop $l
      (local.set 1 (i32.add (local.get 1) (i32.load (i32.add (local.get 0) (i32.shl (local.get 2) (i32.const 2))))))
      (br_if $l (i32.lt_u (local.tee 2 (i32.add (local.get 2) (i32.const 1))) (i32.const 8))))
    (local.get 1)))
;; sum as PTX:
;;   // sum
;;   .func (.reg .b32 %out) f0_sum (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<15>;  .reg .b64 %d<4>;  .reg .pred %p<2>;
;;       add.u64 %d2, %a0, 12288;
;;       ld.global.u32 %r11, [%a0+1024];
;;   $B0:
;;       ld.global.u32 %r0, [%a0+2816];
;;       ld.global.u32 %r1, [%a0+2944];
;;       mov.b64 %d0, {%r0, %r1};
;;       mov.b32 %r2, 64;
;;       mov.b32 %r3, 0;
;;       mov.b32 %r4, 0;
;;   $B2:
;;       mov.b32 %r5, %r2;
;;       shl.b32 %r6, %r4, 2;
;;       add.u32 %r7, %a1, %r6;
;;       sub.u32 %r12, %r11, 32;
;;       shf.r.wrap.b32 %r13, %a1, %a1, 2;
;;       shr.u32 %r14, %r12, 2;
;;       setp.gt.u32 %p1, %r13, %r14;
;;       @%p1 exit;
;;       mad.wide.u32 %d3, %r7, 32, %d2;
;;       ld.global.u32 %r8, [%d3];
;;       add.u32 %r9, %r4, 1;
;;       setp.lt.u32 %p0, %r9, 8;
;;       add.u32 %r10, %r3, %r8;
;;       @!%p0 bra $B4;
;;       mov.b32 %r2, %r5;
;;       mov.b32 %r3, %r10;
;;       mov.b32 %r4, %r9;
;;       bra $B2;
;;   $B4:
;;   $B3:
;;   $B1:
;;       mov.b32 %out, %r10;
;;       ret;
;;   }
