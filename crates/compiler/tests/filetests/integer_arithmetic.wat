(module
  (func (export "add_i32") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
  (func (export "sub_i64") (param i64 i64) (result i64) (i64.sub (local.get 0) (local.get 1)))
  (func (export "mul_add") (param i32 i32 i32) (result i32) (i32.add (i32.mul (local.get 0) (local.get 1)) (local.get 2)))
  (func (export "logic") (param i64 i64) (result i64) (i64.xor (i64.and (local.get 0) (local.get 1)) (i64.or (local.get 0) (local.get 1)))))
;; add_i32 as CLIF:
;;   function u0:0(i64, i32, i32) -> i32 system_v {
;;                                   block0(v0: i64, v1: i32, v2: i32):
;;   @0058                               jump block1
;;
;;                                   block1:
;;   @0057                               v4 = iadd.i32 v1, v2
;;   @0058                               return v4
;;   }
;; add_i32 as PTX:
;;   // add_i32
;;   .func (.reg .b32 %out) f0_add_i32 (.reg .b64 %a0, .reg .b32 %a1, .reg .b32 %a2)
;;   {
;;       .reg .b32 %r<1>;
;;   $B0:
;;   $B1:
;;       add.u32 %r0, %a1, %a2;
;;       mov.b32 %out, %r0;
;;       ret;
;;   }
;; sub_i64 as CLIF:
;;   function u0:1(i64, i64, i64) -> i64 system_v {
;;                                   block0(v0: i64, v1: i64, v2: i64):
;;   @0060                               jump block1
;;
;;                                   block1:
;;   @005f                               v4 = isub.i64 v1, v2
;;   @0060                               return v4
;;   }
;; sub_i64 as PTX:
;;   // sub_i64
;;   .func (.reg .b64 %out) f1_sub_i64 (.reg .b64 %a0, .reg .b64 %a1, .reg .b64 %a2)
;;   {
;;       .reg .b64 %d<1>;
;;   $B0:
;;   $B1:
;;       sub.u64 %d0, %a1, %a2;
;;       mov.b64 %out, %d0;
;;       ret;
;;   }
;; mul_add as CLIF:
;;   function u0:2(i64, i32, i32, i32) -> i32 system_v {
;;                                   block0(v0: i64, v1: i32, v2: i32, v3: i32):
;;   @006b                               jump block1
;;
;;                                   block1:
;;   @0067                               v5 = imul.i32 v1, v2
;;   @006a                               v6 = iadd v5, v3
;;   @006b                               return v6
;;   }
;; mul_add as PTX:
;;   // mul_add
;;   .func (.reg .b32 %out) f2_mul_add (.reg .b64 %a0, .reg .b32 %a1, .reg .b32 %a2, .reg .b32 %a3)
;;   {
;;       .reg .b32 %r<2>;
;;   $B0:
;;   $B1:
;;       mul.lo.u32 %r0, %a1, %a2;
;;       add.u32 %r1, %r0, %a3;
;;       mov.b32 %out, %r1;
;;       ret;
;;   }
;; logic as CLIF:
;;   function u0:3(i64, i64, i64) -> i64 system_v {
;;                                   block0(v0: i64, v1: i64, v2: i64):
;;   @0079                               jump block1
;;
;;                                   block1:
;;   @0072                               v4 = band.i64 v1, v2
;;   @0077                               v5 = bor.i64 v1, v2
;;   @0078                               v6 = bxor v4, v5
;;   @0079                               return v6
;;   }
;; logic as PTX:
;;   // logic
;;   .func (.reg .b64 %out) f3_logic (.reg .b64 %a0, .reg .b64 %a1, .reg .b64 %a2)
;;   {
;;       .reg .b64 %d<3>;
;;   $B0:
;;   $B1:
;;       and.b64 %d0, %a1, %a2;
;;       or.b64 %d1, %a1, %a2;
;;       xor.b64 %d2, %d0, %d1;
;;       mov.b64 %out, %d2;
;;       ret;
;;   }
