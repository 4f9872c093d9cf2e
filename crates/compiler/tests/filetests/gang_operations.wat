;;! build = "gang"
(module (import "gpu" "thread" (func $thread (result i32))) (import "gpu" "barrier" (func $barrier)) (memory 1)
  (func (export "run") (i32.store (i32.mul (call $thread) (i32.const 4)) (call $thread)) (call $barrier)))
;; run as CLIF:
;;   function u0:2(i64) system_v {
;;       region0 = 1 "guest"
;;       sig0 = () -> i32 system_v
;;       sig1 = () system_v
;;       fn0 = colocated u1:0 sig0
;;       fn1 = colocated u1:19 sig1
;;
;;                                   block0(v0: i64):
;;   @0047                               v1 = call fn0()
;;   @004c                               v4 = call fn0()
;;                                       v6 = iconst.i32 2
;;                                       v7 = ishl v1, v6  ; v6 = 2
;;   @004e                               v5 = uextend.i64 v7
;;   @004e                               store aligned region0 v4, v5
;;   @0051                               call fn1()
;;   @0053                               jump block1
;;
;;                                   block1:
;;   @0053                               return
;;   }
;; run as PTX:
;;   // run
;;   .func f2_run (.reg .b64 %a0)
;;   {
;;       .reg .b32 %r<5>;  .reg .b64 %d<12>;  .reg .pred %p<4>;
;;       and.b64 %d1, %a0, -65536;
;;       add.u64 %d2, %d1, 65536;
;;       mov.b32 %r3, 1310720;
;;   $B0:
;;       mov.u32 %r0, %tid.x;
;;       mov.u32 %r1, %tid.x;
;;       shl.b32 %r2, %r0, 2;
;;       setp.ge.u32 %p0, %r2, %r3;
;;       @%p0 bra $X0;
;;       cvt.u64.u32 %d3, %r2;
;;       add.u64 %d4, %d2, %d3;
;;       st.global.u32 [%d4], %r1;
;;       ld.volatile.shared.u32 %r4, [workgroup_trapped];
;;       barrier.sync 0;
;;       setp.ne.u32 %p1, %r4, 0;
;;       @%p1 bra $X1;
;;   $B1:
;;       ret;
;;   $X0:
;;       mov.b64 %d5, 0x020000020000004E;
;;       and.b64 %d6, %a0, -65536;
;;       atom.relaxed.gpu.global.cas.b64 %d7, [%d6], 0, %d5;
;;       setp.eq.u64 %p2, %d7, 0;
;;       ld.global.u64 %d8, [%d6+24];
;;       @%p2 st.relaxed.sys.global.u64 [%d8+8], %a0;
;;       @%p2 st.release.sys.global.u64 [%d8], %d5;
;;       st.relaxed.gpu.global.u32 [%d6+128], 1;
;;       st.volatile.shared.u32 [workgroup_trapped], 1;
;;       exit;
;;   $X1:
;;       mov.b64 %d5, 0x0A00000200000051;
;;       and.b64 %d9, %a0, -65536;
;;       atom.relaxed.gpu.global.cas.b64 %d10, [%d9], 0, %d5;
;;       setp.eq.u64 %p3, %d10, 0;
;;       ld.global.u64 %d11, [%d9+24];
;;       @%p3 st.relaxed.sys.global.u64 [%d11+8], %a0;
;;       @%p3 st.release.sys.global.u64 [%d11], %d5;
;;       st.relaxed.gpu.global.u32 [%d9+128], 1;
;;       st.volatile.shared.u32 [workgroup_trapped], 1;
;;       exit;
;;   }
