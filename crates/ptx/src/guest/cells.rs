//! Moves the bytes of guest values whose accesses have passed their checks.
//!
//! A cell is a unit of bytes that lie together on the device: 4 bytes in an interleaved layout.

use super::Guest;
use super::slow_path::two_words;
use crate::print::body::When;
use crate::print::memory::{Address, Read};
use crate::print::register::{Class, Operand, Reg};
use cranelift_codegen::ir::types;
use smallvec::SmallVec;

impl Guest<'_> {
    /// Loads a value that lies in one cell, or that is two whole cells.
    pub(super) fn load_cells(&mut self, read: Read, result: Reg, base: Reg, offset: i64) {
        if u64::from(read.bytes) <= self.print.program.unit(read.bytes) {
            return self.print.plain_load(self.ld(), read, result, Address { base, offset });
        }
        let stride = self.stride();
        let (low, high) = (self.print.body.temp(Class::B32), self.print.body.temp(Class::B32));
        self.print.body.load("ld.global", ".u32", low, base, offset);
        self.print.body.load("ld.global", ".u32", high, base, offset + stride);
        self.print.body.pack(result, low.into(), high.into());
    }

    /// Loads a value that begins anywhere in a cell of 4 bytes: reads that cell and the next one or two, and shifts
    /// them together. The low bits of `word` say where in the cell the value begins.
    pub(super) fn load_around(&mut self, read: Read, result: Reg, base: Reg, offset: i64, word: Reg) {
        let (stride, ld) = (self.stride(), self.ld());
        let shift = self.print.body.op_to_temp(Class::B32, "shl", ".b32", &[word.into(), 3.into()]);
        let count = if read.bytes == 8 { 3 } else { 2 };
        let cells: SmallVec<[Reg; 3]> = (0..count)
            .map(|i| {
                let cell = self.print.body.temp(Class::B32);
                self.print.body.load(ld, ".u32", cell, base, offset + i * stride);
                cell
            })
            .collect();
        let words: SmallVec<[Reg; 2]> = cells
            .windows(2)
            .map(|pair| {
                let operands = [pair[0].into(), pair[1].into(), shift.into()];
                self.print.body.op_to_temp(Class::B32, "shf.r.wrap", ".b32", &operands)
            })
            .collect();
        match words.as_slice() {
            [low, high] => self.print.body.pack(result, (*low).into(), (*high).into()),
            [word] if read.bytes == 2 && read.widening().is_none() => {
                self.print.body.op("and", ".b32", &[result.into(), (*word).into(), 0xffff.into()]);
            }
            [word, ..] => self.take_bits(read, result, *word),
            [] => {}
        }
    }

    /// Loads a value that may well be misaligned: tests the address, with both the aligned and the misaligned load
    /// inline.
    pub(super) fn load_doubtful(&mut self, read: Read, result: Reg, base: Reg, offset: i64) {
        let address = match offset {
            0 => base,
            _ => self.print.body.op_to_temp(Class::B64, "add", ".u64", &[base.into(), offset.into()]),
        };
        let low =
            self.print.body.op_to_temp(Class::B64, "and", ".b64", &[address.into(), i64::from(read.bytes - 1).into()]);
        let test = self.print.body.op_to_temp(Class::Pred, "setp.ne", ".u64", &[low.into(), 0.into()]);
        let (misaligned, done) = (self.print.body.local(), self.print.body.local());
        self.print.body.branch_if(test, When::True, misaligned);
        self.print.plain_load(self.ld(), read, result, Address { base: address, offset: 0 });
        self.print.body.branch(done);
        self.print.body.place(misaligned);
        let raw = two_words(&mut self.print.body, address, read.bytes);
        self.take_bits(read, result, raw);
        self.print.body.place(done);
    }

    /// Stores a value that lies in one cell, or that is two whole cells.
    pub(super) fn store_cells(&mut self, bytes: u32, suffix: &str, base: Reg, offset: i64, value: Operand) {
        if u64::from(bytes) <= self.print.program.unit(bytes) {
            return self.print.body.store(self.st(), suffix, base, offset, value);
        }
        let stride = self.stride();
        let [low, high] = self.print.body.unpack(value);
        self.print.body.store("st.global", ".u32", base, offset, low);
        self.print.body.store("st.global", ".u32", base, offset + stride, high);
    }

    /// Makes a load's result from the zero-extended bits.
    pub(super) fn take_bits(&mut self, read: Read, result: Reg, raw: Reg) {
        match read.widening() {
            Some(widening) => self.print.body.op("cvt", widening, &[result.into(), raw.into()]),
            None if read.bytes == 8 => self.print.body.op("mov", ".b64", &[result.into(), raw.into()]),
            None => self.print.body.op("mov", ".b32", &[result.into(), raw.into()]),
        }
    }

    /// Makes the result of a one-byte load from the zero-extended byte.
    pub(super) fn take_byte(&mut self, read: Read, result: Reg, raw: Reg) {
        let suffix = match (read.ty == types::I64, read.is_signed) {
            (true, true) => ".s64.s8",
            (true, false) => ".u64.u8",
            (false, true) => ".s32.s8",
            (false, false) => return self.print.body.op("mov", ".b32", &[result.into(), raw.into()]),
        };
        self.print.body.op("cvt", suffix, &[result.into(), raw.into()]);
    }

    /// Returns a float's bits, or an integer unchanged.
    pub(super) fn bits_of(&mut self, value: Operand) -> Operand {
        match value {
            Operand::F32(bits) => i64::from(bits as i32).into(),
            Operand::F64(bits) => (bits as i64).into(),
            Operand::Reg(reg) => match self.class_of(reg) {
                Class::F32 => self.print.body.op_to_temp(Class::B32, "mov", ".b32", &[value]).into(),
                Class::F64 => self.print.body.op_to_temp(Class::B64, "mov", ".b64", &[value]).into(),
                _ => value,
            },
            other => other,
        }
    }

    /// Returns the class of a register's value: that of a parameter is in the signature.
    fn class_of(&self, reg: Reg) -> Class {
        if reg.class != Class::Argument {
            return reg.class;
        }
        let ty = self.print.func.signature.params.get(reg.index as usize).map_or(types::I64, |p| p.value_type);
        Class::of(ty).unwrap_or(Class::B64)
    }
}
