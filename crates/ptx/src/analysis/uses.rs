//! Counts the uses of each value as the printer sees them.
//!
//! The printer folds a sum into the address that uses it, and replaces an extended condition by the comparison it
//! extends. The value in between then has one use less. A value without uses is not printed.

use super::access::Accesses;
use super::values;
use cranelift_codegen::ir::{Function, Inst, InstructionData, Opcode, Value};
use cranelift_entity::SecondaryMap;

#[derive(Debug)]
pub(crate) struct Uses(SecondaryMap<Value, u32>);

impl Uses {
    pub(crate) fn count(func: &Function, accesses: &Accesses) -> Uses {
        let mut uses = SecondaryMap::with_capacity(func.dfg.num_values());
        for inst in func.layout.blocks().flat_map(|block| func.layout.block_insts(block)) {
            for value in func.dfg.inst_values(inst) {
                uses[func.dfg.resolve_aliases(value)] += 1;
            }
            if let Some((folded, instead)) = folded(func, accesses, inst) {
                uses[func.dfg.resolve_aliases(folded)] -= 1;
                if let Some(instead) = instead {
                    uses[instead] += 1;
                }
            }
        }
        Uses(uses)
    }

    /// Whether the instruction has no effect and no result that is used.
    pub(crate) fn is_dead(&self, func: &Function, inst: Inst) -> bool {
        let opcode = func.dfg.insts[inst].opcode();
        let has_effect = opcode.is_terminator()
            || opcode.is_call()
            || opcode.can_load()
            || opcode.can_store()
            || opcode.can_trap()
            || opcode.other_side_effects();
        !has_effect && func.dfg.inst_results(inst).iter().all(|&r| self.0[r] == 0)
    }
}

/// Returns the operand that an instruction does not read itself, and the value that it reads instead, if any.
fn folded(func: &Function, accesses: &Accesses, inst: Inst) -> Option<(Value, Option<Value>)> {
    let address = |at, offset: i64| (at, Some(values::address(func, at, offset).0));
    let data = &func.dfg.insts[inst];
    if let Some(access) = accesses.get(inst) {
        return match *data {
            InstructionData::Load { arg: at, .. } | InstructionData::Store { args: [_, at], .. } => {
                Some((at, access.root_value()))
            }
            _ => None,
        };
    }
    Some(match *data {
        InstructionData::Load { arg: at, offset, .. } | InstructionData::Store { args: [_, at], offset, .. } => {
            address(at, offset.into())
        }
        InstructionData::AtomicRmw { args: [at, _], .. }
        | InstructionData::AtomicCas { args: [at, _, _], .. }
        | InstructionData::StoreNoOffset { args: [_, at], .. }
        | InstructionData::LoadNoOffset { opcode: Opcode::AtomicLoad, arg: at, .. } => address(at, 0),
        InstructionData::Brif { arg, .. }
        | InstructionData::CondTrap { arg, .. }
        | InstructionData::Ternary { opcode: Opcode::Select | Opcode::SelectSpectreGuard, args: [arg, _, _], .. } => {
            (arg, Some(values::condition(func, arg)))
        }
        _ => return None,
    })
}
