;; A stack of a megabyte below the data. It writes one byte as far below the stack's top as stdin's first says (times 64 KiB), then prints the
;; 8 bytes around that, if a byte of the data, found by an index, is as it was; if stdin has a second, it does the first by `memory.fill`.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 17)
  (global $stack (mut i32) (i32.const 1048576)) (data (i32.const 1048588) "data\01")
  (func (export "_start") (local $at i32)
    (i32.store (i32.const 1048576) (i32.const 1048600)) (i32.store (i32.const 1048580) (i32.const 1000))
    (drop (call $fd_read (i32.const 0) (i32.const 1048576) (i32.const 1) (i32.const 1048584)))
    (local.set $at (i32.sub (global.get $stack)
      (i32.mul (i32.const 65536) (i32.sub (i32.load8_u (i32.const 1048600)) (i32.const 48)))))
    (if (i32.eq (i32.load (i32.const 1048584)) (i32.const 2))
      (then (memory.fill (local.get $at) (i32.const 120) (i32.const 3)))
      (else (i32.store8 (local.get $at) (i32.const 121))))
    (i32.store (i32.const 1048576) (i32.sub (local.get $at) (i32.const 4))) (i32.store (i32.const 1048580) (i32.const 8))
    (if (i32.ne (i32.load8_u offset=1048588 (i32.load8_u (i32.const 1048592))) (i32.const 97)) (then unreachable))
    (drop (call $fd_write (i32.const 1) (i32.const 1048576) (i32.const 1) (i32.const 1048584)))))
