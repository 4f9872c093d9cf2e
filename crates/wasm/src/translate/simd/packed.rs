//! Arithmetic on the 8- or 16-bit lanes of a word, all of them at once.
//!
//! A GPU computes with 32 bits. What must not happen is that a carry leaves its lane, so the lanes' topmost bits, the *signs*, are kept out of additions and
//! put right afterwards. Comparisons give a bit at each lane's sign, which [`spread`] makes a mask of.

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

    /// A lane that is all ones.
    fn ones(self) -> i64 {
        (1 << self.bits()) - 1
    }

    /// A word with 1 in every lane: multiplied by a lane, that lane in all.
    fn unit(self) -> i64 {
        match self {
            Lane::Byte => 0x0101_0101,
            Lane::Half => 0x0001_0001,
        }
    }

    fn signs(self) -> i64 {
        self.unit() << (self.bits() - 1)
    }

    /// All bits but the signs.
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

/// The difference of all but the signs; the sign's bit says that nothing was borrowed from it.
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

/// Masks of bits at the signs.
fn spread(c: &mut Code<'_>, lane: Lane, bits: Value) -> Value {
    let low = c.ins().ushr_imm_u(bits, i64::from(lane.bits()) - 1);
    c.ins().imul_imm_u(low, lane.ones())
}

/// A mask of the lanes whose sign is set.
fn negative(c: &mut Code<'_>, lane: Lane, a: Value) -> Value {
    let signs = and(c, a, lane.signs());
    spread(c, lane, signs)
}

/// At the signs: lanes that are not 0. Other bits mean nothing.
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

/// At the signs: lanes with `a < b`. Where the signs differ they decide, else the rest does.
fn less(c: &mut Code<'_>, lane: Lane, a: Value, b: Value, signed: bool) -> Value {
    let difference = low_difference(c, lane, a, b);
    let borrowed = c.ins().bnot(difference);
    let differ = c.ins().bxor(a, b);
    let by_rest = c.ins().band_not(borrowed, differ);
    let by_sign = if signed { c.ins().band_not(a, b) } else { c.ins().band_not(b, a) };
    let less = c.ins().bor(by_rest, by_sign);
    and(c, less, lane.signs())
}

/// A mask of the lanes for which the comparison holds.
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

/// What carried out of its lane is all ones.
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

/// An overflow is where both operands have a sign the sum has not.
pub(super) fn add_saturating_s(c: &mut Code<'_>, lane: Lane, a: Value, b: Value) -> Value {
    let sum = add(c, lane, a, b);
    let (from_a, from_b) = (c.ins().bxor(sum, a), c.ins().bxor(sum, b));
    let overflow = c.ins().band(from_a, from_b);
    saturate(c, lane, overflow, a, sum)
}

/// An overflow is where the operands' signs differ, and the difference's is not the first one's.
pub(super) fn subtract_saturating_s(c: &mut Code<'_>, lane: Lane, a: Value, b: Value) -> Value {
    let difference = subtract(c, lane, a, b);
    let (operands, result) = (c.ins().bxor(a, b), c.ins().bxor(a, difference));
    let overflow = c.ins().band(operands, result);
    saturate(c, lane, overflow, a, difference)
}

/// The farthest number of `a`'s sign, where the overflow's sign is set.
fn saturate(c: &mut Code<'_>, lane: Lane, overflow: Value, a: Value, result: Value) -> Value {
    let overflow = and(c, overflow, lane.signs());
    let sign = ones_if_negative(c, lane, a);
    let farthest = c.ins().iadd_imm_s(sign, lane.rest());
    choose(c, lane, overflow, farthest, result)
}

/// 1 in the lanes whose sign is set.
fn ones_if_negative(c: &mut Code<'_>, lane: Lane, a: Value) -> Value {
    let signs = and(c, a, lane.signs());
    c.ins().ushr_imm_u(signs, i64::from(lane.bits()) - 1)
}

/// `(a + b + 1) / 2`: what both have, and half of what one has, rounded up.
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

/// Two 16-bit products: the low one's low half, and the high one already where it belongs.
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

/// The bits of each lane that stay the lane's own when it is shifted right.
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

/// Ones of each byte, counted in pairs, fours and eights of bits.
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

/// The signs of a word's lanes, side by side from bit 0 on.
pub(super) fn gather_signs(c: &mut Code<'_>, lane: Lane, a: Value) -> Value {
    let signs = ones_if_negative(c, lane, a);
    // Each product brings one sign to its place at the top, the others elsewhere; no two meet.
    let (gather, count) = match lane {
        Lane::Byte => (0x1020_4080, 4),
        Lane::Half => (0x4000_8000, 2),
    };
    let gathered = c.ins().imul_imm_u(signs, gather);
    c.ins().ushr_imm_u(gathered, 32 - count)
}

/// The signs.
pub(super) fn signs(lane: Lane) -> i64 {
    lane.signs()
}
