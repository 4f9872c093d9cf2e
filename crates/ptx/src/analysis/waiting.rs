//! Loads by which a thread may wait for another one.
//!
//! A program may wait for a change in memory without atomic operations: libraries of C read a `volatile` variable again
//! and again. An ordinary load of a GPU may read the same old value from the cache of its processor each time. Compilers
//! move ordinary loads out of loops; so a load at an address that does not change is in a loop because it has to be, if
//! nothing in the loop writes to memory, or if something there synchronises threads. Such a load reads what is there now.

use super::access::{Access, Accesses, Root};
use super::flow::Flow;
use super::values;
use crate::Function;
use crate::symbols::Symbols;
use cranelift_codegen::ir::{Block, Inst, ValueDef};
use cranelift_codegen::loop_analysis::Loop;
use cranelift_entity::SecondaryMap;
use std::collections::{HashMap, HashSet};

/// What a loop does, without the loops inside it.
#[derive(Clone, Copy, Debug, Default)]
struct Body {
    synchronises: bool,
    writes: bool,
    calls: bool,
}

/// What kind of loop a loop is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kind {
    /// Lanes may meet in it: it is in no other loop of its function, and not behind an atomic operation there, which may have
    /// taken a lock.
    pub(crate) may_meet: bool,
    /// An iteration may be long, for it calls functions or has loops inside.
    pub(crate) is_large: bool,
    /// It synchronises threads, so it may wait for another one, which should run soon.
    pub(crate) may_wait: bool,
}

/// What a function waits with.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// Loads that read what is there now.
    pub(crate) loads: HashSet<Inst>,
    /// The loops, by their headers.
    pub(crate) loops: HashMap<Block, Kind>,
}

pub(crate) fn find(symbols: &Symbols<'_>, function: &Function, flow: &Flow, accesses: &Accesses) -> Waiting {
    let func = &function.clif;
    let mut bodies: SecondaryMap<Loop, Body> = SecondaryMap::new();
    let mut behind: HashSet<Loop> = HashSet::new();
    let mut synchronised = false;
    for block in func.layout.blocks() {
        let of = flow.loops.innermost_loop(block);
        if synchronised {
            behind.extend(of.filter(|of| flow.loops.loop_header(*of) == block));
        }
        for inst in func.layout.block_insts(block) {
            let opcode = func.dfg.insts[inst].opcode();
            let synchronises = values::synchronises(opcode);
            synchronised |= synchronises;
            let Some(of) = of else { continue };
            let body = &mut bodies[of];
            body.synchronises |= synchronises;
            body.calls |= symbols.calls(function, inst);
            body.writes |= opcode.can_store() || body.calls;
        }
    }
    let mut waiting = Waiting::default();
    let have_loops: HashSet<Loop> = flow.loops.loops().filter_map(|of| flow.loops.loop_parent(of)).collect();
    for of in flow.loops.loops() {
        let may_meet = flow.loops.loop_parent(of).is_none() && !behind.contains(&of);
        let is_large = have_loops.contains(&of) || may_meet && bodies[of].calls;
        let kind = Kind { may_meet, is_large, may_wait: bodies[of].synchronises };
        waiting.loops.insert(flow.loops.loop_header(of), kind);
    }
    for block in func.layout.blocks() {
        let Some(of) = flow.loops.innermost_loop(block) else { continue };
        if bodies[of].writes && !bodies[of].synchronises {
            continue;
        }
        let is_fixed = |access: &Access| match access.root {
            Root::Value(root) => {
                let defined = match func.dfg.value_def(root) {
                    ValueDef::Result(inst, _) => func.layout.inst_block(inst),
                    ValueDef::Param(block, _) => Some(block),
                    ValueDef::Union(..) => None,
                };
                defined.is_some_and(|defined| !flow.loops.is_in_loop(defined, of))
            }
            Root::Constant(_) => true,
        };
        let loads = func
            .layout
            .block_insts(block)
            .filter(|inst| accesses.get(*inst).is_some_and(|access| !access.stores && is_fixed(access)));
        waiting.loads.extend(loads);
    }
    waiting
}
