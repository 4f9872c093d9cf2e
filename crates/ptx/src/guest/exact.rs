//! Exact checks: right at any time, whatever the instance did before.
//!
//! One test of a root answers for all of its accesses in a block:
//!
//! ```text
//! shf.r.wrap.b32  %r1, %r0, %r0, 2      misaligned: the low bits are on top now, and the number is huge
//! setp.ge.u32     %p0, %r1, %r9         %r9: what the memory has, less GUARD for the constants, in units of 4
//! @%p0 bra        $L0                   to the exact way, out of line; the next access of the root begins here
//! mad.wide.u32    %d1, %r0, 32, %d0     for all accesses of the root in the block
//! ld.global.u32   %r2, [%d1+512]
//! ```
//!
//! What fails the test goes the cold way, a call of [`crate::guest::slow_path`]: it traps if the access is outside, and else makes it, aligned or not. It is taken near a
//! memory's end, after the memory grew (the limit is read again then), and for misaligned accesses; a predicate stays as it
//! was, so what follows takes it too.
//!
//! In a gang nothing comes back: its memory ends with a guard and never grows, so what fails the test is outside, or is misaligned where the module promised
//! otherwise, and traps. Only accesses without that promise have a cold way.
//!
//! Loads whose alignment nothing promises do not branch where cells are 4 bytes: two cells shifted together are
//! cheaper than lanes that part.

use crate::function::Emitter;
use crate::guest::{Access, Root, find};
use crate::print::body::{Label, When};
use crate::print::integer::low_word;
use crate::print::memory::Read;
use crate::print::register::{Class, Operand, Reg};
use cranelift_codegen::ir::{self, Block, Inst, Value, types};
use gpu_run_abi::layout::{GUARD, field};
use gpu_run_abi::{TrapCode, TrapRecord};
use smallvec::SmallVec;

/// How an access is made.
enum Way {
    /// `[register+offset]`, the whole value or its cells one after the other.
    Plain(Reg, i64),
    /// Around these bytes: the address of the cell, an offset, and the address's low bits.
    Around(Reg, i64, Reg),
    /// By the exact way only.
    Exact,
}

/// What a function's tests share.
#[derive(Debug, Default)]
pub(crate) struct Exact {
    /// By how many bits it is shifted: the limit of roots.
    limits: [Option<Reg>; 4],
    /// Alignment that a root's accesses need in this block, as a power of two.
    needs: SmallVec<[(Value, u32); 8]>,
    /// Roots of this block with an access that may come back from its test.
    lenient: SmallVec<[Value; 4]>,
    /// Roots that this block has tested for good.
    settled: SmallVec<[Value; 8]>,
    /// The predicates of the roots this block has tested.
    pub(crate) tests: SmallVec<[(Value, Reg); 8]>,
}

