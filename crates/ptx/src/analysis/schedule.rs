//! Loads that pass stores: with quick checks, in loops.
//!
//! No assembler moves a load before a store whose address might be the same, and of two roots it cannot know that. A loop that
//! adds one array to another, round after round in one block, then waits for each load before it begins the next. So the block
//! is printed with its loads as early as they may be, behind a test that the places the two roots lead to lie apart. Where they do not,
//! a copy of the block, as it was, does the same work behind the last block.
//!
//! A load that is early is tested early, and an instance that would have ended for another reason ends for this one. With quick
//! checks that is all the same: it is run again, as long as nothing it told anyone lies between.

use crate::Checks;
use crate::Error;
use crate::function::Emitter;
use crate::guest::{Access, Root};
use crate::print::body::{Label, When};
use crate::print::register::{Class, Operand, Reg};
use cranelift_codegen::ir::{Block, Inst, InstructionData, MemFlags, Opcode, Value, ValueDef, types};
use gpu_run_abi::intrinsic::region;
use std::collections::{BTreeSet, HashMap};

/// Loads that must come before a store by another root, for it to pay: of one root, an assembler knows as much. Measured: with fewer, nothing is gained, and where their registers
/// are what keeps a warp from running beside the others, much is lost.
const LEAST: usize = 10;

/// Pairs of roots that may have to be compared: each is three instructions and may fail.
const MOST_PAIRS: usize = 4;

/// Registers of 32 bits that may hold what was loaded before its time. More under way at once would hide no more of a cache's delay, and what
/// a thread has no registers for goes to memory.
const MOST_REGISTERS: u32 = 32;

/// How many instructions a store looks ahead.
const WINDOW: usize = 512;

/// How deep a root is looked into for what it shares with another.
const DEPTH: usize = 8;

/// A block in another order.
pub(crate) struct Ahead {
    /// What is printed first: what the block begins with, and what the tests need.
    before: Vec<Inst>,
    pairs: Vec<Pair>,
    /// The rest, in the new order and as it was.
    order: Vec<Step>,
    plain: Vec<Inst>,
}

#[derive(Clone, Copy)]
enum Step {
    Inst(Inst),
    /// The bounds test of a store that comes later, since a load relies on it.
    Test(Inst),
}

/// What may become of an instruction.
#[derive(Clone, Copy)]
enum Kind {
    /// It depends on its operands alone.
    Free,
    Load(Access),
    Store(Access),
    /// It keeps its place among stores. Loads may pass it: it is a trap under a condition, for instance.
    Stays,
    /// Nothing passes it.
    Barrier,
}

/// The bytes from `start` to `end` behind a root.
#[derive(Clone, Copy, Debug)]
struct Span {
    root: Root,
    start: i64,
    end: i64,
}

impl Span {
    /// Where an access goes. All constant roots are one, at 0.
    fn of(access: &Access) -> Span {
        let (root, at) = match access.root {
            Root::Constant(root) => (Root::Constant(0), i64::from(root)),
            root => (root, 0),
        };
        let start = at + access.displacement() as i64;
        Span { root, start, end: start + i64::from(access.bytes) }
    }

    fn join(&mut self, other: Span) {
        self.start = self.start.min(other.start);
        self.end = self.end.max(other.end);
    }

    fn bytes(&self) -> i64 {
        self.end - self.start
    }
}

/// Two roots whose places must lie apart.
#[derive(Clone, Copy, Debug)]
struct Pair([Span; 2]);

impl Pair {
    /// What to add to the first root less the second, and below what the sum then is where the two have a byte in common. All in 32 bits,
    /// which is enough: places that pass their tests do not wrap.
    fn distance(&self) -> (i64, i64) {
        let [one, other] = &self.0;
        (one.start - other.start + one.bytes() - 1, one.bytes() + other.bytes() - 1)
    }
}

/// When a load may be printed before a store.
enum Passing {
    Always,
    Never,
    /// If the two lie apart, which is to be tested.
    Tested,
}

