//! Speculative builds: which accesses are checked, for what, and what is known after each check.
//!
//! A failed check stops the instance for good. So what a check has established holds for all code that the check
//! dominates: memory never shrinks, and alignment never changes. One check of the stack pointer is enough for a whole
//! function, one check of a loop's base for the whole loop.
//!
//! A check covers what the accesses of its root need: the bytes of accesses that it dominates
//! ([`MAX_BYTES_BEYOND_ACCESS`] limits how far), and the strictest alignment of the accesses in its own block. (Another
//! block may exist because the address is *not* aligned.)

use super::access::{Access, Accesses, Root};
use super::range::{Range, Ranges};
use super::read_only::{self, ReadOnlyLoad};
use super::values;
use crate::{Memory, Program};
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Value, ValueDef, types};
use std::collections::HashMap;

/// The strictest alignment of an access, in bytes.
const MAX_ALIGNMENT: u64 = 8;

/// How many bytes beyond its own access a check may cover for later accesses. The limit keeps the check from failing at
/// a small object near the end of memory.
const MAX_BYTES_BEYOND_ACCESS: i64 = 256;

/// The widest range, in bytes, of an offset that is added to a checked value. One check then covers every address that
/// a loop reaches with that offset.
const MAX_RANGE_OF_PLACES: i64 = 64 << 10;

/// A fact about a root, known or required: it is aligned to `1 << aligned` bytes, the bytes from `root + start` to
/// `root + end` are in memory, and those of `written`, counted in the same way, are not read-only ([`read_only`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fact {
    aligned: u32,
    start: i64,
    end: i64,
    written: (i64, i64),
}

/// No bytes at all.
const NO_BYTES: (i64, i64) = (i64::MAX, i64::MIN);

impl Fact {
    const NOTHING: Fact = Fact { aligned: 0, start: NO_BYTES.0, end: NO_BYTES.1, written: NO_BYTES };

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

/// Whether an access needs a check.
enum Need {
    Check(Question),
    /// The access needs no check, and this is known about its root.
    Nothing(Fact),
}

/// The fact that must be checked for an access.
#[derive(Clone, Copy, Debug)]
struct Question {
    /// The value to check: the access's root, or a summand of the root.
    of: Value,
    fact: Fact,
    /// How many low bits of the root's other summand are 0.
    zeros: u32,
}

/// The check that is printed before an access.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Check {
    /// The instance stops here without a test: the access is outside the bytes that memory always has, or writes
    /// read-only data. (Memory that has grown might contain the bytes; the exact build finds out.)
    Outside,
    Bounds(Bounds),
}

/// A check of a root: the instance stops unless `root - first` is aligned and at most the memory's length less `used`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) root: Value,
    /// The lowest value of the root that passes the check.
    pub(crate) first: i64,
    /// `first` plus the distance from the root to the end of the checked bytes: the fewest bytes of memory with which
    /// any root passes.
    pub(crate) used: i64,
    /// How many bits the check rotates `root - first` to the right and shifts the limit, so that a misaligned root
    /// becomes huge.
    pub(crate) shift: u32,
    /// The range of bytes, relative to the root, that must not be read-only: from, to.
    pub(crate) written: (i64, i64),
}

#[derive(Debug, Default)]
pub(crate) struct SpeculativeChecks {
    /// The checks, each by the access that it precedes.
    pub(crate) checks: HashMap<Inst, Check>,
    /// Loads that do not read the instance's memory.
    pub(crate) read_only: HashMap<Inst, ReadOnlyLoad>,
    /// The value whose check an access relies on. Accesses that need no check are not in the map.
    relies_on: HashMap<Inst, Value>,
    /// The alignment that an access's root surely has there, as log2. Only alignments above 0 are in the map.
    aligned: HashMap<Inst, u32>,
    /// Whether any check compares with the memory's length.
    pub(crate) reads_length: bool,
}

