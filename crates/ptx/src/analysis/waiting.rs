//! Loads by which a thread may wait for another one.
//!
//! A program may wait for a change in memory without atomic operations: libraries of C read a `volatile` variable again
//! and again. An ordinary load of a GPU may read the same old value from the cache of its processor each time. Compilers
//! move ordinary loads out of loops; so a load at an address that does not change is in a loop because it has to be, if
//! nothing in the loop writes to memory, or if something there synchronises threads. Such a load reads what is there now.

use super::access::{Access, Accesses, Root};
use super::flow::Flow;
use crate::Function;
use crate::symbols::Symbols;
use cranelift_codegen::ir::{Block, Inst, Opcode, ValueDef};
use cranelift_codegen::loop_analysis::Loop;
use cranelift_entity::SecondaryMap;
use std::collections::HashSet;

/// What a loop does, without the loops inside it.
#[derive(Clone, Copy, Debug, Default)]
struct Body {
    synchronises: bool,
    writes: bool,
}

/// What a function waits with.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// Loads that read what is there now.
    pub(crate) loads: HashSet<Inst>,
    /// Headers of loops that synchronise threads.
    pub(crate) loops: HashSet<Block>,
}

pub(crate) fn find(symbols: &Symbols<'_>, function: &Function, flow: &Flow, accesses: &Accesses) -> Waiting {
    let func = &function.clif;
    let mut bodies: SecondaryMap<Loop, Body> = SecondaryMap::new();
    for block in func.layout.blocks() {
        let Some(of) = flow.loops.innermost_loop(block) else { continue };
        for inst in func.layout.block_insts(block) {
            let (body, opcode) = (&mut bodies[of], func.dfg.insts[inst].opcode());
            body.synchronises |= matches!(
                opcode,
                Opcode::AtomicLoad | Opcode::AtomicStore | Opcode::AtomicRmw | Opcode::AtomicCas | Opcode::Fence
            );
            body.writes |= opcode.can_store() || symbols.calls(function, inst);
        }
    }
    let mut waiting = Waiting::default();
    let synchronising = flow.loops.loops().filter(|of| bodies[*of].synchronises);
    waiting.loops.extend(synchronising.map(|of| flow.loops.loop_header(of)));
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
