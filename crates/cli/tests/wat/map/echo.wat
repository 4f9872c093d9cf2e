;; Writes its stdin, unless it begins with `t` (writes half of it and traps), `e` (exits with 3) or `q` (writes nothing).
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 3)
  (data (i32.const 512) "half an answer")
  (data (i32.const 544) "it went wrong\n")
  ;; writes `length` bytes at `at` to `fd`
  (func $write (param $fd i32) (param $at i32) (param $length i32)
    (i32.store (i32.const 0) (local.get $at))
    (i32.store (i32.const 4) (local.get $length))
    (drop (call $fd_write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8))))
  ;; reads up to 64 KiB of stdin to 65536, and says how much
  (func $read (result i32)
    (i32.store (i32.const 0) (i32.const 65536))
    (i32.store (i32.const 4) (i32.const 65536))
    (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (i32.load (i32.const 8)))
  (func $begins (param $with i32) (result i32) (i32.eq (i32.load8_u (i32.const 65536)) (local.get $with)))
  (func (export "_start") (local $n i32)
    (local.set $n (call $read))
    (if (call $begins (i32.const 0x71)) (then return))
    (if (call $begins (i32.const 0x74)) (then
      (call $write (i32.const 1) (i32.const 512) (i32.const 14))
      (call $write (i32.const 2) (i32.const 544) (i32.const 14))
      unreachable))
    (call $write (i32.const 1) (i32.const 65536) (local.get $n))
    (if (call $begins (i32.const 0x65)) (then (call $proc_exit (i32.const 3))))))
