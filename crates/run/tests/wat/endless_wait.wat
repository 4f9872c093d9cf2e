;; Waits for a notification that never comes.
(module
  (memory 1 1 shared)
  (func (export "f")
    (drop (memory.atomic.wait32 (i32.const 0) (i32.const 0) (i64.const -1)))))
