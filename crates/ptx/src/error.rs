//! The errors of this crate: a program that contains something the back end cannot express in PTX, or printing that
//! takes too long.

use crate::Function;
use cranelift_codegen::ir;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "function `{function}`: no PTX for `{instruction}` ({opcode} on {ty})\n  hint: add a row to crates/ptx/src/print/table.rs, or keep the front end from producing it"
    )]
    Unsupported { function: String, opcode: ir::Opcode, ty: ir::Type, instruction: String },
    #[error(
        "function `{function}`: {value} has type {ty}, which has no register\n  hint: registers hold i8, i16, i32, i64, f32 and f64"
    )]
    Type { function: String, value: ir::Value, ty: ir::Type },
    #[error(
        "function `{function}`: type {ty} in a signature\n  hint: parameters and results are i32, i64, f32 or f64 ones"
    )]
    Signature { function: String, ty: ir::Type },
    #[error("function `{function}` names {name}, which is not in the program")]
    UnknownName { function: String, name: String },
    #[error("function `{function}` calls the kernel `{kernel}`: kernels are only launched")]
    CallsKernel { function: String, kernel: String },
    #[error("kernel `{function}`: its parameters must be i32 or i64, and it must return nothing")]
    KernelSignature { function: String },
    #[error(
        "function `{function}`: trap code {code} is not defined in the abi\n  hint: use gpu_run_abi::TrapCode's numbers"
    )]
    TrapCode { function: String, code: ir::TrapCode },
    #[error(
        "function `{function}` can trap, but its first parameter is not an i64, the instance pointer a trap is recorded through"
    )]
    NoInstance { function: String },
    #[error("entry {entry} of the function table is wasm function {index}, which is not in the program")]
    TableEntry { entry: usize, index: u32 },
    #[error(
        "function {position} is named {name}\n  hint: a function's name is UserFuncName::user(WASM or RUNTIME, index), each once"
    )]
    FunctionName { position: usize, name: String },
    #[error("`{symbol}` is not a PTX identifier\n  hint: a letter, then letters, digits, `_` or `$`")]
    Symbol { symbol: String },
    #[error("printing PTX did not finish in time; it was at `{0}`")]
    Late(String),
}

impl Error {
    /// Returns the error for an instruction without PTX.
    pub(crate) fn unsupported(function: &Function, inst: ir::Inst) -> Error {
        let dfg = &function.clif.dfg;
        Error::Unsupported {
            function: function.symbol.clone(),
            opcode: dfg.insts[inst].opcode(),
            ty: dfg.ctrl_typevar(inst),
            instruction: dfg.display_inst(inst).to_string(),
        }
    }
}
