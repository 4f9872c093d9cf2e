//! Operators whose results have wider or narrower lanes than their operands.

use super::integer::pair;
use super::lanes::narrow_lane;
use super::packed::{self, Lane};
use super::{Translator, Words};
use crate::code::Code;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use wasmparser::Operator as Op;

pub(super) fn translate(t: &mut Translator<'_, '_>, op: &Op<'_>) -> bool {
    match *op {
        Op::I16x8ExtendLowI8x16S => t.extend_bytes(LOW, true),
        Op::I16x8ExtendLowI8x16U => t.extend_bytes(LOW, false),
        Op::I16x8ExtendHighI8x16S => t.extend_bytes(HIGH, true),
        Op::I16x8ExtendHighI8x16U => t.extend_bytes(HIGH, false),
        Op::I32x4ExtendLowI16x8S => t.extend_half(LOW, |c, w| halves(c, w, true)),
        Op::I32x4ExtendLowI16x8U => t.extend_half(LOW, |c, w| halves(c, w, false)),
        Op::I32x4ExtendHighI16x8S => t.extend_half(HIGH, |c, w| halves(c, w, true)),
        Op::I32x4ExtendHighI16x8U => t.extend_half(HIGH, |c, w| halves(c, w, false)),
        Op::I64x2ExtendLowI32x4S => t.extend_half(LOW, |c, w| word(c, w, true)),
        Op::I64x2ExtendLowI32x4U => t.extend_half(LOW, |c, w| word(c, w, false)),
        Op::I64x2ExtendHighI32x4S => t.extend_half(HIGH, |c, w| word(c, w, true)),
        Op::I64x2ExtendHighI32x4U => t.extend_half(HIGH, |c, w| word(c, w, false)),

        Op::I16x8ExtMulLowI8x16S => t.multiply_bytes(LOW, true),
        Op::I16x8ExtMulLowI8x16U => t.multiply_bytes(LOW, false),
        Op::I16x8ExtMulHighI8x16S => t.multiply_bytes(HIGH, true),
        Op::I16x8ExtMulHighI8x16U => t.multiply_bytes(HIGH, false),
        Op::I32x4ExtMulLowI16x8S => t.multiply_halves(LOW, true),
        Op::I32x4ExtMulLowI16x8U => t.multiply_halves(LOW, false),
        Op::I32x4ExtMulHighI16x8S => t.multiply_halves(HIGH, true),
        Op::I32x4ExtMulHighI16x8U => t.multiply_halves(HIGH, false),
        Op::I64x2ExtMulLowI32x4S => t.multiply_words(LOW, true),
        Op::I64x2ExtMulLowI32x4U => t.multiply_words(LOW, false),
        Op::I64x2ExtMulHighI32x4S => t.multiply_words(HIGH, true),
        Op::I64x2ExtMulHighI32x4U => t.multiply_words(HIGH, false),

        Op::I16x8ExtAddPairwiseI8x16S => t.each_word(|c, a| {
            let (even, odd) = (every_other_byte(c, a, 0, true), every_other_byte(c, a, 8, true));
            packed::add(c, Lane::Half, even, odd)
        }),
        Op::I16x8ExtAddPairwiseI8x16U => t.each_word(|c, a| {
            let (even, odd) = (every_other_byte(c, a, 0, false), every_other_byte(c, a, 8, false));
            c.ins().iadd(even, odd)
        }),
        Op::I32x4ExtAddPairwiseI16x8S => t.each_word(|c, a| add_halves(c, a, true)),
        Op::I32x4ExtAddPairwiseI16x8U => t.each_word(|c, a| add_halves(c, a, false)),
        Op::I32x4DotI16x8S => t.each_word2(|c, a, b| {
            let ([a_low, a_high], [b_low, b_high]) = (halves(c, a, true), halves(c, b, true));
            let (low, high) = (c.ins().imul(a_low, b_low), c.ins().imul(a_high, b_high));
            c.ins().iadd(low, high)
        }),
        // The relaxed form leaves open whether the second operand is signed, and sums that do not fit 16 bits: here it
        // is signed, and sums wrap.
        Op::I16x8RelaxedDotI8x16I7x16S => t.each_word2(|c, a, b| {
            let products = products(c, a, b);
            let (low, high) = (c.ins().iadd(products[0], products[1]), c.ins().iadd(products[2], products[3]));
            pair(c, low, high)
        }),
        // The same, without the wrap to 16 bits in between.
        Op::I32x4RelaxedDotI8x16I7x16AddS => t.each_word3(|c, a, b, sum| {
            products(c, a, b).into_iter().fold(sum, |sum, product| c.ins().iadd(sum, product))
        }),

        Op::I8x16NarrowI16x8S => t.narrow_halves(-128, 127),
        Op::I8x16NarrowI16x8U => t.narrow_halves(0, 255),
        Op::I16x8NarrowI32x4S => t.narrow_words(-32_768, 32_767),
        Op::I16x8NarrowI32x4U => t.narrow_words(0, 65_535),
        _ => return false,
    }
    true
}