impl SpeculativeChecks {
    pub(crate) fn find(program: &Program, ranges: Ranges<'_>, accesses: &Accesses) -> SpeculativeChecks {
        let mut found = SpeculativeChecks::default();
        if accesses.is_empty() {
            return found;
        }
        let func = ranges.func;
        let mut asked: HashMap<Block, Vec<(Inst, Question)>> = HashMap::new();
        for block in func.layout.blocks() {
            for inst in func.layout.block_insts(block) {
                let Some(access) = accesses.get(inst) else { continue };
                if let Some(load) = read_only::load(program.read_only(), ranges, access) {
                    found.read_only.insert(inst, load);
                    continue;
                }
                if let Root::Constant(root) = access.root
                    && !is_inside(program, root, access)
                {
                    found.checks.insert(inst, Check::Outside);
                }
                match need(program, ranges, access) {
                    Need::Check(question) => {
                        found.relies_on.insert(inst, question.of);
                        asked.entry(block).or_default().push((inst, question));
                    }
                    Need::Nothing(fact) => found.remember_alignment(inst, fact, u32::MAX),
                }
            }
        }
        found.place_checks(program, ranges, &asked);
        found
    }

    /// Walks down the dominator tree and places a check where no dominating check has established what an access needs.
    fn place_checks(&mut self, program: &Program, ranges: Ranges<'_>, asked: &HashMap<Block, Vec<(Inst, Question)>>) {
        let (func, tree) = (ranges.func, &ranges.flow.dominators);
        let mut by_root: HashMap<Value, Vec<(Block, Fact)>> = HashMap::new();
        for block in func.layout.blocks() {
            for (_, question) in asked.get(&block).into_iter().flatten() {
                by_root.entry(question.of).or_default().push((block, question.fact));
            }
        }
        // The facts established on the path to the current block; leaving a block undoes what the block added.
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
            for (inst, Question { of: root, fact: needed, zeros }) in asked.get(&block).into_iter().flatten().copied() {
                let known = facts.get(&root).copied();
                if let Some(fact) = known.filter(|fact| fact.covers(needed)) {
                    self.remember_alignment(inst, fact, zeros);
                    continue;
                }
                let later = by_root[&root].iter().filter(|(other, fact)| {
                    tree.block_dominates(block, *other) && fact.end <= needed.end + MAX_BYTES_BEYOND_ACCESS
                });
                let wanted = later.fold(needed, |all, (other, fact)| {
                    let aligned = if *other == block { fact.aligned } else { 0 };
                    all.join(Fact { aligned, ..*fact })
                });
                let wanted = wanted.join(known.unwrap_or(Fact::NOTHING));
                self.checks.insert(inst, check(program, func, root, wanted));
                self.reads_length = true;
                self.remember_alignment(inst, wanted, zeros);
                undo.push((root, facts.insert(root, wanted)));
            }
            // The stack pops the children first, then the steps that undo this block.
            work.extend(undo.into_iter().map(|(root, before)| Step::Leave(root, before)));
            work.extend(tree.children(block).map(Step::Enter));
        }
    }

    fn remember_alignment(&mut self, inst: Inst, fact: Fact, zeros: u32) {
        let aligned = fact.aligned.min(zeros);
        if aligned > 0 {
            self.aligned.insert(inst, aligned);
        }
    }

    /// Returns the value whose check an access relies on, if any, and whether the access makes that check itself.
    pub(crate) fn relies_on(&self, inst: Inst) -> Option<(Value, bool)> {
        Some((*self.relies_on.get(&inst)?, self.checks.contains_key(&inst)))
    }

    /// Returns how many low bits of an access's root are 0, because of how the root is computed or because of a check.
    pub(crate) fn known_zeros(&self, func: &Function, inst: Inst, root: Value) -> u32 {
        values::trailing_zeros(func, root).max(self.aligned.get(&inst).copied().unwrap_or(0))
    }

    /// Whether an access consists of whole, aligned cells (or lies within one cell, as a byte does).
    pub(crate) fn is_plain(&self, program: &Program, func: &Function, inst: Inst, access: &Access) -> bool {
        let known = match access.root {
            Root::Constant(root) => (u64::from(root) + access.displacement()).trailing_zeros(),
            Root::Value(root) => self.known_zeros(func, inst, root).min(access.displacement().trailing_zeros()),
        };
        1u64 << known.min(3) >= program.unit(access.bytes)
    }
}

