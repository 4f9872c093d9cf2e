//! Finds the lowest and the highest integer that a value can be, from the instructions that compute it.
//!
//! A loop that counts from one constant to another has a counter that is known almost as well as a constant. A table
//! that the counter indexes then needs no bounds check, an array on the stack needs only the check of the stack
//! pointer, and the loop surely ends by itself.

use super::flow::Flow;
use super::values;
use cranelift_codegen::ir::condcodes::{CondCode as _, IntCC};
use cranelift_codegen::ir::{Block, BlockCall, Function, Inst, InstructionData, Opcode, Value, ValueDef, types};
use cranelift_codegen::loop_analysis::Loop;
use std::collections::HashSet;

/// A 32-bit value is the low 32 bits of an integer between `low` and `high`. The integer is negative where something
/// was subtracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) low: i64,
    pub(crate) high: i64,
    /// How many low bits are surely 0.
    pub(crate) zeros: u32,
}

/// Ranges that reach this magnitude are of no use, and their sums could overflow.
const MAX_MAGNITUDE: i64 = 1 << 32;
/// The most iterations of a loop that never reads the stop word.
const MAX_ROUNDS_OF_SHORT_LOOP: i64 = 256;
/// How many instructions back the search for a range looks.
const MAX_DEPTH: u32 = 6;

impl Range {
    fn one(value: i64) -> Self {
        Self { low: value, high: value, zeros: value.trailing_zeros() }
    }

    fn up_to(high: i64) -> Self {
        Self { low: 0, high, zeros: 0 }
    }

    fn bounded(self) -> Option<Self> {
        (self.low > -MAX_MAGNITUDE && self.high < MAX_MAGNITUDE).then_some(self)
    }

    fn add(self, other: Self) -> Option<Self> {
        let zeros = self.zeros.min(other.zeros);
        Self { low: self.low + other.low, high: self.high + other.high, zeros }.bounded()
    }

    fn times(self, factor: i64) -> Option<Self> {
        let product = |n: i64| n.checked_mul(factor);
        let zeros = self.zeros + factor.trailing_zeros();
        (factor > 0).then(|| Some(Self { low: product(self.low)?, high: product(self.high)?, zeros }))??.bounded()
    }

    fn union(self, other: Self) -> Self {
        let zeros = self.zeros.min(other.zeros);
        Self { low: self.low.min(other.low), high: self.high.max(other.high), zeros }
    }
}

/// Finds the ranges of a function's values.
#[derive(Clone, Copy)]
pub(crate) struct Ranges<'a> {
    pub(crate) func: &'a Function,
    pub(crate) flow: &'a Flow,
}

