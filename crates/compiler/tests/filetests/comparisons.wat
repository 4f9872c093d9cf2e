(module
  (func (export "select") (param i32 i32) (result i32) (select (local.get 0) (local.get 1) (i32.lt_u (local.get 0) (local.get 1))))
  (func (export "eqz") (param i64) (result i32) (i64.eqz (local.get 0)))
  (func (export "float_ge") (param f64 f64) (result i32) (f64.ge (local.get 0) (local.get 1))))
;; select as CLIF:
;;   function u0:0(i64, i32, i32) -> i32 system_v {
;;                                   block0(v0: i64, v1: i32, v2: i32):
;;   @004e                               jump block1
;;
;;                                   block1:
;;                                       v8 = umin.i32 v1, v2
;;   @004e                               return v8
;;   }
;; select as PTX:
;;   // select
;;   .func (.reg .b32 %out) f0_select (.reg .b64 %a0, .reg .b32 %a1, .reg .b32 %a2)
;;   {
;;       .reg .b32 %r<1>;
;;   $B0:
;;   $B1:
;;       min.u32 %r0, %a1, %a2;
;;       mov.b32 %out, %r0;
;;       ret;
;;   }
;; eqz as CLIF:
;;   function u0:1(i64, i64) -> i32 system_v {
;;                                   block0(v0: i64, v1: i64):
;;   @0054                               jump block1
;;
;;                                   block1:
;;   @0053                               v3 = iconst.i64 0
;;   @0053                               v4 = icmp.i64 eq v1, v3  ; v3 = 0
;;   @0053                               v5 = uextend.i32 v4
;;   @0054                               return v5
;;   }
;; eqz as PTX:
;;   // eqz
;;   .func (.reg .b32 %out) f1_eqz (.reg .b64 %a0, .reg .b64 %a1)
;;   {
;;       .reg .b32 %r<1>;  .reg .pred %p<1>;
;;   $B0:
;;   $B1:
;;       setp.eq.u64 %p0, %a1, 0;
;;       selp.b32 %r0, 1, 0, %p0;
;;       mov.b32 %out, %r0;
;;       ret;
;;   }
;; float_ge as CLIF:
;;   function u0:2(i64, f64, f64) -> i32 system_v {
;;                                   block0(v0: i64, v1: f64, v2: f64):
;;   @005c                               jump block1
;;
;;                                   block1:
;;   @005b                               v4 = fcmp.f64 ge v1, v2
;;   @005b                               v5 = uextend.i32 v4
;;   @005c                               return v5
;;   }
;; float_ge as PTX:
;;   // float_ge
;;   .func (.reg .b32 %out) f2_float_ge (.reg .b64 %a0, .reg .f64 %a1, .reg .f64 %a2)
;;   {
;;       .reg .b32 %r<1>;  .reg .pred %p<1>;
;;   $B0:
;;   $B1:
;;       setp.ge.f64 %p0, %a1, %a2;
;;       selp.b32 %r0, 1, 0, %p0;
;;       mov.b32 %out, %r0;
;;       ret;
;;   }
