//! Loads and stores of vectors, as scalar accesses.
//!
//! A vector takes two accesses of 64 bits, or four of 32 bits where 64-bit accesses have to be aligned and that
//! alignment is not promised. A store writes the upper piece first: if any byte is outside the memory, one of the upper
//! piece's is, and then nothing has been written.

use super::lanes::repeat;
use super::widen::{halves, word};
use super::{Translator, Words};
use cranelift_codegen::ir::{InstBuilder, Value, types};
use wasmparser::{MemArg, Operator as Op};

/// Offsets of a vector's words.
const WORDS: [i32; 4] = [0, 4, 8, 12];

pub(super) fn translate(t: &mut Translator<'_, '_>, op: &Op<'_>) -> bool {
    match *op {
        Op::V128Load { memarg } => t.vector_load(memarg),
        Op::V128Store { memarg } => t.vector_store(memarg),
        Op::V128Load8x8S { memarg } => t.load_extended_bytes(memarg, true),
        Op::V128Load8x8U { memarg } => t.load_extended_bytes(memarg, false),
        Op::V128Load16x4S { memarg } => t.load_extended(memarg, |t, w| t.push_extended(w, |c, w| halves(c, w, true))),
        Op::V128Load16x4U { memarg } => t.load_extended(memarg, |t, w| t.push_extended(w, |c, w| halves(c, w, false))),
        Op::V128Load32x2S { memarg } => t.load_extended(memarg, |t, w| t.push_extended(w, |c, v| word(c, v, true))),
        Op::V128Load32x2U { memarg } => t.load_extended(memarg, |t, w| t.push_extended(w, |c, v| word(c, v, false))),
        Op::V128Load8Splat { memarg } => t.load_splat(memarg, 1),
        Op::V128Load16Splat { memarg } => t.load_splat(memarg, 2),
        Op::V128Load32Splat { memarg } => t.load_splat(memarg, 4),
        Op::V128Load64Splat { memarg } => {
            let at = t.pop();
            let long = t.load_piece(at, memarg, 8);
            t.push_longs([long; 2]);
        }
        Op::V128Load32Zero { memarg } => {
            let at = t.pop();
            let word = t.load_piece(at, memarg, 4);
            let zero = t.code.i32(0);
            t.push_words([word, zero, zero, zero]);
        }
        Op::V128Load64Zero { memarg } => {
            let at = t.pop();
            let long = t.load_piece(at, memarg, 8);
            let zero = t.code.i64(0);
            t.push_longs([long, zero]);
        }
        Op::V128Load8Lane { memarg, lane } => t.load_narrow_lane(memarg, lane, 1),
        Op::V128Load16Lane { memarg, lane } => t.load_narrow_lane(memarg, lane, 2),
        Op::V128Load32Lane { memarg, lane } => {
            let (mut words, at) = (t.pop_words(), t.pop());
            words[usize::from(lane)] = t.load_piece(at, memarg, 4);
            t.push_words(words);
        }
        Op::V128Load64Lane { memarg, lane } => {
            let (mut longs, at) = (t.pop_longs(), t.pop());
            longs[usize::from(lane)] = t.load_piece(at, memarg, 8);
            t.push_longs(longs);
        }
        Op::V128Store8Lane { memarg, lane } => t.store_lane(memarg, lane, 1),
        Op::V128Store16Lane { memarg, lane } => t.store_lane(memarg, lane, 2),
        Op::V128Store32Lane { memarg, lane } => t.store_lane(memarg, lane, 4),
        Op::V128Store64Lane { memarg, lane } => {
            let (longs, at) = (t.pop_longs(), t.pop());
            t.store_piece(at, memarg, 8, longs[usize::from(lane)]);
        }
        _ => return false,
    }
    true
}

impl Translator<'_, '_> {
    fn vector_load(&mut self, memarg: MemArg) {
        let at = self.pop();
        if let Some(memory) = self.side(memarg) {
            let at = self.side_address(memory, at, memarg, 16);
            let next = self.code.ins().iadd_imm_s(at, 8);
            let longs = [at, next].map(|at| self.side_load(memory, at, 8));
            return self.push_longs(longs);
        }
        if self.goes_by_halves(memarg) {
            let (flags, address, offset) = self.access(at, memarg, 4);
            let words = WORDS.map(|by| self.code.ins().load(types::I32, flags, address, offset + by));
            return self.push_words(words);
        }
        let (flags, address, offset) = self.access(at, memarg, 16);
        let longs = [offset, offset + 8].map(|offset| self.code.ins().load(types::I64, flags, address, offset));
        self.push_longs(longs);
    }