impl Ranges<'_> {
    /// Returns the range of a value, if it is known.
    pub(crate) fn of(self, value: Value) -> Option<Range> {
        self.range_within(value, MAX_DEPTH)
    }

    fn range_within(self, value: Value, depth: u32) -> Option<Range> {
        let dfg = &self.func.dfg;
        let value = dfg.resolve_aliases(value);
        if let Some(constant) = values::constant(self.func, value) {
            return Range::one(constant).bounded();
        }
        let depth = depth.checked_sub(1)?;
        let of = |v: Value| self.range_within(v, depth);
        let inst = match dfg.value_def(value) {
            ValueDef::Result(inst, _) => inst,
            ValueDef::Param(block, at) => return self.counter(block, at).map(|counter| counter.range),
            ValueDef::Union(..) => return None,
        };
        match dfg.insts[inst] {
            InstructionData::Binary { opcode, args: [a, b] } => {
                let by = values::constant(self.func, b);
                match opcode {
                    Opcode::Iadd => of(a)?.add(of(b)?),
                    Opcode::Isub => of(a)?.add(Range::one(-by?)),
                    Opcode::Imul => of(a)?.times(by?),
                    Opcode::Ishl => of(a)?.times(1 << by.filter(|by| (0..32).contains(by))?),
                    Opcode::Band => {
                        by.filter(|by| *by >= 0).map(|by| Range { zeros: by.trailing_zeros(), ..Range::up_to(by) })
                    }
                    Opcode::Urem => by.filter(|by| *by > 0).map(|by| Range::up_to(by - 1)),
                    Opcode::Ushr => {
                        let (by, bits) = (by?, i64::from(dfg.value_type(value).bits()));
                        (bits == 32 && (1..32).contains(&by)).then(|| Range::up_to((1 << (32 - by)) - 1))
                    }
                    _ => None,
                }
            }
            InstructionData::Load { opcode: Opcode::Uload8, .. } => Some(Range::up_to(0xff)),
            InstructionData::Load { opcode: Opcode::Uload16, .. } => Some(Range::up_to(0xffff)),
            InstructionData::Unary { opcode: Opcode::Uextend, arg } => match dfg.value_type(arg) {
                types::I8 => Some(Range::up_to(0xff)),
                types::I16 => Some(Range::up_to(0xffff)),
                _ => of(arg).filter(|range| range.low >= 0),
            },
            InstructionData::Ternary { opcode: Opcode::Select, args: [_, a, b] } => Some(of(a)?.union(of(b)?)),
            _ => None,
        }
    }

    /// Returns the counter that is parameter `at` of a loop's header, if the parameter counts up or down from a
    /// constant to a constant in constant steps.
    fn counter(self, header: Block, at: usize) -> Option<Counter> {
        let of = self.flow.loops.is_loop_header(header)?;
        let dfg = &self.func.dfg;
        let param = *dfg.block_params(header).get(at)?;
        if dfg.value_type(param) != types::I32 {
            return None;
        }
        let (mut first, mut again) = (None, None);
        for pred in self.flow.edges.pred_iter(header) {
            let arg = self.only_argument(pred.inst, header, at)?;
            let place = if self.flow.loops.is_in_loop(pred.block, of) { &mut again } else { &mut first };
            if place.replace((arg, pred.block)).is_some() {
                return None;
            }
        }
        let ((first, _), (next, latch)) = (first?, again?);
        let first = values::constant(self.func, first)?;
        let ValueDef::Result(inst, _) = dfg.value_def(next) else { return None };
        let InstructionData::Binary { opcode: Opcode::Iadd, args: [a, b] } = dfg.insts[inst] else { return None };
        let step = if dfg.resolve_aliases(a) == param { values::constant(self.func, b)? } else { return None };
        if step == 0 {
            return None;
        }
        // Goes from the latch up the dominators: every further iteration has passed the tests in these blocks.
        let mut block = Some(latch);
        while let Some(test) = block.filter(|block| self.flow.loops.is_in_loop(*block, of)) {
            if let Some(last) = self.last(of, test, [param, next], first, step) {
                let range =
                    Range { low: first.min(last), high: first.max(last), zeros: (first | step).trailing_zeros() };
                return Some(Counter { range: range.bounded()?, rounds: (last - first) / step + 1 });
            }
            block = self.flow.dominators.idom(test);
        }
        None
    }

    /// Returns the last value of a counter, if this block's branch lets no further iteration begin after that value.
    fn last(self, of: Loop, block: Block, [param, next]: [Value; 2], first: i64, step: i64) -> Option<i64> {
        let dfg = &self.func.dfg;
        let InstructionData::Brif { arg, blocks: [yes, no], .. } = dfg.insts[self.func.layout.last_inst(block)?] else {
            return None;
        };
        let stays = |edge: &BlockCall| self.flow.loops.is_in_loop(edge.block(&dfg.value_lists), of);
        let goes_on = match (stays(&yes), stays(&no)) {
            (true, false) => true,
            (false, true) => false,
            _ => return None,
        };
        let ValueDef::Result(inst, _) = dfg.value_def(values::condition(self.func, arg)) else { return None };
        let InstructionData::IntCompare { cond, args: [value, end], .. } = dfg.insts[inst] else { return None };
        let (value, end) = (dfg.resolve_aliases(value), values::constant(self.func, end)?);
        let cond = if goes_on { cond } else { cond.complement() };
        // `from` is the tested value in the first iteration; `end` becomes its value in the last.
        let from = match value {
            value if value == param => first,
            value if value == next => first + step,
            _ => return None,
        };
        let end = match cond {
            IntCC::NotEqual if (end - from) % step == 0 && (end - from) / step >= 0 => end,
            // The loop continues while the value is below `end`. The first value that is not is at most this.
            IntCC::UnsignedLessThan if step > 0 && from >= 0 && end >= 0 => from.max(end + step - 1),
            _ => return None,
        };
        Some(if value == param { end } else { end - step }).filter(|last| (last - first) / step >= 0)
    }

    /// Returns the argument that a branch passes to parameter `at` of block `to`, if only one of its edges leads there.
    fn only_argument(self, inst: Inst, to: Block, at: usize) -> Option<Value> {
        let dfg = &self.func.dfg;
        let all = dfg.insts[inst].branch_destination(&dfg.jump_tables, &dfg.exception_tables);
        let mut ways = all.iter().filter(|edge| edge.block(&dfg.value_lists) == to);
        let argument = ways.next()?.args(&dfg.value_lists).nth(at)?.as_value()?;
        ways.next().is_none().then(|| dfg.resolve_aliases(argument))
    }

    /// Returns the headers of the loops that call nothing, contain no other loop, and surely end within
    /// [`MAX_ROUNDS_OF_SHORT_LOOP`] iterations.
    pub(crate) fn short_loops(self) -> HashSet<Block> {
        let is_short = |header: &Block| {
            let Some(of) = self.flow.loops.is_loop_header(*header) else { return false };
            let ends = |at| self.counter(*header, at).is_some_and(|counter| counter.rounds <= MAX_ROUNDS_OF_SHORT_LOOP);
            !self.flow.busy[of] && (0..self.func.dfg.block_params(*header).len()).any(ends)
        };
        self.func.layout.blocks().filter(is_short).collect()
    }
}

/// A loop parameter with a known range.
struct Counter {
    range: Range,
    /// An upper limit of how often the loop's header is entered.
    rounds: i64,
}
