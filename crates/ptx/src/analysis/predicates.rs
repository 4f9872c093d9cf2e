//! Finds the values that live in predicate registers: results of comparisons, and of logic on such results.

use super::values;
use cranelift_codegen::ir::{Function, InstructionData, Opcode, Type, Value, types};
use cranelift_entity::EntitySet;

/// Goes through the layout once. An operand that is defined later in the layout counts as a number, which gives correct
/// but longer code.
pub(crate) fn find(func: &Function) -> EntitySet<Value> {
    let mut predicates = EntitySet::new();
    for inst in func.layout.blocks().flat_map(|block| func.layout.block_insts(block)) {
        for &result in func.dfg.inst_results(inst) {
            let ty = func.dfg.value_type(result);
            if is_predicate(func, &predicates, &func.dfg.insts[inst], ty) {
                predicates.insert(result);
            }
        }
    }
    predicates
}

fn is_predicate(func: &Function, known: &EntitySet<Value>, data: &InstructionData, ty: Type) -> bool {
    let is_known = |v: Value| known.contains(func.dfg.resolve_aliases(v));
    match *data {
        InstructionData::IntCompare { .. } | InstructionData::FloatCompare { .. } => !ty.is_vector(),
        InstructionData::Binary { opcode: Opcode::Band | Opcode::Bor | Opcode::Bxor, args: [a, b] }
            if ty == types::I8 && is_known(a) && is_known(b) =>
        {
            true
        }
        InstructionData::Binary { opcode: Opcode::Bxor, args: [a, b] } if ty == types::I8 => {
            is_known(a) && values::constant(func, b) == Some(1)
        }
        _ => false,
    }
}
