(module (tag $e (param i32))
  (func $throws (param i32) (throw $e (local.get 0)))
  (func (export "catches") (param i32) (result i32)
    (block $h (result i32) (try_table (catch $e $h) (call $throws (local.get 0))) (i32.const -1))))
;; throws as CLIF:
;;   function u0:0(i64, i32) system_v {
;;       region0 = 2 "header"
;;
;;                                   block0(v0: i64, v1: i32):
;;   @0032                               store notrap aligned region0 v1, v0+272
;;   @0032                               v2 = iconst.i64 0
;;   @0032                               store notrap aligned region0 v2, v0+264  ; v2 = 0
;;   @0032                               v3 = iconst.i64 1
;;   @0032                               store notrap aligned region0 v3, v0+256  ; v3 = 1
;;   @0032                               jump block2
;;
;;                                   block2:
;;   @0034                               return
;;   }
;; throws as PTX:
;;   // throws
;;   .func f0_throws (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;   $B0:
;;       st.global.u32 [%a0+272], %a1;
;;       st.global.u64 [%a0+264], 0;
;;       st.global.u64 [%a0+256], 1;
;;   $B2:
;;       ret;
;;   }
;; catches as CLIF:
;;   function u0:1(i64, i32) -> i32 system_v {
;;       region0 = 2 "header"
;;       sig0 = (i64, i32) system_v
;;       fn0 = colocated u0:0 sig0
;;
;;                                   block0(v0: i64, v1: i32):
;;   @0036                               v2 = load.i32 notrap aligned region0 v0+72
;;   @0036                               v3 = get_stack_pointer.i64
;;   @0036                               v4 = ireduce.i32 v3
;;   @0036                               v5 = iconst.i32 -8
;;   @0036                               v6 = iadd v4, v5  ; v5 = -8
;;   @0036                               v7 = icmp ult v6, v2
;;   @0036                               trapnz v7, user9
;;   @0041                               call fn0(v0, v1)
;;   @0041                               v10 = load.i32 notrap aligned region0 v0+256
;;   @0041                               brif v10, block4, block5
;;
;;                                   block5:
;;   @0043                               jump block3
;;
;;                                   block4:
;;   @0043                               v12 = iconst.i32 1
;;   @0043                               v13 = icmp.i32 eq v10, v12  ; v12 = 1
;;   @0043                               brif v13, block6, block7
;;
;;                                   block6:
;;   @0043                               v14 = load.i32 notrap aligned region0 v0+272
;;   @0043                               v15 = iconst.i64 0
;;   @0043                               store notrap aligned region0 v15, v0+256  ; v15 = 0
;;   @0043                               jump block2(v14)
;;
;;                                   block7:
;;   @0043                               jump block8
;;
;;                                   block3:
;;   @0044                               v16 = iconst.i32 -1
;;   @0046                               jump block2(v16)  ; v16 = -1
;;
;;                                   block2(v9: i32):
;;   @0047                               jump block1(v9)
;;
;;                                   block1(v8: i32):
;;   @0047                               return v8
;;
;;                                   block8:
;;   @0047                               v17 = iconst.i32 0
;;   @0047                               return v17  ; v17 = 0
;;   }
;; catches as PTX:
;;   // catches
;;   .func (.reg .b32 %out) f1_catches (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<8>;  .reg .b64 %d<2>;  .reg .pred %p<3>;
;;   $B0:
;;       ld.global.u32 %r0, [%a0+72];
;;       stacksave.u32 %r7;
;;       cvt.u64.u32 %d0, %r7;
;;       cvt.u32.u64 %r1, %d0;
;;       add.u32 %r2, %r1, -8;
;;       setp.lt.u32 %p0, %r2, %r0;
;;       @%p0 bra $X0;
;;       call f0_throws, (%a0, %a1);
;;       ld.global.u32 %r3, [%a0+256];
;;       setp.ne.u32 %p2, %r3, 0;
;;       @%p2 bra $B4;
;;   $B5:
;;       bra $B3;
;;   $B4:
;;       setp.eq.u32 %p1, %r3, 1;
;;       @!%p1 bra $B7;
;;   $B6:
;;       ld.global.u32 %r4, [%a0+272];
;;       st.global.u64 [%a0+256], 0;
;;       mov.b32 %r5, %r4;
;;       bra $B2;
;;   $B7:
;;       bra $B8;
;;   $B3:
;;       mov.b32 %r5, -1;
;;   $B2:
;;       mov.b32 %r6, %r5;
;;   $B1:
;;       mov.b32 %out, %r6;
;;       ret;
;;   $B8:
;;       mov.b32 %out, 0;
;;       ret;
;;   $X0:
;;       mov.b64 %d1, 0x0900000100000036;
;;       st.global.u64 [%a0+8], %d1;
;;       exit;
;;   }
