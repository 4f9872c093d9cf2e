;;! build = "speculative-interleaved"
;;! check = "ptx"
;;! function = "asks"
;; An instance that is rerun would add twice: it stops before it does.
(module (memory 1)
  (func $add (export "gpu-run:shared_add_32") (param i32 i32) (result i32) (i32.const 0))
  (func (export "asks_add") (param i32 i32) (result i32) (call $add (local.get 0) (local.get 1))))
;; asks_add as PTX:
;;   // asks_add
;;   .func (.reg .b32 %out) f1_asks_add (.reg .b64 %a0, .reg .b32 %a1, .reg .b32 %a2)
;;   {
;;       .reg .b32 %r<8>;  .reg .b64 %d<6>;  .reg .pred %p<1>;
;;   $B0:
;;       bra $X0;
;;   $B1:
;;       mov.b32 %out, %r5;
;;       ret;
;;   $X0:
;;       mov.b64 %d5, 0x0E0000010000004F;
;;       mov.b64 {%r6, %r7}, %d5;
;;       st.global.u32 [%a0+256], %r6;
;;       st.global.u32 [%a0+384], %r7;
;;       exit;
;;   }
