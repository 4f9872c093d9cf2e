;; Reads a record, has the host change it, and writes what comes back.
(module
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (import "host" "changed" (func $changed (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1)
    ;; An io-vector of 1024 bytes at 64.
    (data (i32.const 0) "\40\00\00\00\00\04\00\00")
    (func (export "_start")
        (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 16)))
        ;; An io-vector of what the host returns, at 2048.
        (i32.store (i32.const 24) (i32.const 2048))
        (i32.store (i32.const 28)
            (call $changed (i32.const 64) (i32.load (i32.const 16)) (i32.const 2048) (i32.const 1024)))
        (drop (call $write (i32.const 1) (i32.const 24) (i32.const 1) (i32.const 16)))))