/// Index of the first word of the half of a vector that is widened.
pub(super) const LOW: usize = 0;
const HIGH: usize = 2;

/// Sign-extends the bytes that lie in 16-bit lanes: 0x80 times 0x1fe is 0xff00.
fn sign_bytes(c: &mut Code<'_>, lanes: Value) -> Value {
    let signs = c.ins().band_imm_u(lanes, 0x0080_0080);
    let upper = c.ins().imul_imm_u(signs, 0x1fe);
    c.ins().bor(lanes, upper)
}

/// Returns the byte at bit `at` of each 16-bit lane, extended.
fn every_other_byte(c: &mut Code<'_>, word: Value, at: i64, signed: bool) -> Value {
    let down = c.ins().ushr_imm_u(word, at);
    let lanes = c.ins().band_imm_u(down, 0x00ff_00ff);
    if signed { sign_bytes(c, lanes) } else { lanes }
}

/// Returns a word's two 16-bit lanes, extended.
pub(super) fn halves(c: &mut Code<'_>, word: Value, signed: bool) -> [Value; 2] {
    let high = if signed { c.ins().sshr_imm_u(word, 16) } else { c.ins().ushr_imm_u(word, 16) };
    [narrow_lane(c, word, 0, 16, signed), high]
}

fn add_halves(c: &mut Code<'_>, word: Value, signed: bool) -> Value {
    let [low, high] = halves(c, word, signed);
    c.ins().iadd(low, high)
}

/// Extends a word to the two words of a 64-bit lane.
pub(super) fn word(c: &mut Code<'_>, word: Value, signed: bool) -> [Value; 2] {
    [word, if signed { c.ins().sshr_imm_u(word, 31) } else { c.i32(0) }]
}

/// Returns the products of two words' signed bytes.
fn products(c: &mut Code<'_>, a: Value, b: Value) -> [Value; 4] {
    [0, 8, 16, 24].map(|at| {
        let (a, b) = (narrow_lane(c, a, at, 8, true), narrow_lane(c, b, at, 8, true));
        c.ins().imul(a, b)
    })
}

impl Translator<'_, '_> {
    /// Returns the eight bytes of two words as 16-bit lanes: a shuffle puts each beside a zero byte of a third word.
    pub(super) fn bytes(&mut self, [low, high]: [Value; 2], signed: bool) -> Words {
        let zero = self.code.i32(0);
        let vector = self.code.join_vector([low, high, zero, zero]);
        let lanes = self.shuffle(vector, vector, [0, 8, 1, 8, 2, 8, 3, 8, 4, 8, 5, 8, 6, 8, 7, 8]);
        let lanes = self.words(lanes);
        if signed { lanes.map(|word| sign_bytes(&mut self.code, word)) } else { lanes }
    }

