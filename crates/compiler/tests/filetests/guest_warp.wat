;;! check = "ptx"
;;! function = "asks"
(module
  (func $ballot (export "gpu-run:ballot") (param i32) (result i32) (i32.const 0))
  (func $shuffle (export "gpu-run:shuffle") (param i32 i32) (result i32) (i32.const 0))
  (func $reduce_add (export "gpu-run:reduce_add") (param i32) (result i32) (i32.const 0))
  (func (export "asks_ballot") (param i32) (result i32) (call $ballot (local.get 0)))
  (func (export "asks_shuffle") (param i32 i32) (result i32) (call $shuffle (local.get 0) (local.get 1)))
  (func (export "asks_reduce") (param i32) (result i32) (call $reduce_add (local.get 0))))
