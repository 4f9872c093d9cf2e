//! Looks at the stop word, where loops and entries do not see to them: see [`crate::work`].

use super::Translator;
use crate::work::{Callee, MOST, UNIT};
use cranelift_codegen::ir::InstBuilder;
use gpu_run_abi::intrinsic::INTERVAL;

/// What may be done without a look in straight code. A call never counts for more than [`MOST`], however much is below it: there are looks in there, then.
/// So two such calls need one between them, or a tree of them would be without any.
const UNSEEN: u64 = 2 * MOST;

/// What may have been done when a place is reached.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// Since the last look, in straight code.
    unseen: u64,
    /// In a loop, not yet charged to its iterations.
    uncharged: u64,
}

impl Pace {
    /// Where two ways meet.
    pub(super) fn meet(&mut self, other: Pace) {
        self.unseen = self.unseen.max(other.unseen);
        self.uncharged = self.uncharged.max(other.uncharged);
    }

    /// After something that may have done anything.
    pub(super) fn unknown() -> Pace {
        Pace { unseen: MOST, uncharged: 0 }
    }
}

impl Translator<'_, '_> {
    /// Counts what is about to be done.
    pub(super) fn spend(&mut self, work: u64) {
        self.pace.unseen += work;
        let Some(ticks) = self.ticks.filter(|_| self.loops > 0) else { return };
        self.pace.uncharged += work;
        let units = self.pace.uncharged / UNIT;
        if units > 0 {
            self.pace.uncharged %= UNIT;
            let left = self.code.b.use_var(ticks);
            let left = self.code.ins().iadd_imm_s(left, -(units.min(INTERVAL as u64) as i64));
            self.code.b.def_var(ticks, left);
        }
    }

    /// Counts a call that is about to be made, and looks before it if it may be one too many.
    pub(super) fn spend_call(&mut self, callee: Callee) {
        let module = self.env.module;
        let work = module.work.of_call(module, self.index, callee);
        // What never comes back, as what panics, looks for itself.
        if self.pace.unseen + work > UNSEEN && !self.last {
            self.code.check_stop();
            self.pace.unseen = 0;
            if let Some(ticks) = self.ticks.filter(|_| self.loops > 0) {
                let full = self.code.i32(INTERVAL);
                self.code.b.def_var(ticks, full);
            }
        }
        self.spend(work);
    }
}
