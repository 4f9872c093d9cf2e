//! Guest memory without a way back: for batches, where an instance that must be run again can be.
//!
//! The cold way of [`crate::guest::exact`] joins the quick one again, so nothing is known behind an access, and an assembler lays
//! calls, saved registers and meeting points around each. Here what fails a test ends the instance
//! without a word; the host runs it once more with the exact build. That is an exit under a predicate and no branch: what is no branch needs no place to meet again. So a test's outcome holds for everything it dominates: memory never
//! shrinks, alignment never changes. One test of a stack pointer is enough for a function, one of a loop's base for the loop.
//!
//! A test asks for all that its root's accesses need: as far as any that it dominates reaches, and aligned as the strictest in its own block
//! wants (another block may be there because the address is *not* aligned).
//!
//! Where nothing promises alignment, loads and stores go by whole cells and shifts, without a branch.

use crate::Memory;
use crate::analysis::range::{Range, Shape};
use crate::function::Emitter;
use crate::guest::{Access, CELL, Root};
use crate::print::body::When;
use crate::print::memory::Read;
use crate::print::register::{Class, Operand, Reg};
use cranelift_codegen::ir::{Block, Inst, InstructionData, Opcode, Value, ValueDef, types};
use gpu_run_abi::layout::field;
use std::collections::{HashMap, HashSet};

/// What is known of a root, or asked: aligned to a power of two, the bytes from `start` to `end` behind it have a place, and
/// those of `written` may be written ([`crate::guest::read_only`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fact {
    aligned: u32,
    start: i64,
    end: i64,
    written: (i64, i64),
}

/// No bytes at all.
const NONE: (i64, i64) = (i64::MAX, i64::MIN);

impl Fact {
    const NOTHING: Fact = Fact { aligned: 0, start: NONE.0, end: NONE.1, written: NONE };

    fn covers(self, other: Fact) -> bool {
        self.join(other) == self
    }
    fn join(self, other: Fact) -> Fact {
        Fact {
            aligned: self.aligned.max(other.aligned),
            start: self.start.min(other.start),
            end: self.end.max(other.end),
            written: (self.written.0.min(other.written.0), self.written.1.max(other.written.1)),
        }
    }
}

/// What an access needs.
#[derive(Clone, Copy, Debug)]
struct Asked {
    /// The value a test looks at: the access's root, or what that is made of.
    of: Value,
    fact: Fact,
    /// How many low bits the rest of the root has that are 0.
    zeros: u32,
}

enum Need {
    Test(Asked),
    /// It is in order in any case, and this is known of its root.
    Nothing(Fact),
}

/// The tests of a function, by the access they come before.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// What is asked, and of which value.
    tests: HashMap<Inst, (Value, Fact)>,
    /// Alignment of an access's root that is certain there, as a power of two; only where it is any.
    aligned: HashMap<Inst, u32>,
    /// Loads of what is fixed.
    pub(crate) fixed: HashSet<Inst>,
    /// Accesses of this block whose tests are printed already, before their turn.
    pub(crate) tested: HashSet<Inst>,
    /// Memory's length: read at the function's entry and after each call.
    length: Option<Reg>,
}

/// The strictest alignment of an access.
const MOST_ALIGNED: u64 = 8;

/// How far beyond an access a test may look ahead, so that an object near the memory's end is not asked for more than it has.
const AHEAD: i64 = 256;

/// How far apart the places may be that a test asks for at once, where a loop goes from one to the next.
const SPAN: i64 = 64 << 10;

