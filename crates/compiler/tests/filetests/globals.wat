(module (global $i (mut i32) (i32.const 5)) (global $l (mut i64) (i64.const 0)) (global $c i32 (i32.const 7))
  (func (export "count") (global.set $i (i32.add (global.get $i) (i32.const 1))))
  (func (export "constant") (result i32) (global.get $c))
  (func (export "wide") (param i64) (global.set $l (local.get 0))))
;; count as CLIF:
;;   function u0:0(i64) system_v {
;;       region0 = 16 "global 0"
;;
;;                                   block0(v0: i64):
;;   @0050                               v1 = load.i32 notrap aligned region0 v0+256
;;   @0052                               v2 = iconst.i32 1
;;   @0054                               v3 = iadd v1, v2  ; v2 = 1
;;   @0055                               store notrap aligned region0 v3, v0+256
;;   @0057                               jump block1
;;
;;                                   block1:
;;   @0057                               return
;;   }
;; count as PTX:
;;   // count
;;   .func f0_count (.reg .b64 %a0)
;;   {
;;       .reg .b32 %r<2>;
;;   $B0:
;;       ld.global.u32 %r0, [%a0+256];
;;       add.u32 %r1, %r0, 1;
;;       st.global.u32 [%a0+256], %r1;
;;   $B1:
;;       ret;
;;   }
;; constant as CLIF:
;;   function u0:1(i64) -> i32 system_v {
;;       region0 = 18 "global 2"
;;
;;                                   block0(v0: i64):
;;   @005a                               v2 = load.i32 notrap aligned region0 v0+272
;;   @005c                               jump block1
;;
;;                                   block1:
;;   @005c                               return v2
;;   }
;; constant as PTX:
;;   // constant
;;   .func (.reg .b32 %out) f1_constant (.reg .b64 %a0)
;;   {
;;       .reg .b32 %r<1>;
;;   $B0:
;;       ld.global.u32 %r0, [%a0+272];
;;   $B1:
;;       mov.b32 %out, %r0;
;;       ret;
;;   }
;; wide as CLIF:
;;   function u0:2(i64, i64) system_v {
;;       region0 = 17 "global 1"
;;
;;                                   block0(v0: i64, v1: i64):
;;   @0061                               store notrap aligned region0 v1, v0+264
;;   @0063                               jump block1
;;
;;                                   block1:
;;   @0063                               return
;;   }
;; wide as PTX:
;;   // wide
;;   .func f2_wide (.reg .b64 %a0, .reg .b64 %a1)
;;   {
;;   $B0:
;;       st.global.u64 [%a0+264], %a1;
;;   $B1:
;;       ret;
;;   }
