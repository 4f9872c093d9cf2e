(module (memory 1) (data $d "hello")
  (func (export "fill") (param i32 i32 i32) (memory.fill (local.get 0) (local.get 1) (local.get 2)))
  (func (export "copy") (param i32 i32 i32) (memory.copy (local.get 0) (local.get 1) (local.get 2)))
  (func (export "init") (param i32) (memory.init $d (local.get 0) (i32.const 1) (i32.const 3)) (data.drop $d)))
;; fill as CLIF:
;;   function u0:0(i64, i32, i32, i32) system_v {
;;       region0 = 2 "header"
;;       sig0 = (i64, i32, i32, i32) system_v
;;       fn0 = colocated u2:1 sig0
;;
;;                                   block0(v0: i64, v1: i32, v2: i32, v3: i32):
;;   @0046                               v7 = load.i64 notrap aligned region0 v0+32
;;   @0046                               v4 = uextend.i64 v1
;;   @0046                               v5 = uextend.i64 v3
;;   @0046                               v6 = iadd v4, v5
;;   @0046                               v8 = icmp ugt v6, v7
;;   @0046                               trapnz v8, user2
;;   @0046                               call fn0(v0, v1, v2, v3)
;;   @0049                               jump block1
;;
;;                                   block1:
;;   @0049                               return
;;   }
;; fill as PTX:
;;   // fill
;;   .func f0_fill (.reg .b64 %a0, .reg .b32 %a1, .reg .b32 %a2, .reg .b32 %a3)
;;   {
;;       .reg .b64 %d<5>;  .reg .pred %p<1>;
;;   $B0:
;;       ld.global.u64 %d0, [%a0+32];
;;       cvt.u64.u32 %d1, %a1;
;;       cvt.u64.u32 %d2, %a3;
;;       add.u64 %d3, %d1, %d2;
;;       setp.gt.u64 %p0, %d3, %d0;
;;       @%p0 bra $X0;
;;       call rt_GuestFill, (%a0, %a1, %a2, %a3);
;;   $B1:
;;       ret;
;;   $X0:
;;       mov.b64 %d4, 0x0200000000000046;
;;       st.global.u64 [%a0+8], %d4;
;;       exit;
;;   }
;; copy as CLIF:
;;   function u0:1(i64, i32, i32, i32) system_v {
;;       region0 = 2 "header"
;;       sig0 = (i64, i32, i32, i32) system_v
;;       fn0 = colocated u2:0 sig0
;;
;;                                   block0(v0: i64, v1: i32, v2: i32, v3: i32):
;;   @0052                               v7 = load.i64 notrap aligned region0 v0+32
;;   @0052                               v4 = uextend.i64 v1
;;   @0052                               v5 = uextend.i64 v3
;;   @0052                               v6 = iadd v4, v5
;;   @0052                               v8 = icmp ugt v6, v7
;;   @0052                               trapnz v8, user2
;;   @0052                               v9 = uextend.i64 v2
;;   @0052                               v11 = iadd v9, v5
;;   @0052                               v13 = icmp ugt v11, v7
;;   @0052                               trapnz v13, user2
;;   @0052                               call fn0(v0, v1, v2, v3)
;;   @0056                               jump block1
;;
;;                                   block1:
;;   @0056                               return
;;   }
;; copy as PTX:
;;   // copy
;;   .func f1_copy (.reg .b64 %a0, .reg .b32 %a1, .reg .b32 %a2, .reg .b32 %a3)
;;   {
;;       .reg .b64 %d<7>;  .reg .pred %p<2>;
;;   $B0:
;;       ld.global.u64 %d0, [%a0+32];
;;       cvt.u64.u32 %d1, %a1;
;;       cvt.u64.u32 %d2, %a3;
;;       add.u64 %d3, %d1, %d2;
;;       setp.gt.u64 %p0, %d3, %d0;
;;       @%p0 bra $X0;
;;       cvt.u64.u32 %d4, %a2;
;;       add.u64 %d5, %d4, %d2;
;;       setp.gt.u64 %p1, %d5, %d0;
;;       @%p1 bra $X0;
;;       call rt_GuestCopy, (%a0, %a1, %a2, %a3);
;;   $B1:
;;       ret;
;;   $X0:
;;       mov.b64 %d6, 0x0200000100000052;
;;       st.global.u64 [%a0+8], %d6;
;;       exit;
;;   }
;; init as CLIF:
;;   function u0:2(i64, i32) system_v {
;;       region0 = 2 "header"
;;       region1 = 5 "constant"
;;       sig0 = (i64, i32, i64, i32) system_v
;;       fn0 = colocated u2:2 sig0
;;
;;                                   block0(v0: i64, v1: i32):
;;   @005f                               v7 = load.i64 notrap aligned region0 v0+32
;;   @005f                               v4 = uextend.i64 v1
;;                                       v20 = iconst.i64 3
;;   @005f                               v6 = iadd v4, v20  ; v20 = 3
;;   @005f                               v8 = icmp ugt v6, v7
;;   @005f                               trapnz v8, user2
;;   @005f                               v9 = load.i64 notrap aligned region0 v0+256
;;                                       v22 = iconst.i64 4
;;                                       v28 = icmp ult v9, v22  ; v22 = 4
;;   @005f                               trapnz v28, user2
;;   @005f                               v14 = load.i64 notrap aligned readonly can_move region1 v0+168
;;                                       v21 = iconst.i64 1
;;   @005f                               v16 = iadd v14, v21  ; v21 = 1
;;   @005d                               v3 = iconst.i32 3
;;   @005f                               call fn0(v0, v1, v16, v3)  ; v3 = 3
;;   @005f                               v17 = iconst.i64 0
;;   @0063                               store notrap aligned region0 v17, v0+256  ; v17 = 0
;;   @0066                               jump block1
;;
;;                                   block1:
;;   @0066                               return
;;   }
;; init as PTX:
;;   // init
;;   .func f2_init (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b64 %d<7>;  .reg .pred %p<2>;
;;   $B0:
;;       ld.global.u64 %d0, [%a0+32];
;;       cvt.u64.u32 %d1, %a1;
;;       add.u64 %d2, %d1, 3;
;;       setp.gt.u64 %p0, %d2, %d0;
;;       @%p0 bra $X0;
;;       ld.global.u64 %d3, [%a0+256];
;;       setp.lt.u64 %p1, %d3, 4;
;;       @%p1 bra $X0;
;;       ld.global.u64 %d4, [%a0+168];
;;       add.u64 %d5, %d4, 1;
;;       call rt_GuestWrite, (%a0, %a1, %d5, 3);
;;       st.global.u64 [%a0+256], 0;
;;   $B1:
;;       ret;
;;   $X0:
;;       mov.b64 %d6, 0x020000020000005F;
;;       st.global.u64 [%a0+8], %d6;
;;       exit;
;;   }
