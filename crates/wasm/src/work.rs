//! How much a function may do without a look at the stop word.
//!
//! The loops of a call look at it after [`FIRST`] iterations and every [`INTERVAL`] from then on. That is no limit for a tree of calls, nor for short loops in functions that are called in short loops. So
//! the work of a call before its first look is bounded from below upwards: operators in the text once, those in loops as often as a loop does not look. What a call may do is charged to the iterations of
//! the loop it is in, where it is made; in straight code a look is put before the call that would make it too much. Small functions, and loops that call none but small ones, have nothing of this.
//!
//! A function that can reach itself pays when it is entered, to a count that all such functions share. Its callers owe nothing for it. But a stack of calls may come back without one more entry, so such a
//! function pays again after a call that may have come to itself, if it does much.

use crate::callgraph::Graph;
use crate::decode::Module;
use gpu_run_abi::intrinsic::INTERVAL;
use wasmparser::Operator;

/// Operators that count as one iteration of a loop.
pub(crate) const UNIT: u64 = 1 << 13;
/// What a call itself counts for: a GPU takes half a microsecond for one.
const CALL_WORK: u64 = 64;
/// The most that is done without a look, more or less.
pub(crate) const MAX_UNSEEN_WORK: u64 = UNIT * INTERVAL as u64;
/// Iterations of a call's loops before its first look. Most loops are short: with fewer than [`INTERVAL`], what the calls of short loops may do is bounded by less, and calls need fewer looks around them.
pub(crate) const FIRST: i64 = 64;
/// A recursive function that does no more than this after its calls need not pay there: a stack is only so deep.
const SMALL_BODY: u64 = 1 << 10;

/// What a function's text asks for, each operator once.
#[derive(Debug, Default)]
pub(crate) struct Text {
    /// Without its calls.
    own: Sum,
    /// Who is called, and from how many places outside of loops and inside, sorted.
    calls: Vec<(Callee, [u64; 2])>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Callee {
    Function(u32),
    /// Whatever is called through a reference of this type.
    Type(u32),
}

impl Text {
    pub(crate) fn operator(&mut self, op: &Operator<'_>, in_loop: bool) {
        self.own.operator(op, in_loop);
        let callee = match *op {
            Operator::Call { function_index } | Operator::ReturnCall { function_index } => {
                Callee::Function(function_index)
            }
            Operator::CallIndirect { type_index, .. }
            | Operator::CallRef { type_index }
            | Operator::ReturnCallIndirect { type_index, .. }
            | Operator::ReturnCallRef { type_index } => Callee::Type(type_index),
            _ => return,
        };
        self.calls.push((callee, [u64::from(!in_loop), u64::from(in_loop)]));
    }

    /// Each callee once.
    pub(crate) fn finish(&mut self) {
        self.calls.sort_unstable_by_key(|(callee, _)| *callee);
        self.calls.dedup_by(|(next, more), (callee, sites)| {
            let same = next == callee;
            if same {
                sites.iter_mut().zip(more).for_each(|(sites, more)| *sites += *more);
            }
            same
        });
    }

    pub(crate) fn renumber(&mut self, functions: &[u32], types: u32) {
        for (callee, _) in &mut self.calls {
            *callee = match *callee {
                Callee::Function(function) => Callee::Function(functions[function as usize]),
                Callee::Type(ty) => Callee::Type(ty + types),
            };
        }
    }

    /// All of it, if its calls do so much.
    fn sum(&self, call: impl Fn(Callee) -> u64) -> Sum {
        let mut sum = self.own;
        for (callee, [straight, in_loops]) in &self.calls {
            let work = call(*callee);
            sum.call(straight.saturating_mul(work), false);
            sum.call(in_loops.saturating_mul(work), true);
        }
        sum
    }
}

/// What a part of a text asks for, each operator and each call once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    operators: u64,
    /// Those of them that are in a loop.
    in_loops: u64,
    /// What is called outside of loops, and inside.
    calls: u64,
    calls_in_loops: u64,
}

impl Sum {
    pub(crate) fn operator(&mut self, op: &Operator<'_>, in_loop: bool) {
        let weight = weight(op);
        self.operators += weight;
        self.in_loops += if in_loop { weight } else { 0 };
    }

    pub(crate) fn call(&mut self, work: u64, in_loop: bool) {
        let calls = if in_loop { &mut self.calls_in_loops } else { &mut self.calls };
        *calls = calls.saturating_add(work);
    }

