//! The one store that changes the length of guest memory.

use super::values;
use crate::Program;
use cranelift_codegen::ir::{Function, Inst, InstructionData};
use gpu_run_abi::layout::field;

/// The field of the instance header that holds the length of guest memory.
///
/// A contract with the front end: `memory.grow` (`memory_grow` in the crate `gpu-run-wasm`) stores the new length
/// there, through the instance pointer and a constant offset. Apart from calls, which may grow memory as well, nothing
/// else tells this crate that memory grew. If memory grew by another store, speculative instances would stop at
/// accesses that are inside: correct, since memory never shrinks, but slow.
pub(crate) const LENGTH: u64 = field::MEMORY_BYTES;

/// Whether an instruction stores the length of guest memory. A register that holds the length is out of date
/// afterwards.
pub(crate) fn is_stored_by(program: &Program, func: &Function, inst: Inst) -> bool {
    let InstructionData::Store { args: [_, at], offset, .. } = func.dfg.insts[inst] else { return false };
    let (base, offset) = values::address(func, at, offset.into());
    let instance = func.layout.entry_block().and_then(|entry| func.dfg.block_params(entry).first());
    offset == program.layout().offset(LENGTH) as i64 && instance == Some(&base)
}
