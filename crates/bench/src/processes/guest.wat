;; Starts itself by the name `child`, 300 times, as std's `Command` does without std. The child's first instruction reads the clock; it
;; writes what it read to the pipe that is its stdout.
;;
;; Writes to stdout, for each child, three times in nanoseconds, 8 bytes each: from before the start to the child's first instruction, to
;; where the parent has read the child's first bytes, and to where the parent knows that the child has ended.
(module
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock_time_get (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_pwrite" (func $fd_pwrite (param i32 i32 i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_pread" (func $fd_pread (param i32 i32 i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_close" (func $fd_close (param i32) (result i32)))
  (memory (export "memory") 1)

  (global $rounds i32 (i32.const 300))
  ;; The descriptor that takes requests, and the requests.
  (global $asks i32 (i32.const 0x67707501))
  (global $start i64 (i64.const 11))
  (global $pipe i64 (i64.const 6))
  (global $end i64 (i64.const 7))
  ;; Places in memory.
  (global $clock i32 (i32.const 0))
  (global $vector i32 (i32.const 8))    ;; an io-vector
  (global $result i32 (i32.const 16))
  (global $count i32 (i32.const 20))
  (global $ends i32 (i32.const 24))     ;; a pipe's two descriptors, and how a child ended
  (global $heard i32 (i32.const 32))    ;; what a child read from its clock
  (global $times i32 (i32.const 1024))

  ;; The request: no stdin, the pipe as stdout, no stderr; the program's name; no folder; two arguments; no variables.
  (data (i32.const 64) "\ff\ff\ff\ff" "\00\00\00\00" "\ff\ff\ff\ff" "\05\00\00\00child" "\00\00\00\00"
    "\02\00\00\00" "\05\00\00\00child" "\01\00\00\00x" "\00\00\00\00")
  (global $request i32 (i32.const 64))
  (global $stdout i32 (i32.const 68))
  (global $request_bytes i32 (i32.const 47))

  (func $now (result i64)
    (drop (call $clock_time_get (i32.const 1) (i64.const 1) (global.get $clock)))
    (i64.load (global.get $clock)))

  (func $vector_of (param $at i32) (param $bytes i32)
    (i32.store (global.get $vector) (local.get $at))
    (i32.store offset=4 (global.get $vector) (local.get $bytes)))

  (func $check (param $errno i32)
    (if (local.get $errno) (then (unreachable))))

  (func $fetch (param $what i64)
    (call $vector_of (global.get $ends) (i32.const 8))
    (call $check (call $fd_pread (global.get $asks) (global.get $vector) (i32.const 1) (local.get $what) (global.get $result))))

  (func $since (param $place i32) (param $begin i64)
    (i64.store (local.get $place) (i64.sub (call $now) (local.get $begin))))

  (func (export "_start")
    (local $first i64) (local $round i32) (local $at i32) (local $begin i64) (local $reads i32) (local $writes i32)
    (local.set $first (call $now))
    (drop (call $args_sizes_get (global.get $count) (global.get $result)))
    (if (i32.gt_u (i32.load (global.get $count)) (i32.const 1))
      (then
        (i64.store (global.get $heard) (local.get $first))
        (call $vector_of (global.get $heard) (i32.const 8))
        (call $check (call $fd_write (i32.const 1) (global.get $vector) (i32.const 1) (global.get $result)))
        (return)))
    (local.set $at (global.get $times))
    (loop $again
      (call $fetch (global.get $pipe))
      (local.set $reads (i32.load (global.get $ends)))
      (local.set $writes (i32.load offset=4 (global.get $ends)))
      (i32.store (global.get $stdout) (local.get $writes))
      (local.set $begin (call $now))
      (call $vector_of (global.get $request) (global.get $request_bytes))
      (call $check (call $fd_pwrite (global.get $asks) (global.get $vector) (i32.const 1) (global.get $start) (global.get $result)))
      (call $vector_of (global.get $heard) (i32.const 8))
      (call $check (call $fd_read (local.get $reads) (global.get $vector) (i32.const 1) (global.get $count)))
      (call $since (i32.add (local.get $at) (i32.const 8)) (local.get $begin))
      (i64.store (local.get $at) (i64.sub (i64.load (global.get $heard)) (local.get $begin)))
      (call $fetch (i64.or (global.get $end) (i64.shl (i64.extend_i32_u (i32.load (global.get $result))) (i64.const 32))))
      (call $since (i32.add (local.get $at) (i32.const 16)) (local.get $begin))
      (call $check (call $fd_close (local.get $reads)))
      (call $check (call $fd_close (local.get $writes)))
      (local.set $at (i32.add (local.get $at) (i32.const 24)))
      (br_if $again (i32.lt_u (local.tee $round (i32.add (local.get $round) (i32.const 1))) (global.get $rounds))))
    (call $vector_of (global.get $times) (i32.sub (local.get $at) (global.get $times)))
    (call $check (call $fd_write (i32.const 1) (global.get $vector) (i32.const 1) (global.get $result)))))
