//! Exact builds: runs of instructions whose guest accesses share one test.
//!
//! An access that fails its check continues on a slow path and comes back. If every access had a branch of its own, an
//! assembler would put each slow path where it is left and have the lanes of a warp wait for each other behind it: the code
//! of an access would be three times as long, and no load could begin before the one in front of it was tested. So the checks
//! of a whole run are made before its first access. If all of them hold, the run has no branches; if one fails, a copy of the
//! run, out of line, takes the slow path for each access. Both do the same in the same order, so a trap comes where it should.
//!
//! All roots of a run are known where it begins: they are computed by then, or can be.

use super::access::{Accesses, Root};
use super::exact::is_near;
use super::memory_length;
use super::values;
use crate::symbols::Symbols;
use crate::{Function, Program};
use cranelift_codegen::ir::{self, Block, Inst, Value};
use smallvec::SmallVec;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// The most instructions of a run: its copy is as long.
const MAX_INSTRUCTIONS: usize = 64;

/// The most roots of a run: two registers for each are in use from its beginning.
const MAX_ROOTS: usize = 6;

/// A part of a block.
#[derive(Debug)]
pub(crate) enum Part {
    Inst(Inst),
    Run(Run),
}

#[derive(Debug)]
pub(crate) struct Run {
    /// The instructions that compute roots; printed before the test.
    pub(crate) first: Vec<Inst>,
    /// The roots of the near accesses.
    pub(crate) roots: SmallVec<[Value; MAX_ROOTS]>,
    /// The other instructions, in CLIF's order.
    pub(crate) insts: Vec<Inst>,
}

/// Returns the parts of the blocks that have a run.
pub(crate) fn find(symbols: &Symbols<'_>, function: &Function, accesses: &Accesses) -> HashMap<Block, Vec<Part>> {
    // In a gang, an access that fails its check traps, which costs a branch but no way back.
    if symbols.program.is_gang() || accesses.is_empty() {
        return HashMap::new();
    }
    let blocks = function.clif.layout.blocks();
    blocks.filter_map(|block| Some((block, Search::new(symbols, function, accesses, block).parts()?))).collect()
}

/// The search for the runs of one block.
struct Search<'a> {
    program: &'a Program,
    func: &'a ir::Function,
    accesses: &'a Accesses,
    insts: Vec<Inst>,
    /// Whether a run may contain the instruction.
    may_join: Vec<bool>,
    places: HashMap<Inst, usize>,
}

/// A run that may become longer.
struct Open {
    /// From its first access to its last.
    span: Range<usize>,
    accesses: usize,
    roots: SmallVec<[Value; MAX_ROOTS]>,
    first: BTreeSet<usize>,
}

impl<'a> Search<'a> {
    fn new(symbols: &Symbols<'a>, function: &'a Function, accesses: &'a Accesses, block: Block) -> Self {
        let (program, func) = (symbols.program, &function.clif);
        let insts: Vec<Inst> = func.layout.block_insts(block).collect();
        let may_join = |inst: &Inst| {
            let opcode = func.dfg.insts[*inst].opcode();
            !opcode.is_terminator()
                && !opcode.is_call()
                && !values::synchronises(opcode)
                && !memory_length::is_stored_by(program, func, *inst)
        };
        let may_join = insts.iter().map(may_join).collect();
        let places = insts.iter().copied().zip(0..).collect();
        Self { program, func, accesses, insts, may_join, places }
    }

    /// Returns the parts of the block, or `None` if it has no run.
    fn parts(&self) -> Option<Vec<Part>> {
        let mut runs: Vec<Open> = Vec::new();
        let mut open: Option<Open> = None;
        for at in 0..self.insts.len() {
            if !self.may_join[at] {
                runs.extend(open.take());
            }
            let Some(root) = self.near_root(at) else { continue };
            let joined = open.as_mut().is_some_and(|open| self.join(open, at, root));
            if !joined {
                runs.extend(open.take());
                let roots = SmallVec::from_iter([root]);
                open = Some(Open { span: at..at + 1, accesses: 1, roots, first: BTreeSet::new() });
            }
        }
        runs.extend(open);
        runs.retain(|run| run.accesses > 1);
        if runs.is_empty() {
            return None;
        }
        let (mut parts, mut done) = (Vec::new(), 0);
        let insts = |range: Range<usize>| self.insts[range].iter().copied().map(Part::Inst);
        for Open { span, roots, first, .. } in runs {
            parts.extend(insts(done..span.start));
            done = span.end;
            let rest = span.filter(|at| !first.contains(at)).map(|at| self.insts[at]).collect();
            let first = first.into_iter().map(|at| self.insts[at]).collect();
            parts.push(Part::Run(Run { first, roots, insts: rest }));
        }
        parts.extend(insts(done..self.insts.len()));
        Some(parts)
    }

    /// Returns the root of an access that the check of its root covers.
    fn near_root(&self, at: usize) -> Option<Value> {
        let access = self.accesses.get(self.insts[at]).filter(|access| is_near(self.program, access))?;
        match access.root {
            Root::Value(root) => Some(root),
            Root::Constant(_) => None,
        }
    }

    /// Makes an access part of a run, if that is possible.
    fn join(&self, run: &mut Open, at: usize, root: Value) -> bool {
        let is_new = !run.roots.contains(&root);
        if at - run.span.start >= MAX_INSTRUCTIONS || is_new && run.roots.len() == MAX_ROOTS {
            return false;
        }
        if is_new {
            let Some(made_of) = self.made_of(root, run.span.start) else { return false };
            run.first.extend(made_of);
            run.roots.push(root);
        }
        run.span.end = at + 1;
        run.accesses += 1;
        true
    }

    /// Returns the instructions from `start` on that compute a root, or `None` if one of them has to stay where it is.
    fn made_of(&self, root: Value, start: usize) -> Option<BTreeSet<usize>> {
        let dfg = &self.func.dfg;
        let place = |value| self.places.get(&dfg.value_def(dfg.resolve_aliases(value)).inst()?).copied();
        let mut found = BTreeSet::new();
        let mut work: Vec<usize> = place(root).into_iter().collect();
        while let Some(at) = work.pop() {
            if at < start {
                continue;
            }
            let opcode = dfg.insts[self.insts[at]].opcode();
            if opcode.is_call()
                || opcode.can_load()
                || opcode.can_store()
                || opcode.can_trap()
                || opcode.other_side_effects()
            {
                return None;
            }
            if found.insert(at) {
                work.extend(dfg.inst_values(self.insts[at]).filter_map(place));
            }
        }
        Some(found)
    }
}
