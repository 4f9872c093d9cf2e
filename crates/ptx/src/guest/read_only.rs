//! Bytes of the guest's memory that it is expected never to write, as compilers' constants are.
//!
//! Every instance has them in its memory, as it must: a guest may do what it likes with them. With quick checks
//! ([`crate::guest::speculative`]) a store there ends the instance, which the exact build then runs, and so until then they are what they were at the start. Loads that are certain to read nothing
//! else need not go to the memory: one at a constant address is its value, and one from a table reads a copy that all
//! instances share. A table of 256 bytes is then one in the cache, and not one for each of a thousand threads.

use crate::Fixed;
use crate::analysis::range::{Range, Shape};
use crate::function::Emitter;
use crate::guest::{Access, Root};
use crate::print::body::When;
use crate::print::memory::{Place, Read};
use crate::print::register::{Class, Operand, Reg};
use crate::print::text::{push_array, push_unsigned};
use cranelift_codegen::ir::{InstructionData, Opcode, Value, ValueDef, types};

/// The shared copy's name in PTX.
const COPY: &str = "fixed";

impl Fixed {
    fn end(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }

    /// So many bytes at a guest address, if they are fixed.
    fn value(&self, at: u64, bytes: u32) -> Option<u64> {
        let from = usize::try_from(at.checked_sub(self.at)?).ok()?;
        word(self.bytes.get(from..from.checked_add(bytes as usize)?)?)
    }

    /// Prints the shared copy.
    pub(crate) fn define(&self, out: &mut String) {
        let words: Vec<u64> = self.bytes.chunks(8).filter_map(word).collect();
        push_array(out, COPY, &words, |out, word| push_unsigned(out, *word));
    }
}

impl Emitter<'_> {
    /// Whether a load surely reads what is fixed, aligned.
    pub(crate) fn is_fixed(&self, shape: &Shape, access: &Access) -> bool {
        let fixed = self.symbols.fixed();
        if access.stores || fixed.bytes.is_empty() || access.bytes > 8 {
            return false;
        }
        match access.root {
            Root::Constant(root) => fixed.value(u64::from(root) + access.displacement(), access.bytes).is_some(),
            Root::Value(root) if self.ty(root) != types::I32 => false,
            Root::Value(root) => {
                let Some(range) = self.range(shape, root) else { return false };
                let zeros = range.zeros.max(self.trailing_zeros(root, 4)).min(access.displacement().trailing_zeros());
                let (first, last) = places(range, access);
                let inside = first >= fixed.at as i64 && last <= fixed.end() as i64;
                range.low >= 0 && inside && 1u64 << zeros.min(3) >= u64::from(access.bytes)
            }
        }
    }

    /// Whether a store with a root like this may write what is fixed.
    pub(crate) fn may_write_fixed(&self, range: Range, access: &Access) -> bool {
        let fixed = self.symbols.fixed();
        let (first, last) = places(range, access);
        access.stores && !fixed.bytes.is_empty() && first < fixed.end() as i64 && last > fixed.at as i64
    }

    /// Loads what [`Emitter::is_fixed`] said yes to.
    pub(crate) fn fixed_load(&mut self, read: Read, result: Reg, access: &Access) {
        let fixed = self.symbols.fixed();
        let (root, by) = match access.root {
            Root::Constant(root) => {
                let bits = fixed.value(u64::from(root) + access.displacement(), access.bytes).unwrap_or_default();
                return self.fixed_value(read, result, bits);
            }
            Root::Value(root) => self.without_constants(root),
        };
        let by = by + access.displacement() as i64 - fixed.at as i64;
        self.reads_fixed = true;
        let word = self.root_word(root);
        let copy = self.body.temp(Class::B64);
        self.body.begin("mov", ".u64");
        self.body.operand(copy);
        self.body.out.push_str(", ");
        self.body.out.push_str(COPY);
        self.body.end();
        let wide = self.body.op_to_temp(Class::B64, "cvt", ".u64.u32", &[word.into()]);
        let base = self.body.op_to_temp(Class::B64, "add", ".u64", &[copy.into(), wide.into()]);
        self.plain_load("ld.global.nc", read, result, Place { base, offset: by });
    }

    /// A value as another and what is added to it; nothing is lost above 32 bits, since both are known.
    fn without_constants(&self, mut root: Value) -> (Value, i64) {
        let mut by = 0;
        while let Some((rest, constant)) = self.constant_sum(root) {
            let known = self.shape.as_ref().and_then(|shape| self.range(shape, rest));
            if !known.is_some_and(|range| range.low >= 0 && constant >= 0) {
                break;
            }
            (root, by) = (rest, by + constant);
        }
        (root, by)
    }

    /// The two parts of a sum with a constant.
    fn constant_sum(&self, value: Value) -> Option<(Value, i64)> {
        let ValueDef::Result(inst, _) = self.func.dfg.value_def(value) else { return None };
        let InstructionData::Binary { opcode: Opcode::Iadd, args: [a, b] } = self.func.dfg.insts[inst] else {
            return None;
        };
        Some((self.func.dfg.resolve_aliases(a), self.constant(b)?))
    }

    /// A load's result, where its bytes are known.
    fn fixed_value(&mut self, read: Read, result: Reg, bits: u64) {
        let unused = 64 - 8 * read.bytes;
        let bits = if read.is_signed { ((bits << unused) as i64) >> unused } else { bits as i64 };
        match read.ty {
            types::F32 | types::I32 | types::I16 | types::I8 => {
                self.body.op("mov", ".b32", &[result.into(), Operand::Int(i64::from(bits as u32))]);
            }
            _ => self.body.op("mov", ".b64", &[result.into(), Operand::Int(bits)]),
        }
    }

    /// Ends the instance if the bytes from `start` to `end` behind a root touch what is fixed.
    pub(crate) fn spare_fixed(&mut self, root: Value, start: i64, end: i64) {
        let (at, length) = (self.symbols.fixed().at as i64, self.symbols.fixed().bytes.len() as i64);
        if start >= end || length == 0 {
            return;
        }
        // The first root that reaches it, and how many do.
        let (first, count) = (at - end + 1, length + end - start - 1);
        let root = self.root_word(root);
        let beyond = self.body.op_to_temp(Class::B32, "sub", ".u32", &[root.into(), first.into()]);
        let touches = self.body.op_to_temp(Class::Pred, "setp.lt", ".u32", &[beyond.into(), count.into()]);
        self.body.exit_if(touches, When::True);
    }
}

/// Up to eight bytes, as a number.
fn word(bytes: &[u8]) -> Option<u64> {
    let mut word = [0; 8];
    word.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(u64::from_le_bytes(word))
}

/// Where an access with such a root begins at the lowest, and ends at the highest.
fn places(root: Range, access: &Access) -> (i64, i64) {
    let by = access.displacement() as i64;
    (root.low + by, root.high + by + i64::from(access.bytes))
}
