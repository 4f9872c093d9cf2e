//! The guest's memory: from a guest address to an access that is inside the memory and aligned.
//!
//! CLIF names the guest's address; everything else is decided here, for all accesses of a block together. An address is
//! its *root* plus constants, and most roots serve several accesses. One test of a root answers for all of them:
//!
//! ```text
//! shf.r.wrap.b32  %r1, %r0, %r0, 2      misaligned: the low bits are on top now, and the number is huge
//! setp.ge.u32     %p0, %r1, %r9         %r9: what the memory has, less GUARD for the constants, in units of 4
//! @%p0 bra        $L0                   to the exact way, out of line; the next access of the root begins here
//! mad.wide.u32    %d1, %r0, 32, %d0     for all accesses of the root in the block
//! ld.global.u32   %r2, [%d1+512]
//! ```
//!
//! The exact way is a call of [`crate::cold`]: it traps if the access is outside, and else makes it, aligned or not. It is taken near a
//! memory's end, after the memory grew (the limit is read again then), and for misaligned accesses; a predicate stays as it
//! was, so what follows takes it too.
//!
//! Loads whose alignment nothing promises do not branch where cells are 4 bytes: two cells shifted together are
//! cheaper than lanes that part.

use crate::body::{Label, When};
use crate::fast::Checks;
use crate::function::Emitter;
use crate::integer::low_word;
use crate::memory::Read;
use crate::regs::{Class, Operand, Reg};
use cranelift_codegen::ir::{Block, Inst, InstructionData, MemFlags, Opcode, Value, ValueDef, types};
use gpu_run_abi::layout::{GUARD, field};
use gpu_run_abi::{Layout, TrapCode, TrapRecord};
use smallvec::SmallVec;

/// What is known of the memory when it is compiled for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    /// Where in a slot it begins, before [`gpu_run_abi::Layout::offset`].
    pub at: u64,
    /// Bytes it never has fewer of.
    pub least: u64,
    /// The guest address that has this place; what is below has none. 0 with exact checks.
    pub low: u64,
}

impl Memory {
    /// From the instance to guest byte 0.
    pub(crate) fn offset(&self, layout: Layout) -> i64 {
        layout.offset(self.at) as i64 - (self.low * layout.spread()) as i64
    }
}

/// What an access's address is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    Constant(u32),
    /// An i32, or an i64 that is one zero-extended.
    Value(Value),
}

/// An access, before it is known where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) root: Root,
    /// Added to the root by the guest, in 32 bits.
    folded: u32,
    /// The instruction's own offset.
    offset: u32,
    pub(crate) bytes: u32,
    /// Whether it is expected to be aligned.
    pub(crate) expected: bool,
}

impl Access {
    /// From the root to the first byte.
    pub(crate) fn displacement(&self) -> u64 {
        u64::from(self.folded) + u64::from(self.offset)
    }
}

/// How an access is made.
enum Way {
    /// `[register+offset]`, the whole value or its cells one after the other.
    Plain(Reg, i64),
    /// Around these bytes: the address of the cell, an offset, and the address's low bits.
    Around(Reg, i64, Reg),
    /// By the exact way only.
    Exact,
}

/// What a function's guest accesses share.
#[derive(Debug, Default)]
pub(crate) struct Guest {
    pub(crate) memory: Option<Reg>,
    /// By how many bits it is shifted: the limit of roots.
    limits: [Option<Reg>; 4],
    /// Alignment that a root's accesses need in this block, as a power of two.
    needs: SmallVec<[(Value, u32); 8]>,
    /// What this block has already made of a root: the test's predicate, the address, the low 32 bits.
    tests: SmallVec<[(Value, Reg); 8]>,
    addresses: SmallVec<[(Value, Reg); 8]>,
    words: SmallVec<[(Value, Reg); 4]>,
}

fn find<T: Copy>(known: &[(Value, T)], value: Value) -> Option<T> {
    known.iter().find(|(v, _)| *v == value).map(|(_, t)| *t)
}

