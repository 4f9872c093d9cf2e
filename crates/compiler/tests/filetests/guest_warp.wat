;;! check = "ptx"
;;! function = "asks"
(module
  (func $ballot (export "gpu-run:ballot") (param i32) (result i32) (i32.const 0))
  (func $shuffle (export "gpu-run:shuffle") (param i32 i32) (result i32) (i32.const 0))
  (func $reduce_add (export "gpu-run:reduce_add") (param i32) (result i32) (i32.const 0))
  (func (export "asks_ballot") (param i32) (result i32) (call $ballot (local.get 0)))
  (func (export "asks_shuffle") (param i32 i32) (result i32) (call $shuffle (local.get 0) (local.get 1)))
  (func (export "asks_reduce") (param i32) (result i32) (call $reduce_add (local.get 0))))
;; asks_ballot as PTX:
;;   // asks_ballot
;;   .func (.reg .b32 %out) f3_asks_ballot (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<2>;  .reg .pred %p<1>;
;;   $B0:
;;       activemask.b32 %r0;
;;       setp.ne.u32 %p0, %a1, 0;
;;       vote.sync.ballot.b32 %r1, %p0, %r0;
;;   $B1:
;;       mov.b32 %out, %r1;
;;       ret;
;;   }
;; asks_shuffle as PTX:
;;   // asks_shuffle
;;   .func (.reg .b32 %out) f4_asks_shuffle (.reg .b64 %a0, .reg .b32 %a1, .reg .b32 %a2)
;;   {
;;       .reg .b32 %r<8>;  .reg .pred %p<2>;
;;   $B0:
;;       activemask.b32 %r0;
;;       mov.u32 %r1, %laneid;
;;       setp.lt.u32 %p0, %a2, 32;
;;       and.b32 %r7, %a2, 31;
;;       shr.u32 %r2, %r0, %r7;
;;       and.b32 %r3, %r2, 1;
;;       selp.b32 %r4, %r3, 0, %p0;
;;       setp.ne.u32 %p1, %r4, 0;
;;       selp.b32 %r5, %a2, %r1, %p1;
;;       shfl.sync.idx.b32 %r6, %a1, %r5, 31, %r0;
;;   $B1:
;;       mov.b32 %out, %r6;
;;       ret;
;;   }
;; asks_reduce as PTX:
;;   // asks_reduce
;;   .func (.reg .b32 %out) f5_asks_reduce (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<26>;  .reg .pred %p<2>;
;;   $B0:
;;       activemask.b32 %r0;
;;       setp.eq.u32 %p0, %r0, -1;
;;       @!%p0 bra $B3;
;;   $B2:
;;       shfl.sync.bfly.b32 %r1, %a1, 16, 31, -1;
;;       add.u32 %r2, %a1, %r1;
;;       shfl.sync.bfly.b32 %r3, %r2, 8, 31, -1;
;;       add.u32 %r4, %r2, %r3;
;;       shfl.sync.bfly.b32 %r5, %r4, 4, 31, -1;
;;       add.u32 %r6, %r4, %r5;
;;       shfl.sync.bfly.b32 %r7, %r6, 2, 31, -1;
;;       add.u32 %r8, %r6, %r7;
;;       shfl.sync.bfly.b32 %r9, %r8, 1, 31, -1;
;;       add.u32 %r10, %r8, %r9;
;;       mov.b32 %r22, %r10;
;;       bra $B4;
;;   $B3:
;;       brev.b32 %r24, %r0;
;;       clz.b32 %r11, %r24;
;;       shfl.sync.idx.b32 %r12, %a1, %r11, 31, %r0;
;;       add.u32 %r13, %r0, -1;
;;       and.b32 %r14, %r0, %r13;
;;       mov.b32 %r15, %r14;
;;       mov.b32 %r16, %r12;
;;   $B5:
;;       setp.ne.u32 %p1, %r15, 0;
;;       @!%p1 bra $B7;
;;   $B6:
;;       brev.b32 %r25, %r15;
;;       clz.b32 %r17, %r25;
;;       shfl.sync.idx.b32 %r18, %a1, %r17, 31, %r0;
;;       add.u32 %r19, %r15, -1;
;;       and.b32 %r20, %r15, %r19;
;;       add.u32 %r21, %r16, %r18;
;;       mov.b32 %r15, %r20;
;;       mov.b32 %r16, %r21;
;;       bra $B5;
;;   $B7:
;;       mov.b32 %r22, %r16;
;;   $B4:
;;       mov.b32 %r23, %r22;
;;   $B1:
;;       mov.b32 %out, %r23;
;;       ret;
;;   }
