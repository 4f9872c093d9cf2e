(module (memory 1 4)
  (func (export "size") (result i32) (memory.size))
  (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
  (func (export "after_growth") (param i32) (result i32) (drop (memory.grow (i32.const 1))) (i32.load (local.get 0))))
;; size as CLIF:
;;   function u0:0(i64) -> i32 system_v {
;;       region0 = 2 "header"
;;
;;                                   block0(v0: i64):
;;   @0045                               v2 = load.i64 notrap aligned region0 v0+32
;;   @0047                               jump block1
;;
;;                                   block1:
;;   @0045                               v3 = iconst.i64 16
;;   @0045                               v4 = ushr.i64 v2, v3  ; v3 = 16
;;   @0045                               v5 = ireduce.i32 v4
;;   @0047                               return v5
;;   }
;; size as PTX:
;;   // size
;;   .func (.reg .b32 %out) f0_size (.reg .b64 %a0)
;;   {
;;       .reg .b32 %r<1>;  .reg .b64 %d<2>;
;;   $B0:
;;       ld.global.u64 %d0, [%a0+32];
;;   $B1:
;;       shr.u64 %d1, %d0, 16;
;;       cvt.u32.u64 %r0, %d1;
;;       mov.b32 %out, %r0;
;;       ret;
;;   }
;; grow as CLIF:
;;   function u0:1(i64, i32) -> i32 system_v {
;;       region0 = 2 "header"
;;       sig0 = () system_v
;;       fn0 = colocated u1:6 sig0
;;
;;                                   block0(v0: i64, v1: i32):
;;   @004c                               v6 = load.i64 notrap aligned region0 v0+32
;;   @004c                               v9 = load.i64 notrap aligned region0 v0+56
;;   @004c                               v13 = load.i64 notrap aligned region0 v0+48
;;   @004c                               v3 = uextend.i64 v1
;;   @004c                               v4 = iconst.i64 16
;;   @004c                               v5 = ishl v3, v4  ; v4 = 16
;;   @004c                               v7 = iadd v6, v5
;;   @004c                               v8 = iconst.i64 0x0004_0000
;;   @004c                               v10 = icmp ule v7, v8  ; v8 = 0x0004_0000
;;   @004c                               v11 = icmp ule v5, v9
;;   @004c                               v12 = band v10, v11
;;   @004c                               v14 = icmp ugt v7, v13
;;   @004c                               v15 = band v12, v14
;;   @004c                               brif v15, block2, block3
;;
;;                                   block2 cold:
;;   @004c                               store.i64 notrap aligned region0 v7, v0+16
;;   @004c                               v16 = iconst.i64 3
;;   @004c                               store notrap aligned region0 v16, v0  ; v16 = 3
;;   @004c                               call fn0()
;;   @004c                               jump block3
;;
;;                                   block3:
;;   @004c                               v20 = load.i64 notrap aligned region0 v0+56
;;   @004c                               v21 = isub v20, v5
;;   @004c                               v22 = select v12, v21, v20
;;   @004c                               store notrap aligned region0 v22, v0+56
;;   @004c                               v23 = load.i64 notrap aligned region0 v0+64
;;   @004c                               v24 = select v12, v23, v7
;;   @004c                               store notrap aligned region0 v24, v0+64
;;   @004c                               v18 = select.i64 v12, v7, v6
;;   @004c                               store notrap aligned region0 v18, v0+32
;;   @004c                               v25 = iconst.i64 4096
;;   @004c                               v26 = umax v18, v25  ; v25 = 4096
;;   @004c                               v27 = isub v26, v25  ; v25 = 4096
;;   @004c                               store notrap aligned region0 v27, v0+40
;;   @004e                               jump block1
;;
;;                                   block1:
;;   @004c                               v17 = iconst.i64 -1
;;   @004c                               v19 = select.i64 v12, v6, v17  ; v17 = -1
;;                                       v31 = iconst.i64 16
;;                                       v32 = ushr v19, v31  ; v31 = 16
;;   @004c                               v30 = ireduce.i32 v32
;;   @004e                               return v30
;;   }
;; grow as PTX:
;;   // grow
;;   .func (.reg .b32 %out) f1_grow (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<1>;  .reg .b64 %d<16>;  .reg .pred %p<5>;
;;   $B0:
;;       ld.global.u64 %d0, [%a0+32];
;;       ld.global.u64 %d1, [%a0+56];
;;       ld.global.u64 %d2, [%a0+48];
;;       cvt.u64.u32 %d3, %a1;
;;       shl.b64 %d4, %d3, 16;
;;       add.u64 %d5, %d0, %d4;
;;       setp.le.u64 %p0, %d5, 262144;
;;       setp.le.u64 %p1, %d4, %d1;
;;       and.pred %p2, %p0, %p1;
;;       setp.gt.u64 %p3, %d5, %d2;
;;       and.pred %p4, %p2, %p3;
;;       @%p4 bra $B2;
;;   $B3:
;;       ld.global.u64 %d6, [%a0+56];
;;       sub.u64 %d7, %d6, %d4;
;;       selp.b64 %d8, %d7, %d6, %p2;
;;       st.global.u64 [%a0+56], %d8;
;;       ld.global.u64 %d9, [%a0+64];
;;       selp.b64 %d10, %d9, %d5, %p2;
;;       st.global.u64 [%a0+64], %d10;
;;       selp.b64 %d11, %d5, %d0, %p2;
;;       st.global.u64 [%a0+32], %d11;
;;       max.u64 %d12, %d11, 4096;
;;       sub.u64 %d13, %d12, 4096;
;;       st.global.u64 [%a0+40], %d13;
;;   $B1:
;;       selp.b64 %d14, %d0, -1, %p2;
;;       shr.u64 %d15, %d14, 16;
;;       cvt.u32.u64 %r0, %d15;
;;       mov.b32 %out, %r0;
;;       ret;
;;   $B2:
;;       st.global.u64 [%a0+16], %d5;
;;       st.global.u64 [%a0], 3;
;;       exit;
;;   }
;; after_growth as CLIF:
;;   function u0:2(i64, i32) -> i32 system_v {
;;       region0 = 2 "header"
;;       region1 = 1 "guest"
;;       sig0 = () system_v
;;       fn0 = colocated u1:6 sig0
;;
;;                                   block0(v0: i64, v1: i32):
;;   @0053                               v7 = load.i64 notrap aligned region0 v0+32
;;   @0053                               v10 = load.i64 notrap aligned region0 v0+56
;;   @0053                               v14 = load.i64 notrap aligned region0 v0+48
;;                                       v36 = iconst.i64 0x0001_0000
;;   @0053                               v8 = iadd v7, v36  ; v36 = 0x0001_0000
;;   @0053                               v9 = iconst.i64 0x0004_0000
;;   @0053                               v11 = icmp ule v8, v9  ; v9 = 0x0004_0000
;;                                       v37 = icmp uge v10, v36  ; v36 = 0x0001_0000
;;   @0053                               v13 = band v11, v37
;;   @0053                               v15 = icmp ugt v8, v14
;;   @0053                               v16 = band v13, v15
;;   @0053                               brif v16, block2, block3
;;
;;                                   block2 cold:
;;                                       v39 = iadd.i64 v7, v36  ; v36 = 0x0001_0000
;;   @0053                               store notrap aligned region0 v39, v0+16
;;   @0053                               v17 = iconst.i64 3
;;   @0053                               store notrap aligned region0 v17, v0  ; v17 = 3
;;   @0053                               call fn0()
;;   @0053                               jump block3
;;
;;                                   block3:
;;   @0053                               v21 = load.i64 notrap aligned region0 v0+56
;;                                       v40 = iconst.i64 0x0001_0000
;;                                       v41 = isub v21, v40  ; v40 = 0x0001_0000
;;   @0053                               v23 = select v13, v41, v21
;;   @0053                               store notrap aligned region0 v23, v0+56
;;   @0053                               v24 = load.i64 notrap aligned region0 v0+64
;;                                       v42 = iadd.i64 v7, v36  ; v36 = 0x0001_0000
;;                                       v43 = select v13, v24, v42
;;   @0053                               store notrap aligned region0 v43, v0+64
;;                                       v44 = select v13, v42, v7
;;   @0053                               store notrap aligned region0 v44, v0+32
;;   @0053                               v26 = iconst.i64 4096
;;   @0053                               v27 = umax v44, v26  ; v26 = 4096
;;   @0053                               v28 = isub v27, v26  ; v26 = 4096
;;   @0053                               store notrap aligned region0 v28, v0+40
;;   @0058                               v33 = uextend.i64 v1
;;   @0058                               v34 = load.i32 aligned region1 v33
;;   @005b                               jump block1
;;
;;                                   block1:
;;   @005b                               return v34
;;   }
;; after_growth as PTX:
;;   // after_growth
;;   .func (.reg .b32 %out) f2_after_growth (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<6>;  .reg .b64 %d<18>;  .reg .pred %p<6>;
;;       add.u64 %d15, %a0, 384;
;;       ld.global.u32 %r2, [%a0+40];
;;       shr.u32 %r1, %r2, 2;
;;   $B0:
;;       ld.global.u64 %d0, [%a0+32];
;;       ld.global.u64 %d1, [%a0+56];
;;       ld.global.u64 %d2, [%a0+48];
;;       add.u64 %d3, %d0, 65536;
;;       setp.le.u64 %p0, %d3, 262144;
;;       setp.ge.u64 %p1, %d1, 65536;
;;       and.pred %p2, %p0, %p1;
;;       setp.gt.u64 %p3, %d3, %d2;
;;       and.pred %p4, %p2, %p3;
;;       @%p4 bra $B2;
;;   $B3:
;;       ld.global.u64 %d5, [%a0+56];
;;       sub.u64 %d6, %d5, 65536;
;;       selp.b64 %d7, %d6, %d5, %p2;
;;       st.global.u64 [%a0+56], %d7;
;;       ld.global.u64 %d8, [%a0+64];
;;       add.u64 %d9, %d0, 65536;
;;       selp.b64 %d10, %d8, %d9, %p2;
;;       st.global.u64 [%a0+64], %d10;
;;       selp.b64 %d11, %d9, %d0, %p2;
;;       st.global.u64 [%a0+32], %d11;
;;       max.u64 %d12, %d11, 4096;
;;       sub.u64 %d13, %d12, 4096;
;;       st.global.u64 [%a0+40], %d13;
;;       shf.r.wrap.b32 %r3, %a1, %a1, 2;
;;       setp.ge.u32 %p5, %r3, %r1;
;;       @%p5 bra $L0;
;;       cvt.u64.u32 %d16, %a1;
;;       add.u64 %d17, %d15, %d16;
;;       ld.global.u32 %r0, [%d17];
;;   $L1:
;;   $B1:
;;       mov.b32 %out, %r0;
;;       ret;
;;   $B2:
;;       add.u64 %d4, %d0, 65536;
;;       st.global.u64 [%a0+16], %d4;
;;       st.global.u64 [%a0], 3;
;;       exit;
;;   $L0:
;;       call (%r4), cold_load_4, (%a0, %a1, 0, 144115196665790552);
;;       mov.b32 %r0, %r4;
;;       ld.global.u32 %r5, [%a0+40];
;;       shr.u32 %r1, %r5, 2;
;;       bra $L1;
;;   }
