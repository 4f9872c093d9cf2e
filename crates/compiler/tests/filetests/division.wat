(module
  (func (export "div_s") (param i32 i32) (result i32) (i32.div_s (local.get 0) (local.get 1)))
  (func (export "rem_u") (param i64 i64) (result i64) (i64.rem_u (local.get 0) (local.get 1)))
  (func (export "by_a_constant") (param i32) (result i32) (i32.div_u (local.get 0) (i32.const 10))))
;; div_s as CLIF:
;;   function u0:0(i64, i32, i32) -> i32 system_v {
;;                                   block0(v0: i64, v1: i32, v2: i32):
;;   @004e                               trapz v2, user6
;;   @004e                               v4 = iconst.i32 -2147483648
;;   @004e                               v5 = icmp eq v1, v4  ; v4 = -2147483648
;;   @004e                               v6 = iconst.i32 -1
;;   @004e                               v7 = icmp eq v2, v6  ; v6 = -1
;;   @004e                               v8 = band v5, v7
;;   @004e                               trapnz v8, user7
;;   @004e                               v9 = sdiv v1, v2
;;   @004f                               jump block1
;;
;;                                   block1:
;;   @004f                               return v9
;;   }
;; div_s as PTX:
;;   // div_s
;;   .func (.reg .b32 %out) f0_div_s (.reg .b64 %a0, .reg .b32 %a1, .reg .b32 %a2)
;;   {
;;       .reg .b32 %r<1>;  .reg .b64 %d<1>;  .reg .pred %p<4>;
;;   $B0:
;;       setp.ne.u32 %p3, %a2, 0;
;;       @!%p3 bra $X0;
;;       setp.eq.u32 %p0, %a1, -2147483648;
;;       setp.eq.u32 %p1, %a2, -1;
;;       and.pred %p2, %p0, %p1;
;;       @%p2 bra $X1;
;;       div.s32 %r0, %a1, %a2;
;;   $B1:
;;       mov.b32 %out, %r0;
;;       ret;
;;   $X0:
;;       mov.b64 %d0, 0x060000000000004E;
;;       st.global.u64 [%a0+8], %d0;
;;       exit;
;;   $X1:
;;       mov.b64 %d0, 0x070000000000004E;
;;       st.global.u64 [%a0+8], %d0;
;;       exit;
;;   }
;; rem_u as CLIF:
;;   function u0:1(i64, i64, i64) -> i64 system_v {
;;                                   block0(v0: i64, v1: i64, v2: i64):
;;   @0056                               trapz v2, user6
;;   @0056                               v4 = urem v1, v2
;;   @0057                               jump block1
;;
;;                                   block1:
;;   @0057                               return v4
;;   }
;; rem_u as PTX:
;;   // rem_u
;;   .func (.reg .b64 %out) f1_rem_u (.reg .b64 %a0, .reg .b64 %a1, .reg .b64 %a2)
;;   {
;;       .reg .b64 %d<2>;  .reg .pred %p<1>;
;;   $B0:
;;       setp.ne.u64 %p0, %a2, 0;
;;       @!%p0 bra $X0;
;;       rem.u64 %d0, %a1, %a2;
;;   $B1:
;;       mov.b64 %out, %d0;
;;       ret;
;;   $X0:
;;       mov.b64 %d1, 0x0600000100000056;
;;       st.global.u64 [%a0+8], %d1;
;;       exit;
;;   }
;; by_a_constant as CLIF:
;;   function u0:2(i64, i32) -> i32 system_v {
;;                                   block0(v0: i64, v1: i32):
;;   @005f                               jump block1
;;
;;                                   block1:
;;                                       v5 = iconst.i32 -858993459
;;                                       v6 = umulhi.i32 v1, v5  ; v5 = -858993459
;;                                       v7 = iconst.i32 3
;;                                       v8 = ushr v6, v7  ; v7 = 3
;;                                       v4 -> v8
;;   @005f                               return v8
;;   }
;; by_a_constant as PTX:
;;   // by_a_constant
;;   .func (.reg .b32 %out) f2_by_a_constant (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<2>;
;;   $B0:
;;   $B1:
;;       mul.hi.u32 %r0, %a1, -858993459;
;;       shr.u32 %r1, %r0, 3;
;;       mov.b32 %out, %r1;
;;       ret;
;;   }