    /// What is behind a part from the beginning on.
    fn without(self, part: Sum) -> Sum {
        Sum {
            operators: self.operators.saturating_sub(part.operators),
            in_loops: self.in_loops.saturating_sub(part.in_loops),
            calls: self.calls.saturating_sub(part.calls),
            calls_in_loops: self.calls_in_loops.saturating_sub(part.calls_in_loops),
        }
    }

    /// What it does at most before it looks.
    fn bound(self) -> u64 {
        let rounds = |work: u64| work.saturating_mul(FIRST as u64);
        // Iterations are charged for what they call, in whole units: after as many as this, beside the last one, there is a look.
        let in_loops = self.calls_in_loops.saturating_add(rounds(2 * UNIT)).min(rounds(self.calls_in_loops));
        let all = rounds(self.in_loops).saturating_add(in_loops).saturating_add(self.calls);
        all.saturating_add(self.operators).min(MAX_UNSEEN_WORK)
    }
}

/// Operators that are a loop in the runtime look by themselves, but not soon. What is called is counted apart.
pub(crate) fn weight(op: &Operator<'_>) -> u64 {
    match op {
        Operator::Call { .. }
        | Operator::CallIndirect { .. }
        | Operator::CallRef { .. }
        | Operator::ReturnCall { .. }
        | Operator::ReturnCallIndirect { .. }
        | Operator::ReturnCallRef { .. } => CALL_WORK,
        Operator::MemoryFill { .. }
        | Operator::MemoryCopy { .. }
        | Operator::MemoryInit { .. }
        | Operator::TableFill { .. }
        | Operator::TableCopy { .. }
        | Operator::TableInit { .. }
        | Operator::TableGrow { .. } => UNIT,
        _ => 1,
    }
}

/// What calls may do.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// By function, then by the number of a type that is called through.
    calls: Vec<u64>,
    /// The same: those with the same number reach each other.
    cycles: Vec<Option<u32>>,
    functions: usize,
    /// By function: what one does beside its calls to those that pay for themselves.
    bodies: Vec<Sum>,
}

impl Work {
    pub(crate) fn new(module: &Module<'_>, graph: &Graph) -> Self {
        let (functions, imports) = (module.functions.len(), module.imports.len());
        let cycles = graph.cycles();
        let mut this =
            Self { calls: vec![UNIT; cycles.len()], cycles, functions, bodies: vec![Sum::default(); functions] };
        for node in graph.called_first() {
            this.calls[node] = match node.checked_sub(imports) {
                _ if node >= functions => {
                    graph.called_by(node).iter().map(|to| this.calls[*to as usize]).max().unwrap_or(0)
                }
                // It pays for itself.
                _ if this.cycles[node].is_some() => 0,
                Some(body) => module.surveys[body].text.sum(|callee| this.calls[this.node(module, callee)]).bound(),
                // An import: its stub looks while it waits.
                None => UNIT,
            };
        }
        for (function, survey) in (imports..).zip(&module.surveys) {
            this.bodies[function] = survey.text.sum(|callee| this.calls[this.node(module, callee)]);
        }
        this
    }

    fn node(&self, module: &Module<'_>, callee: Callee) -> usize {
        match callee {
            Callee::Function(function) => function as usize,
            Callee::Type(ty) => self.functions + module.signatures[ty as usize] as usize,
        }
    }

    /// What a call may do before it looks.
    pub(crate) fn of_call(&self, module: &Module<'_>, callee: Callee) -> u64 {
        self.calls[self.node(module, callee)]
    }

    /// What a function that can reach itself pays when it is entered, in units; others nothing.
    pub(crate) fn of_entry(&self, function: u32) -> i64 {
        let function = function as usize;
        self.cycles[function].map_or(0, |_| units(self.bodies[function].bound()))
    }

    /// And after a call. `done`: what comes before it in the text, unless that may come again.
    pub(crate) fn of_return(&self, module: &Module<'_>, caller: u32, callee: Callee, done: Option<Sum>) -> i64 {
        let (cycle, node) = (self.cycles[caller as usize], self.node(module, callee));
        if cycle.is_none() || self.cycles[node] != cycle {
            return 0;
        }
        match self.bodies[caller as usize].without(done.unwrap_or_default()).bound() {
            ..=SMALL_BODY => 0,
            left => units(left),
        }
    }
}

fn units(work: u64) -> i64 {
    work.div_ceil(UNIT) as i64
}