impl Emitter<'_> {
    pub(crate) fn is_guest(&self, flags: MemFlags) -> bool {
        let region = self.func.dfg.mem_flags[flags].alias_region();
        region.is_some() && region == self.guest_region
    }

    /// The access an instruction makes to guest memory, if it does.
    pub(crate) fn guest_access(&self, inst: Inst) -> Option<Access> {
        let (opcode, at, flags, offset) = match self.func.dfg.insts[inst] {
            InstructionData::Load { opcode, arg, flags, offset } => (opcode, arg, flags, offset),
            InstructionData::Store { opcode, args: [_, at], flags, offset } => (opcode, at, flags, offset),
            _ => return None,
        };
        if !self.is_guest(flags) {
            return None;
        }
        let bytes = match opcode {
            Opcode::Uload8 | Opcode::Sload8 | Opcode::Istore8 => 1,
            Opcode::Uload16 | Opcode::Sload16 | Opcode::Istore16 => 2,
            Opcode::Uload32 | Opcode::Sload32 | Opcode::Istore32 => 4,
            Opcode::Store => self.func.dfg.value_type(self.func.dfg.inst_args(inst)[0]).bytes(),
            _ => self.func.dfg.ctrl_typevar(inst).bytes(),
        };
        // An offset is a u32 that the front end keeps below 2^31.
        let offset = i32::from(offset) as u32;
        // A store that is misaligned goes byte by byte, in the cold, whatever was expected; quick checks have no such way.
        let has_cold = self.symbols.checks() == Checks::Exact;
        let expected = self.func.dfg.mem_flags[flags].aligned() || (has_cold && opcode.can_store());
        let (root, folded) = self.root(at, u64::from(offset) + u64::from(bytes));
        Some(Access { root, folded, offset, bytes, expected })
    }

    /// Where an address comes from, and the constant between, as long as `reach` bytes from there stay within the guard.
    fn root(&self, at: Value, reach: u64) -> (Root, u32) {
        let dfg = &self.func.dfg;
        let def = |value| match dfg.value_def(value) {
            ValueDef::Result(inst, _) => Some(dfg.insts[inst]),
            _ => None,
        };
        let at = dfg.resolve_aliases(at);
        if let Some(constant) = self.constant(at) {
            return (Root::Constant(constant as u32), 0);
        }
        let mut root = match def(at) {
            Some(InstructionData::Unary { opcode: Opcode::Uextend, arg }) if self.ty(arg) == types::I32 => {
                dfg.resolve_aliases(arg)
            }
            _ => return (Root::Value(at), 0),
        };
        let mut folded = 0u32;
        while let Some(InstructionData::Binary { opcode: Opcode::Iadd, args: [a, b] }) = def(root) {
            let split = [(a, self.constant(b)), (b, self.constant(a))];
            let Some((base, by)) = split.into_iter().find_map(|(v, c)| Some((v, c?))) else { break };
            let fits = by >= 0 && u64::from(folded) + by as u64 + reach <= GUARD;
            if !fits {
                break;
            }
            folded += by as u32;
            root = dfg.resolve_aliases(base);
        }
        match self.constant(root) {
            Some(constant) => (Root::Constant((constant as u32).wrapping_add(folded)), 0),
            None => (Root::Value(root), folded),
        }
    }

    /// The value an access needs in a register, besides what it stores.
    pub(crate) fn guest_root(&self, access: &Access) -> Option<Value> {
        match access.root {
            Root::Constant(_) => None,
            Root::Value(value) => Some(value),
        }
    }

    /// Loads what the function's accesses share.
    pub(crate) fn guest_prologue(&mut self) -> Result<(), crate::Error> {
        if self.symbols.checks() == Checks::Fast {
            return self.fast_plan();
        }
        let layout = &self.func.layout;
        let mut any = false;
        let mut shifts = [false; 4];
        for block in layout.blocks() {
            self.guest_block(block);
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
        let instance = self.instance()?;
        let at = self.symbols.memory().offset(self.symbols.layout());
        self.guest.memory = Some(self.body.op_to_temp(Class::B64, "add", ".u64", &[instance.into(), at.into()]));
        for (shift, _) in shifts.iter().enumerate().filter(|(_, used)| **used) {
            self.guest.limits[shift] = Some(self.body.temp(Class::B32));
        }
        self.guest_limits()
    }

    /// Reads the limits, at first or again.
    fn guest_limits(&mut self) -> Result<(), crate::Error> {
        let limits = self.guest.limits;
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
    pub(crate) fn guest_block(&mut self, block: Block) {
        self.guest_call();
        let mut needs = std::mem::take(&mut self.guest.needs);
        needs.clear();
        for inst in self.func.layout.block_insts(block) {
            let Some(access) = self.guest_access(inst) else { continue };
            let Root::Value(root) = access.root else { continue };
            if !self.is_near(&access) {
                continue;
            }
            let need = self.need(&access);
            match needs.iter_mut().find(|(v, _)| *v == root) {
                Some((_, most)) => *most = need.max(*most),
                None => needs.push((root, need)),
            }
        }
        self.guest.needs = needs;
    }

    /// A call ends what is kept in registers: it would have to be saved.
    pub(crate) fn guest_call(&mut self) {
        self.guest.tests.clear();
        self.guest.addresses.clear();
        self.guest.words.clear();
    }

    /// Whether the root's own test answers for the access.
    fn is_near(&self, access: &Access) -> bool {
        let size = self.unit(access.bytes);
        access.displacement() + u64::from(access.bytes) <= GUARD
            && (!access.expected || access.displacement().is_multiple_of(size))
    }

    /// The size of one access to the device for a value of so many bytes.
    pub(crate) fn unit(&self, bytes: u32) -> u64 {
        u64::from(bytes).min(self.symbols.layout().cell())
    }

    /// Alignment the access asks of its root, as a power of two.
    fn need(&self, access: &Access) -> u32 {
        if access.expected { self.unit(access.bytes).trailing_zeros() } else { 0 }
    }

    /// Alignment that the block's test of a root gives, and by how much the test turns it: not where it is known anyway.
    fn alignment(&self, root: Value) -> (u32, u32) {
        let (need, known) = (find(&self.guest.needs, root).unwrap_or(0), self.trailing_zeros(root, 4));
        (need.max(known.min(3)), if known >= need { 0 } else { need })
    }

    fn test_shift(&self, root: Value) -> u32 {
        self.alignment(root).1
    }

    /// How many low bits of a value are certainly 0.
    pub(crate) fn trailing_zeros(&self, value: Value, depth: u32) -> u32 {
        let dfg = &self.func.dfg;
        let value = dfg.resolve_aliases(value);
        if let Some(constant) = self.constant(value) {
            return constant.trailing_zeros();
        }
        let ValueDef::Result(inst, _) = dfg.value_def(value) else { return 0 };
        if depth == 0 {
            return 0;
        }
        let of = |v| self.trailing_zeros(v, depth - 1);
        match dfg.insts[inst] {
            InstructionData::Binary { opcode: Opcode::Iadd | Opcode::Isub | Opcode::Bor | Opcode::Bxor, args } => {
                of(args[0]).min(of(args[1]))
            }
            InstructionData::Binary { opcode: Opcode::Band, args } => of(args[0]).max(of(args[1])),
            InstructionData::Binary { opcode: Opcode::Imul, args } => of(args[0]) + of(args[1]),
            InstructionData::Binary { opcode: Opcode::Ishl, args } => match self.constant(args[1]) {
                Some(by @ 0..32) => of(args[0]) + by as u32,
                _ => of(args[0]),
            },
            InstructionData::Ternary { opcode: Opcode::Select, args } => of(args[1]).min(of(args[2])),
            InstructionData::Unary { opcode: Opcode::Uextend, arg } => of(arg),
            _ => 0,
        }
    }

    /// The root in a 32-bit register.
    pub(crate) fn root_word(&mut self, root: Value) -> Reg {
        if self.ty(root) == types::I32 {
            return self.in_register(root);
        }
        if let Some(known) = find(&self.guest.words, root) {
            return known;
        }
        let word = low_word(self, root);
        let word = self.load_operand(word, types::I32);
        self.guest.words.push((root, word));
        word
    }

    fn memory_register(&mut self) -> Reg {
        // Made by the prologue, which saw every access.
        self.guest.memory.unwrap_or_else(|| self.body.temp(Class::B64))
    }

    /// Tests an access and finds its way. Where the label is not `None` the exact way begins there, and must end behind the access.
    fn guest_way(&mut self, access: &Access) -> (Way, Option<Label>) {
        let layout = self.symbols.layout();
        let size = self.unit(access.bytes);
        let end = access.displacement() + u64::from(access.bytes);
        match access.root {
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
            Root::Value(root) if self.is_near(access) => {
                let test = self.near_test(root);
                let exact = self.body.local();
                self.body.branch_if(test, When::True, exact);
                (self.near_way(root, access), Some(exact))
            }
            Root::Value(root) => self.far_way(root, access),
        }
    }

    /// The memory's address, and an offset that PTX takes.
    pub(crate) fn displaced(&mut self, offset: u64) -> (Reg, i64) {
        let memory = self.memory_register();
        match i32::try_from(offset) {
            Ok(offset) => (memory, offset.into()),
            Err(_) => {
                let offset = Operand::Int(offset as i64);
                (self.body.op_to_temp(Class::B64, "add", ".u64", &[memory.into(), offset]), 0)
            }
        }
    }

    /// True where the root is misaligned for the block, or too near the memory's end.
    fn near_test(&mut self, root: Value) -> Reg {
        if let Some(known) = find(&self.guest.tests, root) {
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
        let limit = self.guest.limits[shift as usize].unwrap_or(word);
        let test = self.body.op_to_temp(Class::Pred, "setp.ge", ".u32", &[turned.into(), limit.into()]);
        self.guest.tests.push((root, test));
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

    /// The address of the cell a guest address is in, and the offset of one that is so many bytes further.
    pub(crate) fn cell_of(&mut self, word: Reg, cells: u64) -> (Reg, i64) {
        let layout = self.symbols.layout();
        let (memory, mask) = (self.memory_register(), -(layout.cell() as i64));
        let first = self.body.op_to_temp(Class::B32, "and", ".b32", &[word.into(), mask.into()]);
        let operands = [first.into(), (layout.spread() as i64).into(), memory.into()];
        (self.body.op_to_temp(Class::B64, "mad.wide", ".u32", &operands), layout.offset(cells) as i64)
    }

    /// The address of a byte in its cell.
    pub(crate) fn byte_in(&mut self, cell: Reg, word: Reg) -> Reg {
        let mask = self.symbols.layout().cell() as i64 - 1;
        let byte = self.body.op_to_temp(Class::B32, "and", ".b32", &[word.into(), mask.into()]);
        let byte = self.body.op_to_temp(Class::B64, "cvt", ".u64.u32", &[byte.into()]);
        self.body.op_to_temp(Class::B64, "or", ".b64", &[cell.into(), byte.into()])
    }

    fn linear_address(&mut self, root: Value) -> Reg {
        if let Some(known) = find(&self.guest.addresses, root) {
            return known;
        }
        let (word, memory) = (self.root_word(root), self.memory_register());
        let wide = self.body.op_to_temp(Class::B64, "cvt", ".u64.u32", &[word.into()]);
        let address = self.body.op_to_temp(Class::B64, "add", ".u64", &[memory.into(), wide.into()]);
        self.guest.addresses.push((root, address));
        address
    }

    pub(crate) fn cells_address(&mut self, root: Value) -> Reg {
        if let Some(known) = find(&self.guest.addresses, root) {
            return known;
        }
        let (word, memory) = (self.root_word(root), self.memory_register());
        let spread = self.symbols.layout().spread() as i64;
        let operands = [word.into(), spread.into(), memory.into()];
        let address = self.body.op_to_temp(Class::B64, "mad.wide", ".u32", &operands);
        self.guest.addresses.push((root, address));
        address
    }

    /// An access whose offset is beyond the guard, into static data for instance, or does not keep the root's alignment: a test of its own, against what the
    /// memory has at least.
    fn far_way(&mut self, root: Value, access: &Access) -> (Way, Option<Label>) {
        let layout = self.symbols.layout();
        let end = access.displacement() + u64::from(access.bytes);
        let Some(last) = self.symbols.memory().least.checked_sub(end) else { return (Way::Exact, None) };
        let size = self.unit(access.bytes);
        let is_doubtful = !access.expected && access.bytes > 1;
        let word = self.root_word(root);
        let outside = self.body.op_to_temp(Class::Pred, "setp.gt", ".u32", &[word.into(), (last as i32 as i64).into()]);
        let exact = self.body.local();
        self.body.branch_if(outside, When::True, exact);
        let by = Operand::Int(access.displacement() as i32 as i64);
        let at = self.body.op_to_temp(Class::B32, "add", ".u32", &[word.into(), by]);
        let known = self.trailing_zeros(root, 4).min(access.displacement().trailing_zeros());
        let is_aligned = u64::from(1u32 << known.min(3)) >= size;
        if access.expected && !is_aligned {
            let low = self.body.op_to_temp(Class::B32, "and", ".b32", &[at.into(), (size as i64 - 1).into()]);
            let test = self.body.op_to_temp(Class::Pred, "setp.ne", ".u32", &[low.into(), 0.into()]);
            self.body.branch_if(test, When::True, exact);
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
        (way, Some(exact))
    }

    pub(crate) fn guest_load(
        &mut self,
        inst: Inst,
        read: Read,
        result: Reg,
        access: &Access,
    ) -> Result<(), crate::Error> {
        if self.symbols.checks() == Checks::Fast {
            self.fast_load(inst, read, result, access);
            return Ok(());
        }
        let (way, exact) = self.guest_way(access);
        let done = self.body.local();
        match way {
            Way::Exact => self.exact_load(inst, read, result, access)?,
            Way::Around(base, offset, word) => self.load_around(read, result, base, offset, word),
            Way::Plain(base, offset) if self.is_unsure(access) => self.load_doubtful(read, result, base, offset),
            Way::Plain(base, offset) => self.load_cells(read, result, base, offset),
        }
        let Some(exact) = exact else { return Ok(()) };
        self.body.place(done);
        self.cold_path(exact, done, |e| e.exact_load(inst, read, result, access))
    }

    /// Whether a plain access may still be misaligned: only where nothing promised otherwise and cells are whole words.
    fn is_unsure(&self, access: &Access) -> bool {
        let is_doubtful = !access.expected && access.bytes > 1;
        is_doubtful && self.symbols.layout().spread() == 1
    }

    /// A value in one cell, or in two whole ones.
    pub(crate) fn load_cells(&mut self, read: Read, result: Reg, base: Reg, offset: i64) {
        let layout = self.symbols.layout();
        if u64::from(read.bytes) <= layout.cell() {
            return self.plain_load(read, result, crate::memory::Place { base, offset });
        }
        let (low, high) = (self.body.temp(Class::B32), self.body.temp(Class::B32));
        self.body.load("ld.global", ".u32", low, base, offset);
        self.body.load("ld.global", ".u32", high, base, offset + layout.stride() as i64);
        self.body.pack(result, low.into(), high.into());
    }

    /// A value that begins anywhere in a cell of 4 bytes: that and the next ones, shifted together.
    pub(crate) fn load_around(&mut self, read: Read, result: Reg, base: Reg, offset: i64, word: Reg) {
        let stride = self.symbols.layout().stride() as i64;
        let shift = self.body.op_to_temp(Class::B32, "shl", ".b32", &[word.into(), 3.into()]);
        let count = if read.bytes == 8 { 3 } else { 2 };
        let cells: SmallVec<[Reg; 3]> = (0..count)
            .map(|i| {
                let cell = self.body.temp(Class::B32);
                self.body.load("ld.global", ".u32", cell, base, offset + i * stride);
                cell
            })
            .collect();
        let words: SmallVec<[Reg; 2]> = cells
            .windows(2)
            .map(|pair| {
                let operands = [pair[0].into(), pair[1].into(), shift.into()];
                self.body.op_to_temp(Class::B32, "shf.r.wrap", ".b32", &operands)
            })
            .collect();
        match words.as_slice() {
            [low, high] => self.body.pack(result, (*low).into(), (*high).into()),
            [word] if read.bytes == 2 && read.widening().is_none() => {
                self.body.op("and", ".b32", &[result.into(), (*word).into(), 0xffff.into()]);
            }
            [word, ..] => self.take_bits(read, result, *word),
            [] => {}
        }
    }

    /// A value that is misaligned often: both ways inline.
    fn load_doubtful(&mut self, read: Read, result: Reg, base: Reg, offset: i64) {
        let address = match offset {
            0 => base,
            _ => self.body.op_to_temp(Class::B64, "add", ".u64", &[base.into(), offset.into()]),
        };
        let low = self.body.op_to_temp(Class::B64, "and", ".b64", &[address.into(), i64::from(read.bytes - 1).into()]);
        let test = self.body.op_to_temp(Class::Pred, "setp.ne", ".u64", &[low.into(), 0.into()]);
        let (misaligned, done) = (self.body.local(), self.body.local());
        self.body.branch_if(test, When::True, misaligned);
        self.plain_load(read, result, crate::memory::Place { base: address, offset: 0 });
        self.body.branch(done);
        self.body.place(misaligned);
        let raw = crate::cold::two_words(&mut self.body, address, read.bytes);
        self.take_bits(read, result, raw);
        self.body.place(done);
    }

    pub(crate) fn guest_store(
        &mut self,
        inst: Inst,
        suffix: &str,
        value: Operand,
        access: &Access,
    ) -> Result<(), crate::Error> {
        if self.symbols.checks() == Checks::Fast {
            self.fast_store(inst, suffix, value, access);
            return Ok(());
        }
        let (way, exact) = self.guest_way(access);
        let done = self.body.local();
        match way {
            Way::Plain(base, offset) => self.store_cells(access.bytes, suffix, base, offset, value),
            Way::Exact | Way::Around(..) => self.exact_store(inst, value, access)?,
        }
        let Some(exact) = exact else { return Ok(()) };
        self.body.place(done);
        self.cold_path(exact, done, |e| e.exact_store(inst, value, access))
    }

    pub(crate) fn store_cells(&mut self, bytes: u32, suffix: &str, base: Reg, offset: i64, value: Operand) {
        let layout = self.symbols.layout();
        if u64::from(bytes) <= layout.cell() {
            return self.body.store("st.global", suffix, base, offset, value);
        }
        let [low, high] = self.body.unpack(value);
        self.body.store("st.global", ".u32", base, offset, low);
        self.body.store("st.global", ".u32", base, offset + layout.stride() as i64, high);
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
            e.guest_limits()?;
            e.body.branch(done);
            Ok(())
        })
    }

    fn exact_load(&mut self, inst: Inst, read: Read, result: Reg, access: &Access) -> Result<(), crate::Error> {
        let [at, offset, site] = self.exact_operands(inst, access);
        let raw = self.body.temp(if read.bytes == 8 { Class::B64 } else { Class::B32 });
        let (instance, name) = (self.instance()?, self.cold.load(read.bytes));
        self.call_helper(Some(raw), name, &[instance.into(), at, offset, site]);
        match read.bytes {
            1 => self.take_byte(read, result, raw),
            _ => self.take_bits(read, result, raw),
        }
        Ok(())
    }

    fn exact_store(&mut self, inst: Inst, value: Operand, access: &Access) -> Result<(), crate::Error> {
        let [at, offset, site] = self.exact_operands(inst, access);
        let raw = self.bits_of(value);
        let (instance, name) = (self.instance()?, self.cold.store(access.bytes));
        self.call_helper(None, name, &[instance.into(), at, offset, site, raw]);
        Ok(())
    }

    /// The guest's address, the offset, and the record of a trap.
    fn exact_operands(&mut self, inst: Inst, access: &Access) -> [Operand; 3] {
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

    /// A load's result from the zero-extended bits.
    fn take_bits(&mut self, read: Read, result: Reg, raw: Reg) {
        match read.widening() {
            Some(widening) => self.body.op("cvt", widening, &[result.into(), raw.into()]),
            None if read.bytes == 8 => self.body.op("mov", ".b64", &[result.into(), raw.into()]),
            None => self.body.op("mov", ".b32", &[result.into(), raw.into()]),
        }
    }

    fn take_byte(&mut self, read: Read, result: Reg, raw: Reg) {
        let suffix = match (read.ty == types::I64, read.is_signed) {
            (true, true) => ".s64.s8",
            (true, false) => ".u64.u8",
            (false, true) => ".s32.s8",
            (false, false) => return self.body.op("mov", ".b32", &[result.into(), raw.into()]),
        };
        self.body.op("cvt", suffix, &[result.into(), raw.into()]);
    }

    /// A float's bits; an integer as it is.
    pub(crate) fn bits_of(&mut self, value: Operand) -> Operand {
        match value {
            Operand::F32(bits) => i64::from(bits as i32).into(),
            Operand::F64(bits) => (bits as i64).into(),
            Operand::Reg(reg) => match self.class_of(reg) {
                Class::F32 => self.body.op_to_temp(Class::B32, "mov", ".b32", &[value]).into(),
                Class::F64 => self.body.op_to_temp(Class::B64, "mov", ".b64", &[value]).into(),
                _ => value,
            },
            other => other,
        }
    }

    /// What a register holds: a parameter's class is in the signature.
    fn class_of(&self, reg: Reg) -> Class {
        if reg.class != Class::Argument {
            return reg.class;
        }
        let ty = self.func.signature.params.get(reg.index as usize).map_or(types::I64, |p| p.value_type);
        Class::of(ty).unwrap_or(Class::B64)
    }
}
