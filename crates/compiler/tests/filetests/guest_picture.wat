;;! build = "speculative-local"
;;! check = "ptx"
;;! function = "asks"
(module (memory 1)
  (func $picture (export "gpu-run:picture") (param i32 i32) (result i32) (i32.const 0))
  (func $size (export "gpu-run:picture_size") (result i64) (i64.const 0))
  (func $pixel (export "gpu-run:pixel") (param i32 i32))
  (func $time (export "gpu-run:time") (result f64) (f64.const 0))
  (func (export "asks_picture") (result i32) (call $picture (i32.const 640) (i32.const 360)))
  (func (export "asks_size") (result i64) (call $size))
  (func (export "asks_pixel") (param i32) (call $pixel (local.get 0) (i32.const 255)))
  (func (export "asks_time") (result f64) (call $time)))
;; asks_picture as PTX:
;;   // asks_picture
;;   .func (.reg .b32 %out) f4_asks_picture (.reg .b64 %a0)
;;   {
;;       .reg .b32 %r<6>;  .reg .b64 %d<4>;  .reg .pred %p<5>;
;;   $B0:
;;       ld.global.u32 %r0, [%a0+5632];
;;       ld.global.u32 %r1, [%a0+5760];
;;       mov.b64 %d0, {%r0, %r1};
;;       ld.global.u64 %d1, [%d0+224];
;;       ld.global.u64 %d2, [%d0+232];
;;       setp.ne.u64 %p4, %d1, 0;
;;       @%p4 bra $B2;
;;       mov.b32 %r4, 0;
;;       bra $B3;
;;   $B2:
;;       setp.ge.u64 %p0, %d2, 230400;
;;       @%p0 bra $B4;
;;       mov.b32 %r3, 2;
;;       bra $B5;
;;   $B4:
;;       atom.relaxed.gpu.global.cas.b64 %d3, [%d1], 0, 1546188227200;
;;       setp.ne.u64 %p1, %d3, 1546188227200;
;;       setp.ne.u64 %p2, %d3, 0;
;;       and.pred %p3, %p1, %p2;
;;       selp.b32 %r2, 3, 1, %p3;
;;       mov.b32 %r3, %r2;
;;   $B5:
;;       mov.b32 %r4, %r3;
;;   $B3:
;;       mov.b32 %r5, %r4;
;;   $B1:
;;       mov.b32 %out, %r5;
;;       ret;
;;   }
;; asks_size as PTX:
;;   // asks_size
;;   .func (.reg .b64 %out) f5_asks_size (.reg .b64 %a0)
;;   {
;;       .reg .b32 %r<2>;  .reg .b64 %d<5>;  .reg .pred %p<1>;
;;   $B0:
;;       ld.global.u32 %r0, [%a0+5632];
;;       ld.global.u32 %r1, [%a0+5760];
;;       mov.b64 %d0, {%r0, %r1};
;;       ld.global.u64 %d1, [%d0+224];
;;       setp.ne.u64 %p0, %d1, 0;
;;       @%p0 bra $B2;
;;       mov.b64 %d3, 0;
;;       bra $B3;
;;   $B2:
;;       ld.relaxed.gpu.global.u64 %d2, [%d1];
;;       mov.b64 %d3, %d2;
;;   $B3:
;;       mov.b64 %d4, %d3;
;;   $B1:
;;       mov.b64 %out, %d4;
;;       ret;
;;   }
;; asks_pixel as PTX:
;;   // asks_pixel
;;   .func f6_asks_pixel (.reg .b64 %a0, .reg .b32 %a1)
;;   {
;;       .reg .b32 %r<2>;  .reg .b64 %d<6>;  .reg .pred %p<1>;
;;   $B0:
;;       ld.global.u32 %r0, [%a0+5632];
;;       ld.global.u32 %r1, [%a0+5760];
;;       mov.b64 %d0, {%r0, %r1};
;;       ld.global.u64 %d1, [%d0+224];
;;       ld.global.u64 %d2, [%d0+232];
;;       cvt.u64.u32 %d3, %a1;
;;       setp.lt.u64 %p0, %d3, %d2;
;;       @!%p0 bra $B3;
;;   $B2:
;;       shl.b64 %d4, %d3, 2;
;;       add.u64 %d5, %d1, %d4;
;;       st.global.u32 [%d5+8], 255;
;;   $B3:
;;   $B1:
;;       ret;
;;   }
;; asks_time as PTX:
;;   // asks_time
;;   .func (.reg .f64 %out) f7_asks_time (.reg .b64 %a0)
;;   {
;;       .reg .b32 %r<2>;  .reg .b64 %d<2>;  .reg .f64 %g<1>;
;;   $B0:
;;       ld.global.u32 %r0, [%a0+5632];
;;       ld.global.u32 %r1, [%a0+5760];
;;       mov.b64 %d0, {%r0, %r1};
;;       ld.global.u64 %d1, [%d0+240];
;;   $B1:
;;       mov.b64 %g0, %d1;
;;       mov.f64 %out, %g0;
;;       ret;
;;   }
