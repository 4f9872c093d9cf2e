//! Loads of the guest's read-only data: see [`crate::analysis::read_only`].
//!
//! A load that surely reads nothing else need not read the instance's memory. At a constant address, its value is a
//! constant; from a table, it reads a copy that all instances share. A cache then holds a table of 256 bytes once,
//! instead of once for each of a thousand threads.

use super::Guest;
use crate::ReadOnly;
use crate::analysis::read_only::{ReadOnlyLoad, word};
use crate::print::body::When;
use crate::print::memory::{Address, Read};
use crate::print::register::{Class, Operand, Reg};
use crate::print::text::{push_array, push_unsigned};
use cranelift_codegen::ir::{Value, types};

/// The shared copy's name in PTX.
const COPY: &str = "fixed";

/// Prints the shared copy.
pub(crate) fn define(data: &ReadOnly, out: &mut String) {
    let words: Vec<u64> = data.bytes.chunks(8).filter_map(word).collect();
    push_array(out, COPY, &words, |out, word| push_unsigned(out, *word));
}

impl Guest<'_> {
    pub(super) fn read_only_load(&mut self, read: Read, result: Reg, load: ReadOnlyLoad) {
        let (root, offset) = match load {
            ReadOnlyLoad::Bits(bits) => return self.known_value(read, result, bits),
            ReadOnlyLoad::Copy { root, offset } => (root, offset),
        };
        self.reads_copy = true;
        let word = self.root_word(root);
        let body = &mut self.print.body;
        let copy = body.temp(Class::B64);
        body.begin("mov", ".u64");
        body.operand(copy);
        body.out.push_str(", ");
        body.out.push_str(COPY);
        body.end();
        let wide = body.op_to_temp(Class::B64, "cvt", ".u64.u32", &[word.into()]);
        let base = body.op_to_temp(Class::B64, "add", ".u64", &[copy.into(), wide.into()]);
        self.print.plain_load("ld.global.nc", read, result, Address { base, offset });
    }

    /// Sets a load's result to bytes that are known at compile time.
    fn known_value(&mut self, read: Read, result: Reg, bits: u64) {
        let unused = 64 - 8 * read.bytes;
        let bits = if read.is_signed { ((bits << unused) as i64) >> unused } else { bits as i64 };
        let body = &mut self.print.body;
        match read.ty {
            types::F32 | types::I32 | types::I16 | types::I8 => {
                body.op("mov", ".b32", &[result.into(), Operand::Int(i64::from(bits as u32))]);
            }
            _ => body.op("mov", ".b64", &[result.into(), Operand::Int(bits)]),
        }
    }

    /// Stops the instance if any byte from `root + start` to `root + end` is read-only data.
    pub(super) fn stop_if_read_only(&mut self, root: Value, start: i64, end: i64) {
        let data = self.print.program.read_only();
        let (at, length) = (data.at as i64, data.bytes.len() as i64);
        if start >= end || length == 0 {
            return;
        }
        // The lowest root whose bytes touch the data, and how many such roots there are.
        let (first, count) = (at - end + 1, length + end - start - 1);
        let root = self.root_word(root);
        let body = &mut self.print.body;
        let beyond = body.op_to_temp(Class::B32, "sub", ".u32", &[root.into(), first.into()]);
        let touches = body.op_to_temp(Class::Pred, "setp.lt", ".u32", &[beyond.into(), count.into()]);
        body.exit_if(touches, When::True);
    }
}
