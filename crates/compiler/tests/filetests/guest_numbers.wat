;;! check = "ptx"
;;! function = "asks"
;; A function that is exported by a name that gpu-run knows is an operation, if its type is right, too.
(module
  (func $instance (export "gpu-run:instance") (result i64) (i64.const 0))
  (func $lane (export "gpu-run:lane") (result i32) (i32.const 0))
  (func $time (export "gpu-run:device_time") (result i64) (i64.const 0))
  (func $threads (export "gpu-run:threads") (param i32) (result i32) (i32.const 1))
  (func (export "asks_instance") (result i64) (call $instance))
  (func (export "asks_lane") (result i32) (call $lane))
  (func (export "asks_time") (result i64) (call $time))
  (func (export "asks_of_another_type") (result i32) (call $threads (i32.const 1))))
;; asks_instance as PTX:
;;   // asks_instance
;;   .func (.reg .b64 %out) f4_asks_instance (.reg .b64 %a0)
;;   {
;;       .reg .b64 %d<10>;  .reg .pred %p<1>;
;;   $B0:
;;       ld.global.u64 %d0, [%a0+176];
;;       ld.global.u64 %d1, [%d0+48];
;;       ld.global.u64 %d2, [%d0+192];
;;       ld.global.u64 %d3, [%a0+24];
;;       add.u64 %d4, %d1, %d3;
;;       setp.ne.u64 %p0, %d2, 0;
;;       @%p0 bra $B2;
;;       mov.b64 %d8, %d4;
;;       bra $B3;
;;   $B2:
;;       shl.b64 %d5, %d3, 3;
;;       add.u64 %d6, %d2, %d5;
;;       ld.global.u64 %d7, [%d6];
;;       mov.b64 %d8, %d7;
;;   $B3:
;;       mov.b64 %d9, %d8;
;;   $B1:
;;       mov.b64 %out, %d9;
;;       ret;
;;   }
;; asks_lane as PTX:
;;   // asks_lane
;;   .func (.reg .b32 %out) f5_asks_lane (.reg .b64 %a0)
;;   {
;;       .reg .b32 %r<1>;
;;   $B0:
;;       mov.u32 %r0, %laneid;
;;   $B1:
;;       mov.b32 %out, %r0;
;;       ret;
;;   }
;; asks_time as PTX:
;;   // asks_time
;;   .func (.reg .b64 %out) f6_asks_time (.reg .b64 %a0)
;;   {
;;       .reg .b64 %d<1>;
;;   $B0:
;;       mov.u64 %d0, %globaltimer;
;;   $B1:
;;       mov.b64 %out, %d0;
;;       ret;
;;   }
;; asks_of_another_type as PTX:
;;   // asks_of_another_type
;;   .func (.reg .b32 %out) f7_asks_of_another_type (.reg .b64 %a0)
;;   {
;;       .reg .b32 %r<4>;  .reg .b64 %d<2>;  .reg .pred %p<1>;
;;   $B0:
;;       ld.global.u32 %r0, [%a0+72];
;;       stacksave.u32 %r3;
;;       cvt.u64.u32 %d0, %r3;
;;       cvt.u32.u64 %r1, %d0;
;;       setp.lt.u32 %p0, %r1, %r0;
;;       @%p0 bra $X0;
;;       call (%r2), f3_threads, (%a0, 1);
;;   $B1:
;;       mov.b32 %out, %r2;
;;       ret;
;;   $X0:
;;       mov.b64 %d1, 0x09000007000000D7;
;;       st.global.u64 [%a0+8], %d1;
;;       exit;
;;   }
