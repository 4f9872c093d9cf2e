//! The tests that divisions need, of integers and of f64.

use super::values;
use cranelift_codegen::ir::{Function, InstructionData, Opcode, Value};
use smallvec::SmallVec;

/// The lowest exponent field of an operand of a branchless division or square root. Operands lie between 2^-500 and
/// 2^500, so that neither the quotient nor any intermediate result comes near the limits of an f64.
pub(crate) const MIN_EXPONENT: u32 = 1023 - 500;
/// How many exponent fields are allowed, from [`MIN_EXPONENT`] on.
pub(crate) const EXPONENTS: u32 = 1000;
/// The lowest bit of the exponent in an f64's high word.
pub(crate) const EXPONENT_BIT: u32 = 20;

/// Whether the bits of an f64 are those of a number within these limits.
pub(crate) fn is_inside(bits: u64) -> bool {
    (MIN_EXPONENT..MIN_EXPONENT + EXPONENTS).contains(&((bits >> (32 + EXPONENT_BIT)) as u32 & 0x7ff))
}

/// Values that a `trapz` has tested in the part of a block seen so far. Schedules keep traps and divisions in CLIF's
/// order, so these values are nonzero in a scheduled block, too.
#[derive(Debug, Default)]
pub(crate) struct Nonzero(SmallVec<[Value; 8]>);

impl Nonzero {
    /// Adds a value that a `trapz` tests.
    pub(crate) fn add(&mut self, func: &Function, value: Value) {
        self.0.push(values::condition(func, value));
    }

    /// Whether the value is surely not 0: a `trapz` of this block has tested it, or it is a `select` between values
    /// that are tested or nonzero constants.
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

    /// Returns whether a division has to test for a divisor of 0, and whether for an overflow of its quotient.
    ///
    /// CLIF's division traps; PTX's returns some number. A front end that wants its own order of checks puts a `trapz`
    /// of the divisor before the division, in the same block. It is then assumed to have checked for overflow, too.
    pub(crate) fn tests(&self, func: &Function, opcode: Opcode, divisor: Value) -> (bool, bool) {
        let constant = values::constant(func, divisor);
        if constant.is_none() && self.contains(func, divisor) {
            return (false, false);
        }
        (constant.is_none_or(|d| d == 0), opcode == Opcode::Sdiv && constant.is_none_or(|d| d == -1))
    }
}