impl Emitter<'_> {
    /// A better order for a block, if there is one that is worth it.
    pub(crate) fn ahead(&self, block: Block) -> Option<Ahead> {
        let layout = &self.func.layout;
        let in_loop = self.shape.as_ref().is_some_and(|shape| shape.is_in_loop(block));
        let applies = self.symbols.checks() == Checks::Fast && self.symbols.memory().region == 0;
        if !applies || !in_loop || layout.is_cold(block) {
            return None;
        }
        let insts: Vec<Inst> = layout.block_insts(block).collect();
        let kinds: Vec<Kind> = insts.iter().map(|&inst| self.kind(inst)).collect();
        let mut best: Option<(usize, usize, Scheduled)> = None;
        let mut start = 0;
        for segment in kinds.split(|kind| matches!(kind, Kind::Barrier)) {
            let end = start + segment.len();
            if may_pay(segment)
                && let Some(scheduled) = Schedule::new(self, &insts[start..end], segment).run()
                && best.as_ref().is_none_or(|(.., best)| scheduled.gained > best.gained)
            {
                best = Some((start, end, scheduled));
            }
            start = end + 1;
        }
        let (start, end, Scheduled { first, order, pairs, .. }) = best?;
        let later = |inst: &&Inst| !first.contains(inst);
        let plain = insts[start..].iter().filter(later).copied().collect();
        let order = order.into_iter().chain(insts[end..].iter().copied().map(Step::Inst)).collect();
        Some(Ahead { before: insts[..start].iter().chain(&first).copied().collect(), pairs, order, plain })
    }

    fn kind(&self, inst: Inst) -> Kind {
        let data = &self.func.dfg.insts[inst];
        let opcode = data.opcode();
        if let Some(access) = self.guest_access(inst) {
            return match access.stores {
                true => Kind::Store(access),
                false if self.plan.fixed.contains(&inst) => Kind::Free,
                false => Kind::Load(access),
            };
        }
        if opcode.is_terminator() || opcode.is_call() || opcode.can_store() || opcode.other_side_effects() {
            return Kind::Barrier;
        }
        match *data {
            InstructionData::Load { flags, .. } if self.is_never_guest(flags) => Kind::Free,
            InstructionData::Load { .. } => Kind::Stays,
            _ if opcode.can_load() => Kind::Barrier,
            _ if opcode.can_trap() => Kind::Stays,
            _ => Kind::Free,
        }
    }

    /// Whether an access by a device address is to something else than guest memory.
    fn is_never_guest(&self, flags: MemFlags) -> bool {
        let region = self.func.dfg.mem_flags[flags].alias_region();
        region.is_some() && region != self.guest_region && region != self.func.dfg.alias_regions.get(region::CELLS)
    }

    /// Prints a block in its better order, and behind the last block a copy in its own.
    pub(crate) fn print_ahead(&mut self, ahead: &Ahead) -> Result<(), Error> {
        self.print(ahead.before.iter().copied())?;
        if self.here.ended {
            return Ok(());
        }
        let plain = self.body.local();
        self.branch_if_touching(&ahead.pairs, plain);
        let here = self.here.clone();
        for &step in &ahead.order {
            match step {
                _ if self.here.ended => break,
                Step::Inst(inst) => self.print([inst])?,
                Step::Test(inst) => self.test_early(inst),
            }
        }
        self.plan.tested.clear();
        if ahead.pairs.is_empty() {
            return Ok(());
        }
        // The copy begins where the better order did.
        self.here = here;
        self.next = None;
        let marks = self.marks.take();
        self.out_of_line(|e| {
            e.body.place(plain);
            e.print(ahead.plain.iter().copied())
        })?;
        self.marks = marks;
        Ok(())
    }

    fn branch_if_touching(&mut self, pairs: &[Pair], to: Label) {
        let mut any: Option<Reg> = None;
        for pair in pairs {
            let touches = self.touches(pair);
            any = Some(match any {
                None => touches,
                Some(any) => self.body.op_to_temp(Class::Pred, "or", ".pred", &[any.into(), touches.into()]),
            });
        }
        if let Some(any) = any {
            self.body.branch_if(any, When::True, to);
        }
    }

    /// A predicate that is true if the two have a byte in common.
    fn touches(&mut self, pair: &Pair) -> Reg {
        let (by, limit) = pair.distance();
        let [mut distance, other] = pair.0.map(|span| match span.root {
            Root::Value(root) => Operand::Reg(self.root_word(root)),
            Root::Constant(_) => Operand::Int(0),
        });
        if let Operand::Reg(_) = other {
            distance = self.body.op_to_temp(Class::B32, "sub", ".u32", &[distance, other]).into();
        }
        if by != 0 {
            let by = Operand::Int(i64::from(by as i32));
            distance = self.body.op_to_temp(Class::B32, "add", ".u32", &[distance, by]).into();
        }
        self.body.op_to_temp(Class::Pred, "setp.lt", ".u32", &[distance, limit.into()])
    }

    /// What a root is made of, and the constant between.
    fn stem(&self, root: Value) -> (Value, u32) {
        let dfg = &self.func.dfg;
        let (mut stem, mut by) = (root, 0u32);
        for _ in 0..DEPTH {
            let ValueDef::Result(inst, _) = dfg.value_def(stem) else { break };
            let InstructionData::Binary { opcode: Opcode::Iadd, args: [a, b] } = dfg.insts[inst] else { break };
            let (rest, constant) = match (self.constant(a), self.constant(b)) {
                (_, Some(constant)) => (a, constant),
                (Some(constant), _) => (b, constant),
                _ => break,
            };
            if self.ty(rest) != types::I32 {
                break;
            }
            (stem, by) = (dfg.resolve_aliases(rest), by.wrapping_add(constant as u32));
        }
        (stem, by)
    }

    /// Whether a load may be printed before a store, both in order by themselves.
    fn passing(&self, load: &Span, store: &Span) -> Passing {
        let stem = |span: &Span| match span.root {
            Root::Value(root) => {
                let (stem, by) = self.stem(root);
                (Some(stem), by)
            }
            Root::Constant(_) => (None, 0),
        };
        let ((one, above), (other, below)) = (stem(load), stem(store));
        if one != other {
            return Passing::Tested;
        }
        let (by, limit) = Pair([*load, *store]).distance();
        let distance = above.wrapping_sub(below).wrapping_add(by as u32);
        if i64::from(distance) < limit { Passing::Never } else { Passing::Always }
    }
}

