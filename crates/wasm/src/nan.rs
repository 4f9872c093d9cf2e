//! Makes NaN canonical wherever a program can see its bits.
//!
//! Arithmetic gives different NaNs on different hardware (an NVIDIA GPU's f32 operations give 0x7fffffff); wasm allows only
//! some of them, and a program must give the same bytes everywhere. So the results of arithmetic are canonicalised, but only where it matters: a value that is
//! only added, compared or converted again needs nothing. Visibility is found backwards: what is stored, reinterpreted, passed or returned is
//! visible, and so is what flows unchanged (through a block parameter, `select`, `fneg`, …) into something visible.
//!
//! Vectors carry floats in words, from one operator to the next and around loops: in a function that has them, being joined and taken apart is flowing unchanged, too.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
use cranelift_codegen::ir::{Block, BlockArg, Function, Inst, InstBuilder, Opcode, Value, ValueDef, types};
use std::collections::HashMap;

pub(crate) fn run(func: &mut Function) {
    let arithmetic: Vec<Inst> = instructions(func).filter(|i| is_arithmetic(func.dfg.insts[*i].opcode())).collect();
    if arithmetic.is_empty() {
        return;
    }
    let visible = visible_values(func);
    for inst in arithmetic {
        let value = func.dfg.first_result(inst);
        if visible.contains(value) {
            canonicalize(func, inst, value);
        }
    }
}

/// Operations whose NaN results are the hardware's own.
fn is_arithmetic(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(
        opcode,
        Fadd | Fsub | Fmul | Fdiv | Fma | Fmin | Fmax | Sqrt | Ceil | Floor | Trunc | Nearest | Fpromote | Fdemote
    )
}

/// Operations that pass bits on, so that an operand is as visible as the result.
fn is_transparent(opcode: Opcode, has_vectors: bool) -> bool {
    use Opcode::*;
    matches!(opcode, Fneg | Fabs | Fcopysign | Select)
        || has_vectors && matches!(opcode, Bitcast | Iconcat | Isplit | ScalarToVector | Insertlane | Extractlane)
}

/// Operations that read floats as numbers only.
fn is_blind(opcode: Opcode) -> bool {
    use Opcode::*;
    is_arithmetic(opcode) || matches!(opcode, Fcmp | FcvtToSint | FcvtToUint | FcvtToSintSat | FcvtToUintSat)
}

fn instructions(func: &Function) -> impl Iterator<Item = Inst> + '_ {
    func.layout.blocks().flat_map(|block| func.layout.block_insts(block))
}

/// Values that may carry a float's bits.
fn carries(func: &Function, value: Value, has_vectors: bool) -> bool {
    let ty = func.dfg.value_type(value);
    ty.is_float() || has_vectors && (ty.is_vector() || ty == types::I32 || ty == types::I64)
}

fn visible_values(func: &Function) -> EntitySet<Value> {
    let has_vectors = func.dfg.values().any(|value| func.dfg.value_type(value).is_vector());
    let mut visible = EntitySet::new();
    let mut work = Vec::new();
    let mut see = |value: Value, work: &mut Vec<Value>| {
        let value = func.dfg.resolve_aliases(value);
        if carries(func, value, has_vectors) && visible.insert(value) {
            work.push(value);
        }
    };
    for inst in instructions(func) {
        let opcode = func.dfg.insts[inst].opcode();
        let args = func.dfg.inst_args(inst);
        if opcode == Opcode::Fcopysign {
            // The sign goes on as part of a number, whatever becomes of that.
            see(args[1], &mut work);
        } else if !is_blind(opcode) && !is_transparent(opcode, has_vectors) {
            args.iter().for_each(|v| see(*v, &mut work));
        }
    }
    // What a visible value is made of, if it is passed on unchanged.
    let incoming = incoming_values(func, has_vectors);
    while let Some(value) = work.pop() {
        match func.dfg.value_def(value) {
            ValueDef::Result(inst, _) if is_transparent(func.dfg.insts[inst].opcode(), has_vectors) => {
                func.dfg.inst_args(inst).iter().for_each(|v| see(*v, &mut work));
            }
            ValueDef::Param(block, index) => {
                for args in incoming.get(&block).into_iter().flatten() {
                    if let Some(arg) = args.get(index) {
                        see(*arg, &mut work);
                    }
                }
            }
            _ => {}
        }
    }
    visible
}

/// For each block, the values each edge to it carries.
fn incoming_values(func: &Function, has_vectors: bool) -> HashMap<Block, Vec<Vec<Value>>> {
    let mut edges: HashMap<_, Vec<_>> = HashMap::new();
    for inst in instructions(func) {
        for call in func.dfg.insts[inst].branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables) {
            let args: Vec<_> = call.args(&func.dfg.value_lists).filter_map(|arg: BlockArg| arg.as_value()).collect();
            if args.iter().any(|v| carries(func, *v, has_vectors)) {
                edges.entry(call.block(&func.dfg.value_lists)).or_default().push(args);
            }
        }
    }
    edges
}

/// Replaces the result by itself, or by the canonical NaN if it is one.
fn canonicalize(func: &mut Function, inst: Inst, value: Value) {
    let ty = func.dfg.value_type(value);
    let raw = func.dfg.replace_result(value, ty);
    let location = func.srcloc(inst);
    let mut cursor = FuncCursor::new(func).after_inst(inst);
    cursor.set_srcloc(location);
    let nan = if ty == types::F32 { cursor.ins().f32const(Ieee32::NAN) } else { cursor.ins().f64const(Ieee64::NAN) };
    let is_nan = cursor.ins().fcmp(FloatCC::Unordered, raw, raw);
    cursor.ins().with_result(value).select(is_nan, nan, raw);
}
