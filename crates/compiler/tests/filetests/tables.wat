(module (table $t 4 10 funcref) (elem (i32.const 1) $f) (type $sig (func (param i32) (result i32)))
  (func $f (type $sig) (local.get 0))
  (func (export "call") (param i32 i32) (result i32) (call_indirect $t (type $sig) (local.get 0) (local.get 1)))
  (func (export "get") (param i32) (result i32) (ref.is_null (table.get $t (local.get 0))))
  (func (export "grow") (result i32) (table.grow $t (ref.null func) (i32.const 2))))
;; f as CLIF:
;;   function u0:0(i64, i32) -> i32 system_v {
;;                                   block0(v0: i64, v1: i32):
;;   @004f                               jump block1
;;
;;                                   block1:
;;   @004f                               return v1
;;   }
;; f as PTX:
;;   // f
;;   .func (.reg .b32 %out) f0_f (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;   $B0:
;;   $B1:
;;       mov.b32 %out, %a1;
;;       ret;
;;   }
;; call as CLIF:
;;   function u0:1(i64, i32, i32) -> i32 system_v {
;;       region0 = 2 "header"
;;       region1 = 3 "table"
;;       region2 = 5 "constant"
;;       gv0 = symbol colocated userextname0
;;       sig0 = (i64, i32) -> i32 system_v
;;
;;                                   block0(v0: i64, v1: i32, v2: i32):
;;   @0051                               v3 = load.i32 notrap aligned region0 v0+72
;;   @0051                               v4 = get_stack_pointer.i64
;;   @0051                               v5 = ireduce.i32 v4
;;   @0051                               v6 = iconst.i32 -16
;;   @0051                               v7 = iadd v5, v6  ; v6 = -16
;;   @0051                               v8 = icmp ult v7, v3
;;   @0051                               trapnz v8, user9
;;   @0056                               v10 = load.i32 notrap aligned region0 v0+256
;;   @0056                               v11 = icmp uge v2, v10
;;   @0056                               trapnz v11, user13
;;   @0056                               v12 = iconst.i64 288
;;   @0056                               v13 = iadd v0, v12  ; v12 = 288
;;   @0056                               v14 = uextend.i64 v2
;;   @0056                               v15 = iconst.i64 3
;;   @0056                               v16 = ishl v14, v15  ; v15 = 3
;;   @0056                               v17 = iadd v13, v16
;;   @0056                               v18 = load.i64 notrap aligned region1 v17
;;   @0056                               trapz v18, user4
;;   @0056                               v19 = iconst.i64 32
;;   @0056                               v20 = ushr v18, v19  ; v19 = 32
;;   @0056                               trapnz v20, user5
;;   @0056                               v23 = symbol_value.i64 gv0
;;   @0056                               v24 = ireduce.i32 v18
;;   @0056                               v25 = uextend.i64 v24
;;   @0056                               v27 = ishl v25, v15  ; v15 = 3
;;   @0056                               v28 = iadd v23, v27
;;   @0056                               v29 = load.i64 notrap aligned readonly region2 v28-8
;;   @0056                               v30 = call_indirect sig0, v29(v0, v1)
;;   @0059                               jump block1
;;
;;                                   block1:
;;   @0059                               return v30
;;   }
;; call as PTX:
;;   // call
;;   .func (.reg .b32 %out) f1_call (.reg .b64 %a0, .reg .b32 %a1, .reg .b32 %a2)
;;   {
;;       .reg .b32 %r<7>;  .reg .b64 %d<13>;  .reg .pred %p<4>;
;;   $P0: .callprototype (.reg .b32 _) _ (.reg .b64 _, .reg .b32 _);
;;   $B0:
;;       ld.global.u32 %r0, [%a0+72];
;;       stacksave.u32 %r6;
;;       cvt.u64.u32 %d0, %r6;
;;       cvt.u32.u64 %r1, %d0;
;;       add.u32 %r2, %r1, -16;
;;       setp.lt.u32 %p0, %r2, %r0;
;;       @%p0 bra $X0;
;;       ld.global.u32 %r3, [%a0+256];
;;       setp.ge.u32 %p1, %a2, %r3;
;;       @%p1 bra $X1;
;;       add.u64 %d1, %a0, 288;
;;       cvt.u64.u32 %d2, %a2;
;;       shl.b64 %d3, %d2, 3;
;;       add.u64 %d4, %d1, %d3;
;;       ld.global.u64 %d5, [%d4];
;;       setp.ne.u64 %p2, %d5, 0;
;;       @!%p2 bra $X2;
;;       shr.u64 %d6, %d5, 32;
;;       setp.ne.u64 %p3, %d6, 0;
;;       @%p3 bra $X3;
;;       mov.u64 %d7, function_table;
;;       cvt.u32.u64 %r4, %d5;
;;       cvt.u64.u32 %d8, %r4;
;;       shl.b64 %d9, %d8, 3;
;;       add.u64 %d10, %d7, %d9;
;;       ld.global.u64 %d11, [%d10+-8];
;;       call (%r5), %d11, (%a0, %a1), $P0;
;;   $B1:
;;       mov.b32 %out, %r5;
;;       ret;
;;   $X0:
;;       mov.b64 %d12, 0x0900000100000051;
;;       st.global.u64 [%a0+8], %d12;
;;       exit;
;;   $X1:
;;       mov.b64 %d12, 0x0D00000100000056;
;;       st.global.u64 [%a0+8], %d12;
;;       exit;
;;   $X2:
;;       mov.b64 %d12, 0x0400000100000056;
;;       st.global.u64 [%a0+8], %d12;
;;       exit;
;;   $X3:
;;       mov.b64 %d12, 0x0500000100000056;
;;       st.global.u64 [%a0+8], %d12;
;;       exit;
;;   }
;; get as CLIF:
;;   function u0:2(i64, i32) -> i32 system_v {
;;       region0 = 2 "header"
;;       region1 = 3 "table"
;;
;;                                   block0(v0: i64, v1: i32):
;;   @005e                               v3 = load.i32 notrap aligned region0 v0+256
;;   @005e                               v4 = icmp uge v1, v3
;;   @005e                               trapnz v4, user3
;;   @005e                               v5 = iconst.i64 288
;;   @005e                               v6 = iadd v0, v5  ; v5 = 288
;;   @005e                               v7 = uextend.i64 v1
;;   @005e                               v8 = iconst.i64 3
;;   @005e                               v9 = ishl v7, v8  ; v8 = 3
;;   @005e                               v10 = iadd v6, v9
;;   @005e                               v11 = load.i64 notrap aligned region1 v10
;;   @0061                               jump block1
;;
;;                                   block1:
;;   @0060                               v12 = iconst.i64 0
;;   @0060                               v13 = icmp.i64 eq v11, v12  ; v12 = 0
;;   @0060                               v14 = uextend.i32 v13
;;   @0061                               return v14
;;   }
;; get as PTX:
;;   // get
;;   .func (.reg .b32 %out) f2_get (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<2>;  .reg .b64 %d<6>;  .reg .pred %p<2>;
;;   $B0:
;;       ld.global.u32 %r0, [%a0+256];
;;       setp.ge.u32 %p0, %a1, %r0;
;;       @%p0 bra $X0;
;;       add.u64 %d0, %a0, 288;
;;       cvt.u64.u32 %d1, %a1;
;;       shl.b64 %d2, %d1, 3;
;;       add.u64 %d3, %d0, %d2;
;;       ld.global.u64 %d4, [%d3];
;;   $B1:
;;       setp.eq.u64 %p1, %d4, 0;
;;       selp.b32 %r1, 1, 0, %p1;
;;       mov.b32 %out, %r1;
;;       ret;
;;   $X0:
;;       mov.b64 %d5, 0x030000020000005E;
;;       st.global.u64 [%a0+8], %d5;
;;       exit;
;;   }
;; grow as CLIF:
;;   function u0:3(i64) -> i32 system_v {
;;       region0 = 2 "header"
;;       sig0 = (i64, i64, i64, i32) system_v
;;       fn0 = colocated u2:10 sig0
;;
;;                                   block0(v0: i64):
;;   @0068                               v5 = load.i64 notrap aligned region0 v0+256
;;   @0068                               v10 = load.i64 notrap aligned region0 v0+56
;;                                       v30 = iconst.i64 2
;;   @0068                               v6 = iadd v5, v30  ; v30 = 2
;;   @0068                               v7 = iconst.i64 10
;;   @0068                               v11 = icmp ule v6, v7  ; v7 = 10
;;                                       v31 = iconst.i64 16
;;                                       v32 = icmp uge v10, v31  ; v31 = 16
;;   @0068                               v13 = band v11, v32
;;   @0068                               v18 = isub v10, v31  ; v31 = 16
;;   @0068                               v19 = select v13, v18, v10
;;   @0068                               store notrap aligned region0 v19, v0+56
;;   @0068                               v15 = select v13, v6, v5
;;   @0068                               store notrap aligned region0 v15, v0+256
;;   @0068                               v23 = iconst.i64 288
;;   @0068                               v24 = iadd v0, v23  ; v23 = 288
;;   @0068                               v20 = ireduce.i32 v5
;;   @0068                               v25 = uextend.i64 v20
;;   @0068                               v8 = iconst.i64 3
;;   @0068                               v27 = ishl v25, v8  ; v8 = 3
;;   @0068                               v28 = iadd v24, v27
;;   @0064                               v2 = iconst.i64 0
;;   @0068                               v21 = ireduce.i32 v15
;;   @0068                               v22 = isub v21, v20
;;   @0068                               call fn0(v0, v28, v2, v22)  ; v2 = 0
;;   @006b                               jump block1
;;
;;                                   block1:
;;   @0068                               v14 = iconst.i64 -1
;;   @0068                               v16 = select.i64 v13, v5, v14  ; v14 = -1
;;   @0068                               v29 = ireduce.i32 v16
;;   @006b                               return v29
;;   }
;; grow as PTX:
;;   // grow
;;   .func (.reg .b32 %out) f3_grow (.reg .b64 %a0)
;;   {
;;       .reg .b32 %r<4>;  .reg .b64 %d<11>;  .reg .pred %p<3>;
;;   $B0:
;;       ld.global.u64 %d0, [%a0+256];
;;       ld.global.u64 %d1, [%a0+56];
;;       add.u64 %d2, %d0, 2;
;;       setp.le.u64 %p0, %d2, 10;
;;       setp.ge.u64 %p1, %d1, 16;
;;       and.pred %p2, %p0, %p1;
;;       sub.u64 %d3, %d1, 16;
;;       selp.b64 %d4, %d3, %d1, %p2;
;;       st.global.u64 [%a0+56], %d4;
;;       selp.b64 %d5, %d2, %d0, %p2;
;;       st.global.u64 [%a0+256], %d5;
;;       add.u64 %d6, %a0, 288;
;;       cvt.u32.u64 %r0, %d0;
;;       cvt.u64.u32 %d7, %r0;
;;       shl.b64 %d8, %d7, 3;
;;       add.u64 %d9, %d6, %d8;
;;       cvt.u32.u64 %r1, %d5;
;;       sub.u32 %r2, %r1, %r0;
;;       call rt_WordsFill, (%a0, %d9, 0, %r2);
;;   $B1:
;;       selp.b64 %d10, %d0, -1, %p2;
;;       cvt.u32.u64 %r3, %d10;
;;       mov.b32 %out, %r3;
;;       ret;
;;   }
