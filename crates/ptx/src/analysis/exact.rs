//! Exact builds: what the check of a root answers for, block by block.
//!
//! One check of a root answers for all of its *near* accesses in the block. It asks for the strictest alignment that
//! any of them needs.

use super::access::{Access, Accesses, Root};
use super::values;
use crate::Program;
use cranelift_codegen::ir::{Block, Function, Value};
use gpu_run_abi::layout::GUARD;
use smallvec::SmallVec;
use std::collections::HashMap;

/// By how many bits a check can turn a root: alignments of 1, 2, 4 and 8 bytes.
pub(crate) const SHIFTS: usize = 4;

/// The check of a root in one block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RootCheck {
    root: Value,
    /// Alignment that the near accesses of the block ask for, as a power of two.
    asked: u32,
    /// Alignment of the root behind the check, as a power of two.
    pub(crate) alignment: u32,
    /// By how many bits the check turns the root; 0 where its alignment is known anyway.
    pub(crate) shift: u32,
    /// An access of the block may come back from its check, by the slow path.
    pub(crate) is_lenient: bool,
}

#[derive(Debug, Default)]
pub(crate) struct ExactChecks {
    /// Which shifts the function's checks use.
    pub(crate) shifts: [bool; SHIFTS],
    blocks: HashMap<Block, SmallVec<[RootCheck; 4]>>,
}

impl ExactChecks {
    pub(crate) fn find(program: &Program, func: &Function, accesses: &Accesses) -> ExactChecks {
        let mut checks = ExactChecks::default();
        if accesses.is_empty() {
            return checks;
        }
        for block in func.layout.blocks() {
            let roots = roots(program, func, accesses, block);
            roots.iter().for_each(|check| checks.shifts[check.shift as usize] = true);
            if !roots.is_empty() {
                checks.blocks.insert(block, roots);
            }
        }
        checks
    }

    /// The check of a root that has a near access in the block.
    pub(crate) fn of(&self, block: Option<Block>, root: Value) -> Option<&RootCheck> {
        self.blocks.get(&block?)?.iter().find(|check| check.root == root)
    }
}

fn roots(program: &Program, func: &Function, accesses: &Accesses, block: Block) -> SmallVec<[RootCheck; 4]> {
    let mut roots: SmallVec<[RootCheck; 4]> = SmallVec::new();
    for inst in func.layout.block_insts(block) {
        let Some(access) = accesses.get(inst) else { continue };
        let Root::Value(root) = access.root else { continue };
        if !is_near(program, access) {
            continue;
        }
        let asked = if access.expects_alignment { program.unit(access.bytes).trailing_zeros() } else { 0 };
        let is_lenient = !is_strict(program, access);
        match roots.iter_mut().find(|check| check.root == root) {
            Some(check) => {
                check.asked = asked.max(check.asked);
                check.is_lenient |= is_lenient;
            }
            None => roots.push(RootCheck { root, asked, alignment: 0, shift: 0, is_lenient }),
        }
    }
    for check in &mut roots {
        let known = values::trailing_zeros(func, check.root);
        check.alignment = check.asked.max(known.min(3));
        check.shift = if known >= check.asked { 0 } else { check.asked };
    }
    roots
}

/// Whether the check of the access's root answers for the access.
pub(crate) fn is_near(program: &Program, access: &Access) -> bool {
    let is_kept = access.displacement().is_multiple_of(program.unit(access.bytes));
    access.end() <= GUARD && (!access.expects_alignment || is_kept)
}

/// Whether the access traps where its check fails. That is so in a gang, but for stores without a promise: the slow
/// path makes them.
pub(crate) fn is_strict(program: &Program, access: &Access) -> bool {
    program.is_gang() && (access.promises_alignment || !access.expects_alignment)
}
