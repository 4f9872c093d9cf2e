;; Imports the memory and the table of `growing.wat` once they are larger than at first.
(module
  (import "a" "m" (memory 2 5)) (import "a" "t" (table 3 9 funcref))
  (func (export "get") (result i32) (i32.add (table.size) (i32.load (i32.const 70000))))
  (func (export "grow") (result i32) (memory.grow (i32.const 1))))
