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
;;       .reg .b32 %r<6>;  .reg .b64 %d<6>;  .reg .pred %p<2>;
;;       and.b64 %d1, %a0, -65536;
;;       mov.u32 %r3, %nctaid.y;
;;       mad.wide.u32 %d2, %r3, 65536, %d1;
;;       mov.b32 %r4, 1310720;
;;   $B0:
;;       mov.u32 %r0, %tid.x;
;;       mov.u32 %r1, %tid.x;
;;       shl.b32 %r2, %r0, 2;
;;       setp.ge.u32 %p0, %r2, %r4;
;;       @%p0 bra $X0;
;;       cvt.u64.u32 %d3, %r2;
;;       add.u64 %d4, %d2, %d3;
;;       st.global.u32 [%d4], %r1;
;;       ld.volatile.shared.u32 %r5, [workgroup_trapped];
;;       barrier.sync 0;
;;       setp.ne.u32 %p1, %r5, 0;
;;       @%p1 bra $X1;
;;   $B1:
;;       ret;
;;   $X0:
;;       mov.b64 %d5, 0x020000020000004E;
;;       call gang_trap, (%a0, %d5);
;;       exit;
;;   $X1:
;;       mov.b64 %d5, 0x0A00000200000051;
;;       call gang_trap, (%a0, %d5);
;;       exit;
;;   }