impl Emitter<'_> {
    /// Finds where tests are needed.
    pub(crate) fn fast_plan(&mut self) -> Result<(), crate::Error> {
        let func = self.func;
        let accesses: Vec<(Block, Inst, Access)> = func
            .layout
            .blocks()
            .flat_map(|block| func.layout.block_insts(block).map(move |inst| (block, inst)))
            .filter_map(|(block, inst)| Some((block, inst, self.guest_access(inst)?)))
            .collect();
        if accesses.is_empty() {
            return Ok(());
        }
        let Some(shape) = self.shape.take() else { return Ok(()) };
        let tree = &shape.tree;
        let mut by_root: HashMap<Value, Vec<(Block, Fact)>> = HashMap::new();
        let mut in_block: HashMap<Block, Vec<(Inst, Asked)>> = HashMap::new();
        for (block, inst, access) in accesses {
            if self.is_fixed(&shape, &access) {
                self.plan.fixed.insert(inst);
                continue;
            }
            match self.asked(&shape, &access) {
                Need::Test(asked) => {
                    by_root.entry(asked.of).or_default().push((block, asked.fact));
                    in_block.entry(block).or_default().push((inst, asked));
                }
                Need::Nothing(fact) => self.certain(inst, fact, u32::MAX),
            }
        }
        // Facts found on the way down the tree; what was added in a block is forgotten when leaving it.
        let mut facts: HashMap<Value, Fact> = HashMap::new();
        let mut work: Vec<Step> = func.layout.entry_block().map(Step::Enter).into_iter().collect();
        while let Some(step) = work.pop() {
            let block = match step {
                Step::Enter(block) => block,
                Step::Leave(root, before) => {
                    match before {
                        Some(fact) => facts.insert(root, fact),
                        None => facts.remove(&root),
                    };
                    continue;
                }
            };
            let mut undo = Vec::new();
            for (inst, Asked { of: root, fact: needed, zeros }) in in_block.get(&block).into_iter().flatten().copied() {
                let known = facts.get(&root).copied();
                if let Some(fact) = known.filter(|fact| fact.covers(needed)) {
                    self.certain(inst, fact, zeros);
                    continue;
                }
                let ahead = by_root[&root]
                    .iter()
                    .filter(|(other, fact)| tree.block_dominates(block, *other) && fact.end <= needed.end + AHEAD);
                let asked = ahead.fold(needed, |all, (other, fact)| {
                    let aligned = if *other == block { fact.aligned } else { 0 };
                    all.join(Fact { aligned, ..*fact })
                });
                let asked = asked.join(known.unwrap_or(Fact::NOTHING));
                self.plan.tests.insert(inst, (root, asked));
                self.certain(inst, asked, zeros);
                undo.push((root, facts.insert(root, asked)));
            }
            // Last pushed, first popped: the children come before what undoes this block.
            work.extend(undo.into_iter().map(|(root, before)| Step::Leave(root, before)));
            work.extend(tree.children(block).map(Step::Enter));
        }
        self.shape = Some(shape);
        self.find_memory()?;
        if !self.plan.tests.is_empty() {
            self.plan.length = Some(self.body.temp(Class::B32));
        }
        self.fast_length()
    }

    fn certain(&mut self, inst: Inst, fact: Fact, zeros: u32) {
        let aligned = fact.aligned.min(zeros);
        if aligned > 0 {
            self.plan.aligned.insert(inst, aligned);
        }
    }

    /// What must hold for an access.
    fn asked(&self, shape: &Shape, access: &Access) -> Need {
        let (needed, Memory { least, low, .. }) = (self.needed(access), self.symbols.memory());
        let Root::Value(root) = access.root else { return Need::Nothing(Fact::NOTHING) };
        let plain = Need::Test(Asked { of: root, fact: needed, zeros: u32::MAX });
        if self.ty(root) != types::I32 {
            return plain;
        }
        if let Some(range) = self.range(shape, root) {
            let places = range.low + needed.start >= low as i64 && range.high + needed.end <= least as i64;
            let aligned = range.zeros.max(self.trailing_zeros(root, 4));
            let spares = !self.may_write_fixed(range, access);
            let inside = range.low >= 0 && places && spares && aligned >= needed.aligned;
            return if inside { Need::Nothing(Fact { aligned, ..needed }) } else { plain };
        }
        let ValueDef::Result(inst, _) = self.func.dfg.value_def(root) else { return plain };
        let InstructionData::Binary { opcode: Opcode::Iadd, args: [a, b] } = self.func.dfg.insts[inst] else {
            return plain;
        };
        // Of a sum, what is known says which places the rest must have.
        let beside = |of: Value, by: Value| {
            let by = self.range(shape, by).filter(|by| by.high - by.low <= SPAN && by.zeros >= needed.aligned)?;
            // The sum itself must not be below 0, either.
            let written = match needed.written {
                NONE => NONE,
                (start, end) => (start + by.low, end + by.high),
            };
            let fact = Fact { aligned: needed.aligned, start: by.low, end: needed.end + by.high, written };
            Some(Need::Test(Asked { of: self.func.dfg.resolve_aliases(of), fact, zeros: by.zeros }))
        };
        beside(a, b).or_else(|| beside(b, a)).unwrap_or(plain)
    }

    /// The value whose test an access relies on, if on any, and whether that test is its own.
    pub(crate) fn tested(&self, inst: Inst, access: &Access) -> Option<(Value, bool)> {
        match self.asked(self.shape.as_ref()?, access) {
            Need::Test(asked) => Some((asked.of, self.plan.tests.contains_key(&inst))),
            Need::Nothing(_) => None,
        }
    }

    /// Prints an access's test before its turn.
    pub(crate) fn test_early(&mut self, inst: Inst) {
        let Some(access) = self.guest_access(inst) else { return };
        self.here.ended = !self.fast_test(inst, &access);
        self.plan.tested.insert(inst);
    }

    /// How many low bits of an access's root are 0, by what it is or by what was tested.
    fn known_zeros(&self, inst: Inst, root: Value) -> u32 {
        self.trailing_zeros(root, 4).max(self.plan.aligned.get(&inst).copied().unwrap_or(0))
    }

    /// Reads the memory's length, at first or again.
    pub(crate) fn fast_length(&mut self) -> Result<(), crate::Error> {
        let Some(length) = self.plan.length else { return Ok(()) };
        let (instance, at) = (self.instance()?, self.symbols.layout().offset(field::MEMORY_BYTES) as i64);
        self.body.load("ld.global", ".u32", length, instance, at);
        Ok(())
    }

    fn needed(&self, access: &Access) -> Fact {
        let start = access.displacement() as i64;
        let size = self.unit(access.bytes);
        // What does not keep its root's alignment is made by shifts.
        let is_plain = access.expected && access.displacement().is_multiple_of(size);
        let need = if is_plain { size.trailing_zeros() } else { 0 };
        let end = start + i64::from(access.bytes);
        Fact { aligned: need, start, end, written: if access.stores { (start, end) } else { NONE } }
    }

    /// Makes sure of an access. Where it can never be inside, the instance ends, and nothing follows.
    fn fast_test(&mut self, inst: Inst, access: &Access) -> bool {
        if self.plan.tested.contains(&inst) {
            return true;
        }
        let Memory { least, low, .. } = self.symbols.memory();
        let end = access.displacement() + u64::from(access.bytes);
        if let Root::Constant(root) = access.root {
            let only = Range { low: root.into(), high: root.into(), zeros: 0 };
            let inside = u64::from(root) + access.displacement() >= low && u64::from(root) + end <= least;
            let inside = inside && !self.may_write_fixed(only, access);
            if !inside {
                self.body.op("exit", "", &[]);
            }
            return inside;
        }
        let Some(&(root, Fact { aligned, start, end, written })) = self.plan.tests.get(&inst) else { return true };
        // The lowest the root may be; a little more than that where alignment wants it.
        let first = ((low as i64 - start).max(0) as u64).next_multiple_of(MOST_ALIGNED) as i64;
        if end + first > least as i64 {
            self.body.op("exit", "", &[]);
            return false;
        }
        let Some(length) = self.plan.length else { return true };
        let shift = if self.trailing_zeros(root, 4) >= aligned { 0 } else { aligned };
        // Counted from there: what is below becomes huge.
        let mut turned = self.root_word(root);
        if first > 0 {
            turned = self.body.op_to_temp(Class::B32, "sub", ".u32", &[turned.into(), first.into()]);
        }
        let used = ((end + first) as i32).into();
        let mut most = self.body.op_to_temp(Class::B32, "sub", ".u32", &[length.into(), Operand::Int(used)]);
        if shift > 0 {
            let by = Operand::Int(shift.into());
            turned = self.body.op_to_temp(Class::B32, "shf.r.wrap", ".b32", &[turned.into(), turned.into(), by]);
            most = self.body.op_to_temp(Class::B32, "shr", ".u32", &[most.into(), by]);
        }
        let fails = self.body.op_to_temp(Class::Pred, "setp.gt", ".u32", &[turned.into(), most.into()]);
        self.body.exit_if(fails, When::True);
        self.spare_fixed(root, written.0, written.1);
        true
    }

    /// Whether the access goes by whole, aligned cells (or is within one, as a byte is).
    fn is_plain(&self, inst: Inst, access: &Access) -> bool {
        let known = match access.root {
            Root::Constant(root) => (u64::from(root) + access.displacement()).trailing_zeros(),
            Root::Value(root) => self.known_zeros(inst, root).min(access.displacement().trailing_zeros()),
        };
        1u64 << known.min(3) >= self.unit(access.bytes)
    }

    /// The access's address: a register and an offset, and the guest's address where its low bits matter.
    fn fast_address(&mut self, inst: Inst, access: &Access) -> (Reg, i64, Option<Reg>) {
        if self.is_flat() {
            return self.flat_address(inst, access);
        }
        let layout = self.symbols.layout();
        let by = access.displacement();
        let root = match access.root {
            Root::Constant(root) => {
                let at = u64::from(root) + by;
                let (base, offset) = self.displaced(layout.offset(at / layout.cell() * layout.cell()));
                if self.is_plain(inst, access) {
                    return (base, offset + (at % layout.cell()) as i64, None);
                }
                let low = Operand::Int((at % layout.cell()) as i64);
                return (base, offset, Some(self.body.op_to_temp(Class::B32, "mov", ".b32", &[low])));
            }
            Root::Value(root) => root,
        };
        let is_plain = self.is_plain(inst, access);
        if is_plain && 1u64 << self.known_zeros(inst, root).min(3) >= layout.cell() {
            let (base, offset) = (self.cells_address(root), layout.offset(by));
            return match i32::try_from(offset) {
                Ok(offset) => (base, offset.into(), None),
                Err(_) => {
                    let offset = Operand::Int(offset as i64);
                    (self.body.op_to_temp(Class::B64, "add", ".u64", &[base.into(), offset]), 0, None)
                }
            };
        }
        let word = self.root_word(root);
        let (word, cells) = match by {
            by if by.is_multiple_of(layout.cell()) && layout.offset(by) <= i32::MAX as u64 => (word, by),
            by => (self.body.op_to_temp(Class::B32, "add", ".u32", &[word.into(), (by as i32 as i64).into()]), 0),
        };
        let (base, offset) = self.cell_of(word, cells);
        if !is_plain {
            return (base, offset, Some(word));
        }
        let byte = self.byte_in(base, word);
        (byte, offset, None)
    }

    /// The same where bytes lie one after the other.
    fn flat_address(&mut self, inst: Inst, access: &Access) -> (Reg, i64, Option<Reg>) {
        let (by, is_plain) = (access.displacement() as i64, self.is_plain(inst, access));
        let cell = CELL;
        match access.root {
            Root::Constant(root) => {
                let (memory, at) = (self.memory_register(), i64::from(root) + by);
                if is_plain {
                    return (memory, at, None);
                }
                let low = self.body.op_to_temp(Class::B32, "mov", ".b32", &[(at % cell).into()]);
                (memory, at - at % cell, Some(low))
            }
            Root::Value(root) if is_plain => (self.linear_address(root), by, None),
            Root::Value(root) => {
                let mut word = self.root_word(root);
                if by % cell != 0 {
                    word = self.body.op_to_temp(Class::B32, "add", ".u32", &[word.into(), by.into()]);
                }
                let first = self.body.op_to_temp(Class::B32, "and", ".b32", &[word.into(), (-cell).into()]);
                let wide = self.body.op_to_temp(Class::B64, "cvt", ".u64.u32", &[first.into()]);
                let memory = self.memory_register();
                let address = self.body.op_to_temp(Class::B64, "add", ".u64", &[memory.into(), wide.into()]);
                (address, if by % cell != 0 { 0 } else { by }, Some(word))
            }
        }
    }

    pub(crate) fn fast_load(&mut self, inst: Inst, read: Read, result: Reg, access: &Access) {
        if self.plan.fixed.contains(&inst) {
            return self.fixed_load(read, result, access);
        }
        if !self.fast_test(inst, access) {
            self.here.ended = true;
            return;
        }
        match self.fast_address(inst, access) {
            (base, offset, None) => self.load_cells(read, result, base, offset),
            (base, offset, Some(word)) => self.load_around(read, result, base, offset, word),
        }
    }

    pub(crate) fn fast_store(&mut self, inst: Inst, suffix: &str, value: Operand, access: &Access) {
        if !self.fast_test(inst, access) {
            self.here.ended = true;
            return;
        }
        match self.fast_address(inst, access) {
            (base, offset, None) => self.store_cells(access.bytes, suffix, base, offset, value),
            (base, offset, Some(word)) => self.store_around(access.bytes, base, offset, word, value),
        }
    }

    /// A value that begins anywhere in a cell: the cells it touches are read, changed and written. No other thread has this memory.
    fn store_around(&mut self, bytes: u32, base: Reg, offset: i64, word: Reg, value: Operand) {
        let (stride, st) = (self.guest_stride(), self.guest_st());
        let bits = self.bits_of(value);
        let ones = Operand::Int(if bytes == 2 { 0xffff } else { -1 });
        let (first, last) = match bytes {
            8 => {
                let [low, high] = self.body.unpack(bits);
                (low, high)
            }
            2 => {
                let word = self.body.op_to_temp(Class::B32, "and", ".b32", &[bits, ones]);
                (word.into(), word.into())
            }
            _ => (bits, bits),
        };
        let shift = self.body.op_to_temp(Class::B32, "shl", ".b32", &[word.into(), 3.into()]);
        let shift = self.body.op_to_temp(Class::B32, "and", ".b32", &[shift.into(), 24.into()]);
        let low = self.body.op_to_temp(Class::B32, "shl", ".b32", &[first, shift.into()]);
        let low_mask = self.body.op_to_temp(Class::B32, "shl", ".b32", &[ones, shift.into()]);
        self.merge(base, offset, low, low_mask);
        if bytes == 8 {
            let middle = self.body.op_to_temp(Class::B32, "shf.l.wrap", ".b32", &[first, last, shift.into()]);
            self.body.store(st, ".u32", base, offset + stride, middle.into());
        }
        let end = if bytes == 8 { 2 * stride } else { stride };
        let high = self.body.op_to_temp(Class::B32, "shf.l.wrap", ".b32", &[last, 0.into(), shift.into()]);
        let high_mask = self.body.op_to_temp(Class::B32, "shf.l.wrap", ".b32", &[ones, 0.into(), shift.into()]);
        self.merge(base, offset + end, high, high_mask);
    }

    /// Puts the bits of the mask into a cell.
    fn merge(&mut self, base: Reg, offset: i64, bits: Reg, mask: Reg) {
        let old = self.body.temp(Class::B32);
        self.body.load(self.guest_ld(), ".u32", old, base, offset);
        let keep = self.body.op_to_temp(Class::B32, "not", ".b32", &[mask.into()]);
        let kept = self.body.op_to_temp(Class::B32, "and", ".b32", &[old.into(), keep.into()]);
        let new = self.body.op_to_temp(Class::B32, "or", ".b32", &[kept.into(), bits.into()]);
        self.body.store(self.guest_st(), ".u32", base, offset, new.into());
    }
}

/// What is left to do of the walk.
enum Step {
    Enter(Block),
    Leave(Value, Option<Fact>),
}
