//! Speculative builds: a failed check stops the instance, and the host reruns it with the exact build.
//!
//! The slow path of [`super::exact`] rejoins the rest of the code. So nothing is known after an access, and the
//! assembler adds calls, saved registers and points where lanes meet again to every access. Here a check is a
//! predicated exit. It is no branch, so lanes need no point to meet again. [`crate::analysis::speculative`] decides
//! which accesses are checked.
//!
//! Where nothing promises alignment, loads and stores access whole cells and shift, without a branch.

use super::{CELL, Guest};
use crate::Error;
use crate::analysis::GuestChecks;
use crate::analysis::access::{Access, Root};
use crate::analysis::memory_length::LENGTH;
use crate::analysis::speculative::{Bounds, Check, SpeculativeChecks};
use crate::print::body::When;
use crate::print::memory::Read;
use crate::print::register::{Class, Operand, Reg};
use cranelift_codegen::ir::Inst;

/// The device address of an access: a register and an offset; and the guest address, if its low bits matter.
type CellAddress = (Reg, i64, Option<Reg>);

impl Guest<'_> {
    /// Reads the memory's length, if a check of the function compares with it.
    pub(super) fn speculative_prologue(&mut self, checks: &SpeculativeChecks) -> Result<(), Error> {
        if checks.reads_length {
            self.length = Some(self.print.body.temp(Class::B32));
        }
        self.read_length()
    }

    /// Reads the memory's length into its register, if there is one: at the function's entry, and after everything that
    /// may have changed the length.
    pub(crate) fn read_length(&mut self) -> Result<(), Error> {
        let Some(length) = self.length else { return Ok(()) };
        let (instance, at) = (self.print.instance()?, self.print.program.layout().offset(LENGTH) as i64);
        self.print.body.load("ld.global", ".u32", length, instance, at);
        Ok(())
    }

    pub(super) fn speculative_load(
        &mut self,
        checks: &SpeculativeChecks,
        inst: Inst,
        read: Read,
        result: Reg,
        access: &Access,
    ) -> Result<(), Error> {
        if let Some(load) = checks.read_only.get(&inst) {
            self.read_only_load(read, result, *load);
            return Ok(());
        }
        self.check(checks, inst);
        if self.print.block.ended {
            return Ok(());
        }
        match self.address(checks, inst, access) {
            (base, offset, None) => self.load_cells(read, result, base, offset),
            (base, offset, Some(word)) => self.load_around(read, result, base, offset, word),
        }
        Ok(())
    }

    pub(super) fn speculative_store(
        &mut self,
        checks: &SpeculativeChecks,
        inst: Inst,
        suffix: &str,
        value: Operand,
        access: &Access,
    ) -> Result<(), Error> {
        self.check(checks, inst);
        if self.print.block.ended {
            return Ok(());
        }
        match self.address(checks, inst, access) {
            (base, offset, None) => self.store_cells(access.bytes, suffix, base, offset, value),
            (base, offset, Some(word)) => self.store_around(access.bytes, base, offset, word, value),
        }
        Ok(())
    }

    /// Prints the check of an access that comes later.
    pub(crate) fn check_early(&mut self, inst: Inst) {
        if let GuestChecks::Speculative(checks) = &self.print.analysis.checks {
            self.check(checks, inst);
            self.known.checked_early.push(inst);
        }
    }

    /// Prints an access's check, if it has one. For [`Check::Outside`], the instance stops and the block ends here.
    fn check(&mut self, checks: &SpeculativeChecks, inst: Inst) {
        if self.known.checked_early.contains(&inst) {
            return;
        }
        match checks.checks.get(&inst) {
            None => {}
            Some(Check::Outside) => {
                self.print.body.op("exit", "", &[]);
                self.print.block.ended = true;
            }
            Some(Check::Bounds(bounds)) => self.check_bounds(bounds),
        }
    }

    fn check_bounds(&mut self, &Bounds { root, first, used, shift, written }: &Bounds) {
        let Some(length) = self.length else { return };
        let mut turned = self.root_word(root);
        let body = &mut self.print.body;
        // A root below `first` becomes huge.
        if first > 0 {
            turned = body.op_to_temp(Class::B32, "sub", ".u32", &[turned.into(), first.into()]);
        }
        let used = Operand::Int((used as i32).into());
        let mut most = body.op_to_temp(Class::B32, "sub", ".u32", &[length.into(), used]);
        if shift > 0 {
            let by = Operand::Int(shift.into());
            turned = body.op_to_temp(Class::B32, "shf.r.wrap", ".b32", &[turned.into(), turned.into(), by]);
            most = body.op_to_temp(Class::B32, "shr", ".u32", &[most.into(), by]);
        }
        let fails = body.op_to_temp(Class::Pred, "setp.gt", ".u32", &[turned.into(), most.into()]);
        body.exit_if(fails, When::True);
        self.stop_if_read_only(root, written.0, written.1);
    }

    /// Returns the address of an access in an interleaved layout, or calls [`Guest::flat_address`].
    fn address(&mut self, checks: &SpeculativeChecks, inst: Inst, access: &Access) -> CellAddress {
        let (program, func) = (self.print.program, self.print.func);
        let is_plain = checks.is_plain(program, func, inst, access);
        if program.is_flat() {
            return self.flat_address(access, is_plain);
        }
        let (layout, by) = (program.layout(), access.displacement());
        let root = match access.root {
            Root::Constant(root) => {
                let at = u64::from(root) + by;
                let (base, offset) = self.displaced(layout.offset(at / layout.cell() * layout.cell()));
                let low = (at % layout.cell()) as i64;
                if is_plain {
                    return (base, offset + low, None);
                }
                return (base, offset, Some(self.print.body.op_to_temp(Class::B32, "mov", ".b32", &[low.into()])));
            }
            Root::Value(root) => root,
        };
        if is_plain && 1u64 << checks.known_zeros(func, inst, root).min(3) >= layout.cell() {
            let (base, offset) = (self.cells_address(root), layout.offset(by));
            return match i32::try_from(offset) {
                Ok(offset) => (base, offset.into(), None),
                Err(_) => {
                    let offset = Operand::Int(offset as i64);
                    (self.print.body.op_to_temp(Class::B64, "add", ".u64", &[base.into(), offset]), 0, None)
                }
            };
        }
        let word = self.root_word(root);
        let (word, cells) = match by.is_multiple_of(layout.cell()) && layout.offset(by) <= i32::MAX as u64 {
            true => (word, by),
            false => {
                let by = Operand::Int(i64::from(by as i32));
                (self.print.body.op_to_temp(Class::B32, "add", ".u32", &[word.into(), by]), 0)
            }
        };
        let (base, offset) = self.cell_of(word, cells);
        match is_plain {
            true => (self.byte_in(base, word), offset, None),
            false => (base, offset, Some(word)),
        }
    }

    /// Returns the address of an access where bytes lie one after the other.
    fn flat_address(&mut self, access: &Access, is_plain: bool) -> CellAddress {
        let by = access.displacement() as i64;
        match access.root {
            Root::Constant(root) => {
                let (memory, at) = (self.memory_register(), i64::from(root) + by);
                if is_plain {
                    return (memory, at, None);
                }
                let low = self.print.body.op_to_temp(Class::B32, "mov", ".b32", &[(at % CELL).into()]);
                (memory, at - at % CELL, Some(low))
            }
            Root::Value(root) if is_plain => (self.linear_address(root), by, None),
            Root::Value(root) => {
                let (word, memory) = (self.root_word(root), self.memory_register());
                let body = &mut self.print.body;
                let (word, offset) = match by % CELL {
                    0 => (word, by),
                    _ => (body.op_to_temp(Class::B32, "add", ".u32", &[word.into(), by.into()]), 0),
                };
                let first = body.op_to_temp(Class::B32, "and", ".b32", &[word.into(), (-CELL).into()]);
                let wide = body.op_to_temp(Class::B64, "cvt", ".u64.u32", &[first.into()]);
                let address = body.op_to_temp(Class::B64, "add", ".u64", &[memory.into(), wide.into()]);
                (address, offset, Some(word))
            }
        }
    }

    /// Stores a value that begins anywhere in a cell: reads the cells it touches, changes them and writes them back. No
    /// other thread uses this memory.
    fn store_around(&mut self, bytes: u32, base: Reg, offset: i64, word: Reg, value: Operand) {
        let (stride, st) = (self.stride(), self.st());
        let bits = self.bits_of(value);
        let ones = Operand::Int(if bytes == 2 { 0xffff } else { -1 });
        let (first, last) = match bytes {
            8 => {
                let [low, high] = self.print.body.unpack(bits);
                (low, high)
            }
            2 => {
                let word = self.print.body.op_to_temp(Class::B32, "and", ".b32", &[bits, ones]);
                (word.into(), word.into())
            }
            _ => (bits, bits),
        };
        let shift = self.print.body.op_to_temp(Class::B32, "shl", ".b32", &[word.into(), 3.into()]);
        let shift = self.print.body.op_to_temp(Class::B32, "and", ".b32", &[shift.into(), 24.into()]);
        let low = self.print.body.op_to_temp(Class::B32, "shl", ".b32", &[first, shift.into()]);
        let low_mask = self.print.body.op_to_temp(Class::B32, "shl", ".b32", &[ones, shift.into()]);
        self.merge(base, offset, low, low_mask);
        if bytes == 8 {
            let middle = self.print.body.op_to_temp(Class::B32, "shf.l.wrap", ".b32", &[first, last, shift.into()]);
            self.print.body.store(st, ".u32", base, offset + stride, middle.into());
        }
        let end = if bytes == 8 { 2 * stride } else { stride };
        let high = self.print.body.op_to_temp(Class::B32, "shf.l.wrap", ".b32", &[last, 0.into(), shift.into()]);
        let high_mask = self.print.body.op_to_temp(Class::B32, "shf.l.wrap", ".b32", &[ones, 0.into(), shift.into()]);
        self.merge(base, offset + end, high, high_mask);
    }

    /// Replaces the bits of a cell that are set in `mask` by those of `bits`.
    fn merge(&mut self, base: Reg, offset: i64, bits: Reg, mask: Reg) {
        let old = self.print.body.temp(Class::B32);
        self.print.body.load(self.ld(), ".u32", old, base, offset);
        let keep = self.print.body.op_to_temp(Class::B32, "not", ".b32", &[mask.into()]);
        let kept = self.print.body.op_to_temp(Class::B32, "and", ".b32", &[old.into(), keep.into()]);
        let new = self.print.body.op_to_temp(Class::B32, "or", ".b32", &[kept.into(), bits.into()]);
        self.print.body.store(self.st(), ".u32", base, offset, new.into());
    }
}
