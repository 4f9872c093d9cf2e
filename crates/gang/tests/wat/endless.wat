;; Never ends by itself.
(module
  (import "gpu" "sleep" (func $sleep (param i32)))
  (global $sp (mut i32) (i32.const 65536))
  (memory 1)
  (func (export "run") (loop $again (call $sleep (i32.const 1000)) (br $again))))
