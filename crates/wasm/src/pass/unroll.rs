//! Unrolls loops of one block whose number of iterations (*rounds*) is known.
//!
//! A hash's rounds pass their state from variable to variable, which costs moves in a loop; and each round computes its
//! addresses anew. NVIDIA's assembler leaves such loops as they are. If the number of rounds is known, it is enough to
//! test for the end once in several rounds: the block becomes several copies of itself. In each copy, a round's
//! parameters are the values that the round before passed on, and the counter is a constant more than in the first
//! copy, so that addresses differ only in an instruction's offset.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    Block, BlockArg, BlockCall, ExternalName, Function, Inst, InstBuilder, InstructionData, Opcode, Value, ValueDef,
    types,
};
use gpu_run_abi::intrinsic::{Intrinsic, namespace};
use std::collections::HashMap;

/// The most instructions that a loop may become, and the most copies of a round.
const MAX_INSTRUCTIONS: usize = 512;
const MAX_COPIES: u32 = 8;
/// Copies pay where a round passes at least `MIN_ROTATED` variables on to others, or has at least `MIN_INSTRUCTIONS`.
/// Short loops that only count and load became slower.
const MIN_ROTATED: usize = 3;
const MIN_INSTRUCTIONS: usize = 24;
/// The most rounds that are counted to find a loop's end.
const MAX_ROUNDS: u32 = 1 << 16;

pub(crate) fn run(func: &mut Function) {
    let cfg = ControlFlowGraph::with_function(func);
    let loops: Vec<Counted> = func.layout.blocks().filter_map(|block| counted(func, &cfg, block)).collect();
    if loops.is_empty() {
        return;
    }
    func.dfg.resolve_all_aliases();
    for counted in loops {
        unroll(func, &counted);
    }
}

/// A loop that is one block, and its number of rounds.
struct Counted {
    block: Block,
    /// Which of the block's parameters is the counter, and the counter's value after the last round.
    counter: usize,
    end: i32,
    rounds: u32,
    copies: u32,
    /// Whether the branch's first destination is the loop itself.
    again_first: bool,
}

fn counted(func: &Function, cfg: &ControlFlowGraph, block: Block) -> Option<Counted> {
    let branch = func.layout.last_inst(block)?;
    let InstructionData::Brif { arg, blocks: ways, .. } = func.dfg.insts[branch] else { return None };
    let returns = ways.map(|way| way.block(&func.dfg.value_lists) == block);
    let again_first = match returns {
        [true, false] => true,
        [false, true] => false,
        _ => return None,
    };
    let again = if again_first { ways[0] } else { ways[1] };
    let length = func.layout.block_insts(block).count();
    if func.layout.block_insts(block).any(|inst| calls(func, inst) && !is_tick(func, inst)) {
        return None;
    }
    if rotated(func, block, &again) < MIN_ROTATED && length < MIN_INSTRUCTIONS {
        return None;
    }
    func.dfg.block_params(block).iter().enumerate().find_map(|(counter, param)| {
        let next = argument(func, &again, counter)?;
        let step = step(func, *param, next)?;
        let first = first(func, cfg, block, branch, counter)?;
        let (rounds, end) = rounds(func, arg, again_first, [*param, next], first, step)?;
        let copies = (2..=MAX_COPIES).rev().find(|n| rounds % n == 0 && length * *n as usize <= MAX_INSTRUCTIONS)?;
        Some(Counted { block, counter, end, rounds, copies, again_first })
    })
}

/// Returns how many of a loop's parameters get the value of another parameter in the next round.
fn rotated(func: &Function, block: Block, again: &BlockCall) -> usize {
    let params = func.dfg.block_params(block);
    let passes_on =
        |at: &usize| argument(func, again, *at).is_some_and(|value| value != params[*at] && params.contains(&value));
    (0..params.len()).filter(passes_on).count()
}

fn calls(func: &Function, inst: Inst) -> bool {
    func.dfg.insts[inst].opcode().is_call()
}

/// Returns whether an instruction counts towards the next check of the stop word: one for several rounds is enough.
fn is_tick(func: &Function, inst: Inst) -> bool {
    let InstructionData::Call { func_ref, .. } = func.dfg.insts[inst] else { return false };
    let ExternalName::User(name) = func.dfg.ext_funcs[func_ref].name else { return false };
    let name = &func.params.user_named_funcs()[name];
    name.namespace == namespace::INTRINSIC && name.index == Intrinsic::Tick as u32
}

fn constant(func: &Function, value: Value) -> Option<i32> {
    let ValueDef::Result(inst, _) = func.dfg.value_def(func.dfg.resolve_aliases(value)) else { return None };
    match func.dfg.insts[inst] {
        InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } => Some(imm.bits() as i32),
        _ => None,
    }
}

