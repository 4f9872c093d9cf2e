//! Takes apart the 128-bit comparisons that Cranelift's optimiser makes.
//!
//! The optimiser turns a comparison of two numbers of two words each into one `icmp.i128` over `iconcat`s. That is good
//! for machines with add-with-carry, but not for PTX, which has no such type. Nothing else makes or uses 128-bit values
//! here.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Function, Inst, InstBuilder, InstructionData, Opcode, Value, ValueDef, types};

pub(crate) fn run(func: &mut Function) {
    let wide = |func: &Function, value| func.dfg.value_type(value) == types::I128;
    let all: Vec<Inst> = func.layout.blocks().flat_map(|block| func.layout.block_insts(block)).collect();
    let makers: Vec<Inst> =
        all.iter().copied().filter(|i| func.dfg.inst_results(*i).iter().any(|v| wide(func, *v))).collect();
    if makers.is_empty() {
        return;
    }
    for inst in all {
        if let InstructionData::IntCompare { args, cond, .. } = func.dfg.insts[inst]
            && wide(func, args[0])
        {
            compare(func, inst, cond, args);
        }
    }
    // The 128-bit values are unused now. If anything else used one, the back end would report it.
    for inst in makers {
        func.layout.remove_inst(inst);
    }
}

/// Compares word by word: the high words decide unless they are equal, so they are compared without "or equal".
fn compare(func: &mut Function, inst: Inst, condition: IntCC, [a, b]: [Value; 2]) {
    let mut cursor = FuncCursor::new(func).at_inst(inst);
    cursor.use_srcloc(inst);
    let ((a_low, a_high), (b_low, b_high)) = (halves(&mut cursor, a), halves(&mut cursor, b));
    let decided = cursor.ins().icmp(condition.without_equal(), a_high, b_high);
    let equal = cursor.ins().icmp(IntCC::Equal, a_high, b_high);
    let low = cursor.ins().icmp(condition.unsigned(), a_low, b_low);
    let low = cursor.ins().band(equal, low);
    let result = cursor.func.dfg.first_result(inst);
    cursor.func.dfg.clear_results(inst);
    match condition {
        IntCC::Equal => cursor.ins().with_result(result).bor(low, low),
        IntCC::NotEqual => {
            let differ = cursor.ins().icmp(IntCC::NotEqual, a_low, b_low);
            cursor.ins().with_result(result).bor(decided, differ)
        }
        _ => cursor.ins().with_result(result).bor(decided, low),
    };
    cursor.func.layout.remove_inst(inst);
}

/// Returns the low and high word of a 128-bit value.
fn halves(cursor: &mut FuncCursor<'_>, value: Value) -> (Value, Value) {
    let ValueDef::Result(inst, _) = cursor.func.dfg.value_def(value) else { return (value, value) };
    let args = cursor.func.dfg.inst_args(inst).to_vec();
    match cursor.func.dfg.insts[inst].opcode() {
        Opcode::Iconcat => (args[0], args[1]),
        Opcode::Uextend => {
            let low = extend(cursor, args[0], false);
            (low, cursor.ins().iconst(types::I64, 0))
        }
        Opcode::Sextend => {
            let low = extend(cursor, args[0], true);
            (low, cursor.ins().sshr_imm_u(low, 63))
        }
        _ => (value, value),
    }
}

fn extend(cursor: &mut FuncCursor<'_>, value: Value, signed: bool) -> Value {
    match cursor.func.dfg.value_type(value) == types::I64 {
        true => value,
        false if signed => cursor.ins().sextend(types::I64, value),
        false => cursor.ins().uextend(types::I64, value),
    }
}
