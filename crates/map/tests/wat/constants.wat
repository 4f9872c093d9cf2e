;; Its first segment is a table of constants, from which it prints what it finds at 16 places. Before that it writes there what stdin's first
;; byte says: by a store, by a store that only begins before it, by `memory.fill`, by reading stdin to it, by a store behind it, or not at all.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 1024) "0123456789abcdef") (data (i32.const 1040) "more")
  (func (export "_start") (local $how i32) (local $i i32)
    (i32.store (i32.const 0) (i32.const 100)) (i32.store (i32.const 4) (i32.const 1))
    (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (local.set $how (i32.load8_u (i32.const 100)))
    (if (i32.eq (local.get $how) (i32.const 115)) (then (i32.store8 (i32.add (local.get $how) (i32.const 912)) (i32.const 33))))
    (if (i32.eq (local.get $how) (i32.const 98)) (then (i32.store align=1 (i32.add (local.get $how) (i32.const 923)) (i32.const 0x21212121))))
    (if (i32.eq (local.get $how) (i32.const 102)) (then (memory.fill (i32.add (local.get $how) (i32.const 935)) (i32.const 33) (i32.const 5))))
    (if (i32.eq (local.get $how) (i32.const 114)) (then
      (i32.store (i32.const 0) (i32.add (local.get $how) (i32.const 911))) (i32.store (i32.const 4) (i32.const 3))
      (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))))
    (if (i32.eq (local.get $how) (i32.const 97)) (then (i32.store8 (i32.add (local.get $how) (i32.const 943)) (i32.const 33))))
    (loop $copy
      (i32.store8 offset=200 (local.get $i) (i32.load8_u offset=1024 (i32.and (local.get $i) (i32.const 15))))
      (br_if $copy (i32.ne (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 16))))
    (i32.store8 (i32.const 216) (i32.load8_u (i32.const 1027)))
    (i32.store (i32.const 0) (i32.const 200)) (i32.store (i32.const 4) (i32.const 17))
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