/// Returns the value that a branch passes to a block's parameter.
fn argument(func: &Function, way: &BlockCall, at: usize) -> Option<Value> {
    let value = way.args(&func.dfg.value_lists).nth(at)?.as_value()?;
    Some(func.dfg.resolve_aliases(value))
}

/// Returns by how much `next` is more than `param`, if it is such a sum.
fn step(func: &Function, param: Value, next: Value) -> Option<i32> {
    let ValueDef::Result(inst, _) = func.dfg.value_def(next) else { return None };
    let InstructionData::Binary { opcode: Opcode::Iadd, args: [a, b] } = func.dfg.insts[inst] else { return None };
    let counts = func.dfg.resolve_aliases(a) == param && func.dfg.value_type(param) == types::I32;
    constant(func, b).filter(|step| counts && *step != 0)
}

/// Returns the counter's initial value, if it is the same from every entry to the loop.
fn first(func: &Function, cfg: &ControlFlowGraph, block: Block, branch: Inst, at: usize) -> Option<i32> {
    let mut found = None;
    for entry in cfg.pred_iter(block).filter(|pred| pred.inst != branch) {
        let ways = func.dfg.insts[entry.inst].branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables);
        for way in ways.iter().filter(|way| way.block(&func.dfg.value_lists) == block) {
            let value = constant(func, argument(func, way, at)?)?;
            if found.replace(value).is_some_and(|before| before != value) {
                return None;
            }
        }
    }
    found
}

/// Returns how often the block runs, found by counting, and the counter after the last round.
fn rounds(
    func: &Function,
    condition: Value,
    goes_on: bool,
    [param, next]: [Value; 2],
    first: i32,
    step: i32,
) -> Option<(u32, i32)> {
    let condition = func.dfg.resolve_aliases(condition);
    let (code, tested, limit) = match func.dfg.value_def(condition) {
        _ if condition == next || condition == param => (IntCC::NotEqual, condition, 0),
        ValueDef::Result(inst, _) => match func.dfg.insts[inst] {
            InstructionData::IntCompare { cond, args: [a, b], .. } => {
                (cond, func.dfg.resolve_aliases(a), constant(func, b)?)
            }
            _ => return None,
        },
        _ => return None,
    };
    let mut value = first;
    for round in 1..=MAX_ROUNDS {
        let after = value.wrapping_add(step);
        let tested = match tested {
            tested if tested == next => after,
            tested if tested == param => value,
            _ => return None,
        };
        if holds(code, tested, limit) != goes_on {
            return Some((round, after));
        }
        value = after;
    }
    None
}

fn holds(code: IntCC, a: i32, b: i32) -> bool {
    let (ua, ub) = (a as u32, b as u32);
    match code {
        IntCC::Equal => a == b,
        IntCC::NotEqual => a != b,
        IntCC::SignedLessThan => a < b,
        IntCC::SignedGreaterThanOrEqual => a >= b,
        IntCC::SignedGreaterThan => a > b,
        IntCC::SignedLessThanOrEqual => a <= b,
        IntCC::UnsignedLessThan => ua < ub,
        IntCC::UnsignedGreaterThanOrEqual => ua >= ub,
        IntCC::UnsignedGreaterThan => ua > ub,
        IntCC::UnsignedLessThanOrEqual => ua <= ub,
    }
}

fn unroll(func: &mut Function, counted: &Counted) {
    let block = counted.block;
    let body: Vec<Inst> = func.layout.block_insts(block).collect();
    let Some((&branch, body)) = body.split_last() else { return };
    let InstructionData::Brif { blocks: ways, .. } = func.dfg.insts[branch] else { return };
    let (again, out) = if counted.again_first { (ways[0], ways[1]) } else { (ways[1], ways[0]) };
    let params: Vec<Value> = func.dfg.block_params(block).to_vec();
    let given: Vec<Value> = (0..params.len()).filter_map(|at| argument(func, &again, at)).collect();

    let mut copier = Copier { params: params.clone(), now: HashMap::new(), sums: HashMap::new() };
    body.iter().for_each(|inst| copier.note_sum(func, *inst));
    for _ in 1..counted.copies {
        let passed: Vec<Value> = given.iter().map(|value| copier.now(*value)).collect();
        copier.now.extend(params.iter().copied().zip(passed));
        for inst in body {
            copier.copy(func, *inst, branch);
        }
    }

    // Code after the loop now uses the values of the last copy.
    let others: Vec<Inst> =
        func.layout.blocks().filter(|other| *other != block).flat_map(|other| func.layout.block_insts(other)).collect();
    for inst in others {
        func.dfg.map_inst_values(inst, |value| copier.now(value));
    }
    let passed = |func: &Function, way: &BlockCall| -> Vec<BlockArg> {
        let values = way.args(&func.dfg.value_lists).filter_map(|arg| arg.as_value());
        values.map(|value| BlockArg::Value(copier.now(value))).collect()
    };
    let (round, leave) = (passed(func, &again), passed(func, &out));
    let outside = out.block(&func.dfg.value_lists);
    let mut cursor = FuncCursor::new(func).at_inst(branch);
    cursor.use_srcloc(branch);
    if counted.copies == counted.rounds {
        cursor.ins().jump(outside, &leave);
    } else {
        let next = round[counted.counter].as_value().unwrap_or(params[counted.counter]);
        let end = cursor.ins().iconst(types::I32, i64::from(counted.end as u32));
        let goes_on = cursor.ins().icmp(IntCC::NotEqual, next, end);
        cursor.ins().brif(goes_on, block, &round, outside, &leave);
    }
    func.layout.remove_inst(branch);
}

