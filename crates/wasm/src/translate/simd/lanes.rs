//! Constants, splats, single lanes, shuffles, and operators that do not depend on the lanes' size.

use super::{Parts, Translator};
use crate::code::Code;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};
use wasmparser::{Operator as Op, V128};

pub(super) fn translate(t: &mut Translator<'_, '_>, op: &Op<'_>) -> bool {
    match *op {
        Op::V128Const { value } => t.vector_constant(value),

        Op::I8x16Splat => t.splat(|c, x| repeat(c, x, 8)),
        Op::I16x8Splat => t.splat(|c, x| repeat(c, x, 16)),
        Op::I32x4Splat => t.splat(|_, x| x),
        Op::I64x2Splat => {
            let x = t.pop();
            t.push_longs([x; 2]);
        }
        Op::F32x4Splat => {
            let x = t.pop();
            t.push_floats([x; 4]);
        }
        Op::F64x2Splat => {
            let x = t.pop();
            t.push_doubles([x; 2]);
        }

        Op::I8x16ExtractLaneS { lane } => t.extract_narrow(lane, 8, true),
        Op::I8x16ExtractLaneU { lane } => t.extract_narrow(lane, 8, false),
        Op::I16x8ExtractLaneS { lane } => t.extract_narrow(lane, 16, true),
        Op::I16x8ExtractLaneU { lane } => t.extract_narrow(lane, 16, false),
        Op::I32x4ExtractLane { lane } => {
            let words = t.pop_words();
            t.push(words[usize::from(lane)]);
        }
        Op::I64x2ExtractLane { lane } => {
            let longs = t.pop_longs();
            t.push(longs[usize::from(lane)]);
        }
        Op::F32x4ExtractLane { lane } => {
            let floats = t.pop_floats();
            t.push(floats[usize::from(lane)]);
        }
        Op::F64x2ExtractLane { lane } => {
            let doubles = t.pop_doubles();
            t.push(doubles[usize::from(lane)]);
        }

        Op::I8x16ReplaceLane { lane } => t.replace_narrow(lane, 8),
        Op::I16x8ReplaceLane { lane } => t.replace_narrow(lane, 16),
        Op::I32x4ReplaceLane { lane } => {
            let (x, mut words) = (t.pop(), t.pop_words());
            words[usize::from(lane)] = x;
            t.push_words(words);
        }
        Op::I64x2ReplaceLane { lane } => {
            let (x, mut longs) = (t.pop(), t.pop_longs());
            longs[usize::from(lane)] = x;
            t.push_longs(longs);
        }
        Op::F32x4ReplaceLane { lane } => {
            let (x, mut floats) = (t.pop(), t.pop_floats());
            floats[usize::from(lane)] = x;
            t.push_floats(floats);
        }
        Op::F64x2ReplaceLane { lane } => {
            let (x, mut doubles) = (t.pop(), t.pop_doubles());
            doubles[usize::from(lane)] = x;
            t.push_doubles(doubles);
        }

        Op::I8x16Shuffle { lanes } => {
            let (b, a) = (t.pop(), t.pop());
            let value = t.shuffle(a, b, lanes);
            t.push(value);
        }
        // The relaxed form leaves indices of 16 and more open: here they give 0, as in the strict form.
        Op::I8x16Swizzle | Op::I8x16RelaxedSwizzle => t.swizzle(),

        Op::V128Not => t.each_word(|c, a| c.ins().bnot(a)),
        Op::V128And => t.each_word2(|c, a, b| c.ins().band(a, b)),
        Op::V128AndNot => t.each_word2(|c, a, b| c.ins().band_not(a, b)),
        Op::V128Or => t.each_word2(|c, a, b| c.ins().bor(a, b)),
        Op::V128Xor => t.each_word2(|c, a, b| c.ins().bxor(a, b)),
        // The relaxed forms leave masks open that are neither all ones nor all zeros: here each bit selects.
        Op::V128Bitselect
        | Op::I8x16RelaxedLaneselect
        | Op::I16x8RelaxedLaneselect
        | Op::I32x4RelaxedLaneselect
        | Op::I64x2RelaxedLaneselect => t.each_word3(|c, a, b, mask| select_bits(c, mask, a, b)),
        Op::V128AnyTrue => {
            let [a, b, c, d] = t.pop_words();
            let (low, high) = (t.code.ins().bor(a, b), t.code.ins().bor(c, d));
            let any = t.code.ins().bor(low, high);
            let any = t.code.ins().icmp_imm_s(IntCC::NotEqual, any, 0);
            t.push_flag(any);
        }
        _ => return false,
    }
    true
}