    fn extend_bytes(&mut self, half: usize, signed: bool) {
        let words = self.pop_words();
        let lanes = self.bytes([words[half], words[half + 1]], signed);
        self.push_words(lanes);
    }

    /// Extends each of two words to two.
    fn extend_half(&mut self, half: usize, make: impl Fn(&mut Code<'_>, Value) -> [Value; 2]) {
        let words = self.pop_words();
        self.push_extended([words[half], words[half + 1]], make);
    }

    pub(super) fn push_extended(&mut self, words: [Value; 2], make: impl Fn(&mut Code<'_>, Value) -> [Value; 2]) {
        let [[a, b], [c, d]] = words.map(|word| make(&mut self.code, word));
        self.push_words([a, b, c, d]);
    }

    fn multiply_bytes(&mut self, half: usize, signed: bool) {
        let (b, a) = (self.pop_words(), self.pop_words());
        let [a, b] = [a, b].map(|words| self.bytes([words[half], words[half + 1]], signed));
        let words = [0, 1, 2, 3].map(|i| packed::multiply_halves(&mut self.code, a[i], b[i]));
        self.push_words(words);
    }
    fn multiply_halves(&mut self, half: usize, signed: bool) {
        let (b, a) = (self.pop_words(), self.pop_words());
        let [[x, y], [z, w]] = [half, half + 1].map(|i| {
            let (a, b) = (halves(&mut self.code, a[i], signed), halves(&mut self.code, b[i], signed));
            [self.code.ins().imul(a[0], b[0]), self.code.ins().imul(a[1], b[1])]
        });
        self.push_words([x, y, z, w]);
    }
    fn multiply_words(&mut self, half: usize, signed: bool) {
        let (b, a) = (self.pop_words(), self.pop_words());
        let longs = [half, half + 1].map(|i| {
            let [a, b] = [a[i], b[i]].map(|word| match signed {
                true => self.code.ins().sextend(types::I64, word),
                false => self.code.ins().uextend(types::I64, word),
            });
            self.code.ins().imul(a, b)
        });
        self.push_longs(longs);
    }

    fn clamp(&mut self, value: Value, least: i64, most: i64) -> Value {
        let (least, most) = (self.code.i32(least), self.code.i32(most));
        let value = self.code.ins().smax(value, least);
        self.code.ins().smin(value, most)
    }

    /// Narrows sixteen signed 16-bit lanes to bytes, with saturation.
    fn narrow_halves(&mut self, least: i64, most: i64) {
        let (b, a) = (self.pop_words(), self.pop_words());
        let [[x, y], [z, w]] = [a, b].map(|words: Words| {
            let [low, high] = [[words[0], words[1]], [words[2], words[3]]].map(|[low, high]| {
                let lanes = [(low, 0), (low, 16), (high, 0), (high, 16)].map(|(word, at)| {
                    let lane = narrow_lane(&mut self.code, word, at, 16, true);
                    self.clamp(lane, least, most)
                });
                self.code.join_vector(lanes)
            });
            // Takes the lowest byte of each lane; the upper half of the result is not used.
            let bytes = self.shuffle(low, high, [0, 4, 8, 12, 16, 20, 24, 28, 0, 1, 2, 3, 0, 1, 2, 3]);
            let [low, high, ..] = self.words(bytes);
            [low, high]
        });
        self.push_words([x, y, z, w]);
    }

    /// Narrows eight signed words to 16-bit lanes, with saturation.
    fn narrow_words(&mut self, least: i64, most: i64) {
        let (b, a) = (self.pop_words(), self.pop_words());
        let [[x, y], [z, w]] = [a, b].map(|words: Words| {
            let lanes = words.map(|word| self.clamp(word, least, most));
            [pair(&mut self.code, lanes[0], lanes[1]), pair(&mut self.code, lanes[2], lanes[3])]
        });
        self.push_words([x, y, z, w]);
    }
}
