//! Moves loads before stores, in loops of speculative builds.
//!
//! No assembler moves a load before a store that might have the same address, and it cannot tell two roots apart. A
//! loop that adds one array to another, with several iterations unrolled into one block, then waits for each load
//! before it begins the next. So the block is printed with its loads as early as possible, behind a test that the bytes
//! which the two roots lead to do not overlap. If they do overlap, a copy of the block in CLIF's order, printed behind
//! the last block, does the same work.
//!
//! An early load is checked early, so an instance may stop for another reason than it would have in CLIF's order. In a
//! speculative build that makes no difference, because the host reruns the instance, as long as no effect that others
//! can see lies in between: no load passes a call or another `Role::Barrier`.

use super::access::{Access, Accesses, Root};
use super::flow::Flow;
use super::overlap::{self, Pair, Passing, Span};
use super::speculative::SpeculativeChecks;
use crate::Program;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, MemFlags, Value};
use gpu_run_abi::intrinsic::region;
use std::collections::{BTreeSet, HashMap};

/// The fewest loads that must move before a store by another root for the new order to pay. Loads and stores by one
/// root do not count: an assembler can tell those apart by itself. Measured: with fewer loads nothing is gained, and
/// much is lost where the registers they take keep a warp from running beside the others.
const MIN_LOADS_MOVED: usize = 10;

/// The most pairs of roots to compare: each comparison is three instructions and may fail.
const MAX_PAIRS: usize = 4;

/// The most 32-bit registers that may hold early loads. More loads in flight would hide no more of a cache's latency,
/// and values for which a thread has no registers are spilled to memory.
const MAX_REGISTERS_LOADED_EARLY: u32 = 32;

/// The most instructions that a load may pass.
const MAX_INSTRUCTIONS_PASSED: usize = 512;

/// The better order of a block.
pub(crate) struct Schedule {
    /// Printed first, in either order: the start of the block, and the instructions that the test of the pairs needs.
    pub(crate) before: Vec<Inst>,
    /// The spans that must not overlap for `order` to be used.
    pub(crate) pairs: Vec<Pair>,
    /// The rest of the block, in the new order.
    pub(crate) order: Vec<Step>,
    /// The rest of the block, in CLIF's order.
    pub(crate) original: Vec<Inst>,
}

#[derive(Clone, Copy)]
pub(crate) enum Step {
    Inst(Inst),
    /// The bounds check of a later store, needed early because a load relies on it.
    Check(Inst),
}

/// How an instruction may move.
#[derive(Clone, Copy)]
enum Role {
    /// It depends on its operands alone, so it may stand anywhere behind them.
    Free,
    Load(Access),
    Store(Access),
    /// It keeps its place among stores, but loads may pass it: a conditional trap, for instance.
    Stays,
    /// Nothing passes it.
    Barrier,
}

/// Finds better orders for the blocks where that pays.
pub(crate) fn find(
    program: &Program,
    func: &Function,
    flow: &Flow,
    accesses: &Accesses,
    checks: &SpeculativeChecks,
) -> HashMap<Block, Schedule> {
    if program.is_gang() || accesses.is_empty() {
        return HashMap::new();
    }
    let blocks = func.layout.blocks().filter(|block| flow.is_in_loop(*block) && !func.layout.is_cold(*block));
    blocks.filter_map(|block| Some((block, schedule(func, accesses, checks, block)?))).collect()
}

fn schedule(func: &Function, accesses: &Accesses, checks: &SpeculativeChecks, block: Block) -> Option<Schedule> {
    let insts: Vec<Inst> = func.layout.block_insts(block).collect();
    let roles: Vec<Role> = insts.iter().map(|&inst| role(func, accesses, checks, inst)).collect();
    let mut best: Option<(usize, usize, Found)> = None;
    let mut start = 0;
    for segment in roles.split(|role| matches!(role, Role::Barrier)) {
        let end = start + segment.len();
        if may_pay(segment)
            && let Some(found) = Search::new(func, checks, &insts[start..end], segment).run()
            && best.as_ref().is_none_or(|(.., best)| found.gained > best.gained)
        {
            best = Some((start, end, found));
        }
        start = end + 1;
    }
    let (start, end, Found { first, order, pairs, .. }) = best?;
    let later = |inst: &&Inst| !first.contains(inst);
    let original = insts[start..].iter().filter(later).copied().collect();
    let order = order.into_iter().chain(insts[end..].iter().copied().map(Step::Inst)).collect();
    Some(Schedule { before: insts[..start].iter().chain(&first).copied().collect(), pairs, order, original })
}

