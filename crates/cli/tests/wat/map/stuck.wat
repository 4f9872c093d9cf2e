;; Never ends if its stdin has two bytes.
(module
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 3)
  ;; reads up to 64 KiB of stdin to 65536, and says how much
  (func $read (result i32)
    (i32.store (i32.const 0) (i32.const 65536))
    (i32.store (i32.const 4) (i32.const 65536))
    (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (i32.load (i32.const 8)))
  (func (export "_start")
    (if (i32.eq (call $read) (i32.const 2)) (then (loop $again (br $again))))))
