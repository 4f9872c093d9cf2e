;;! build = "speculative-interleaved"
;;! check = "ptx"
;;! function = "asks"
;; An instance that is rerun would add twice: it stops before it does.
(module (memory 1)
  (func $add (export "gpu-run:shared_add_32") (param i32 i32) (result i32) (i32.const 0))
  (func (export "asks_add") (param i32 i32) (result i32) (call $add (local.get 0) (local.get 1))))
