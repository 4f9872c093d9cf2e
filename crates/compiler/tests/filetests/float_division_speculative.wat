;;! build = "speculative-interleaved"
(module
  (func (export "div") (param f64 f64) (result f64) (f64.div (local.get 0) (local.get 1)))
  (func (export "sqrt") (param f64) (result f64) (f64.sqrt (local.get 0))))
;; div as CLIF:
;;   function u0:0(i64, f64, f64) -> f64 system_v {
;;                                   block0(v0: i64, v1: f64, v2: f64):
;;   @0035                               jump block1
;;
;;                                   block1:
;;   @0034                               v5 = fdiv.f64 v1, v2
;;   @0034                               v7 = fcmp uno v5, v5
;;   @0034                               v6 = f64const +NaN
;;   @0034                               v4 = select v7, v6, v5  ; v6 = +NaN
;;   @0035                               return v4
;;   }
;; div as PTX:
;;   // div
;;   .func (.reg .f64 %out) f0_div (.reg .b64 %a0, .reg .f64 %a1, .reg .f64 %a2)
;;   {
;;       .reg .b32 %r<12>;  .reg .f64 %g<13>;  .reg .pred %p<6>;
;;   $B0:
;;   $B1:
;;       mov.b64 {%r0, %r1}, %a1;
;;       shl.b32 %r2, %r1, 1;
;;       sub.u32 %r3, %r2, 1096810496;
;;       setp.lt.u32 %p1, %r3, 2097152000;
;;       or.b32 %r4, %r0, %r2;
;;       setp.eq.u32 %p2, %r4, 0;
;;       or.pred %p3, %p1, %p2;
;;       mov.b64 {%r5, %r6}, %a2;
;;       shl.b32 %r7, %r6, 1;
;;       sub.u32 %r8, %r7, 1096810496;
;;       setp.lt.u32 %p4, %r8, 2097152000;
;;       and.pred %p5, %p3, %p4;
;;       neg.f64 %g2, %a2;
;;       rcp.approx.ftz.f64 %g3, %a2;
;;       mov.b64 {%r9, %r10}, %g3;
;;       add.u32 %r11, %r10, 4;
;;       mov.b64 %g4, {%r9, %r11};
;;       fma.rn.f64 %g5, %g2, %g4, 0d3FF0000000000000;
;;       fma.rn.f64 %g6, %g5, %g5, %g5;
;;       fma.rn.f64 %g7, %g4, %g6, %g4;
;;       fma.rn.f64 %g8, %g2, %g7, 0d3FF0000000000000;
;;       fma.rn.f64 %g9, %g7, %g8, %g7;
;;       mul.rn.f64 %g10, %a1, %g9;
;;       fma.rn.f64 %g11, %g2, %g10, %a1;
;;       fma.rn.f64 %g12, %g9, %g11, %g10;
;;       copysign.f64 %g0, %g10, %g12;
;;       setp.nan.f64 %p0, %g0, %g0;
;;       selp.f64 %g1, 0d7FF8000000000000, %g0, %p0;
;;       @!%p5 exit;
;;       mov.f64 %out, %g1;
;;       ret;
;;   }
;; sqrt as CLIF:
;;   function u0:1(i64, f64) -> f64 system_v {
;;                                   block0(v0: i64, v1: f64):
;;   @003b                               jump block1
;;
;;                                   block1:
;;   @003a                               v4 = sqrt.f64 v1
;;   @003a                               v6 = fcmp uno v4, v4
;;   @003a                               v5 = f64const +NaN
;;   @003a                               v3 = select v6, v5, v4  ; v5 = +NaN
;;   @003b                               return v3
;;   }
;; sqrt as PTX:
;;   // sqrt
;;   .func (.reg .f64 %out) f1_sqrt (.reg .b64 %a0, .reg .f64 %a1)
;;   {
;;       .reg .b32 %r<8>;  .reg .f64 %g<14>;  .reg .pred %p<4>;
;;   $B0:
;;   $B1:
;;       mov.b64 {%r0, %r1}, %a1;
;;       shl.b32 %r2, %r1, 1;
;;       sub.u32 %r3, %r1, 548405248;
;;       setp.lt.u32 %p1, %r3, 1048576000;
;;       or.b32 %r4, %r0, %r2;
;;       setp.eq.u32 %p2, %r4, 0;
;;       or.pred %p3, %p1, %p2;
;;       rsqrt.approx.ftz.f64 %g2, %a1;
;;       mul.rn.f64 %g3, %g2, %g2;
;;       neg.f64 %g4, %g3;
;;       fma.rn.f64 %g5, %a1, %g4, 0d3FF0000000000000;
;;       fma.rn.f64 %g6, %g5, 0d3FD8000000000000, 0d3FE0000000000000;
;;       mul.rn.f64 %g7, %g2, %g5;
;;       fma.rn.f64 %g8, %g6, %g7, %g2;
;;       mul.rn.f64 %g9, %a1, %g8;
;;       mov.b64 {%r5, %r6}, %g8;
;;       sub.u32 %r7, %r6, 1048576;
;;       mov.b64 %g10, {%r5, %r7};
;;       neg.f64 %g11, %g9;
;;       fma.rn.f64 %g12, %g11, %g9, %a1;
;;       fma.rn.f64 %g13, %g12, %g10, %g9;
;;       selp.f64 %g0, %a1, %g13, %p2;
;;       setp.nan.f64 %p0, %g0, %g0;
;;       selp.f64 %g1, 0d7FF8000000000000, %g0, %p0;
;;       @!%p3 exit;
;;       mov.f64 %out, %g1;
;;       ret;
;;   }
