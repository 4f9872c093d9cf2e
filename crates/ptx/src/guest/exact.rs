//! Exact builds: guest accesses that are right whatever the instance did before.
//!
//! One check of a root covers all its near accesses in a block ([`crate::analysis::exact`]):
//!
//! ```text
//! shf.r.wrap.b32  %r1, %r0, %r0, 2      if the root is misaligned, its low bits are on top now: the number is huge
//! setp.ge.u32     %p0, %r1, %r9         %r9: the memory's length less GUARD (for the constants), in units of 4
//! @%p0 bra        $L0                   to the slow path, out of line; the root's next access begins with this line
//! mad.wide.u32    %d1, %r0, 32, %d0     once for all accesses of the root in the block
//! ld.global.u32   %r2, [%d1+512]
//! ```
//!
//! An access that fails the check takes the slow path, a call of a function of [`super::slow_path`]. The function traps
//! if the access is out of bounds; otherwise it makes the access, aligned or not. Accesses fail the check near the end
//! of memory, after the memory grew (the slow path therefore reads the limit again), and if they are misaligned. The
//! predicate keeps its value, so the root's other accesses in the block take the slow path, too. Where several accesses
//! follow each other, one branch serves all of them ([`crate::analysis::runs`]).
//!
//! In a gang, most failed checks trap: the memory ends with a guard and never grows, so an access that fails is out of
//! bounds, or is misaligned where the module promised alignment. Only accesses without that promise have a slow path.
//!
//! Where cells have 4 bytes, loads without a promise of alignment do not branch: reading two cells and shifting them
//! together is cheaper than lanes that diverge.

use super::{Guest, Tested, find};
use crate::Error;
use crate::analysis::GuestChecks;
use crate::analysis::access::{Access, Root};
use crate::analysis::exact::{ExactChecks, RootCheck, is_near, is_strict};
use crate::analysis::values;
use crate::print::body::{Label, When};
use crate::print::memory::{Address, Read};
use crate::print::register::{Class, Operand, Reg};
use cranelift_codegen::ir::{self, Inst, Value, types};
use gpu_run_abi::layout::{GUARD, field};
use gpu_run_abi::{TrapCode, TrapRecord};

/// The code that makes an access.
enum Way {
    /// `[register+offset]`: the whole value, or its cells one after the other.
    Plain(Reg, i64),
    /// The cells around the value, shifted together: the address of the first cell, an offset, and a register with the
    /// low bits of the guest address.
    Around(Reg, i64, Reg),
    /// A call of the slow path.
    Slow,
}

