;; Ways to a trap: each exported function leads to one, or `_start` to the one that argument 0 of `way` selects.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (type $unary (func (param i32) (result i32)))
  (memory (export "memory") 1)
  (table funcref (elem $through))
  (tag $oops (param i32))
  (elem declare func $through)
  (data (i32.const 16) "\18\00\00\00\03\00\00\00hi\n")

  (func $inner (param i32) (result i32) (i32.load (local.get 0)))
  (func $outer (param i32) (result i32) (i32.add (call $inner (local.get 0)) (i32.const 1)))
  (func (export "nested") (drop (call $outer (i32.const 0))) (drop (call $outer (i32.const -8))))

  (func $through (param i32) (result i32) (i32.div_u (i32.const 1) (local.get 0)))
  (func $by_table (result i32) (call_indirect (type $unary) (i32.const 0) (i32.const 0)))
  (func (export "by_table") (drop (call $by_table)))
  (func $by_reference (result i32) (call_ref $unary (i32.const 0) (ref.func $through)))
  (func (export "by_reference") (drop (call $by_reference)))

  (func $down (param i32) (result i32)
    (if (result i32) (local.get 0)
      (then (i32.add (call $down (i32.sub (local.get 0) (i32.const 1))) (i32.const 1)))
      (else unreachable)))
  (func (export "deep") (param i32) (result i32) (call $down (local.get 0)))

  ;; The first call of the host comes back; the second is given a misaligned pointer.
  (func $print (param i32) (result i32) (call $fd_write (i32.const 1) (local.get 0) (i32.const 1) (i32.const 8)))
  (func $print_twice (drop (call $print (i32.const 16))) (drop (call $print (i32.const 17))))
  (func (export "host") (call $print_twice))

  (func $throw (param i32) (throw $oops (local.get 0)))
  (func $pass (param i32) (call $throw (local.get 0)) unreachable)
  (func $catch (result i32)
    (block $caught (result i32)
      (try_table (catch $oops $caught) (call $pass (i32.const 7)))
      (i32.const 0)))
  (func $after (param i32) unreachable)
  (func $catch_and_trap (call $after (call $catch)))
  (func (export "exception") (call $catch_and_trap))

  ;; `replaced` leaves before `end` runs, which makes no tail calls; `chained` before `link`, which does.
  (func $end (param i32) (if (local.get 0) (then unreachable)))
  (func $replaced (param i32) (return_call $end (local.get 0)))
  (func (export "tail") (call $replaced (i32.const 0)) (call $replaced (i32.const 1)))
  (func $link (param i32) (call $end (i32.const 0)) (return_call $replaced (local.get 0)))
  (func $chained (param i32) (return_call $link (local.get 0)))
  (func $keeper (call $chained (i32.const 1)))
  (func (export "chain") (call $keeper))

  (func $spin (loop $l (br $l)))
  (func (export "endless") (call $spin))

  (func $endlessly (param i32) (result i32) (i32.add (call $endlessly (local.get 0)) (i32.const 1)))
  (func (export "overflow") (drop (call $endlessly (i32.const 0))))

  (func $alone (export "alone") unreachable)
  (func $main (drop (call $outer (i32.const -8))))
  (func (export "_start") (call $main)))
