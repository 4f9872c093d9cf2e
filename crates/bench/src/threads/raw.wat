;; Threads without std: `wasi.thread-spawn`, `memory.atomic.wait32` and `memory.atomic.notify`, which Rust has no stable names for.
;;
;; Writes the nanoseconds of 500 spawns and joins to stdout, eight bytes each, then those of 500 wake-ups: from right before the
;; notify until the woken thread runs.
(module
  (import "env" "memory" (memory 2 2 shared))
  (import "wasi" "thread-spawn" (func $spawn (param i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock_time_get (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (export "memory" (memory 0))

  (global $rounds i32 (i32.const 500))
  ;; Words in memory.
  (global $done i32 (i32.const 0))      ;; 1 once a thread is at its end
  (global $bell i32 (i32.const 4))      ;; where the thread to be woken waits; it stays 0
  (global $woken i32 (i32.const 8))     ;; how often that thread was woken
  (global $rung i32 (i32.const 16))     ;; when it was last notified
  (global $clocks i32 (i32.const 32))   ;; where the clock is written, 8 bytes for each of the two threads
  (global $vector i32 (i32.const 64))   ;; what to write, and how much of it was written
  (global $times i32 (i32.const 1024))

  ;; The monotonic clock, by way of a word of this thread's own.
  (func $now (param $own i32) (result i64)
    (drop (call $clock_time_get (i32.const 1) (i64.const 1) (local.get $own)))
    (i64.load (local.get $own)))

  ;; Waits until a word has a value.
  (func $await (param $word i32) (param $value i32)
    (local $seen i32)
    (loop $again
      (local.set $seen (i32.atomic.load (local.get $word)))
      (if (i32.ne (local.get $seen) (local.get $value)) (then
        (drop (memory.atomic.wait32 (local.get $word) (local.get $seen) (i64.const -1)))
        (br $again)))))

  ;; Changes a word, and wakes whoever waits for it.
  (func $tell (param $word i32) (param $value i32)
    (i32.atomic.store (local.get $word) (local.get $value))
    (drop (memory.atomic.notify (local.get $word) (i32.const 1))))

  (func $start (param $round i32)
    (if (i32.lt_s (call $spawn (local.get $round)) (i32.const 0)) (then unreachable)))

  ;; A thread: 0 only ends, 1 is woken again and again first.
  (func (export "wasi_thread_start") (param $id i32) (param $is_woken i32)
    (local $round i32)
    (if (local.get $is_woken) (then
      (loop $next
        ;; 0: it was notified. 2 and 1 are no wake-ups: a time limit that there is not, another value.
        (br_if $next (memory.atomic.wait32 (global.get $bell) (i32.const 0) (i64.const -1)))
        (i64.store (call $place (i32.add (global.get $rounds) (local.get $round)))
          (i64.sub (call $now (i32.add (global.get $clocks) (i32.const 8))) (i64.atomic.load (global.get $rung))))
        (local.set $round (i32.add (local.get $round) (i32.const 1)))
        (call $tell (global.get $woken) (local.get $round))
        (br_if $next (i32.lt_u (local.get $round) (global.get $rounds))))))
    (call $tell (global.get $done) (i32.const 1)))

  ;; Where a time is kept.
  (func $place (param $index i32) (result i32)
    (i32.add (global.get $times) (i32.mul (local.get $index) (i32.const 8))))

  (func (export "_start")
    (local $round i32) (local $began i64)
    (loop $next
      (i32.atomic.store (global.get $done) (i32.const 0))
      (local.set $began (call $now (global.get $clocks)))
      (call $start (i32.const 0))
      (call $await (global.get $done) (i32.const 1))
      (i64.store (call $place (local.get $round)) (i64.sub (call $now (global.get $clocks)) (local.get $began)))
      (local.set $round (i32.add (local.get $round) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $round) (global.get $rounds))))

    (i32.atomic.store (global.get $done) (i32.const 0))
    (call $start (i32.const 1))
    (local.set $round (i32.const 0))
    (loop $next
      ;; Until the notify finds the thread waiting.
      (loop $ring
        (i64.atomic.store (global.get $rung) (call $now (global.get $clocks)))
        (br_if $ring (i32.eqz (memory.atomic.notify (global.get $bell) (i32.const 1)))))
      (local.set $round (i32.add (local.get $round) (i32.const 1)))
      (call $await (global.get $woken) (local.get $round))
      (br_if $next (i32.lt_u (local.get $round) (global.get $rounds))))
    (call $await (global.get $done) (i32.const 1))

    (i32.store (global.get $vector) (global.get $times))
    (i32.store offset=4 (global.get $vector) (i32.mul (global.get $rounds) (i32.const 16)))
    (if (call $fd_write (i32.const 1) (global.get $vector) (i32.const 1) (i32.add (global.get $vector) (i32.const 8)))
      (then unreachable))))
