//! The one store that changes the length of guest memory.

use super::values;
use crate::Program;
use cranelift_codegen::ir::{Function, Inst, InstructionData};
use gpu_run_abi::layout::field;

/// The field of the instance header with the length of guest memory.
///
/// A contract with the front end: `memory.grow` (`memory_grow` in the crate `gpu-run-wasm`) stores the new length there,
/// through the instance pointer and a constant offset. Nothing else tells this crate that the memory of the running
/// function grew; a call may have grown it as well. If memory grew by another store, speculative instances would stop at
/// accesses that are inside: right, since memory never shrinks, but slow.
pub(crate) const LENGTH: u64 = field::MEMORY_BYTES;

/// Whether an instruction stores the length of guest memory: what is kept of it in a register is old then.
pub(crate) fn is_stored_by(program: &Program, func: &Function, inst: Inst) -> bool {
    let InstructionData::Store { args: [_, at], offset, .. } = func.dfg.insts[inst] else { return false };
    let (base, offset) = values::address(func, at, offset.into());
    let instance = func.layout.entry_block().and_then(|entry| func.dfg.block_params(entry).first());
    offset == program.layout().offset(LENGTH) as i64 && instance == Some(&base)
}
