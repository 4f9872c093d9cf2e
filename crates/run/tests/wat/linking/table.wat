;; A table of functions that others fill, and a call through it.
(module
  (type $f (func (result i32)))
  (table (export "t") 8 funcref)
  (func $own (result i32) (i32.const 100))
  (elem (i32.const 0) $own)
  (func (export "call") (param i32) (result i32) (call_indirect (type $f) (local.get 0))))