    fn vector_store(&mut self, memarg: MemArg) {
        let (value, at) = (self.pop(), self.pop());
        if self.side(memarg).is_none() && self.goes_by_halves(memarg) {
            let words = self.words(value);
            let (flags, address, offset) = self.access(at, memarg, 4);
            for (word, by) in words.into_iter().zip(WORDS).rev() {
                self.code.ins().store(flags, word, address, offset + by);
            }
            return;
        }
        let longs = self.longs(value);
        if let Some(memory) = self.side(memarg) {
            let at = self.side_address(memory, at, memarg, 16);
            let next = self.code.ins().iadd_imm_s(at, 8);
            self.side_store(memory, at, 8, longs[0]);
            return self.side_store(memory, next, 8, longs[1]);
        }
        let (flags, address, offset) = self.access(at, memarg, 16);
        for (long, offset) in [(longs[1], offset + 8), (longs[0], offset)] {
            self.code.ins().store(flags, long, address, offset);
        }
    }

    /// Loads a scalar of `size` bytes; narrow ones are zero-extended to a word.
    fn load_piece(&mut self, at: Value, memarg: MemArg, size: u64) -> Value {
        if let Some(memory) = self.side(memarg) {
            let at = self.side_address(memory, at, memarg, size as u32);
            let raw = self.side_load(memory, at, size as u32);
            return if size == 8 { raw } else { self.code.ins().ireduce(types::I32, raw) };
        }
        if size == 8 && self.goes_by_halves(memarg) {
            let (flags, address, offset) = self.access(at, memarg, 4);
            let [low, high] = [0, 4].map(|by| self.code.ins().load(types::I32, flags, address, offset + by));
            return self.code.ins().iconcat(low, high);
        }
        let (flags, address, offset) = self.access(at, memarg, size);
        match size {
            1 => self.code.ins().uload8(types::I32, flags, address, offset),
            2 => self.code.ins().uload16(types::I32, flags, address, offset),
            4 => self.code.ins().load(types::I32, flags, address, offset),
            _ => self.code.ins().load(types::I64, flags, address, offset),
        }
    }

    fn store_piece(&mut self, at: Value, memarg: MemArg, size: u64, value: Value) {
        if let Some(memory) = self.side(memarg) {
            let at = self.side_address(memory, at, memarg, size as u32);
            return self.side_store(memory, at, size as u32, value);
        }
        let (flags, address, offset) = self.access(at, memarg, size);
        match size {
            1 => self.code.ins().istore8(flags, value, address, offset),
            2 => self.code.ins().istore16(flags, value, address, offset),
            _ => self.code.ins().store(flags, value, address, offset),
        };
    }

    /// Loads eight bytes, and passes them on as the two words to extend.
    fn load_extended(&mut self, memarg: MemArg, push: impl Fn(&mut Self, [Value; 2])) {
        let at = self.pop();
        let long = self.load_piece(at, memarg, 8);
        let (low, high) = self.code.ins().isplit(long);
        push(self, [low, high]);
    }

    fn load_extended_bytes(&mut self, memarg: MemArg, signed: bool) {
        self.load_extended(memarg, |t, words| {
            let lanes = t.bytes(words, signed);
            t.push_words(lanes);
        });
    }

    fn load_splat(&mut self, memarg: MemArg, size: u64) {
        let at = self.pop();
        let lane = self.load_piece(at, memarg, size);
        let word = if size < 4 { repeat(&mut self.code, lane, 8 * size as u32) } else { lane };
        self.push_words([word; 4]);
    }

    fn load_narrow_lane(&mut self, memarg: MemArg, lane: u8, size: u64) {
        let (words, at) = (self.pop_words(), self.pop());
        let value = self.load_piece(at, memarg, size);
        let words: Words = self.with_narrow(words, lane, 8 * size as u32, value);
        self.push_words(words);
    }

    /// Stores a lane of up to 32 bits.
    fn store_lane(&mut self, memarg: MemArg, lane: u8, size: u64) {
        let (words, at) = (self.pop_words(), self.pop());
        let bit = u64::from(lane) * 8 * size;
        let word = words[(bit / 32) as usize];
        let value = self.code.ins().ushr_imm_u(word, (bit % 32) as i64);
        self.store_piece(at, memarg, size, value);
    }
}