/// Selects bit by bit: `yes` where the mask's bit is set, `no` where it is not.
pub(super) fn select_bits(c: &mut Code<'_>, mask: Value, yes: Value, no: Value) -> Value {
    let differ = c.ins().bxor(yes, no);
    let chosen = c.ins().band(differ, mask);
    c.ins().bxor(chosen, no)
}

/// Repeats the low `bits` bits in every lane of a word.
pub(super) fn repeat(c: &mut Code<'_>, value: Value, bits: u32) -> Value {
    let lane = c.ins().band_imm_u(value, (1 << bits) - 1);
    c.ins().imul_imm_u(lane, if bits == 8 { 0x0101_0101 } else { 0x0001_0001 })
}

/// Returns the index of a narrow lane's word, and the lane's bit position in it.
fn place(lane: u8, bits: u32) -> (usize, i64) {
    let at = u32::from(lane) * bits;
    ((at / 32) as usize, i64::from(at % 32))
}

/// Returns the narrow lane at bit `at` of a word, extended.
pub(super) fn narrow_lane(c: &mut Code<'_>, word: Value, at: i64, bits: u32, signed: bool) -> Value {
    let bits = i64::from(bits);
    if signed {
        let up = c.ins().ishl_imm_u(word, 32 - bits - at);
        return c.ins().sshr_imm_u(up, 32 - bits);
    }
    let down = c.ins().ushr_imm_u(word, at);
    c.ins().band_imm_u(down, (1 << bits) - 1)
}

impl Translator<'_, '_> {
    fn vector_constant(&mut self, value: V128) {
        let bytes = *value.bytes();
        let word = |i: usize| i64::from(i32::from_le_bytes([bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]]));
        let words = [0, 4, 8, 12].map(|i| self.code.i32(word(i)));
        let value = self.code.vector_constant(bytes);
        self.views.made.insert(value, Parts { words: Some(words), ..Parts::default() });
        self.push(value);
    }

    fn splat(&mut self, make: impl Fn(&mut Code<'_>, Value) -> Value) {
        let x = self.pop();
        let word = make(&mut self.code, x);
        self.push_words([word; 4]);
    }

    fn extract_narrow(&mut self, lane: u8, bits: u32, signed: bool) {
        let words = self.pop_words();
        let (word, at) = place(lane, bits);
        let value = narrow_lane(&mut self.code, words[word], at, bits, signed);
        self.push(value);
    }

    fn replace_narrow(&mut self, lane: u8, bits: u32) {
        let (x, words) = (self.pop(), self.pop_words());
        let words = self.with_narrow(words, lane, bits, x);
        self.push_words(words);
    }

    /// Returns the words with one narrow lane replaced.
    pub(super) fn with_narrow(&mut self, mut words: [Value; 4], lane: u8, bits: u32, value: Value) -> [Value; 4] {
        let (word, at) = place(lane, bits);
        let mask = ((1i64 << bits) - 1) << at;
        let up = self.code.ins().ishl_imm_u(value, at);
        let up = self.code.ins().band_imm_u(up, mask);
        let rest = self.code.ins().band_imm_u(words[word], !mask & 0xffff_ffff);
        words[word] = self.code.ins().bor(rest, up);
        words
    }

    pub(in crate::translate) fn select_vector(&mut self, condition: Value, a: Value, b: Value) {
        let (a, b) = (self.words(a), self.words(b));
        let words = [0, 1, 2, 3].map(|i| self.code.ins().select(condition, a[i], b[i]));
        self.push_words(words);
    }

    /// Selects bytes of two vectors: indices below 16 are the first one's.
    pub(super) fn shuffle(&mut self, a: Value, b: Value, lanes: [u8; 16]) -> Value {
        let (a, b) = (self.bytes_of(a), self.bytes_of(b));
        let mask = self.code.b.func.dfg.immediates.push(lanes.to_vec().into());
        let bytes = self.code.ins().shuffle(a, b, mask);
        self.words_of(bytes)
    }

    fn swizzle(&mut self) {
        let (indices, table) = (self.pop(), self.pop());
        let (table, indices) = (self.bytes_of(table), self.bytes_of(indices));
        let bytes = self.code.ins().swizzle(table, indices);
        let value = self.words_of(bytes);
        self.push(value);
    }

    fn bytes_of(&mut self, value: Value) -> Value {
        self.code.ins().bitcast(types::I8X16, LITTLE, value)
    }
    fn words_of(&mut self, value: Value) -> Value {
        self.code.ins().bitcast(types::I32X4, LITTLE, value)
    }
}

/// For bitcasts between lane sizes: the bytes and their order stay the same.
const LITTLE: MemFlagsData = MemFlagsData::new().with_endianness(cranelift_codegen::ir::Endianness::Little);
