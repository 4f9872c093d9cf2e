//! Bounds how much work a function may do between two checks of the stop word.
//!
//! The loops of a call check the stop word after [`FIRST`] iterations, and every [`INTERVAL`] iterations from then on.
//! That alone does not bound a tree of calls, or short loops in functions that are called from short loops. So the work
//! that a call does before its first check is bounded bottom-up: operators outside of loops count once, operators in
//! loops as often as the loop runs without a check. A call's work is charged to the iterations of the loop that makes
//! the call; in straight code, a check is put before a call that would exceed the limit. Small functions, and loops
//! that call only small functions, pay nothing.
//!
//! A function that can reach itself pays when it is entered, from fuel that all such functions of an instance share.
//! Its callers pay nothing for it. But a deep stack of calls may return without another entry, so such a function pays
//! again after a call that may have reached itself, if it does much work there.

use crate::callgraph::Graph;
use crate::decode::Module;
use gpu_run_abi::intrinsic::INTERVAL;
use wasmparser::Operator;

/// Operators that count as one iteration of a loop.
pub(crate) const UNIT: u64 = 1 << 13;
/// The work of a call itself: it takes a GPU half a microsecond.
const CALL_WORK: u64 = 64;
/// The approximate limit of work without a check of the stop word.
pub(crate) const MAX_UNSEEN_WORK: u64 = UNIT * INTERVAL as u64;
/// Iterations of a call's loops before its first check. Most loops are short: with a value below [`INTERVAL`], calls
/// that contain short loops have a smaller bound, and fewer checks are needed around them.
pub(crate) const FIRST: i64 = 64;
/// A recursive function that does at most this much work after its calls need not pay there, because the stack's depth
/// is limited.
const SMALL_BODY: u64 = 1 << 10;

/// The work of a function's text, each operator counted once.
#[derive(Debug, Default)]
pub(crate) struct Text {
    /// The work without its calls.
    own: Sum,
    /// Each callee with the number of its call sites outside and inside of loops, sorted.
    calls: Vec<(Callee, [u64; 2])>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Callee {
    Function(u32),
    /// Any function that is called through a reference of this type.
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

    /// Merges the call sites of each callee.
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

    /// Returns the sum of the whole text, if `call` is the work of a call.
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

/// The work of a part of a text, each operator and each call counted once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    operators: u64,
    /// The share of `operators` that is in loops.
    in_loops: u64,
    /// Work of the callees outside of loops, and inside.
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

    /// Returns the work that follows `part`, which begins where this sum does.
    fn without(self, part: Sum) -> Sum {
        Sum {
            operators: self.operators.saturating_sub(part.operators),
            in_loops: self.in_loops.saturating_sub(part.in_loops),
            calls: self.calls.saturating_sub(part.calls),
            calls_in_loops: self.calls_in_loops.saturating_sub(part.calls_in_loops),
        }
    }

    /// Returns the most work that is done before a check of the stop word.
    fn bound(self) -> u64 {
        let rounds = |work: u64| work.saturating_mul(FIRST as u64);
        // Iterations are charged for their calls in whole units: after this much work, plus one more iteration, there
        // is a check.
        let in_loops = self.calls_in_loops.saturating_add(rounds(2 * UNIT)).min(rounds(self.calls_in_loops));
        let all = rounds(self.in_loops).saturating_add(in_loops).saturating_add(self.calls);
        all.saturating_add(self.operators).min(MAX_UNSEEN_WORK)
    }
}

/// Returns the work of an operator. Operators that are loops in the runtime check the stop word themselves, but not
/// soon. The callee's work is not included.
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

/// How much work calls may do.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// The work of a call, by function and then by number of the type called through.
    calls: Vec<u64>,
    /// With the same indices: functions and types that reach each other have the same number.
    cycles: Vec<Option<u32>>,
    functions: usize,
    /// By function: its work, without calls to functions that pay for themselves.
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
                // A function on a cycle pays for itself.
                _ if this.cycles[node].is_some() => 0,
                Some(body) => module.surveys[body].text.sum(|callee| this.calls[this.node(module, callee)]).bound(),
                // An import: its stub checks the stop word while it waits.
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

    /// Returns how much work a call may do before it checks the stop word.
    pub(crate) fn of_call(&self, module: &Module<'_>, callee: Callee) -> u64 {
        self.calls[self.node(module, callee)]
    }

    /// Returns the units that a function pays on entry; 0 if it cannot reach itself.
    pub(crate) fn of_entry(&self, function: u32) -> i64 {
        let function = function as usize;
        self.cycles[function].map_or(0, |_| units(self.bodies[function].bound()))
    }

    /// Returns the units that a function pays after a call. `done` is the work that precedes the call in the text,
    /// unless that code may run again.
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
