//! Arithmetic on the 8- or 16-bit lanes of a word, all of them at once.
//!
//! A GPU computes with 32 bits. A carry must not leave its lane, so the lanes' topmost bits, the *signs*, are kept out
//! of additions and corrected afterwards. Comparisons give a bit at each lane's sign, which [`spread`] turns into a
//! mask.

use super::lanes::select_bits;
use crate::code::Code;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    Byte,
    Half,
}

impl Lane {
    pub(super) fn bits(self) -> u32 {
        match self {
            Lane::Byte => 8,
            Lane::Half => 16,
        }
    }

    /// Returns a lane of all ones.
    fn ones(self) -> i64 {
        (1 << self.bits()) - 1
    }

    /// Returns a word with 1 in every lane: multiplied by a lane's value, it gives that value in all lanes.
    fn unit(self) -> i64 {
        match self {
            Lane::Byte => 0x0101_0101,
            Lane::Half => 0x0001_0001,
        }
    }

    fn signs(self) -> i64 {
        self.unit() << (self.bits() - 1)
    }

    /// Returns a word with all bits set except the signs.
    fn rest(self) -> i64 {
        !self.signs() & 0xffff_ffff
    }
}

/// A packed operation of two operands.
pub(super) type Binary = fn(&mut Code<'_>, Lane, Value, Value) -> Value;

fn and(c: &mut Code<'_>, value: Value, mask: i64) -> Value {
    c.ins().band_imm_u(value, mask)
}

pub(super) fn add(c: &mut Code<'_>, lane: Lane, a: Value, b: Value) -> Value {
    let (low_a, low_b) = (and(c, a, lane.rest()), and(c, b, lane.rest()));
    let sum = c.ins().iadd(low_a, low_b);
    let differ = c.ins().bxor(a, b);
    let signs = and(c, differ, lane.signs());
    c.ins().bxor(sum, signs)
}

/// Returns the difference of all bits but the signs. A sign bit of 1 means that nothing was borrowed from it.
fn low_difference(c: &mut Code<'_>, lane: Lane, a: Value, b: Value) -> Value {
    let high_a = c.ins().bor_imm_u(a, lane.signs());
    let low_b = and(c, b, lane.rest());
    c.ins().isub(high_a, low_b)
}

pub(super) fn subtract(c: &mut Code<'_>, lane: Lane, a: Value, b: Value) -> Value {
    let difference = low_difference(c, lane, a, b);
    let same = c.ins().bxor_not(a, b);
    let signs = and(c, same, lane.signs());
    c.ins().bxor(difference, signs)
}

pub(super) fn negate(c: &mut Code<'_>, lane: Lane, a: Value) -> Value {
    let zero = c.i32(0);
    subtract(c, lane, zero, a)
}

/// Turns bits at the signs into masks of whole lanes.
fn spread(c: &mut Code<'_>, lane: Lane, bits: Value) -> Value {
    let low = c.ins().ushr_imm_u(bits, i64::from(lane.bits()) - 1);
    c.ins().imul_imm_u(low, lane.ones())
}

/// Returns a mask of the lanes whose sign is set.
fn negative(c: &mut Code<'_>, lane: Lane, a: Value) -> Value {
    let signs = and(c, a, lane.signs());
    spread(c, lane, signs)
}

/// Returns at the signs whether each lane is not 0. The other bits are meaningless.
pub(super) fn nonzero(c: &mut Code<'_>, lane: Lane, a: Value) -> Value {
    let low = and(c, a, lane.rest());
    let carried = c.ins().iadd_imm_s(low, lane.rest());
    c.ins().bor(carried, a)
}

fn differ(c: &mut Code<'_>, lane: Lane, a: Value, b: Value) -> Value {
    let difference = c.ins().bxor(a, b);
    let signs = nonzero(c, lane, difference);
    and(c, signs, lane.signs())
}

/// Returns at the signs whether `a < b`. Where the signs differ they decide, otherwise the rest does.
fn less(c: &mut Code<'_>, lane: Lane, a: Value, b: Value, signed: bool) -> Value {
    let difference = low_difference(c, lane, a, b);
    let borrowed = c.ins().bnot(difference);
    let differ = c.ins().bxor(a, b);
    let by_rest = c.ins().band_not(borrowed, differ);
    let by_sign = if signed { c.ins().band_not(a, b) } else { c.ins().band_not(b, a) };
    let less = c.ins().bor(by_rest, by_sign);
    and(c, less, lane.signs())
}

/// Returns a mask of the lanes for which the comparison holds.
pub(super) fn compare(c: &mut Code<'_>, lane: Lane, condition: IntCC, a: Value, b: Value) -> Value {
    use IntCC::*;
    let (bits, inverted) = match condition {
        Equal => (differ(c, lane, a, b), true),
        NotEqual => (differ(c, lane, a, b), false),
        SignedLessThan => (less(c, lane, a, b, true), false),
        SignedGreaterThan => (less(c, lane, b, a, true), false),
        SignedLessThanOrEqual => (less(c, lane, b, a, true), true),
        SignedGreaterThanOrEqual => (less(c, lane, a, b, true), true),
        UnsignedLessThan => (less(c, lane, a, b, false), false),
        UnsignedGreaterThan => (less(c, lane, b, a, false), false),
        UnsignedLessThanOrEqual => (less(c, lane, b, a, false), true),
        UnsignedGreaterThanOrEqual => (less(c, lane, a, b, false), true),
    };
    let mask = spread(c, lane, bits);
    if inverted { c.ins().bnot(mask) } else { mask }
}

fn choose(c: &mut Code<'_>, lane: Lane, bits: Value, yes: Value, no: Value) -> Value {
    let mask = spread(c, lane, bits);
    select_bits(c, mask, yes, no)
}

pub(super) fn min_s(c: &mut Code<'_>, lane: Lane, a: Value, b: Value) -> Value {
    let less = less(c, lane, a, b, true);
    choose(c, lane, less, a, b)
}
pub(super) fn min_u(c: &mut Code<'_>, lane: Lane, a: Value, b: Value) -> Value {
    let less = less(c, lane, a, b, false);
    choose(c, lane, less, a, b)
}
pub(super) fn max_s(c: &mut Code<'_>, lane: Lane, a: Value, b: Value) -> Value {
    let less = less(c, lane, a, b, true);
    choose(c, lane, less, b, a)
}
pub(super) fn max_u(c: &mut Code<'_>, lane: Lane, a: Value, b: Value) -> Value {
    let less = less(c, lane, a, b, false);
    choose(c, lane, less, b, a)
}

/// Adds with saturation: a lane that carries becomes all ones.
pub(super) fn add_saturating_u(c: &mut Code<'_>, lane: Lane, a: Value, b: Value) -> Value {
    let sum = add(c, lane, a, b);
    let (both, either) = (c.ins().band(a, b), c.ins().bor(a, b));
    let lost = c.ins().band_not(either, sum);
    let carry = c.ins().bor(both, lost);
    let carry = and(c, carry, lane.signs());
    let mask = spread(c, lane, carry);
    c.ins().bor(sum, mask)
}

pub(super) fn subtract_saturating_u(c: &mut Code<'_>, lane: Lane, a: Value, b: Value) -> Value {
    let difference = subtract(c, lane, a, b);
    let less = less(c, lane, a, b, false);
    let mask = spread(c, lane, less);
    c.ins().band_not(difference, mask)
}

/// Adds with saturation. A lane overflows where both operands have a sign that the sum does not have.
pub(super) fn add_saturating_s(c: &mut Code<'_>, lane: Lane, a: Value, b: Value) -> Value {
    let sum = add(c, lane, a, b);
    let (from_a, from_b) = (c.ins().bxor(sum, a), c.ins().bxor(sum, b));
    let overflow = c.ins().band(from_a, from_b);
    saturate(c, lane, overflow, a, sum)
}

/// Subtracts with saturation. A lane overflows where the operands' signs differ and the difference's sign is not `a`'s.
pub(super) fn subtract_saturating_s(c: &mut Code<'_>, lane: Lane, a: Value, b: Value) -> Value {
    let difference = subtract(c, lane, a, b);
    let (operands, result) = (c.ins().bxor(a, b), c.ins().bxor(a, difference));
    let overflow = c.ins().band(operands, result);
    saturate(c, lane, overflow, a, difference)
}

/// Replaces lanes by the extreme number of `a`'s sign where the sign of `overflow` is set.
fn saturate(c: &mut Code<'_>, lane: Lane, overflow: Value, a: Value, result: Value) -> Value {
    let overflow = and(c, overflow, lane.signs());
    let sign = ones_if_negative(c, lane, a);
    let farthest = c.ins().iadd_imm_s(sign, lane.rest());
    choose(c, lane, overflow, farthest, result)
}

/// Returns 1 in the lanes whose sign is set.
fn ones_if_negative(c: &mut Code<'_>, lane: Lane, a: Value) -> Value {
    let signs = and(c, a, lane.signs());
    c.ins().ushr_imm_u(signs, i64::from(lane.bits()) - 1)
}

/// Returns `(a + b + 1) / 2`: the bits of either, minus half of the bits in which they differ.
pub(super) fn average(c: &mut Code<'_>, lane: Lane, a: Value, b: Value) -> Value {
    let (either, differ) = (c.ins().bor(a, b), c.ins().bxor(a, b));
    let half = c.ins().ushr_imm_u(differ, 1);
    let half = and(c, half, lane.rest());
    c.ins().isub(either, half)
}

pub(super) fn absolute(c: &mut Code<'_>, lane: Lane, a: Value) -> Value {
    let mask = negative(c, lane, a);
    let flipped = c.ins().bxor(a, mask);
    let one = ones_if_negative(c, lane, a);
    c.ins().iadd(flipped, one)
}

/// Returns two 16-bit products: the low half of the low product, and the high product computed in place.
pub(super) fn multiply_halves(c: &mut Code<'_>, a: Value, b: Value) -> Value {
    let low = c.ins().imul(a, b);
    let low = and(c, low, 0xffff);
    let (high_a, high_b) = (c.ins().ushr_imm_u(a, 16), and(c, b, 0xffff_0000));
    let high = c.ins().imul(high_a, high_b);
    c.ins().bor(low, high)
}

pub(super) fn shift_left(c: &mut Code<'_>, lane: Lane, a: Value, by: Value) -> Value {
    let shifted = c.ins().ishl(a, by);
    let one = c.i32(1);
    let lost = c.ins().ishl(one, by);
    let lost = c.ins().iadd_imm_s(lost, -1);
    let lost = c.ins().imul_imm_u(lost, lane.unit());
    c.ins().band_not(shifted, lost)
}

/// Returns a mask of the bits that still belong to their lane after a shift to the right.
fn kept(c: &mut Code<'_>, lane: Lane, by: Value) -> Value {
    let ones = c.i32(lane.ones());
    let kept = c.ins().ushr(ones, by);
    c.ins().imul_imm_u(kept, lane.unit())
}

pub(super) fn shift_right_u(c: &mut Code<'_>, lane: Lane, a: Value, by: Value) -> Value {
    let shifted = c.ins().ushr(a, by);
    let kept = kept(c, lane, by);
    c.ins().band(shifted, kept)
}

pub(super) fn shift_right_s(c: &mut Code<'_>, lane: Lane, a: Value, by: Value) -> Value {
    let shifted = c.ins().ushr(a, by);
    let kept = kept(c, lane, by);
    let sign = negative(c, lane, a);
    select_bits(c, kept, shifted, sign)
}

/// Returns the number of ones in each byte, summed in groups of two, four and eight bits.
pub(super) fn population(c: &mut Code<'_>, a: Value) -> Value {
    let odd = c.ins().ushr_imm_u(a, 1);
    let odd = and(c, odd, 0x5555_5555);
    let pairs = c.ins().isub(a, odd);
    let (low, high) = (and(c, pairs, 0x3333_3333), c.ins().ushr_imm_u(pairs, 2));
    let high = and(c, high, 0x3333_3333);
    let fours = c.ins().iadd(low, high);
    let upper = c.ins().ushr_imm_u(fours, 4);
    let eights = c.ins().iadd(fours, upper);
    and(c, eights, 0x0f0f_0f0f)
}

/// Returns the signs of a word's lanes, side by side from bit 0 on.
pub(super) fn gather_signs(c: &mut Code<'_>, lane: Lane, a: Value) -> Value {
    let signs = ones_if_negative(c, lane, a);
    // The product brings each sign to its place at the top. The other partial products do not overlap these.
    let (gather, count) = match lane {
        Lane::Byte => (0x1020_4080, 4),
        Lane::Half => (0x4000_8000, 2),
    };
    let gathered = c.ins().imul_imm_u(signs, gather);
    c.ins().ushr_imm_u(gathered, 32 - count)
}

/// Returns a word with the lanes' signs set.
pub(super) fn signs(lane: Lane) -> i64 {
    lane.signs()
}