/// Whether an access by a constant address is surely in bounds and writes no read-only data.
fn is_inside(program: &Program, root: u32, access: &Access) -> bool {
    let Memory { least, low, .. } = program.memory;
    let only = Range { low: root.into(), high: root.into(), zeros: 0 };
    u64::from(root) + access.displacement() >= low
        && u64::from(root) + access.end() <= least
        && !read_only::may_write(program.read_only(), only, access)
}

/// Returns the check that establishes a fact.
fn check(program: &Program, func: &Function, root: Value, Fact { aligned, start, end, written }: Fact) -> Check {
    let Memory { least, low, .. } = program.memory;
    // The lowest allowed root, rounded up so that subtracting it keeps the alignment.
    let first = ((low as i64 - start).max(0) as u64).next_multiple_of(MAX_ALIGNMENT) as i64;
    if end + first > least as i64 {
        return Check::Outside;
    }
    let shift = if values::trailing_zeros(func, root) >= aligned { 0 } else { aligned };
    Check::Bounds(Bounds { root, first, used: end + first, shift, written })
}

/// Returns what must be checked for an access.
fn need(program: &Program, ranges: Ranges<'_>, access: &Access) -> Need {
    let (needed, Memory { least, low, .. }) = (needed(program, access), program.memory);
    let func = ranges.func;
    let Root::Value(root) = access.root else { return Need::Nothing(Fact::NOTHING) };
    let plain = Need::Check(Question { of: root, fact: needed, zeros: u32::MAX });
    if func.dfg.value_type(root) != types::I32 {
        return plain;
    }
    if let Some(range) = ranges.of(root) {
        let has_place = range.low + needed.start >= low as i64 && range.high + needed.end <= least as i64;
        let aligned = range.zeros.max(values::trailing_zeros(func, root));
        let may_write = read_only::may_write(program.read_only(), range, access);
        let is_inside = range.low >= 0 && has_place && !may_write && aligned >= needed.aligned;
        return if is_inside { Need::Nothing(Fact { aligned, ..needed }) } else { plain };
    }
    let ValueDef::Result(inst, _) = func.dfg.value_def(root) else { return plain };
    let InstructionData::Binary { opcode: Opcode::Iadd, args: [a, b] } = func.dfg.insts[inst] else {
        return plain;
    };
    // If the root is a sum and the range of one summand is known, the other summand is checked instead.
    let beside = |of: Value, by: Value| {
        let is_small = |by: &Range| by.high - by.low <= MAX_RANGE_OF_PLACES && by.zeros >= needed.aligned;
        let by = ranges.of(by).filter(is_small)?;
        let written = match needed.written {
            NO_BYTES => NO_BYTES,
            (start, end) => (start + by.low, end + by.high),
        };
        // `start` leaves out the access's displacement, so that the sum itself cannot be below 0.
        let fact = Fact { aligned: needed.aligned, start: by.low, end: needed.end + by.high, written };
        Some(Need::Check(Question { of: func.dfg.resolve_aliases(of), fact, zeros: by.zeros }))
    };
    beside(a, b).or_else(|| beside(b, a)).unwrap_or(plain)
}

/// Returns the fact that an access needs of its root.
fn needed(program: &Program, access: &Access) -> Fact {
    let (start, end) = (access.displacement() as i64, access.end() as i64);
    let size = program.unit(access.bytes);
    // Other accesses read or write whole cells and shift, so they need no alignment.
    let is_plain = access.expects_alignment && access.displacement().is_multiple_of(size);
    let aligned = if is_plain { size.trailing_zeros() } else { 0 };
    Fact { aligned, start, end, written: if access.stores { (start, end) } else { NO_BYTES } }
}

/// A remaining step of the walk down the dominator tree.
enum Step {
    Enter(Block),
    Leave(Value, Option<Fact>),
}