impl Guest<'_> {
    /// Loads the limits that the function's checks compare with.
    pub(super) fn exact_prologue(&mut self, checks: &ExactChecks) -> Result<(), Error> {
        for (shift, _) in checks.shifts.iter().enumerate().filter(|(_, used)| **used) {
            self.limits[shift] = Some(self.print.body.temp(Class::B32));
        }
        if self.print.program.is_gang() {
            self.constant_limits();
            return Ok(());
        }
        self.read_limits()
    }

    /// Sets the limits of a memory that never grows.
    fn constant_limits(&mut self) {
        let whole = self.print.program.memory.least.saturating_sub(GUARD) as u32;
        for (shift, limit) in self.limits.into_iter().enumerate() {
            if let Some(limit) = limit {
                let constant = Operand::Int(i64::from((whole >> shift) as i32));
                self.print.body.op("mov", ".b32", &[limit.into(), constant]);
            }
        }
    }

    /// Reads the limits: at the function's entry, and again after a slow path.
    pub(crate) fn read_limits(&mut self) -> Result<(), Error> {
        let limits = self.limits;
        if limits.iter().all(Option::is_none) {
            return Ok(());
        }
        let instance = self.print.instance()?;
        let at = self.print.program.layout().offset(field::MEMORY_FAST) as i64;
        let whole = limits[0].unwrap_or_else(|| self.print.body.temp(Class::B32));
        self.print.slot_load(".u32", whole, Address { base: instance, offset: at });
        let body = &mut self.print.body;
        for (shift, limit) in (1..).zip(&limits[1..]) {
            if let Some(limit) = *limit {
                body.op("shr", ".u32", &[limit.into(), whole.into(), Operand::Int(shift)]);
            }
        }
        Ok(())
    }

    pub(super) fn exact_load(
        &mut self,
        checks: &ExactChecks,
        inst: Inst,
        read: Read,
        result: Reg,
        access: &Access,
    ) -> Result<(), Error> {
        let (way, slow) = self.way(checks, access, inst)?;
        let done = self.print.body.local();
        // In a linear layout, a plain access may still be misaligned if nothing promised alignment.
        let is_unsure = access.is_doubtful() && self.print.program.layout().spread() == 1;
        match way {
            Way::Slow => self.slow_load(inst, read, result, access)?,
            Way::Around(base, offset, word) => self.load_around(read, result, base, offset, word),
            Way::Plain(base, offset) if is_unsure => self.load_doubtful(read, result, base, offset),
            Way::Plain(base, offset) => self.load_cells(read, result, base, offset),
        }
        let Some(slow) = slow else { return Ok(()) };
        self.print.body.place(done);
        self.slow_path(slow, done, |guest| guest.slow_load(inst, read, result, access))
    }

    pub(super) fn exact_store(
        &mut self,
        checks: &ExactChecks,
        inst: Inst,
        suffix: &str,
        value: Operand,
        access: &Access,
    ) -> Result<(), Error> {
        let (way, slow) = self.way(checks, access, inst)?;
        let done = self.print.body.local();
        match way {
            Way::Plain(base, offset) => self.store_cells(access.bytes, suffix, base, offset, value),
            Way::Slow | Way::Around(..) => self.slow_store(inst, value, access)?,
        }
        let Some(slow) = slow else { return Ok(()) };
        self.print.body.place(done);
        self.slow_path(slow, done, |guest| guest.slow_store(inst, value, access))
    }

    /// Checks an access, and returns how to make it. If there is a label, the caller has to print a slow path that
    /// begins at the label and continues behind the access.
    fn way(&mut self, checks: &ExactChecks, access: &Access, inst: Inst) -> Result<(Way, Option<Label>), Error> {
        let program = self.print.program;
        let root = match access.root {
            Root::Constant(root) => {
                let first = u64::from(root) + access.displacement();
                let is_inside = u64::from(root) + access.end() <= program.memory.least;
                if !is_inside || !first.is_multiple_of(program.unit(access.bytes)) {
                    return Ok((Way::Slow, None));
                }
                let (base, offset) = self.displaced(program.layout().offset(first));
                return Ok((Way::Plain(base, offset), None));
            }
            Root::Value(root) => root,
        };
        // The analysis has a check for the root of every near access.
        let Some(check) = checks.of(self.known.block, root).filter(|_| is_near(program, access)) else {
            return self.far_way(root, access, inst);
        };
        if program.is_gang() && !check.is_lenient {
            self.settle_root(root, check, inst)?;
            return Ok((self.near_way(root, check, access), None));
        }
        match self.tested {
            Tested::Failed => return Ok((Way::Slow, None)),
            Tested::Passed => return Ok((self.near_way(root, check, access), None)),
            Tested::No => {}
        }
        let failed = self.root_check(root, check);
        let slow = self.print.body.local();
        self.print.body.branch_if(failed, When::True, slow);
        Ok((self.near_way(root, check, access), Some(slow)))
    }

    /// Makes the checks of a run's roots, computes the addresses that they lead to, and returns a predicate that is true if a
    /// check failed.
    pub(crate) fn test_all(&mut self, roots: &[Value]) -> Option<Reg> {
        let GuestChecks::Exact(checks) = &self.print.analysis.checks else { return None };
        let layout = self.print.program.layout();
        let mut any: Option<Reg> = None;
        for &root in roots {
            let Some(check) = checks.of(self.known.block, root) else { continue };
            let failed = self.root_check(root, check);
            any = Some(match any {
                None => failed,
                Some(any) => self.print.body.op_to_temp(Class::Pred, "or", ".pred", &[any.into(), failed.into()]),
            });
            if layout.spread() == 1 {
                self.linear_address(root);
            } else if u64::from(1u32 << check.alignment) >= layout.cell() {
                self.cells_address(root);
            }
        }
        any
    }

    /// In a gang: checks a root once in a block, and traps if the check fails.
    fn settle_root(&mut self, root: Value, check: &RootCheck, inst: Inst) -> Result<(), Error> {
        if !self.known.settled.contains(&root) {
            let failed = self.root_check(root, check);
            self.trap_outside(failed, inst)?;
            self.known.settled.push(root);
        }
        Ok(())
    }

    /// Returns a predicate that is true if the root is misaligned for the block's accesses or too near the end of
    /// memory.
    fn root_check(&mut self, root: Value, check: &RootCheck) -> Reg {
        if let Some(known) = find(&self.known.failed, root) {
            return known;
        }
        let word = self.root_word(root);
        let limit = self.limits[check.shift as usize].unwrap_or(word);
        let body = &mut self.print.body;
        let turned = match check.shift {
            0 => word,
            shift => {
                let operands = [word.into(), word.into(), i64::from(shift).into()];
                body.op_to_temp(Class::B32, "shf.r.wrap", ".b32", &operands)
            }
        };
        let failed = body.op_to_temp(Class::Pred, "setp.ge", ".u32", &[turned.into(), limit.into()]);
        self.known.failed.push((root, failed));
        failed
    }

    fn trap_outside(&mut self, failed: Reg, inst: Inst) -> Result<(), Error> {
        let code = ir::TrapCode::unwrap_user(TrapCode::MemoryOutOfBounds as u8);
        self.print.trap_if(failed, When::True, code, inst)
    }

    fn near_way(&mut self, root: Value, check: &RootCheck, access: &Access) -> Way {
        let program = self.print.program;
        let (layout, by) = (program.layout(), access.displacement());
        if layout.spread() == 1 {
            return Way::Plain(self.linear_address(root), by as i64);
        }
        // If the root is aligned to cells, its distance to the access is a constant on the device, too.
        let keeps_alignment = !access.is_doubtful() || by.is_multiple_of(program.unit(access.bytes));
        if u64::from(1u32 << check.alignment) >= layout.cell() && keeps_alignment {
            return Way::Plain(self.cells_address(root), layout.offset(by) as i64);
        }
        let word = self.root_word(root);
        let (word, cells) = match by.is_multiple_of(layout.cell()) {
            true => (word, by),
            false => (self.print.body.op_to_temp(Class::B32, "add", ".u32", &[word.into(), (by as i64).into()]), 0),
        };
        self.split_address(word, cells, access.is_doubtful())
    }

    /// Computes the address of a byte from its cell. If the value may lie in two cells (`is_around`), returns the
    /// cell's address and the register with the low bits.
    fn split_address(&mut self, word: Reg, cells: u64, is_around: bool) -> Way {
        let (base, offset) = self.cell_of(word, cells);
        match is_around {
            true => Way::Around(base, offset, word),
            false => Way::Plain(self.byte_in(base, word), offset),
        }
    }

    /// Checks an access on its own, against the memory's minimum length. Such accesses reach beyond the guard, into
    /// static data for instance, or are not aligned whenever their root is.
    fn far_way(&mut self, root: Value, access: &Access, inst: Inst) -> Result<(Way, Option<Label>), Error> {
        let program = self.print.program;
        let (layout, size) = (program.layout(), program.unit(access.bytes));
        let Some(last) = program.memory.least.checked_sub(access.end()) else { return Ok((Way::Slow, None)) };
        let word = self.root_word(root);
        let (body, at_most) = (&mut self.print.body, i64::from(last as i32));
        let outside = body.op_to_temp(Class::Pred, "setp.gt", ".u32", &[word.into(), at_most.into()]);
        // An access that fails a check branches to this label, or traps.
        let slow = body.local();
        let slow = (!is_strict(program, access)).then_some(slow);
        self.leave_if(outside, slow, inst)?;
        let by = Operand::Int(i64::from(access.displacement() as i32));
        let at = self.print.body.op_to_temp(Class::B32, "add", ".u32", &[word.into(), by]);
        let known = values::trailing_zeros(self.print.func, root).min(access.displacement().trailing_zeros());
        let is_aligned = u64::from(1u32 << known.min(3)) >= size;
        if access.expects_alignment && !is_aligned {
            let body = &mut self.print.body;
            let low = body.op_to_temp(Class::B32, "and", ".b32", &[at.into(), (size as i64 - 1).into()]);
            let misaligned = body.op_to_temp(Class::Pred, "setp.ne", ".u32", &[low.into(), 0.into()]);
            self.leave_if(misaligned, slow, inst)?;
        }
        let memory = self.memory_register();
        let body = &mut self.print.body;
        let way = if layout.spread() == 1 {
            let wide = body.op_to_temp(Class::B64, "cvt", ".u64.u32", &[at.into()]);
            Way::Plain(body.op_to_temp(Class::B64, "add", ".u64", &[memory.into(), wide.into()]), 0)
        } else if size == layout.cell() && (access.expects_alignment || is_aligned) {
            let operands = [at.into(), (layout.spread() as i64).into(), memory.into()];
            Way::Plain(body.op_to_temp(Class::B64, "mad.wide", ".u32", &operands), 0)
        } else {
            self.split_address(at, 0, access.is_doubtful())
        };
        Ok((way, slow))
    }

    /// Branches to the slow path if a check failed, or traps if there is no slow path.
    fn leave_if(&mut self, failed: Reg, slow: Option<Label>, inst: Inst) -> Result<(), Error> {
        match slow {
            Some(slow) => self.print.body.branch_if(failed, When::True, slow),
            None => self.trap_outside(failed, inst)?,
        }
        Ok(())
    }

    /// Prints a slow path behind the last block. It begins at `slow` and branches back to `done`.
    fn slow_path(
        &mut self,
        slow: Label,
        done: Label,
        write: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let inline = self.print.body.begin_out_of_line();
        self.print.body.place(slow);
        write(self)?;
        if !self.print.program.is_gang() {
            self.read_limits()?;
        }
        self.print.body.branch(done);
        self.print.body.end_out_of_line(inline);
        Ok(())
    }

    fn slow_load(&mut self, inst: Inst, read: Read, result: Reg, access: &Access) -> Result<(), Error> {
        let [at, offset, site] = self.slow_operands(inst, access);
        let raw = self.print.body.temp(if read.bytes == 8 { Class::B64 } else { Class::B32 });
        let (instance, name) = (self.print.instance()?, self.slow_paths.load(read.bytes));
        self.print.call_helper(Some(raw), name, &[instance.into(), at, offset, site]);
        match read.bytes {
            1 => self.take_byte(read, result, raw),
            _ => self.take_bits(read, result, raw),
        }
        Ok(())
    }

    fn slow_store(&mut self, inst: Inst, value: Operand, access: &Access) -> Result<(), Error> {
        let [at, offset, site] = self.slow_operands(inst, access);
        let raw = self.bits_of(value);
        let (instance, name) = (self.print.instance()?, self.slow_paths.store(access.bytes));
        self.print.call_helper(None, name, &[instance.into(), at, offset, site, raw]);
        Ok(())
    }

    /// Returns the operands of a slow path: the guest address, the offset, and the record of a trap.
    fn slow_operands(&mut self, inst: Inst, access: &Access) -> [Operand; 3] {
        let at = match access.root {
            Root::Constant(root) => Operand::Int(i64::from(root as i32)),
            Root::Value(root) => {
                // The register is not kept for later accesses: this code is out of line.
                let word = match self.print.ty(root) {
                    types::I32 => self.print.in_register(root).into(),
                    _ => self.print.low_word(root),
                };
                match access.folded {
                    0 => word,
                    by => self.print.body.op_to_temp(Class::B32, "add", ".u32", &[word, i64::from(by).into()]).into(),
                }
            }
        };
        let (code, function) = (TrapCode::MemoryOutOfBounds, self.print.function.trap_id);
        let record = TrapRecord { code, function, offset: self.print.source_offset(inst) };
        [at, Operand::Int(i64::from(access.offset as i32)), Operand::Int(record.pack() as i64)]
    }
}
