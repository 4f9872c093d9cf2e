(module
  (func $leaf (param i32 i64) (result i64) (i64.add (i64.extend_i32_u (local.get 0)) (local.get 1)))
  (func (export "caller") (param i32) (result i64) (call $leaf (local.get 0) (i64.const 3)))
  (func $two (param i32) (result i32 i64) (local.get 0) (i64.const 1))
  (func (export "several_results") (param i32) (result i64) (call $two (local.get 0)) (drop) (i64.extend_i32_s)))
;; leaf as CLIF:
;;   function u0:0(i64, i32, i64) -> i64 system_v {
;;                                   block0(v0: i64, v1: i32, v2: i64):
;;   @004c                               jump block1
;;
;;                                   block1:
;;   @0048                               v4 = uextend.i64 v1
;;   @004b                               v5 = iadd v4, v2
;;   @004c                               return v5
;;   }
;; leaf as PTX:
;;   // leaf
;;   .func (.reg .b64 %out) f0_leaf (.reg .b64 %a0, .reg .b32 %a1, .reg .b64 %a2)
;;   {
;;       .reg .b64 %d<2>;
;;   $B0:
;;   $B1:
;;       cvt.u64.u32 %d0, %a1;
;;       add.u64 %d1, %d0, %a2;
;;       mov.b64 %out, %d1;
;;       ret;
;;   }
;; caller as CLIF:
;;   function u0:1(i64, i32) -> i64 system_v {
;;       region0 = 2 "header"
;;       sig0 = (i64, i32, i64) -> i64 system_v
;;       fn0 = colocated u0:0 sig0
;;
;;                                   block0(v0: i64, v1: i32):
;;   @004e                               v2 = load.i32 notrap aligned region0 v0+72
;;   @004e                               v3 = get_stack_pointer.i64
;;   @004e                               v4 = ireduce.i32 v3
;;   @004e                               v5 = iconst.i32 -8
;;   @004e                               v6 = iadd v4, v5  ; v5 = -8
;;   @004e                               v7 = icmp ult v6, v2
;;   @004e                               trapnz v7, user9
;;   @0051                               v9 = iconst.i64 3
;;   @0053                               v10 = call fn0(v0, v1, v9)  ; v9 = 3
;;   @0055                               jump block1
;;
;;                                   block1:
;;   @0055                               return v10
;;   }
;; caller as PTX:
;;   // caller
;;   .func (.reg .b64 %out) f1_caller (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<4>;  .reg .b64 %d<3>;  .reg .pred %p<1>;
;;   $B0:
;;       ld.global.u32 %r0, [%a0+72];
;;       stacksave.u32 %r3;
;;       cvt.u64.u32 %d0, %r3;
;;       cvt.u32.u64 %r1, %d0;
;;       add.u32 %r2, %r1, -8;
;;       setp.lt.u32 %p0, %r2, %r0;
;;       @%p0 bra $X0;
;;       call (%d1), f0_leaf, (%a0, %a1, 3);
;;   $B1:
;;       mov.b64 %out, %d1;
;;       ret;
;;   $X0:
;;       mov.b64 %d2, 0x090000010000004E;
;;       st.global.u64 [%a0+8], %d2;
;;       exit;
;;   }
;; two as CLIF:
;;   function u0:2(i64, i32) -> i32, i64 system_v {
;;                                   block0(v0: i64, v1: i32):
;;   @005c                               jump block1
;;
;;                                   block1:
;;   @005a                               v4 = iconst.i64 1
;;   @005c                               return v1, v4  ; v4 = 1
;;   }
;; two as PTX:
;;   // two
;;   .func (.param .align 8 .b8 %out[16]) f2_two (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;   $B0:
;;   $B1:
;;       st.param.b32 [%out], %a1;
;;       st.param.b64 [%out+8], 1;
;;       ret;
;;   }
;; several_results as CLIF:
;;   function u0:3(i64, i32) -> i64 system_v {
;;       region0 = 2 "header"
;;       sig0 = (i64, i32) -> i32, i64 system_v
;;       fn0 = colocated u0:2 sig0
;;
;;                                   block0(v0: i64, v1: i32):
;;   @005e                               v2 = load.i32 notrap aligned region0 v0+72
;;   @005e                               v3 = get_stack_pointer.i64
;;   @005e                               v4 = ireduce.i32 v3
;;   @005e                               v5 = iconst.i32 -8
;;   @005e                               v6 = iadd v4, v5  ; v5 = -8
;;   @005e                               v7 = icmp ult v6, v2
;;   @005e                               trapnz v7, user9
;;   @0061                               v9, v10 = call fn0(v0, v1)
;;   @0065                               jump block1
;;
;;                                   block1:
;;   @0064                               v11 = sextend.i64 v9
;;   @0065                               return v11
;;   }
;; several_results as PTX:
;;   // several_results
;;   .func (.reg .b64 %out) f3_several_results (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<5>;  .reg .b64 %d<4>;  .reg .pred %p<1>;
;;   $B0:
;;       ld.global.u32 %r0, [%a0+72];
;;       stacksave.u32 %r4;
;;       cvt.u64.u32 %d0, %r4;
;;       cvt.u32.u64 %r1, %d0;
;;       add.u32 %r2, %r1, -8;
;;       setp.lt.u32 %p0, %r2, %r0;
;;       @%p0 bra $X0;
;;       {
;;       .param .align 8 .b8 %ret[16];
;;       call (%ret), f2_two, (%a0, %a1);
;;       ld.param.b32 %r3, [%ret];
;;       ld.param.b64 %d1, [%ret+8];
;;       }
;;   $B1:
;;       cvt.s64.s32 %d2, %r3;
;;       mov.b64 %out, %d2;
;;       ret;
;;   $X0:
;;       mov.b64 %d3, 0x090000030000005E;
;;       st.global.u64 [%a0+8], %d3;
;;       exit;
;;   }
