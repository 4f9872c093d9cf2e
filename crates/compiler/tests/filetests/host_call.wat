(module (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32))) (memory (export "memory") 1)
  (func (export "_start") (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
;; _start as CLIF:
;;   function u0:1(i64) system_v {
;;       region0 = 2 "header"
;;       sig0 = (i64, i32, i32, i32, i32) -> i32 system_v
;;       fn0 = colocated u0:0 sig0
;;
;;                                   block0(v0: i64):
;;   @005d                               v1 = load.i32 notrap aligned region0 v0+72
;;   @005d                               v2 = get_stack_pointer.i64
;;   @005d                               v3 = ireduce.i32 v2
;;   @005d                               v6 = icmp ult v3, v1
;;   @005d                               trapnz v6, user9
;;   @005e                               v7 = iconst.i32 1
;;   @005d                               v4 = iconst.i32 0
;;   @0064                               v10 = iconst.i32 8
;;   @0066                               v11 = call fn0(v0, v7, v4, v7, v10)  ; v7 = 1, v4 = 0, v7 = 1, v10 = 8
;;   @0069                               jump block1
;;
;;                                   block1:
;;   @0069                               return
;;   }
;; _start as PTX:
;;   // _start
;;   .func f1__start (.reg .b64 %a0)
;;   {
;;       .reg .b32 %r<4>;  .reg .b64 %d<2>;  .reg .pred %p<1>;
;;   $B0:
;;       ld.global.u32 %r0, [%a0+72];
;;       stacksave.u32 %r3;
;;       cvt.u64.u32 %d0, %r3;
;;       cvt.u32.u64 %r1, %d0;
;;       setp.lt.u32 %p0, %r1, %r0;
;;       @%p0 bra $X0;
;;       call (%r2), f0_fd_write, (%a0, 1, 0, 1, 8);
;;   $B1:
;;       ret;
;;   $X0:
;;       mov.b64 %d1, 0x090000010000005D;
;;       st.global.u64 [%a0+8], %d1;
;;       exit;
;;   }
