(module
  (func (export "clz") (param i32) (result i32) (i32.clz (local.get 0)))
  (func (export "ctz") (param i64) (result i64) (i64.ctz (local.get 0)))
  (func (export "popcnt") (param i64) (result i64) (i64.popcnt (local.get 0)))
  (func (export "extend8_s") (param i32) (result i32) (i32.extend8_s (local.get 0))))
;; clz as CLIF:
;;   function u0:0(i64, i32) -> i32 system_v {
;;                                   block0(v0: i64, v1: i32):
;;   @0048                               jump block1
;;
;;                                   block1:
;;   @0047                               v3 = clz.i32 v1
;;   @0048                               return v3
;;   }
;; clz as PTX:
;;   // clz
;;   .func (.reg .b32 %out) f0_clz (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<1>;
;;   $B0:
;;   $B1:
;;       clz.b32 %r0, %a1;
;;       mov.b32 %out, %r0;
;;       ret;
;;   }
;; ctz as CLIF:
;;   function u0:1(i64, i64) -> i64 system_v {
;;                                   block0(v0: i64, v1: i64):
;;   @004e                               jump block1
;;
;;                                   block1:
;;   @004d                               v3 = ctz.i64 v1
;;   @004e                               return v3
;;   }
;; ctz as PTX:
;;   // ctz
;;   .func (.reg .b64 %out) f1_ctz (.reg .b64 %a0, .reg .b64 %a1)
;;   {
;;       .reg .b32 %r<1>;  .reg .b64 %d<2>;
;;   $B0:
;;   $B1:
;;       brev.b64 %d1, %a1;
;;       clz.b64 %r0, %d1;
;;       cvt.u64.u32 %d0, %r0;
;;       mov.b64 %out, %d0;
;;       ret;
;;   }
;; popcnt as CLIF:
;;   function u0:2(i64, i64) -> i64 system_v {
;;                                   block0(v0: i64, v1: i64):
;;   @0054                               jump block1
;;
;;                                   block1:
;;   @0053                               v3 = popcnt.i64 v1
;;   @0054                               return v3
;;   }
;; popcnt as PTX:
;;   // popcnt
;;   .func (.reg .b64 %out) f2_popcnt (.reg .b64 %a0, .reg .b64 %a1)
;;   {
;;       .reg .b32 %r<1>;  .reg .b64 %d<1>;
;;   $B0:
;;   $B1:
;;       popc.b64 %r0, %a1;
;;       cvt.u64.u32 %d0, %r0;
;;       mov.b64 %out, %d0;
;;       ret;
;;   }
;; extend8_s as CLIF:
;;   function u0:3(i64, i32) -> i32 system_v {
;;                                   block0(v0: i64, v1: i32):
;;   @005a                               jump block1
;;
;;                                   block1:
;;   @0059                               v3 = ireduce.i8 v1
;;   @0059                               v4 = sextend.i32 v3
;;   @005a                               return v4
;;   }
;; extend8_s as PTX:
;;   // extend8_s
;;   .func (.reg .b32 %out) f3_extend8_s (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<2>;
;;   $B0:
;;   $B1:
;;       mov.b32 %r0, %a1;
;;       cvt.s32.s8 %r1, %r0;
;;       mov.b32 %out, %r1;
;;       ret;
;;   }
