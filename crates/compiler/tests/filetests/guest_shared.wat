;;! build = "exact-interleaved"
;;! check = "ptx"
;;! function = "asks"
(module
  (func $add (export "gpu-run:shared_add_32") (param i32 i32) (result i32) (i32.const 0))
  (func $max (export "gpu-run:shared_max_64") (param i32 i64) (result i64) (i64.const 0))
  (func $swap (export "gpu-run:shared_compare_exchange_64") (param i32 i64 i64) (result i64) (i64.const 0))
  (func $load (export "gpu-run:shared_load_32") (param i32) (result i32) (i32.const 0))
  (func $store (export "gpu-run:shared_store_32") (param i32 i32))
  (func $fence (export "gpu-run:fence"))
  (func (export "asks_add") (param i32 i32) (result i32) (call $add (local.get 0) (local.get 1)))
  (func (export "asks_max") (param i32 i64) (result i64) (call $max (local.get 0) (local.get 1)))
  (func (export "asks_swap") (param i32 i64 i64) (result i64) (call $swap (local.get 0) (local.get 1) (local.get 2)))
  (func (export "asks_copy") (call $fence) (call $store (i32.const 4) (call $load (i32.const 0)))))
;; asks_add as PTX:
;;   // asks_add
;;   .func (.reg .b32 %out) f6_asks_add (.reg .b64 %a0, .reg .b32 %a1, .reg .b32 %a2)
;;   {
;;       .reg .b32 %r<8>;  .reg .b64 %d<6>;  .reg .pred %p<1>;
;;   $B0:
;;       ld.global.u32 %r0, [%a0+5632];
;;       ld.global.u32 %r1, [%a0+5760];
;;       mov.b64 %d0, {%r0, %r1};
;;       ld.global.u64 %d1, [%d0+208];
;;       ld.global.u64 %d2, [%d0+216];
;;       shf.r.wrap.b32 %r2, %a1, %a1, 2;
;;       cvt.u32.u64 %r3, %d2;
;;       shr.u32 %r4, %r3, 2;
;;       setp.ge.u32 %p0, %r2, %r4;
;;       @%p0 bra $X0;
;;       cvt.u64.u32 %d3, %a1;
;;       add.u64 %d4, %d1, %d3;
;;       atom.relaxed.gpu.global.add.u32 %r5, [%d4], %a2;
;;   $B1:
;;       mov.b32 %out, %r5;
;;       ret;
;;   $X0:
;;       mov.b64 %d5, 0x0200000600000125;
;;       mov.b64 {%r6, %r7}, %d5;
;;       st.global.u32 [%a0+256], %r6;
;;       st.global.u32 [%a0+384], %r7;
;;       exit;
;;   }
;; asks_max as PTX:
;;   // asks_max
;;   .func (.reg .b64 %out) f7_asks_max (.reg .b64 %a0, .reg .b32 %a1, .reg .b64 %a2)
;;   {
;;       .reg .b32 %r<7>;  .reg .b64 %d<7>;  .reg .pred %p<1>;
;;   $B0:
;;       ld.global.u32 %r0, [%a0+5632];
;;       ld.global.u32 %r1, [%a0+5760];
;;       mov.b64 %d0, {%r0, %r1};
;;       ld.global.u64 %d1, [%d0+208];
;;       ld.global.u64 %d2, [%d0+216];
;;       shf.r.wrap.b32 %r2, %a1, %a1, 3;
;;       cvt.u32.u64 %r3, %d2;
;;       shr.u32 %r4, %r3, 3;
;;       setp.ge.u32 %p0, %r2, %r4;
;;       @%p0 bra $X0;
;;       cvt.u64.u32 %d3, %a1;
;;       add.u64 %d4, %d1, %d3;
;;       atom.relaxed.gpu.global.max.u64 %d5, [%d4], %a2;
;;   $B1:
;;       mov.b64 %out, %d5;
;;       ret;
;;   $X0:
;;       mov.b64 %d6, 0x020000070000012E;
;;       mov.b64 {%r5, %r6}, %d6;
;;       st.global.u32 [%a0+256], %r5;
;;       st.global.u32 [%a0+384], %r6;
;;       exit;
;;   }
;; asks_swap as PTX:
;;   // asks_swap
;;   .func (.reg .b64 %out) f8_asks_swap (.reg .b64 %a0, .reg .b32 %a1, .reg .b64 %a2, .reg .b64 %a3)
;;   {
;;       .reg .b32 %r<7>;  .reg .b64 %d<7>;  .reg .pred %p<1>;
;;   $B0:
;;       ld.global.u32 %r0, [%a0+5632];
;;       ld.global.u32 %r1, [%a0+5760];
;;       mov.b64 %d0, {%r0, %r1};
;;       ld.global.u64 %d1, [%d0+208];
;;       ld.global.u64 %d2, [%d0+216];
;;       shf.r.wrap.b32 %r2, %a1, %a1, 3;
;;       cvt.u32.u64 %r3, %d2;
;;       shr.u32 %r4, %r3, 3;
;;       setp.ge.u32 %p0, %r2, %r4;
;;       @%p0 bra $X0;
;;       cvt.u64.u32 %d3, %a1;
;;       add.u64 %d4, %d1, %d3;
;;       atom.relaxed.gpu.global.cas.b64 %d5, [%d4], %a2, %a3;
;;   $B1:
;;       mov.b64 %out, %d5;
;;       ret;
;;   $X0:
;;       mov.b64 %d6, 0x0200000800000139;
;;       mov.b64 {%r5, %r6}, %d6;
;;       st.global.u32 [%a0+256], %r5;
;;       st.global.u32 [%a0+384], %r6;
;;       exit;
;;   }
;; asks_copy as PTX:
;;   // asks_copy
;;   .func f9_asks_copy (.reg .b64 %a0)
;;   {
;;       .reg .b32 %r<11>;  .reg .b64 %d<7>;  .reg .pred %p<2>;
;;   $B0:
;;       fence.acq_rel.gpu;
;;       ld.global.u32 %r0, [%a0+5632];
;;       ld.global.u32 %r1, [%a0+5760];
;;       mov.b64 %d0, {%r0, %r1};
;;       ld.global.u64 %d1, [%d0+208];
;;       ld.global.u64 %d2, [%d0+216];
;;       cvt.u32.u64 %r2, %d2;
;;       shr.u32 %r3, %r2, 2;
;;       setp.eq.u32 %p0, %r3, 0;
;;       @%p0 bra $X0;
;;       ld.relaxed.gpu.global.u32 %r4, [%d1];
;;       ld.global.u64 %d3, [%d0+208];
;;       ld.global.u64 %d4, [%d0+216];
;;       cvt.u32.u64 %r5, %d4;
;;       shr.u32 %r6, %r5, 2;
;;       setp.le.u32 %p1, %r6, 1;
;;       @%p1 bra $X1;
;;       st.relaxed.gpu.global.u32 [%d3+4], %r4;
;;   $B1:
;;       ret;
;;   $X0:
;;       mov.b64 %d6, 0x0200000900000144;
;;       mov.b64 {%r7, %r8}, %d6;
;;       st.global.u32 [%a0+256], %r7;
;;       st.global.u32 [%a0+384], %r8;
;;       exit;
;;   $X1:
;;       mov.b64 %d6, 0x0200000900000146;
;;       mov.b64 {%r9, %r10}, %d6;
;;       st.global.u32 [%a0+256], %r9;
;;       st.global.u32 [%a0+384], %r10;
;;       exit;
;;   }