/// Whether enough loads come behind a store: of most blocks, nothing more is asked.
fn may_pay(segment: &[Kind]) -> bool {
    let behind = segment.iter().skip_while(|kind| !matches!(kind, Kind::Store(_)));
    behind.filter(|kind| matches!(kind, Kind::Load(_))).count() >= LEAST
}

/// The order of the instructions between two barriers, while it is being found.
struct Schedule<'e, 'a> {
    e: &'e Emitter<'a>,
    insts: &'e [Inst],
    kinds: &'e [Kind],
    places: HashMap<Inst, usize>,
    /// Of each access, the value whose test it relies on, and whether it has that itself.
    tested: Vec<Option<(Value, bool)>>,
    is_printed: Vec<bool>,
    order: Vec<Step>,
    pairs: Vec<Pair>,
    /// Loads that were printed before a store: where they stood, and what registers they take.
    moved: Vec<(usize, u32)>,
    /// How many of them stood behind a store by another root.
    gained: usize,
}

/// What was found.
struct Scheduled {
    /// What the tests need, in order.
    first: Vec<Inst>,
    /// The rest.
    order: Vec<Step>,
    pairs: Vec<Pair>,
    gained: usize,
}

impl<'e, 'a> Schedule<'e, 'a> {
    fn new(e: &'e Emitter<'a>, insts: &'e [Inst], kinds: &'e [Kind]) -> Self {
        let tested = insts.iter().zip(kinds).map(|(&inst, kind)| match kind {
            Kind::Load(access) | Kind::Store(access) => e.tested(inst, access),
            _ => None,
        });
        Self {
            e,
            insts,
            kinds,
            places: insts.iter().copied().zip(0..).collect(),
            tested: tested.collect(),
            is_printed: vec![false; insts.len()],
            order: Vec::with_capacity(insts.len()),
            pairs: Vec::new(),
            moved: Vec::new(),
            gained: 0,
        }
    }

    fn run(mut self) -> Option<Scheduled> {
        for at in 0..self.insts.len() {
            if self.is_printed[at] {
                continue;
            }
            if matches!(self.kinds[at], Kind::Store(_)) {
                for load in at + 1..self.insts.len().min(at + WINDOW) {
                    if matches!(self.kinds[load], Kind::Load(_)) && !self.is_printed[load] {
                        self.bring(load, at);
                    }
                }
            }
            self.print(at);
        }
        if self.gained < LEAST {
            return None;
        }
        let mut needed = BTreeSet::new();
        for root in self.pairs.iter().flat_map(|pair| pair.0.map(|span| span.root)) {
            needed.extend(self.made_of(root)?);
        }
        let first: Vec<Inst> = needed.into_iter().map(|at| self.insts[at]).collect();
        self.order.retain(|step| !matches!(step, Step::Inst(inst) if first.contains(inst)));
        Some(Scheduled { first, order: self.order, pairs: self.pairs, gained: self.gained })
    }

