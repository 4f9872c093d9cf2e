;; Fills its memory with a pattern, then moves and fills as stdin says, four words each: 0, where to, where from and how much, or 1, where,
;; with what and how much. Prints a hash of
;; it all: of the bytes from 8192 to the end of three pages.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 3)
  (func (export "_start") (local $at i32) (local $op i32) (local $hash i32)
    (local.set $at (i32.const 8192))
    (loop $bytes
      (i32.store8 (local.get $at) (i32.xor (i32.mul (local.get $at) (i32.const 167)) (i32.shr_u (local.get $at) (i32.const 7))))
      (br_if $bytes (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 1))) (i32.const 196608))))
    (i32.store (i32.const 0) (i32.const 1024)) (i32.store (i32.const 4) (i32.const 4096))
    (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (local.set $op (i32.const 1024))
    (block $done (loop $next
      (br_if $done (i32.ge_u (local.get $op) (i32.add (i32.const 1024) (i32.load (i32.const 8)))))
      (if (i32.load (local.get $op))
        (then (memory.fill (i32.load offset=4 (local.get $op)) (i32.load offset=8 (local.get $op)) (i32.load offset=12 (local.get $op))))
        (else (memory.copy (i32.load offset=4 (local.get $op)) (i32.load offset=8 (local.get $op)) (i32.load offset=12 (local.get $op)))))
      (local.set $op (i32.add (local.get $op) (i32.const 16)))
      (br $next)))
    (local.set $at (i32.const 8192))
    (loop $bytes
      (local.set $hash (i32.mul (i32.xor (local.get $hash) (i32.load8_u (local.get $at))) (i32.const 16777619)))
      (br_if $bytes (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 1))) (i32.const 196608))))
    (i32.store (i32.const 0) (i32.const 100)) (i32.store (i32.const 4) (i32.const 4)) (i32.store (i32.const 100) (local.get $hash))
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
