//! What a division has to test, of integers and of f64.

use super::values;
use cranelift_codegen::ir::{Function, InstructionData, Opcode, Value};
use smallvec::SmallVec;

/// Operands of a division or root without a branch lie between 2^-500 and 2^500, so that no quotient and nothing on the
/// way to it is at an edge. As an exponent's field.
pub(crate) const MIN_EXPONENT: u32 = 1023 - 500;
pub(crate) const EXPONENTS: u32 = 1000;
/// Where the exponent begins in the high word.
pub(crate) const EXPONENT_BIT: u32 = 20;

/// Whether the bits of an f64 are those of a number between the edges.
pub(crate) fn is_inside(bits: u64) -> bool {
    (MIN_EXPONENT..MIN_EXPONENT + EXPONENTS).contains(&((bits >> (32 + EXPONENT_BIT)) as u32 & 0x7ff))
}

/// Values that a `trapz` has looked at, in the part of a block that was seen so far. Schedules keep traps and divisions
/// in CLIF's order, so what holds there holds in a scheduled block, too.
#[derive(Debug, Default)]
pub(crate) struct Nonzero(SmallVec<[Value; 8]>);

impl Nonzero {
    /// Adds a value that a `trapz` looks at.
    pub(crate) fn add(&mut self, func: &Function, value: Value) {
        self.0.push(values::condition(func, value));
    }

    /// Whether a `trapz` of this block, or what the value is made of, says that it is not 0.
    fn contains(&self, func: &Function, value: Value) -> bool {
        let value = values::condition(func, value);
        if self.0.contains(&value) {
            return true;
        }
        let Some(inst) = func.dfg.value_def(value).inst() else { return false };
        let arm = |v| {
            self.0.contains(&values::condition(func, v))
                || values::constant(func, v).is_some_and(|constant| constant != 0)
        };
        match func.dfg.insts[inst] {
            InstructionData::Ternary { opcode: Opcode::Select, args: [_, yes, no] } => arm(yes) && arm(no),
            _ => false,
        }
    }

    /// Whether a division has to test that its divisor is not 0, and that its quotient does not overflow.
    ///
    /// CLIF's division traps, PTX's gives some number. A front end that wants its own order of checks puts a `trapz` of
    /// the divisor before the division in the same block, and is then taken to have checked the overflow too.
    pub(crate) fn tests(&self, func: &Function, opcode: Opcode, divisor: Value) -> (bool, bool) {
        let constant = values::constant(func, divisor);
        if constant.is_none() && self.contains(func, divisor) {
            return (false, false);
        }
        (constant.is_none_or(|d| d == 0), opcode == Opcode::Sdiv && constant.is_none_or(|d| d == -1))
    }
}