fn role(func: &Function, accesses: &Accesses, checks: &SpeculativeChecks, inst: Inst) -> Role {
    let data = &func.dfg.insts[inst];
    let opcode = data.opcode();
    if let Some(access) = accesses.get(inst) {
        return match access.stores {
            true => Role::Store(*access),
            false if checks.read_only.contains_key(&inst) => Role::Free,
            false => Role::Load(*access),
        };
    }
    if opcode.is_terminator() || opcode.is_call() || opcode.can_store() || opcode.other_side_effects() {
        return Role::Barrier;
    }
    match *data {
        InstructionData::Load { flags, .. } if is_never_guest(func, flags) => Role::Free,
        InstructionData::Load { .. } => Role::Stays,
        _ if opcode.can_load() => Role::Barrier,
        _ if opcode.can_trap() => Role::Stays,
        _ => Role::Free,
    }
}

/// Whether an access by a device address never touches guest memory.
fn is_never_guest(func: &Function, flags: MemFlags) -> bool {
    let region = func.dfg.mem_flags[flags].alias_region();
    let regions = &func.dfg.alias_regions;
    region.is_some() && region != regions.get(region::GUEST) && region != regions.get(region::CELLS)
}

/// Whether enough loads come behind a store. This quick test rules out most blocks.
fn may_pay(segment: &[Role]) -> bool {
    let behind = segment.iter().skip_while(|role| !matches!(role, Role::Store(_)));
    behind.filter(|role| matches!(role, Role::Load(_))).count() >= MIN_LOADS_MOVED
}

/// The search for a better order of the instructions between two barriers (a segment).
struct Search<'a> {
    func: &'a Function,
    insts: &'a [Inst],
    roles: &'a [Role],
    places: HashMap<Inst, usize>,
    /// For each access, the value whose check it relies on, and whether it makes that check itself.
    checked: Vec<Option<(Value, bool)>>,
    is_placed: Vec<bool>,
    order: Vec<Step>,
    pairs: Vec<Pair>,
    /// Loads that were placed before a store: their positions in CLIF's order, and how many registers they take.
    moved: Vec<(usize, u32)>,
    /// How many of the moved loads passed a store by another root.
    gained: usize,
}

/// An order that pays.
struct Found {
    /// The instructions that the test of the pairs needs, in CLIF's order.
    first: Vec<Inst>,
    /// The rest of the segment.
    order: Vec<Step>,
    pairs: Vec<Pair>,
    gained: usize,
}

impl<'a> Search<'a> {
    fn new(func: &'a Function, checks: &SpeculativeChecks, insts: &'a [Inst], roles: &'a [Role]) -> Self {
        let checked = insts.iter().zip(roles).map(|(&inst, role)| match role {
            Role::Load(_) | Role::Store(_) => checks.relies_on(inst),
            _ => None,
        });
        Self {
            func,
            insts,
            roles,
            places: insts.iter().copied().zip(0..).collect(),
            checked: checked.collect(),
            is_placed: vec![false; insts.len()],
            order: Vec::with_capacity(insts.len()),
            pairs: Vec::new(),
            moved: Vec::new(),
            gained: 0,
        }
    }

    fn run(mut self) -> Option<Found> {
        for at in 0..self.insts.len() {
            if self.is_placed[at] {
                continue;
            }
            if matches!(self.roles[at], Role::Store(_)) {
                for load in at + 1..self.insts.len().min(at + MAX_INSTRUCTIONS_PASSED) {
                    if matches!(self.roles[load], Role::Load(_)) && !self.is_placed[load] {
                        self.bring(load, at);
                    }
                }
            }
            self.place(at);
        }
        if self.gained < MIN_LOADS_MOVED {
            return None;
        }
        let mut needed = BTreeSet::new();
        for root in self.pairs.iter().flat_map(|pair| pair.0.map(|span| span.root)) {
            needed.extend(self.made_of(root)?);
        }
        let first: Vec<Inst> = needed.into_iter().map(|at| self.insts[at]).collect();
        self.order.retain(|step| !matches!(step, Step::Inst(inst) if first.contains(inst)));
        Some(Found { first, order: self.order, pairs: self.pairs, gained: self.gained })
    }

    fn place(&mut self, at: usize) {
        self.is_placed[at] = true;
        self.order.push(Step::Inst(self.insts[at]));
    }

    /// Returns the positions in this segment of the instructions that compute an instruction's operands.
    fn operands(&self, at: usize) -> impl Iterator<Item = usize> {
        let dfg = &self.func.dfg;
        let made = |value| dfg.value_def(dfg.resolve_aliases(value)).inst();
        dfg.inst_values(self.insts[at]).filter_map(move |value| self.places.get(&made(value)?).copied())
    }

