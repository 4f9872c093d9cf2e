;; One thread traps; the rest of its workgroup waits for it at a barrier.
(module
  (import "gpu" "thread" (func $thread (result i32)))
  (import "gpu" "barrier" (func $barrier))
  (global $sp (mut i32) (i32.const 65536))
  (memory 1)
  (func (export "run") (if (i32.eq (call $thread) (i32.const 500)) (then (unreachable)))
    (loop $again (call $barrier) (br $again))))
