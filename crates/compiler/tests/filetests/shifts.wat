(module
  (func (export "rotl") (param i32 i32) (result i32) (i32.rotl (local.get 0) (local.get 1)))
  (func (export "rotr_i64") (param i64 i64) (result i64) (i64.rotr (local.get 0) (local.get 1)))
  (func (export "shl") (param i32 i32) (result i32) (i32.shl (local.get 0) (local.get 1)))
  (func (export "shr_s_by_a_constant") (param i64) (result i64) (i64.shr_s (local.get 0) (i64.const 67))))
;; rotl as CLIF:
;;   function u0:0(i64, i32, i32) -> i32 system_v {
;;                                   block0(v0: i64, v1: i32, v2: i32):
;;   @005e                               jump block1
;;
;;                                   block1:
;;   @005d                               v4 = rotl.i32 v1, v2
;;   @005e                               return v4
;;   }
;; rotl as PTX:
;;   // rotl
;;   .func (.reg .b32 %out) f0_rotl (.reg .b64 %a0, .reg .b32 %a1, .reg .b32 %a2)
;;   {
;;       .reg .b32 %r<1>;
;;   $B0:
;;   $B1:
;;       shf.l.wrap.b32 %r0, %a1, %a1, %a2;
;;       mov.b32 %out, %r0;
;;       ret;
;;   }
;; rotr_i64 as CLIF:
;;   function u0:1(i64, i64, i64) -> i64 system_v {
;;                                   block0(v0: i64, v1: i64, v2: i64):
;;   @0066                               jump block1
;;
;;                                   block1:
;;   @0065                               v4 = rotr.i64 v1, v2
;;   @0066                               return v4
;;   }
;; rotr_i64 as PTX:
;;   // rotr_i64
;;   .func (.reg .b64 %out) f1_rotr_i64 (.reg .b64 %a0, .reg .b64 %a1, .reg .b64 %a2)
;;   {
;;       .reg .b32 %r<3>;  .reg .b64 %d<3>;
;;   $B0:
;;   $B1:
;;       cvt.u32.u64 %r0, %a2;
;;       and.b32 %r1, %r0, 63;
;;       sub.u32 %r2, 64, %r1;
;;       shr.u64 %d1, %a1, %r1;
;;       shl.b64 %d2, %a1, %r2;
;;       or.b64 %d0, %d1, %d2;
;;       mov.b64 %out, %d0;
;;       ret;
;;   }
;; shl as CLIF:
;;   function u0:2(i64, i32, i32) -> i32 system_v {
;;                                   block0(v0: i64, v1: i32, v2: i32):
;;   @006e                               jump block1
;;
;;                                   block1:
;;   @006d                               v4 = ishl.i32 v1, v2
;;   @006e                               return v4
;;   }
;; shl as PTX:
;;   // shl
;;   .func (.reg .b32 %out) f2_shl (.reg .b64 %a0, .reg .b32 %a1, .reg .b32 %a2)
;;   {
;;       .reg .b32 %r<2>;
;;   $B0:
;;   $B1:
;;       and.b32 %r1, %a2, 31;
;;       shl.b32 %r0, %a1, %r1;
;;       mov.b32 %out, %r0;
;;       ret;
;;   }
;; shr_s_by_a_constant as CLIF:
;;   function u0:3(i64, i64) -> i64 system_v {
;;                                   block0(v0: i64, v1: i64):
;;   @0077                               jump block1
;;
;;                                   block1:
;;                                       v5 = iconst.i64 3
;;                                       v6 = sshr.i64 v1, v5  ; v5 = 3
;;   @0077                               return v6
;;   }
;; shr_s_by_a_constant as PTX:
;;   // shr_s_by_a_constant
;;   .func (.reg .b64 %out) f3_shr_s_by_a_constant (.reg .b64 %a0, .reg .b64 %a1)
;;   {
;;       .reg .b64 %d<1>;
;;   $B0:
;;   $B1:
;;       shr.s64 %d0, %a1, 3;
;;       mov.b64 %out, %d0;
;;       ret;
;;   }
