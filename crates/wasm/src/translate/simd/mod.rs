//! SIMD: a v128 is four 32-bit words, and every operator is arithmetic on words.
//!
//! A v128 travels as one CLIF value of type i32x4: on the operand stack, in locals, through blocks and calls. An
//! operator takes it apart, computes with scalars, which Cranelift's optimiser knows well, and joins the words again.
//! Taking apart a vector that was just joined costs nothing: [`Views`] remembers what a value was made of. What is left
//! for `crates/ptx` are register names, and two operators that PTX has an instruction for but CLIF's scalars do not:
//! `shuffle` and `swizzle`.
//!
//! ```text
//! lanes     constants, splats, single lanes, shuffles, bitwise operators
//! packed    arithmetic on the 8- and 16-bit lanes of a word, all at once
//! integer   the integer operators, lane by lane or packed
//! widen     operators whose results have wider or narrower lanes
//! float     the float operators and conversions
//! memory    loads and stores, in pieces
//! ```

mod float;
mod integer;
mod lanes;
mod memory;
mod packed;
mod widen;

use super::Translator;
use crate::code::Code;
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Value, types};
use std::collections::HashMap;
use wasmparser::Operator;

/// Translates `op` if it is about v128 values.
pub(super) fn translate(t: &mut Translator<'_, '_>, op: &Operator<'_>) -> bool {
    lanes::translate(t, op)
        || integer::translate(t, op)
        || widen::translate(t, op)
        || float::translate(t, op)
        || memory::translate(t, op)
}

/// A v128's four words, the lowest lane first.
type Words = [Value; 4];

/// A v128's lanes as scalars of each type, where they were needed.
#[derive(Clone, Copy, Default)]
struct Parts {
    words: Option<Words>,
    longs: Option<[Value; 2]>,
    floats: Option<Words>,
    doubles: Option<[Value; 2]>,
}

/// What is known about the lanes of v128 values.
#[derive(Default)]
pub(super) struct Views {
    /// The scalars that values were joined from. They are available wherever the value is.
    made: HashMap<Value, Parts>,
    /// The scalars that values were taken apart into, in the current block.
    taken: HashMap<Value, Parts>,
    block: Option<Block>,
}

impl Views {
    fn parts(&mut self, value: Value, block: Option<Block>) -> Parts {
        if self.block != block {
            self.taken.clear();
            self.block = block;
        }
        let made = self.made.get(&value).copied().unwrap_or_default();
        let taken = self.taken.get(&value).copied().unwrap_or_default();
        Parts {
            words: made.words.or(taken.words),
            longs: made.longs.or(taken.longs),
            floats: made.floats.or(taken.floats),
            doubles: made.doubles.or(taken.doubles),
        }
    }
}

impl Translator<'_, '_> {
    fn parts(&mut self, value: Value) -> Parts {
        let block = self.code.b.current_block();
        self.views.parts(value, block)
    }

    fn taken(&mut self, value: Value) -> &mut Parts {
        self.views.taken.entry(value).or_default()
    }

    fn words(&mut self, value: Value) -> Words {
        if let Some(words) = self.parts(value).words {
            return words;
        }
        let words = self.code.split_vector(value);
        self.taken(value).words = Some(words);
        words
    }

    fn longs(&mut self, value: Value) -> [Value; 2] {
        if let Some(longs) = self.parts(value).longs {
            return longs;
        }
        let [a, b, c, d] = self.words(value);
        let longs = [self.code.ins().iconcat(a, b), self.code.ins().iconcat(c, d)];
        self.taken(value).longs = Some(longs);
        longs
    }

    fn floats(&mut self, value: Value) -> Words {
        if let Some(floats) = self.parts(value).floats {
            return floats;
        }
        let floats = self.words(value).map(|word| self.code.ins().bitcast(types::F32, MemFlagsData::new(), word));
        self.taken(value).floats = Some(floats);
        floats
    }

    fn doubles(&mut self, value: Value) -> [Value; 2] {
        if let Some(doubles) = self.parts(value).doubles {
            return doubles;
        }
        let doubles = self.longs(value).map(|long| self.code.ins().bitcast(types::F64, MemFlagsData::new(), long));
        self.taken(value).doubles = Some(doubles);
        doubles
    }

    fn join(&mut self, parts: Parts, words: Words) -> Value {
        let value = self.code.join_vector(words);
        self.views.made.insert(value, Parts { words: Some(words), ..parts });
        value
    }

    fn push_words(&mut self, words: Words) {
        let value = self.join(Parts::default(), words);
        self.push(value);
    }

    fn push_longs(&mut self, longs: [Value; 2]) {
        self.push_long_parts(Parts { longs: Some(longs), ..Parts::default() }, longs);
    }

    fn push_long_parts(&mut self, parts: Parts, [low, high]: [Value; 2]) {
        let ((a, b), (c, d)) = (self.code.ins().isplit(low), self.code.ins().isplit(high));
        let value = self.join(parts, [a, b, c, d]);
        self.push(value);
    }

    fn push_floats(&mut self, floats: Words) {
        let words = floats.map(|float| self.code.ins().bitcast(types::I32, MemFlagsData::new(), float));
        let value = self.join(Parts { floats: Some(floats), ..Parts::default() }, words);
        self.push(value);
    }

    fn push_doubles(&mut self, doubles: [Value; 2]) {
        let longs = doubles.map(|double| self.code.ins().bitcast(types::I64, MemFlagsData::new(), double));
        self.push_long_parts(Parts { longs: Some(longs), doubles: Some(doubles), ..Parts::default() }, longs);
    }

    fn pop_words(&mut self) -> Words {
        let value = self.pop();
        self.words(value)
    }
    fn pop_longs(&mut self) -> [Value; 2] {
        let value = self.pop();
        self.longs(value)
    }
    fn pop_floats(&mut self) -> Words {
        let value = self.pop();
        self.floats(value)
    }
    fn pop_doubles(&mut self) -> [Value; 2] {
        let value = self.pop();
        self.doubles(value)
    }

    // One computation for each word, or each 64-bit lane.

    fn each_word(&mut self, make: impl Fn(&mut Code<'_>, Value) -> Value) {
        let words = self.pop_words().map(|a| make(&mut self.code, a));
        self.push_words(words);
    }
    fn each_word2(&mut self, make: impl Fn(&mut Code<'_>, Value, Value) -> Value) {
        let (b, a) = (self.pop_words(), self.pop_words());
        let words = [0, 1, 2, 3].map(|i| make(&mut self.code, a[i], b[i]));
        self.push_words(words);
    }
    fn each_word3(&mut self, make: impl Fn(&mut Code<'_>, Value, Value, Value) -> Value) {
        let (c, b, a) = (self.pop_words(), self.pop_words(), self.pop_words());
        let words = [0, 1, 2, 3].map(|i| make(&mut self.code, a[i], b[i], c[i]));
        self.push_words(words);
    }
    fn each_long(&mut self, make: impl Fn(&mut Code<'_>, Value) -> Value) {
        let longs = self.pop_longs().map(|a| make(&mut self.code, a));
        self.push_longs(longs);
    }
    fn each_long2(&mut self, make: impl Fn(&mut Code<'_>, Value, Value) -> Value) {
        let (b, a) = (self.pop_longs(), self.pop_longs());
        let longs = [0, 1].map(|i| make(&mut self.code, a[i], b[i]));
        self.push_longs(longs);
    }
}
