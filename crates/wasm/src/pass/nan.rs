//! Makes NaN canonical wherever a program can see its bits.
//!
//! Arithmetic gives different NaNs on different hardware (an NVIDIA GPU's f32 operations give 0x7fffffff); wasm allows
//! only some of them, and a program must give the same bytes everywhere. So the results of arithmetic are
//! canonicalised, but only where it matters: a value that is only added, compared or converted again needs nothing.
//! Visibility is found backwards: a value that is stored, reinterpreted, passed or returned is visible, and so is a
//! value that flows unchanged (through a block parameter, `select`, `fneg`, …) into something visible.
//!
//! Vectors carry floats in words, from one operator to the next and around loops. So in a function that has vectors,
//! joining them and taking them apart also counts as flowing unchanged. A value that was computed as one type and is
//! used as a number of another type is visible.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
use cranelift_codegen::ir::{Block, BlockArg, Function, Inst, InstBuilder, Opcode, Type, Value, ValueDef, types};
use std::collections::HashMap;

pub(crate) fn run(func: &mut Function) {
    let mut arithmetic: Vec<Inst> = instructions(func).filter(|i| is_arithmetic(func.dfg.insts[*i].opcode())).collect();
    if arithmetic.is_empty() {
        return;
    }
    let uses = uses(func);
    arithmetic.retain(|inst| uses.is_visible(func.dfg.first_result(*inst)));
    for inst in arithmetic {
        let value = func.dfg.first_result(inst);
        canonicalize(func, inst, value);
    }
}

/// Returns whether the hardware decides which NaN an operation gives.
fn is_arithmetic(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(
        opcode,
        Fadd | Fsub | Fmul | Fdiv | Fma | Fmin | Fmax | Sqrt | Ceil | Floor | Trunc | Nearest | Fpromote | Fdemote
    )
}

/// Returns whether an operation passes bits on, so that an operand is as visible as the result.
fn is_transparent(opcode: Opcode, has_vectors: bool) -> bool {
    use Opcode::*;
    matches!(opcode, Fneg | Fabs | Fcopysign | Select)
        || has_vectors && matches!(opcode, Bitcast | Iconcat | Isplit | ScalarToVector | Insertlane | Extractlane)
}

/// Returns whether an operation reads floats as numbers only.
fn is_blind(opcode: Opcode) -> bool {
    use Opcode::*;
    is_arithmetic(opcode) || matches!(opcode, Fcmp | FcvtToSint | FcvtToUint | FcvtToSintSat | FcvtToUintSat)
}

fn instructions(func: &Function) -> impl Iterator<Item = Inst> + '_ {
    func.layout.blocks().flat_map(|block| func.layout.block_insts(block))
}

/// Returns whether a value may carry a float's bits.
fn carries(func: &Function, value: Value, has_vectors: bool) -> bool {
    let ty = func.dfg.value_type(value);
    ty.is_float() || has_vectors && (ty.is_vector() || ty == types::I32 || ty == types::I64)
}

/// How a value is used: its bits are seen, or it is used as a number of this type. A use as a number of another type
/// than its own makes its bits visible, too.
const BITS: u8 = 1;
const F32: u8 = 2;
const F64: u8 = 4;

/// Returns the flag for a use as a number of this type.
fn number(ty: Type) -> u8 {
    match ty {
        types::F32 => F32,
        types::F64 => F64,
        _ => 0,
    }
}

/// How every value is used, as far as known.
struct Uses<'a> {
    func: &'a Function,
    has_vectors: bool,
    how: SecondaryMap<Value, u8>,
    /// Values about which something new is known.
    work: Vec<Value>,
}

impl Uses<'_> {
    fn see(&mut self, value: Value, how: u8) {
        let value = self.func.dfg.resolve_aliases(value);
        if carries(self.func, value, self.has_vectors) && self.how[value] | how != self.how[value] {
            self.how[value] |= how;
            self.work.push(value);
        }
    }

    fn is_visible(&self, value: Value) -> bool {
        self.how[value] & !number(self.func.dfg.value_type(value)) != 0
    }
}

fn uses(func: &Function) -> Uses<'_> {
    let has_vectors = func.dfg.values().any(|value| func.dfg.value_type(value).is_vector());
    let mut uses = Uses { func, has_vectors, how: SecondaryMap::new(), work: Vec::new() };
    for inst in instructions(func) {
        let opcode = func.dfg.insts[inst].opcode();
        let args = func.dfg.inst_args(inst);
        if opcode == Opcode::Fcopysign {
            // The sign continues as part of a number, however that number is used.
            uses.see(args[1], BITS);
        } else if is_blind(opcode) && has_vectors {
            args.iter().for_each(|v| uses.see(*v, number(func.dfg.value_type(*v))));
        } else if !is_blind(opcode) && !is_transparent(opcode, has_vectors) {
            args.iter().for_each(|v| uses.see(*v, BITS));
        }
    }
    // A value that is passed on unchanged has the uses of the value that it becomes.
    let incoming = incoming_values(func, has_vectors);
    while let Some(value) = uses.work.pop() {
        let how = uses.how[value];
        match func.dfg.value_def(value) {
            ValueDef::Result(inst, _) if is_transparent(func.dfg.insts[inst].opcode(), has_vectors) => {
                func.dfg.inst_args(inst).iter().for_each(|v| uses.see(*v, how));
            }
            ValueDef::Param(block, index) => {
                for args in incoming.get(&block).into_iter().flatten() {
                    if let Some(arg) = args.get(index) {
                        uses.see(*arg, how);
                    }
                }
            }
            _ => {}
        }
    }
    uses
}

/// Returns for each block the values that each edge to it carries.
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

/// Replaces a result by the canonical NaN if it is a NaN.
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
