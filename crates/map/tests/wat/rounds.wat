;; Stdin's two bytes, times the scale, are two places, `$p` and `$q`. Three rounds are done, each a step further in both; then all there is
;; printed. How many rounds is read from memory, so that it is not known. A test puts a round's code in the place of `nop`.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start") (local $p i32) (local $q i32) (local $i i32)
    (i32.store (i32.const 0) (i32.const 100)) (i32.store (i32.const 4) (i32.const 2))
    (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (loop $fill
      (i32.store8 offset=1024 (local.get $i) (i32.add (i32.const 11) (i32.mul (local.get $i) (i32.const 37))))
      (br_if $fill (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 1024))))
    (local.set $p (i32.mul (i32.load8_u (i32.const 100)) (i32.const 1 (; scale ;))))
    (local.set $q (i32.mul (i32.load8_u (i32.const 101)) (i32.const 1 (; scale ;))))
    (local.set $i (i32.add (i32.load (i32.const 8)) (i32.const 1)))
    (loop $round
      nop
      (local.set $p (i32.add (local.get $p) (i32.const 4 (; step ;))))
      (local.set $q (i32.add (local.get $q) (i32.const 4 (; step ;))))
      (br_if $round (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
    (i32.store (i32.const 0) (i32.const 1024)) (i32.store (i32.const 4) (i32.const 1024))
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
