//! Integer operators whose results have lanes of the same size as their operands.

use super::packed::{self, Lane};
use super::{Translator, lanes};
use crate::code::Code;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use wasmparser::Operator as Op;

pub(super) fn translate(t: &mut Translator<'_, '_>, op: &Op<'_>) -> bool {
    use IntCC::*;
    use Lane::{Byte, Half};
    match *op {
        Op::I8x16Add => t.packed2(Byte, packed::add),
        Op::I16x8Add => t.packed2(Half, packed::add),
        Op::I32x4Add => t.each_word2(|c, a, b| c.ins().iadd(a, b)),
        Op::I64x2Add => t.each_long2(|c, a, b| c.ins().iadd(a, b)),
        Op::I8x16Sub => t.packed2(Byte, packed::subtract),
        Op::I16x8Sub => t.packed2(Half, packed::subtract),
        Op::I32x4Sub => t.each_word2(|c, a, b| c.ins().isub(a, b)),
        Op::I64x2Sub => t.each_long2(|c, a, b| c.ins().isub(a, b)),
        Op::I16x8Mul => t.each_word2(packed::multiply_halves),
        Op::I32x4Mul => t.each_word2(|c, a, b| c.ins().imul(a, b)),
        Op::I64x2Mul => t.each_long2(|c, a, b| c.ins().imul(a, b)),
        Op::I8x16Neg => t.each_word(|c, a| packed::negate(c, Byte, a)),
        Op::I16x8Neg => t.each_word(|c, a| packed::negate(c, Half, a)),
        Op::I32x4Neg => t.each_word(|c, a| c.ins().ineg(a)),
        Op::I64x2Neg => t.each_long(|c, a| c.ins().ineg(a)),
        Op::I8x16Abs => t.each_word(|c, a| packed::absolute(c, Byte, a)),
        Op::I16x8Abs => t.each_word(|c, a| packed::absolute(c, Half, a)),
        Op::I32x4Abs => t.each_word(|c, a| c.ins().iabs(a)),
        Op::I64x2Abs => t.each_long(|c, a| c.ins().iabs(a)),
        Op::I8x16Popcnt => t.each_word(packed::population),

        Op::I8x16AddSatS => t.packed2(Byte, packed::add_saturating_s),
        Op::I8x16AddSatU => t.packed2(Byte, packed::add_saturating_u),
        Op::I8x16SubSatS => t.packed2(Byte, packed::subtract_saturating_s),
        Op::I8x16SubSatU => t.packed2(Byte, packed::subtract_saturating_u),
        Op::I16x8AddSatS => t.packed2(Half, packed::add_saturating_s),
        Op::I16x8AddSatU => t.packed2(Half, packed::add_saturating_u),
        Op::I16x8SubSatS => t.packed2(Half, packed::subtract_saturating_s),
        Op::I16x8SubSatU => t.packed2(Half, packed::subtract_saturating_u),
        Op::I8x16AvgrU => t.packed2(Byte, packed::average),
        Op::I16x8AvgrU => t.packed2(Half, packed::average),
        // The relaxed form leaves overflow open: here it saturates, as in the strict form.
        Op::I16x8Q15MulrSatS | Op::I16x8RelaxedQ15mulrS => t.each_word2(q15_multiply),

        Op::I8x16MinS => t.packed2(Byte, packed::min_s),
        Op::I8x16MinU => t.packed2(Byte, packed::min_u),
        Op::I8x16MaxS => t.packed2(Byte, packed::max_s),
        Op::I8x16MaxU => t.packed2(Byte, packed::max_u),
        Op::I16x8MinS => t.packed2(Half, packed::min_s),
        Op::I16x8MinU => t.packed2(Half, packed::min_u),
        Op::I16x8MaxS => t.packed2(Half, packed::max_s),
        Op::I16x8MaxU => t.packed2(Half, packed::max_u),
        Op::I32x4MinS => t.each_word2(|c, a, b| c.ins().smin(a, b)),
        Op::I32x4MinU => t.each_word2(|c, a, b| c.ins().umin(a, b)),
        Op::I32x4MaxS => t.each_word2(|c, a, b| c.ins().smax(a, b)),
        Op::I32x4MaxU => t.each_word2(|c, a, b| c.ins().umax(a, b)),

        Op::I8x16Shl => t.packed_shift(Byte, packed::shift_left),
        Op::I8x16ShrS => t.packed_shift(Byte, packed::shift_right_s),
        Op::I8x16ShrU => t.packed_shift(Byte, packed::shift_right_u),
        Op::I16x8Shl => t.packed_shift(Half, packed::shift_left),
        Op::I16x8ShrS => t.packed_shift(Half, packed::shift_right_s),
        Op::I16x8ShrU => t.packed_shift(Half, packed::shift_right_u),
        Op::I32x4Shl => t.shift_words(|c, a, by| c.ins().ishl(a, by)),
        Op::I32x4ShrS => t.shift_words(|c, a, by| c.ins().sshr(a, by)),
        Op::I32x4ShrU => t.shift_words(|c, a, by| c.ins().ushr(a, by)),
        Op::I64x2Shl => t.shift_longs(|c, a, by| c.ins().ishl(a, by)),
        Op::I64x2ShrS => t.shift_longs(|c, a, by| c.ins().sshr(a, by)),
        Op::I64x2ShrU => t.shift_longs(|c, a, by| c.ins().ushr(a, by)),

        Op::I8x16Eq => t.compare_packed(Byte, Equal),
        Op::I8x16Ne => t.compare_packed(Byte, NotEqual),
        Op::I8x16LtS => t.compare_packed(Byte, SignedLessThan),
        Op::I8x16LtU => t.compare_packed(Byte, UnsignedLessThan),
        Op::I8x16GtS => t.compare_packed(Byte, SignedGreaterThan),
        Op::I8x16GtU => t.compare_packed(Byte, UnsignedGreaterThan),
        Op::I8x16LeS => t.compare_packed(Byte, SignedLessThanOrEqual),
        Op::I8x16LeU => t.compare_packed(Byte, UnsignedLessThanOrEqual),
        Op::I8x16GeS => t.compare_packed(Byte, SignedGreaterThanOrEqual),
        Op::I8x16GeU => t.compare_packed(Byte, UnsignedGreaterThanOrEqual),
        Op::I16x8Eq => t.compare_packed(Half, Equal),
        Op::I16x8Ne => t.compare_packed(Half, NotEqual),
        Op::I16x8LtS => t.compare_packed(Half, SignedLessThan),
        Op::I16x8LtU => t.compare_packed(Half, UnsignedLessThan),
        Op::I16x8GtS => t.compare_packed(Half, SignedGreaterThan),
        Op::I16x8GtU => t.compare_packed(Half, UnsignedGreaterThan),
        Op::I16x8LeS => t.compare_packed(Half, SignedLessThanOrEqual),
        Op::I16x8LeU => t.compare_packed(Half, UnsignedLessThanOrEqual),
        Op::I16x8GeS => t.compare_packed(Half, SignedGreaterThanOrEqual),
        Op::I16x8GeU => t.compare_packed(Half, UnsignedGreaterThanOrEqual),
        Op::I32x4Eq => t.compare_words(Equal),
        Op::I32x4Ne => t.compare_words(NotEqual),
        Op::I32x4LtS => t.compare_words(SignedLessThan),
        Op::I32x4LtU => t.compare_words(UnsignedLessThan),
        Op::I32x4GtS => t.compare_words(SignedGreaterThan),
        Op::I32x4GtU => t.compare_words(UnsignedGreaterThan),
        Op::I32x4LeS => t.compare_words(SignedLessThanOrEqual),
        Op::I32x4LeU => t.compare_words(UnsignedLessThanOrEqual),
        Op::I32x4GeS => t.compare_words(SignedGreaterThanOrEqual),
        Op::I32x4GeU => t.compare_words(UnsignedGreaterThanOrEqual),
        Op::I64x2Eq => t.compare_longs(Equal),
        Op::I64x2Ne => t.compare_longs(NotEqual),
        Op::I64x2LtS => t.compare_longs(SignedLessThan),
        Op::I64x2GtS => t.compare_longs(SignedGreaterThan),
        Op::I64x2LeS => t.compare_longs(SignedLessThanOrEqual),
        Op::I64x2GeS => t.compare_longs(SignedGreaterThanOrEqual),

        Op::I8x16AllTrue => t.all_true_packed(Byte),
        Op::I16x8AllTrue => t.all_true_packed(Half),
        Op::I32x4AllTrue => {
            let flags = t.pop_words().map(|a| t.code.ins().icmp_imm_s(NotEqual, a, 0));
            t.push_all(&flags);
        }
        Op::I64x2AllTrue => {
            let flags = t.pop_longs().map(|a| t.code.ins().icmp_imm_s(NotEqual, a, 0));
            t.push_all(&flags);
        }
        Op::I8x16Bitmask => t.bitmask(4, |c, a| packed::gather_signs(c, Byte, a)),
        Op::I16x8Bitmask => t.bitmask(2, |c, a| packed::gather_signs(c, Half, a)),
        Op::I32x4Bitmask => t.bitmask(1, |c, a| c.ins().ushr_imm_u(a, 31)),
        Op::I64x2Bitmask => {
            let [_, low, _, high] = t.pop_words();
            let low = t.code.ins().ushr_imm_u(low, 31);
            let high = t.code.ins().ushr_imm_u(high, 30);
            let high = t.code.ins().band_imm_u(high, 2);
            let mask = t.code.ins().bor(low, high);
            t.push(mask);
        }
        _ => return false,
    }
    true
}