    fn print(&mut self, at: usize) {
        self.is_printed[at] = true;
        self.order.push(Step::Inst(self.insts[at]));
    }

    /// Where in this segment an instruction's operands are made.
    fn operands(&self, at: usize) -> impl Iterator<Item = usize> {
        let dfg = &self.e.func.dfg;
        let made = |value| dfg.value_def(dfg.resolve_aliases(value)).inst();
        dfg.inst_values(self.insts[at]).filter_map(move |value| self.places.get(&made(value)?).copied())
    }

    /// Prints a load before the store at `before`, with all it needs, if that may be.
    fn bring(&mut self, load: usize, before: usize) {
        let (mut wanted, mut tests, mut pairs) = (BTreeSet::new(), BTreeSet::new(), self.pairs.clone());
        let (mut loads, mut gained) = (Vec::new(), 0);
        let mut left: u32 = self.moved.iter().filter(|(at, _)| *at > before).map(|(_, registers)| registers).sum();
        let mut work = vec![load];
        while let Some(at) = work.pop() {
            if self.is_printed[at] || !wanted.insert(at) {
                continue;
            }
            match &self.kinds[at] {
                Kind::Free => {}
                Kind::Load(access) => {
                    if !self.passes(access, before..at, &mut pairs) {
                        return;
                    }
                    let registers = access.bytes.div_ceil(4);
                    left += registers;
                    loads.push((at, registers));
                    gained += usize::from(self.is_behind_another(access, before..at));
                    // Who tests for it must have done so.
                    let of = self.tested[at].map(|(of, _)| (of, true));
                    for tester in (before..at).filter(|&other| of.is_some() && self.tested[other] == of) {
                        match self.kinds[tester] {
                            Kind::Load(_) => work.push(tester),
                            _ => _ = tests.insert(tester),
                        }
                    }
                }
                Kind::Store(_) | Kind::Stays | Kind::Barrier => return,
            }
            work.extend(self.operands(at));
        }
        if left > MOST_REGISTERS {
            return;
        }
        self.pairs = pairs;
        self.moved.extend(loads);
        self.gained += gained;
        for &at in wanted.union(&tests) {
            match self.tested[at] {
                _ if wanted.contains(&at) => self.print(at),
                // Printed once: nothing is to be done for it any more.
                Some((of, _)) => {
                    self.tested[at] = Some((of, false));
                    self.order.push(Step::Test(self.insts[at]));
                }
                None => {}
            }
        }
    }

    /// Whether a load may be printed before all stores in between. Adds what must be tested for that.
    fn passes(&self, load: &Access, between: std::ops::Range<usize>, pairs: &mut Vec<Pair>) -> bool {
        let load = Span::of(load);
        between.into_iter().all(|at| {
            let Kind::Store(store) = &self.kinds[at] else { return true };
            let store = Span::of(store);
            match self.e.passing(&load, &store) {
                Passing::Always => true,
                Passing::Never => false,
                Passing::Tested => self.add_pair(load, store, pairs),
            }
        })
    }

    fn is_behind_another(&self, load: &Access, mut between: std::ops::Range<usize>) -> bool {
        let root = Span::of(load).root;
        between.any(|at| matches!(&self.kinds[at], Kind::Store(store) if Span::of(store).root != root))
    }

    fn add_pair(&self, load: Span, store: Span, pairs: &mut Vec<Pair>) -> bool {
        // A value comes first: there is at least one.
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
        let possible = pairs.len() < MOST_PAIRS && [one, other].iter().all(|span| self.made_of(span.root).is_some());
        if possible {
            pairs.push(Pair([one, other]));
        }
        possible
    }

    /// The instructions of this segment that a root needs, if it can be had before all others.
    fn made_of(&self, root: Root) -> Option<BTreeSet<usize>> {
        let mut found = BTreeSet::new();
        let Root::Value(root) = root else { return Some(found) };
        let made = self.e.func.dfg.value_def(root).inst().and_then(|inst| self.places.get(&inst));
        let mut work: Vec<usize> = made.copied().into_iter().collect();
        while let Some(at) = work.pop() {
            if !matches!(self.kinds[at], Kind::Free) {
                return None;
            }
            if found.insert(at) {
                work.extend(self.operands(at));
            }
        }
        Some(found)
    }
}