/// Copies a block's instructions, one round after the other.
struct Copier {
    params: Vec<Value>,
    /// The block's values in the copy that is being made.
    now: HashMap<Value, Value>,
    /// Values that are another value plus a constant.
    sums: HashMap<Value, (Value, i32)>,
}

impl Copier {
    fn now(&self, value: Value) -> Value {
        self.now.get(&value).copied().unwrap_or(value)
    }

    /// Returns a value as another one plus a constant; itself plus 0 if no such sum is known.
    fn sum(&self, value: Value) -> (Value, i32) {
        self.sums.get(&value).copied().unwrap_or((value, 0))
    }

    /// Returns by how much a value is more than in the first copy, if that is a constant.
    fn further(&self, value: Value) -> Option<i32> {
        let ((root, by), (first, before)) = (self.sum(self.now(value)), self.sum(value));
        (root == first).then(|| by.wrapping_sub(before))
    }

    fn note_sum(&mut self, func: &Function, inst: Inst) {
        let InstructionData::Binary { opcode: Opcode::Iadd, args: [a, b] } = func.dfg.insts[inst] else { return };
        if self.params.contains(&a)
            && func.dfg.value_type(a) == types::I32
            && let Some(by) = constant(func, b)
        {
            self.sums.insert(func.dfg.first_result(inst), (a, by));
        }
    }

    fn copy(&mut self, func: &mut Function, inst: Inst, before: Inst) {
        let results = func.dfg.inst_results(inst).to_vec();
        if is_tick(func, inst) {
            // Counted once, in the first copy.
            if let [left] = results[..] {
                self.now.insert(left, left);
            }
            return;
        }
        if let Some(by) = self.moved(func, inst)
            && let [first] = results[..]
        {
            let (root, so_far) = self.sum(first);
            let value = match by {
                0 => first,
                by => {
                    let total = so_far.wrapping_add(by);
                    let mut cursor = FuncCursor::new(func).at_inst(before);
                    cursor.use_srcloc(inst);
                    let constant = cursor.ins().iconst(types::I32, i64::from(total as u32));
                    let value = cursor.ins().iadd(root, constant);
                    self.sums.insert(value, (root, total));
                    value
                }
            };
            self.now.insert(first, value);
            return;
        }
        let copy = func.dfg.clone_inst(inst);
        func.dfg.map_inst_values(copy, |value| self.now(value));
        func.layout.insert_inst(copy, before);
        func.srclocs[copy] = func.srclocs[inst];
        let copied = func.dfg.inst_results(copy).to_vec();
        self.now.extend(results.into_iter().zip(copied));
    }

    /// Returns by how much an instruction's result is more than in the first copy, if that is a constant.
    fn moved(&self, func: &Function, inst: Inst) -> Option<i32> {
        let data = func.dfg.insts[inst];
        let opcode = data.opcode();
        let is_pure = !(opcode.can_trap() || opcode.other_side_effects() || opcode.can_load() || opcode.can_store());
        let same = |value: Value| self.now(value) == value;
        if is_pure && !opcode.is_call() && func.dfg.inst_values(inst).all(same) {
            return Some(0);
        }
        let InstructionData::Binary { opcode, args: [a, b] } = data else { return None };
        if func.dfg.ctrl_typevar(inst) != types::I32 {
            return None;
        }
        match opcode {
            Opcode::Iadd => Some(self.further(a)?.wrapping_add(self.further(b)?)),
            Opcode::Isub => Some(self.further(a)?.wrapping_sub(self.further(b)?)),
            Opcode::Imul => Some(self.further(a)?.wrapping_mul(constant(func, b)?)),
            Opcode::Ishl => {
                Some(self.further(a)?.wrapping_shl(constant(func, b).filter(|by| (0..32).contains(by))? as u32))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
#[path = "unroll_tests.rs"]
mod tests;
