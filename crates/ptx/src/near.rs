//! Words of an instance in shared memory: what functions ask for on entry, and after every call.
//!
//! A GPU's loads from memory come back in order, so that also one whose line is in the cache waits for those of all warps that are not. Shared memory is another way.
//! Which words are there is [`gpu_run_abi::layout::hot`]'s to say; an access to one has the instance for its base and a region of its own ([`region::NEAR`]).

use crate::body::Body;
use crate::function::Emitter;
use crate::regs::{Class, Operand, Reg};
use cranelift_codegen::ir::MemFlags;
use gpu_run_abi::intrinsic::region;
use gpu_run_abi::layout::hot::NEAR_STRIDE;

const NEAR: &str = "near";

pub(crate) fn declare(out: &mut String, words: u64) {
    out.push_str(".shared .align 128 .b8 ");
    out.push_str(NEAR);
    out.push('[');
    crate::writer::push_unsigned(out, words * NEAR_STRIDE);
    out.push_str("];\n");
}

/// Where word `n` is, from the thread's first.
pub(crate) fn offset(word: u64) -> i64 {
    (word * NEAR_STRIDE) as i64
}

/// The address of an instance's first near word: interleaved ones are a lane's, and 4 bytes apart.
pub(crate) fn base(body: &mut Body, instance: Reg) -> Reg {
    let low = body.op_to_temp(Class::B32, "cvt", ".u32.u64", &[instance.into()]);
    let lane = body.op_to_temp(Class::B32, "and", ".b32", &[low.into(), (NEAR_STRIDE as i64 - 1).into()]);
    let lane = body.op_to_temp(Class::B64, "cvt", ".u64.u32", &[lane.into()]);
    let first = body.op_to_temp(Class::B64, "mov", ".u64", &[Operand::Name(NEAR)]);
    body.op_to_temp(Class::B64, "add", ".u64", &[first.into(), lane.into()])
}

impl Emitter<'_> {
    /// Whether an access is to a near word.
    pub(crate) fn is_near_word(&self, flags: MemFlags) -> bool {
        let region = self.func.dfg.mem_flags[flags].alias_region();
        region.is_some_and(|region| self.func.dfg.alias_regions[region].user_id & region::NEAR != 0)
    }

    /// The address of the first near word of the instance that an access has for its base.
    pub(crate) fn near_base(&mut self, instance: Reg) -> Reg {
        match self.near {
            Some(near) => near,
            None => base(&mut self.body, instance),
        }
    }
}
