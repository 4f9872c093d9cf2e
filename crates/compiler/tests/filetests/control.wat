(module
  (func (export "if_else") (param i32) (result i32) (if (result i32) (local.get 0) (then (i32.const 1)) (else (i32.const 2))))
  (func (export "table") (param i32) (result i32)
    (block $a (block $b (block $c (br_table $a $b $c (local.get 0))) (return (i32.const 10))) (return (i32.const 20))) (i32.const 30))
  (func (export "trap") (unreachable)))
;; if_else as CLIF:
;;   function u0:0(i64, i32) -> i32 system_v {
;;                                   block0(v0: i64, v1: i32):
;;   @003c                               brif v1, block2, block3
;;
;;                                   block2:
;;   @003e                               v4 = iconst.i32 1
;;   @0040                               jump block4(v4)  ; v4 = 1
;;
;;                                   block3:
;;   @0041                               v5 = iconst.i32 2
;;   @0043                               jump block4(v5)  ; v5 = 2
;;
;;                                   block4(v3: i32):
;;   @0044                               jump block1(v3)
;;
;;                                   block1(v2: i32):
;;   @0044                               return v2
;;   }
;; if_else as PTX:
;;   // if_else
;;   .func (.reg .b32 %out) f0_if_else (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<2>;  .reg .pred %p<1>;
;;   $B0:
;;       setp.ne.u32 %p0, %a1, 0;
;;       @!%p0 bra $B3;
;;   $B2:
;;       mov.b32 %r0, 1;
;;       bra $B4;
;;   $B3:
;;       mov.b32 %r0, 2;
;;   $B4:
;;       mov.b32 %r1, %r0;
;;   $B1:
;;       mov.b32 %out, %r1;
;;       ret;
;;   }
;; table as CLIF:
;;   function u0:1(i64, i32) -> i32 system_v {
;;                                   block0(v0: i64, v1: i32):
;;   @004f                               br_table v1, block4, [block2, block3]
;;
;;                                   block4:
;;   @0055                               v3 = iconst.i32 10
;;   @0057                               jump block1(v3)  ; v3 = 10
;;
;;                                   block3:
;;   @0059                               v4 = iconst.i32 20
;;   @005b                               jump block1(v4)  ; v4 = 20
;;
;;                                   block2:
;;   @005d                               v5 = iconst.i32 30
;;   @005f                               jump block1(v5)  ; v5 = 30
;;
;;                                   block1(v2: i32):
;;   @005f                               return v2
;;   }
;; table as PTX:
;;   // table
;;   .func (.reg .b32 %out) f1_table (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<1>;  .reg .pred %p<2>;
;;   $B0:
;;       setp.eq.u32 %p0, %a1, 0;
;;       @%p0 bra $B2;
;;       setp.eq.u32 %p1, %a1, 1;
;;       @%p1 bra $B3;
;;   $B4:
;;       mov.b32 %r0, 10;
;;       bra $B1;
;;   $B3:
;;       mov.b32 %r0, 20;
;;       bra $B1;
;;   $B2:
;;       mov.b32 %r0, 30;
;;   $B1:
;;       mov.b32 %out, %r0;
;;       ret;
;;   }
;; trap as CLIF:
;;   function u0:2(i64) system_v {
;;                                   block0(v0: i64):
;;   @0062                               trap user1
;;   }
;; trap as PTX:
;;   // trap
;;   .func f2_trap (.reg .b64 %a0)
;;   {
;;       .reg .b64 %d<1>;
;;   $B0:
;;       bra $X0;
;;   $X0:
;;       mov.b64 %d0, 0x0100000200000062;
;;       st.global.u64 [%a0+8], %d0;
;;       exit;
;;   }