impl Emitter<'_> {
    /// Loads what the function's accesses share.
    pub(crate) fn exact_plan(&mut self) -> Result<(), crate::Error> {
        let layout = &self.func.layout;
        let mut any = false;
        let mut shifts = [false; 4];
        for block in layout.blocks() {
            self.exact_block(block);
            for inst in layout.block_insts(block) {
                let Some(access) = self.guest_access(inst) else { continue };
                any = true;
                if let Root::Value(root) = access.root
                    && self.is_near(&access)
                {
                    shifts[self.test_shift(root) as usize] = true;
                }
            }
        }
        if !any {
            return Ok(());
        }
        self.find_memory()?;
        for (shift, _) in shifts.iter().enumerate().filter(|(_, used)| **used) {
            self.exact.limits[shift] = Some(self.body.temp(Class::B32));
        }
        if self.symbols.memory().region > 0 {
            self.fixed_limits();
            return Ok(());
        }
        self.exact_limits()
    }

    /// The limits of a memory that never grows.
    fn fixed_limits(&mut self) {
        let fast = self.symbols.memory().least.saturating_sub(GUARD) as u32;
        for (shift, limit) in self.exact.limits.into_iter().enumerate() {
            if let Some(limit) = limit {
                let most = Operand::Int(i64::from((fast >> shift) as i32));
                self.body.op("mov", ".b32", &[limit.into(), most]);
            }
        }
    }

    /// Reads the limits, at first or again.
    fn exact_limits(&mut self) -> Result<(), crate::Error> {
        let limits = self.exact.limits;
        if limits.iter().all(Option::is_none) {
            return Ok(());
        }
        let instance = self.instance()?;
        let at = self.symbols.layout().offset(field::MEMORY_FAST) as i64;
        let whole = limits[0].unwrap_or_else(|| self.body.temp(Class::B32));
        self.body.load("ld.global", ".u32", whole, instance, at);
        for (shift, limit) in (1..).zip(&limits[1..]) {
            if let Some(limit) = *limit {
                self.body.op("shr", ".u32", &[limit.into(), whole.into(), Operand::Int(shift)]);
            }
        }
        Ok(())
    }

    /// Forgets the last block, and looks what alignment the roots of this one need.
    pub(crate) fn exact_block(&mut self, block: Block) {
        let mut needs = std::mem::take(&mut self.exact.needs);
        let mut lenient = std::mem::take(&mut self.exact.lenient);
        needs.clear();
        lenient.clear();
        self.exact.settled.clear();
        for inst in self.func.layout.block_insts(block) {
            let Some(access) = self.guest_access(inst) else { continue };
            let Root::Value(root) = access.root else { continue };
            if !self.is_near(&access) {
                continue;
            }
            if !self.is_strict(&access) {
                lenient.push(root);
            }
            let need = self.need(&access);
            match needs.iter_mut().find(|(v, _)| *v == root) {
                Some((_, most)) => *most = need.max(*most),
                None => needs.push((root, need)),
            }
        }
        self.exact.needs = needs;
        self.exact.lenient = lenient;
    }

    /// Whether what fails the access's test traps: a load without a promise is made both ways, a store is not.
    fn is_strict(&self, access: &Access) -> bool {
        self.symbols.memory().region > 0 && (access.promised || !access.expected)
    }

    /// Traps where a test fails.
    fn settle(&mut self, test: Reg, inst: Inst) -> Result<(), crate::Error> {
        let code = ir::TrapCode::unwrap_user(TrapCode::MemoryOutOfBounds as u8);
        self.trap_if(test, When::True, code, inst)
    }

    /// Whether the root's own test answers for the access.
    fn is_near(&self, access: &Access) -> bool {
        let size = self.unit(access.bytes);
        access.displacement() + u64::from(access.bytes) <= GUARD
            && (!access.expected || access.displacement().is_multiple_of(size))
    }

    /// Alignment the access asks of its root, as a power of two.
    fn need(&self, access: &Access) -> u32 {
        if access.expected { self.unit(access.bytes).trailing_zeros() } else { 0 }
    }

    /// Alignment that the block's test of a root gives, and by how much the test turns it: not where it is known anyway.
    fn alignment(&self, root: Value) -> (u32, u32) {
        let (need, known) = (find(&self.exact.needs, root).unwrap_or(0), self.trailing_zeros(root, 4));
        (need.max(known.min(3)), if known >= need { 0 } else { need })
    }

    fn test_shift(&self, root: Value) -> u32 {
        self.alignment(root).1
    }

    /// Tests an access and finds its way. Where the label is not `None` the exact way begins there, and must end behind the access.
    fn guest_way(&mut self, access: &Access, inst: Inst) -> Result<(Way, Option<Label>), crate::Error> {
        let layout = self.symbols.layout();
        let size = self.unit(access.bytes);
        let end = access.displacement() + u64::from(access.bytes);
        Ok(match access.root {
            Root::Constant(root) => {
                let first = u64::from(root) + access.displacement();
                let is_inside = u64::from(root) + end <= self.symbols.memory().least;
                if is_inside && first.is_multiple_of(size) {
                    let (base, offset) = self.displaced(layout.offset(first));
                    (Way::Plain(base, offset), None)
                } else {
                    (Way::Exact, None)
                }
            }
            Root::Value(root) if self.is_near(access) && self.is_settled(root, inst)? => {
                (self.near_way(root, access), None)
            }
            Root::Value(root) if self.is_near(access) => {
                let test = self.near_test(root);
                let exact = self.body.local();
                self.body.branch_if(test, When::True, exact);
                (self.near_way(root, access), Some(exact))
            }
            Root::Value(root) => self.far_way(root, access, inst)?,
        })
    }

    /// Tests a root for good, once in a block, if none of its accesses there can do with less.
    fn is_settled(&mut self, root: Value, inst: Inst) -> Result<bool, crate::Error> {
        if self.symbols.memory().region == 0 || self.exact.lenient.contains(&root) {
            return Ok(false);
        }
        if !self.exact.settled.contains(&root) {
            let test = self.near_test(root);
            self.settle(test, inst)?;
            self.exact.settled.push(root);
        }
        Ok(true)
    }

    /// True where the root is misaligned for the block, or too near the memory's end.
    fn near_test(&mut self, root: Value) -> Reg {
        if let Some(known) = find(&self.exact.tests, root) {
            return known;
        }
        let shift = self.test_shift(root);
        let word = self.root_word(root);
        let turned = match shift {
            0 => word,
            _ => {
                let operands = [word.into(), word.into(), i64::from(shift).into()];
                self.body.op_to_temp(Class::B32, "shf.r.wrap", ".b32", &operands)
            }
        };
        let limit = self.exact.limits[shift as usize].unwrap_or(word);
        let test = self.body.op_to_temp(Class::Pred, "setp.ge", ".u32", &[turned.into(), limit.into()]);
        self.exact.tests.push((root, test));
        test
    }

    fn near_way(&mut self, root: Value, access: &Access) -> Way {
        let layout = self.symbols.layout();
        let (aligned, _) = self.alignment(root);
        let is_doubtful = !access.expected && access.bytes > 1;
        if layout.spread() == 1 {
            let address = self.linear_address(root);
            return Way::Plain(address, access.displacement() as i64);
        }
        // Aligned to cells, every displacement is a constant on the device too.
        if u64::from(1u32 << aligned) >= layout.cell() {
            let by = access.displacement();
            let fits = !is_doubtful || by.is_multiple_of(self.unit(access.bytes));
            if fits {
                let address = self.cells_address(root);
                return Way::Plain(address, layout.offset(by) as i64);
            }
        }
        let word = self.root_word(root);
        let (word, cells) = match access.displacement() {
            by if by.is_multiple_of(layout.cell()) => (word, by),
            by => (self.body.op_to_temp(Class::B32, "add", ".u32", &[word.into(), (by as i64).into()]), 0),
        };
        self.split_address(word, cells, is_doubtful)
    }

    /// The address of a byte by its cell; where the value may lie in two cells, the cell's and the low bits.
    fn split_address(&mut self, word: Reg, cells: u64, is_around: bool) -> Way {
        let (base, offset) = self.cell_of(word, cells);
        match is_around {
            true => Way::Around(base, offset, word),
            false => Way::Plain(self.byte_in(base, word), offset),
        }
    }

    /// An access whose offset is beyond the guard, into static data for instance, or does not keep the root's alignment: a test of its own, against what the
    /// memory has at least.
    fn far_way(&mut self, root: Value, access: &Access, inst: Inst) -> Result<(Way, Option<Label>), crate::Error> {
        let layout = self.symbols.layout();
        let end = access.displacement() + u64::from(access.bytes);
        let Some(last) = self.symbols.memory().least.checked_sub(end) else { return Ok((Way::Exact, None)) };
        let strict = self.is_strict(access);
        let size = self.unit(access.bytes);
        let is_doubtful = !access.expected && access.bytes > 1;
        let word = self.root_word(root);
        let outside = self.body.op_to_temp(Class::Pred, "setp.gt", ".u32", &[word.into(), (last as i32 as i64).into()]);
        let exact = self.body.local();
        match strict {
            true => self.settle(outside, inst)?,
            false => self.body.branch_if(outside, When::True, exact),
        }
        let by = Operand::Int(access.displacement() as i32 as i64);
        let at = self.body.op_to_temp(Class::B32, "add", ".u32", &[word.into(), by]);
        let known = self.trailing_zeros(root, 4).min(access.displacement().trailing_zeros());
        let is_aligned = u64::from(1u32 << known.min(3)) >= size;
        if access.expected && !is_aligned {
            let low = self.body.op_to_temp(Class::B32, "and", ".b32", &[at.into(), (size as i64 - 1).into()]);
            let test = self.body.op_to_temp(Class::Pred, "setp.ne", ".u32", &[low.into(), 0.into()]);
            match strict {
                true => self.settle(test, inst)?,
                false => self.body.branch_if(test, When::True, exact),
            }
        }
        let memory = self.memory_register();
        let way = if layout.spread() == 1 {
            let wide = self.body.op_to_temp(Class::B64, "cvt", ".u64.u32", &[at.into()]);
            Way::Plain(self.body.op_to_temp(Class::B64, "add", ".u64", &[memory.into(), wide.into()]), 0)
        } else if size == layout.cell() && (access.expected || is_aligned) {
            let operands = [at.into(), (layout.spread() as i64).into(), memory.into()];
            Way::Plain(self.body.op_to_temp(Class::B64, "mad.wide", ".u32", &operands), 0)
        } else {
            self.split_address(at, 0, is_doubtful)
        };
        Ok((way, (!strict).then_some(exact)))
    }

    pub(crate) fn exact_load(
        &mut self,
        inst: Inst,
        read: Read,
        result: Reg,
        access: &Access,
    ) -> Result<(), crate::Error> {
        let (way, exact) = self.guest_way(access, inst)?;
        let done = self.body.local();
        match way {
            Way::Exact => self.cold_load(inst, read, result, access)?,
            Way::Around(base, offset, word) => self.load_around(read, result, base, offset, word),
            Way::Plain(base, offset) if self.is_unsure(access) => self.load_doubtful(read, result, base, offset),
            Way::Plain(base, offset) => self.load_cells(read, result, base, offset),
        }
        let Some(exact) = exact else { return Ok(()) };
        self.body.place(done);
        self.cold_path(exact, done, |e| e.cold_load(inst, read, result, access))
    }

    /// Whether a plain access may still be misaligned: only where nothing promised otherwise and cells are whole words.
    fn is_unsure(&self, access: &Access) -> bool {
        let is_doubtful = !access.expected && access.bytes > 1;
        is_doubtful && self.symbols.layout().spread() == 1
    }

    pub(crate) fn exact_store(
        &mut self,
        inst: Inst,
        suffix: &str,
        value: Operand,
        access: &Access,
    ) -> Result<(), crate::Error> {
        let (way, exact) = self.guest_way(access, inst)?;
        let done = self.body.local();
        match way {
            Way::Plain(base, offset) => self.store_cells(access.bytes, suffix, base, offset, value),
            Way::Exact | Way::Around(..) => self.cold_store(inst, value, access)?,
        }
        let Some(exact) = exact else { return Ok(()) };
        self.body.place(done);
        self.cold_path(exact, done, |e| e.cold_store(inst, value, access))
    }

    /// Writes the exact way behind the last block: from `exact` on, back to `done`.
    fn cold_path(
        &mut self,
        exact: Label,
        done: Label,
        write: impl FnOnce(&mut Self) -> Result<(), crate::Error>,
    ) -> Result<(), crate::Error> {
        self.out_of_line(|e| {
            e.body.place(exact);
            write(e)?;
            if e.symbols.memory().region == 0 {
                e.exact_limits()?;
            }
            e.body.branch(done);
            Ok(())
        })
    }

    fn cold_load(&mut self, inst: Inst, read: Read, result: Reg, access: &Access) -> Result<(), crate::Error> {
        let [at, offset, site] = self.cold_operands(inst, access);
        let raw = self.body.temp(if read.bytes == 8 { Class::B64 } else { Class::B32 });
        let (instance, name) = (self.instance()?, self.cold.load(read.bytes));
        self.call_helper(Some(raw), name, &[instance.into(), at, offset, site]);
        match read.bytes {
            1 => self.take_byte(read, result, raw),
            _ => self.take_bits(read, result, raw),
        }
        Ok(())
    }

    fn cold_store(&mut self, inst: Inst, value: Operand, access: &Access) -> Result<(), crate::Error> {
        let [at, offset, site] = self.cold_operands(inst, access);
        let raw = self.bits_of(value);
        let (instance, name) = (self.instance()?, self.cold.store(access.bytes));
        self.call_helper(None, name, &[instance.into(), at, offset, site, raw]);
        Ok(())
    }

    /// The guest's address, the offset, and the record of a trap.
    fn cold_operands(&mut self, inst: Inst, access: &Access) -> [Operand; 3] {
        let at = match access.root {
            Root::Constant(root) => Operand::Int(i64::from(root as i32)),
            Root::Value(root) => {
                // Not kept for later accesses: this stands in another place.
                let word = match self.ty(root) {
                    types::I32 => self.in_register(root).into(),
                    _ => low_word(self, root),
                };
                match access.folded {
                    0 => word,
                    by => self.body.op_to_temp(Class::B32, "add", ".u32", &[word, i64::from(by).into()]).into(),
                }
            }
        };
        let location = self.func.srcloc(inst);
        let offset = if location.is_default() { 0 } else { location.bits() };
        let record = TrapRecord { code: TrapCode::MemoryOutOfBounds, function: self.function.trap_id, offset };
        [at, Operand::Int(i64::from(access.offset as i32)), Operand::Int(record.pack() as i64)]
    }
}
