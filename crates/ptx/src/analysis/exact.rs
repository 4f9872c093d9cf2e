//! Exact builds: the check of each root, block by block.
//!
//! One check of a root covers all its *near* accesses in the block ([`is_near`]). The check requires the strictest
//! alignment that any of them needs.

use super::access::{Access, Accesses, Root};
use super::values;
use crate::Program;
use cranelift_codegen::ir::{Block, Function, Value};
use gpu_run_abi::layout::GUARD;
use smallvec::SmallVec;
use std::collections::HashMap;

/// How many rotations a check of a root can use: by 0 to 3 bits, for alignments of 1, 2, 4 and 8 bytes.
pub(crate) const SHIFTS: usize = 4;

/// The check of a root in one block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RootCheck {
    root: Value,
    /// The alignment that the near accesses of the block need, as log2.
    asked: u32,
    /// The alignment that the root surely has after the check, as log2.
    pub(crate) alignment: u32,
    /// How many bits the check rotates the root to the right; 0 where the root's alignment is known without a check.
    pub(crate) shift: u32,
    /// Whether an access of the block has a slow path that returns, instead of a trap.
    pub(crate) is_lenient: bool,
}

#[derive(Debug, Default)]
pub(crate) struct ExactChecks {
    /// The values of [`RootCheck::shift`] that occur in the function.
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

    /// Returns the check of a root that has a near access in the block.
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

/// Whether the check of the access's root covers the access: the access stays within the guard and, if it is expected
/// to be aligned, is aligned whenever the root is.
pub(crate) fn is_near(program: &Program, access: &Access) -> bool {
    let is_kept = access.displacement().is_multiple_of(program.unit(access.bytes));
    access.end() <= GUARD && (!access.expects_alignment || is_kept)
}

/// Whether the access traps if its check fails. In a gang, all accesses do except stores without a promise of
/// alignment: the slow path makes those. In other exact builds, none does.
pub(crate) fn is_strict(program: &Program, access: &Access) -> bool {
    program.is_gang() && (access.promises_alignment || !access.expects_alignment)
}