/// Multiplies two 16-bit lanes in fixed point, with rounding and saturation: only -1 times -1 does not fit.
fn q15_multiply(c: &mut Code<'_>, a: Value, b: Value) -> Value {
    let mut product = |at: i64| {
        let (a, b) = (lanes::narrow_lane(c, a, at, 16, true), lanes::narrow_lane(c, b, at, 16, true));
        let product = c.ins().imul(a, b);
        let product = c.ins().iadd_imm_s(product, 0x4000);
        let product = c.ins().sshr_imm_u(product, 15);
        let most = c.i32(0x7fff);
        c.ins().smin(product, most)
    };
    let (low, high) = (product(0), product(16));
    pair(c, low, high)
}

/// Returns a word of two 16-bit lanes.
pub(super) fn pair(c: &mut Code<'_>, low: Value, high: Value) -> Value {
    let low = c.ins().band_imm_u(low, 0xffff);
    let high = c.ins().ishl_imm_u(high, 16);
    c.ins().bor(low, high)
}

impl Translator<'_, '_> {
    fn packed2(&mut self, lane: Lane, make: packed::Binary) {
        self.each_word2(|c, a, b| make(c, lane, a, b));
    }

    /// Shifts all lanes. The amount is taken modulo the lane's width.
    fn packed_shift(&mut self, lane: Lane, make: packed::Binary) {
        let by = self.pop();
        let by = self.code.ins().band_imm_u(by, i64::from(lane.bits()) - 1);
        self.each_word(|c, a| make(c, lane, a, by));
    }
    fn shift_words(&mut self, make: impl Fn(&mut Code<'_>, Value, Value) -> Value) {
        let by = self.pop();
        self.each_word(|c, a| make(c, a, by));
    }
    fn shift_longs(&mut self, make: impl Fn(&mut Code<'_>, Value, Value) -> Value) {
        let by = self.pop();
        self.each_long(|c, a| make(c, a, by));
    }

    fn compare_packed(&mut self, lane: Lane, condition: IntCC) {
        self.each_word2(|c, a, b| packed::compare(c, lane, condition, a, b));
    }
    fn compare_words(&mut self, condition: IntCC) {
        self.each_word2(|c, a, b| {
            let flag = c.ins().icmp(condition, a, b);
            c.ins().bmask(types::I32, flag)
        });
    }
    fn compare_longs(&mut self, condition: IntCC) {
        let (b, a) = (self.pop_longs(), self.pop_longs());
        let [low, high] = [0, 1].map(|i| {
            let flag = self.code.ins().icmp(condition, a[i], b[i]);
            self.code.ins().bmask(types::I32, flag)
        });
        self.push_words([low, low, high, high]);
    }

    fn all_true_packed(&mut self, lane: Lane) {
        let [a, b, c, d] = self.pop_words().map(|a| packed::nonzero(&mut self.code, lane, a));
        let (low, high) = (self.code.ins().band(a, b), self.code.ins().band(c, d));
        let all = self.code.ins().band(low, high);
        let signs = packed::signs(lane);
        let all = self.code.ins().band_imm_u(all, signs);
        let all = self.code.ins().icmp_imm_u(IntCC::Equal, all, signs);
        self.push_flag(all);
    }

    fn push_all(&mut self, flags: &[Value]) {
        let all = flags[1..].iter().fold(flags[0], |all, flag| self.code.ins().band(all, *flag));
        self.push_flag(all);
    }

    /// Puts `bits` bits of each word side by side.
    fn bitmask(&mut self, bits: i64, make: impl Fn(&mut Code<'_>, Value) -> Value) {
        let [mut mask, b, c, d] = self.pop_words().map(|a| make(&mut self.code, a));
        for (i, part) in [(1, b), (2, c), (3, d)] {
            let part = self.code.ins().ishl_imm_u(part, i * bits);
            mask = self.code.ins().bor(mask, part);
        }
        self.push(mask);
    }
}