    /// Places a load, and all that it needs, before the store at `before`, if that is allowed.
    fn bring(&mut self, load: usize, before: usize) {
        let (mut wanted, mut checks, mut pairs) = (BTreeSet::new(), BTreeSet::new(), self.pairs.clone());
        let (mut loads, mut gained) = (Vec::new(), 0);
        let mut left: u32 = self.moved.iter().filter(|(at, _)| *at > before).map(|(_, registers)| registers).sum();
        let mut work = vec![load];
        while let Some(at) = work.pop() {
            if self.is_placed[at] || !wanted.insert(at) {
                continue;
            }
            match &self.roles[at] {
                Role::Free => {}
                Role::Load(access) => {
                    if !self.passes(access, before..at, &mut pairs) {
                        return;
                    }
                    let registers = access.bytes.div_ceil(4);
                    left += registers;
                    loads.push((at, registers));
                    gained += usize::from(self.is_behind_another(access, before..at));
                    // The check that the load relies on must come before the load.
                    let of = self.checked[at].map(|(of, _)| (of, true));
                    for checker in (before..at).filter(|&other| of.is_some() && self.checked[other] == of) {
                        match self.roles[checker] {
                            Role::Load(_) => work.push(checker),
                            _ => _ = checks.insert(checker),
                        }
                    }
                }
                Role::Store(_) | Role::Stays | Role::Barrier => return,
            }
            work.extend(self.operands(at));
        }
        if left > MAX_REGISTERS_LOADED_EARLY {
            return;
        }
        self.pairs = pairs;
        self.moved.extend(loads);
        self.gained += gained;
        for &at in wanted.union(&checks) {
            match self.checked[at] {
                _ if wanted.contains(&at) => self.place(at),
                // The check is now made early: this access no longer makes it.
                Some((of, _)) => {
                    self.checked[at] = Some((of, false));
                    self.order.push(Step::Check(self.insts[at]));
                }
                None => {}
            }
        }
    }

    /// Whether a load may be placed before all stores in `between`. Adds the pairs that must be tested for that.
    fn passes(&self, load: &Access, between: std::ops::Range<usize>, pairs: &mut Vec<Pair>) -> bool {
        let load = Span::of(load);
        between.into_iter().all(|at| {
            let Role::Store(store) = &self.roles[at] else { return true };
            let store = Span::of(store);
            match overlap::passing(self.func, &load, &store) {
                Passing::Always => true,
                Passing::Never => false,
                Passing::Tested => self.add_pair(load, store, pairs),
            }
        })
    }

    /// Whether a store by another root is among the instructions in `between`.
    fn is_behind_another(&self, load: &Access, mut between: std::ops::Range<usize>) -> bool {
        let root = Span::of(load).root;
        between.any(|at| matches!(&self.roles[at], Role::Store(store) if Span::of(store).root != root))
    }

    fn add_pair(&self, load: Span, store: Span, pairs: &mut Vec<Pair>) -> bool {
        // The span with a `Root::Value` comes first; at least one of the two has one.
        let (one, other) = if matches!(load.root, Root::Value(_)) { (load, store) } else { (store, load) };
        for Pair(spans) in pairs.iter_mut() {
            let [first, second] = spans;
            if (first.root, second.root) == (other.root, one.root) {
                std::mem::swap(first, second);
            }
            if (first.root, second.root) == (one.root, other.root) {
                first.join(one);
                second.join(other);
                return first.bytes() + second.bytes() <= i64::from(i32::MAX);
            }
        }
        let possible = pairs.len() < MAX_PAIRS && [one, other].iter().all(|span| self.made_of(span.root).is_some());
        if possible {
            pairs.push(Pair([one, other]));
        }
        possible
    }

    /// Returns the instructions of this segment that compute a root, or `None` if they cannot all be printed first.
    fn made_of(&self, root: Root) -> Option<BTreeSet<usize>> {
        let mut found = BTreeSet::new();
        let Root::Value(root) = root else { return Some(found) };
        let made = self.func.dfg.value_def(root).inst().and_then(|inst| self.places.get(&inst));
        let mut work: Vec<usize> = made.copied().into_iter().collect();
        while let Some(at) = work.pop() {
            if !matches!(self.roles[at], Role::Free) {
                return None;
            }
            if found.insert(at) {
                work.extend(self.operands(at));
            }
        }
        Some(found)
    }
}
