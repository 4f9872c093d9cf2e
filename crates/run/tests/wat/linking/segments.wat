;; Two passive segments, one of which can be dropped.
(module
  (memory (export "m") 1) (data $d "abc") (data $e "de")
  (func (export "drop") (data.drop $d))
  (func (export "first") (memory.init $d (i32.const 0) (i32.const 0) (i32.const 1)))
  (func (export "second") (result i32)
    (memory.init $e (i32.const 0) (i32.const 1) (i32.const 1)) (i32.load8_u (i32.const 0))))
