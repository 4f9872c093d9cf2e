;; A memory and a table that grow.
(module
  (memory (export "m") 1 5) (table (export "t") 1 9 funcref)
  (func (export "grow") (result i32) (drop (table.grow (ref.null func) (i32.const 2)))
    (drop (memory.grow (i32.const 1))) (i32.store (i32.const 70000) (i32.const 7)) (memory.size)))
