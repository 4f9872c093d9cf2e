;; There is one `spectest` in a script: what one module leaves in its memory and its table, the next one finds.

(module $writer
  (import "spectest" "memory" (memory 1))
  (import "spectest" "table" (table 10 funcref))
  (elem (i32.const 3) $answer)
  (data (i32.const 100) "\2a")
  (func $answer (result i32) (i32.const 42))
  (func (export "write") (param i32 i32) (i32.store8 (local.get 0) (local.get 1)))
  (func (export "grow") (result i32) (memory.grow (i32.const 1)))
  (func (export "grow-table") (result i32) (table.grow (ref.null func) (i32.const 5)))
)
(module $reader
  (import "spectest" "memory" (memory 1 2))
  (import "spectest" "table" (table $t 10 20 funcref))
  (type $f (func (result i32)))
  (func (export "read") (param i32) (result i32) (i32.load8_u (local.get 0)))
  (func (export "call") (param i32) (result i32) (call_indirect $t (type $f) (local.get 0)))
  (func (export "pages") (result i32) (memory.size))
  (func (export "elements") (result i32) (table.size))
)
(assert_return (invoke $reader "read" (i32.const 100)) (i32.const 42))
(assert_return (invoke $reader "call" (i32.const 3)) (i32.const 42))
(assert_trap (invoke $reader "call" (i32.const 2)) "uninitialized element 2")

;; Both ways, and after they are linked.
(invoke $writer "write" (i32.const 101) (i32.const 7))
(assert_return (invoke $reader "read" (i32.const 101)) (i32.const 7))
(assert_return (invoke $writer "grow") (i32.const 1))
(assert_return (invoke $writer "grow-table") (i32.const 10))
(assert_return (invoke $reader "pages") (i32.const 2))
(assert_return (invoke $reader "elements") (i32.const 15))
(assert_return (invoke $writer "grow") (i32.const -1))

;; A module that is not instantiated for a trap leaves what it had written by then.
(assert_trap
  (module (import "spectest" "memory" (memory 1)) (data (i32.const 102) "\09") (data (i32.const 200000) "\09"))
  "out of bounds memory access")
(assert_return (invoke $reader "read" (i32.const 102)) (i32.const 9))

;; What has grown fits what asks for more; what cannot still does not.
(module (import "spectest" "memory" (memory 2)) (import "spectest" "table" (table 15 funcref)) (import "spectest" "global_i32" (global i32))
  (func (export "read") (result i32) (i32.add (i32.load8_u (i32.const 102)) (global.get 0))))
(assert_return (invoke "read") (i32.const 675))
(assert_unlinkable (module (import "spectest" "memory" (memory 3))) "incompatible import type")
(assert_unlinkable (module (import "spectest" "memory" (memory 1 1))) "incompatible import type")
(assert_unlinkable (module (import "spectest" "table" (table 16 funcref))) "incompatible import type")
(assert_unlinkable (module (import "spectest" "memory" (func))) "incompatible import type")
(assert_unlinkable (module (import "spectest" "nothing" (memory 1))) "unknown import")

;; What is registered under its name takes its place.
(module $own (memory (export "memory") 5))
(register "spectest" $own)
(module (import "spectest" "memory" (memory 5)) (func (export "read") (result i32) (i32.load8_u (i32.const 102))))
(assert_return (invoke "read") (i32.const 0))
(assert_return (invoke $reader "read" (i32.const 102)) (i32.const 9))
