//! How much a function may do without a look at the stop word.
//!
//! The loops of a call look at it after [`FIRST`] iterations and every [`INTERVAL`] from then on. That is no limit for a tree of calls, nor for short loops in functions that are called in short loops. So
//! the work of a call before its first look is bounded from below upwards: operators in the text once, those in loops as often as a loop does not look. What a call may do is charged to the iterations of
//! the loop it is in, where it is made; in straight code a look is put before the call that would make it too much. Small functions, and loops that call none but small ones, have nothing of this.
//!
//! A function that can reach itself is charged when it is entered, to a count that all such functions share. Its callers owe nothing for it. But a stack of calls may come back without one more entry, so what
//! such a function does after a call that may have come to itself begins with a look, if it is much.

use crate::callgraph::Graph;
use crate::decode::Module;
use gpu_run_abi::intrinsic::INTERVAL;
use wasmparser::Operator;

/// Operators that count as one iteration of a loop.
pub(crate) const UNIT: u64 = 1 << 13;
/// The most that is done without a look, more or less.
pub(crate) const MOST: u64 = UNIT * INTERVAL as u64;
/// Iterations of a call's loops before its first look. Most loops are short: with fewer than [`INTERVAL`], what the calls of short loops may do is bounded by less, and calls need fewer looks around them.
pub(crate) const FIRST: i64 = 256;
/// A recursive function that does no more than this after its calls need not look there: a stack is only so deep.
const SMALL_BODY: u64 = 1 << 10;
/// A recursive function whose text is longer has a look after such a call, and not only before what may be much.
const LONG_TEXT: u64 = 1 << 14;

/// What a function's text asks for, each operator once.
#[derive(Debug, Default)]
pub(crate) struct Text {
    length: u64,
    /// What they weigh.
    operators: u64,
    /// Those of them that are in a loop.
    in_loops: u64,
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
        let weight = weight(op);
        self.length += 1;
        self.operators += weight;
        self.in_loops += if in_loop { weight } else { 0 };
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

    /// What a call does at most before it looks, if its own calls do so much.
    fn bound(&self, call: impl Fn(Callee) -> u64) -> u64 {
        let sites = |place: usize| {
            let of = |(callee, sites): &(Callee, [u64; 2])| match sites[place] {
                0 => 0,
                count => count.saturating_mul(call(*callee)),
            };
            self.calls.iter().map(of).fold(0, u64::saturating_add)
        };
        let rounds = |work: u64| work.saturating_mul(FIRST as u64);
        // Iterations are charged for what they call, in whole units: after as many as this, beside the last one, there is a look.
        let calls = sites(1).saturating_add(rounds(2 * UNIT)).min(rounds(sites(1)));
        rounds(self.in_loops).saturating_add(calls).saturating_add(sites(0)).saturating_add(self.operators).min(MOST)
    }
}

/// Operators that are a loop in the runtime look by themselves, but not soon.
pub(crate) fn weight(op: &Operator<'_>) -> u64 {
    match op {
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

/// What a call may have left to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    Nothing,
    /// A look before the next call or iteration.
    LookSoon,
    Look,
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
    bodies: Vec<u64>,
}

impl Work {
    pub(crate) fn new(module: &Module<'_>, graph: &Graph) -> Self {
        let (functions, imports) = (module.functions.len(), module.imports.len());
        let cycles = graph.cycles();
        let mut this = Self { calls: vec![UNIT; cycles.len()], cycles, functions, bodies: vec![0; functions] };
        for node in graph.called_first() {
            this.calls[node] = match node.checked_sub(imports) {
                _ if node >= functions => {
                    graph.called_by(node).iter().map(|to| this.calls[*to as usize]).max().unwrap_or(0)
                }
                // It pays for itself.
                _ if this.cycles[node].is_some() => 0,
                Some(body) => module.surveys[body].text.bound(|callee| this.calls[this.node(module, callee)]),
                // An import: its stub looks while it waits.
                None => UNIT,
            };
        }
        for (function, survey) in (imports..).zip(&module.surveys) {
            this.bodies[function] = survey.text.bound(|callee| this.calls[this.node(module, callee)]);
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

    /// What to do after a function's call of another.
    pub(crate) fn after_call(&self, module: &Module<'_>, caller: u32, callee: Callee) -> After {
        let (caller, node) = (caller as usize, self.node(module, callee));
        let length = || module.surveys[caller - module.imports.len()].text.length;
        match self.cycles[caller] {
            Some(cycle) if self.cycles[node] == Some(cycle) && self.bodies[caller] > SMALL_BODY => match length() {
                LONG_TEXT.. => After::Look,
                _ => After::LookSoon,
            },
            _ => After::Nothing,
        }
    }

    /// What an entry of a function that can reach itself counts for.
    pub(crate) fn of_entry(&self, function: u32) -> i64 {
        self.bodies[function as usize].div_ceil(UNIT) as i64
    }

    pub(crate) fn is_recursive(&self, function: u32) -> bool {
        self.cycles[function as usize].is_some()
    }
}
