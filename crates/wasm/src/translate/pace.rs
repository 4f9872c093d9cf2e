//! Looks at the stop word, where loops and entries do not see to them: see [`crate::work`].

use super::Translator;
use crate::work::{self, Callee, MAX_UNSEEN_WORK, UNIT};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, types};
use gpu_run_abi::intrinsic::INTERVAL;
use gpu_run_abi::layout::field;
use wasmparser::Operator;

/// What may be done without a look in straight code. A call never counts for more than [`MAX_UNSEEN_WORK`], however much is below it: there are looks in there, then.
/// So two such calls need one between them, or a tree of them would be without any.
const UNSEEN: u64 = 2 * MAX_UNSEEN_WORK;

/// What may have been done when a place is reached.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// Since the last look or the head of the innermost loop, in straight code.
    unseen: u64,
    /// The sum of `unseen` where each open loop was entered. What comes before a loop is no reason to look in each of its iterations, for they pay for their calls; where the loop is left it counts
    /// again.
    outside: u64,
    /// In a loop, not yet charged to its iterations.
    uncharged: u64,
}

impl Pace {
    /// Where a block ends that begins here, as long as no way leads there.
    pub(super) fn begin(self) -> Pace {
        Pace { outside: self.outside, ..Pace::default() }
    }

    pub(super) fn enter_loop(&mut self) {
        self.outside += std::mem::take(&mut self.unseen);
        // To enter it is charged as an iteration. Short loops are not to pay for what is left over from before.
        self.uncharged = 0;
    }

    /// One more way leads here, out of as many loops as it may.
    pub(super) fn meet(&mut self, other: Pace) {
        self.unseen = self.unseen.max(other.unseen + other.outside - self.outside);
        self.uncharged = self.uncharged.max(other.uncharged);
    }

    /// After something that may have done anything.
    pub(super) fn unknown(self) -> Pace {
        Pace { unseen: UNSEEN, ..self.begin() }
    }
}

impl Translator<'_, '_> {
    /// Counts an operator that is about to be done.
    pub(super) fn spend(&mut self, op: &Operator<'_>) {
        self.done.operator(op, self.loops > 0);
        match work::weight(op) {
            1 => self.count(1),
            much => self.count_or_look(much),
        }
    }

    /// Counts a call that is about to be made.
    pub(super) fn spend_call(&mut self, callee: Callee) {
        let module = self.env.module;
        let work = module.work.of_call(module, callee);
        self.done.call(work, self.loops > 0);
        match work {
            // It pays for itself.
            0 => {}
            work => self.count_or_look(work),
        }
    }

    /// After a call: if the function may have called itself in there, this may be one of many that come back now.
    pub(super) fn come_back(&mut self, callee: Callee) {
        let module = self.env.module;
        if !self.last {
            let done = Some(self.done).filter(|_| self.loops == 0);
            self.pay(module.work.of_return(module, self.index, callee, done));
        }
    }

    /// Takes so many units from what is left of all recursive functions, and looks if that was too much.
    pub(super) fn pay(&mut self, units: i64) {
        if units == 0 {
            return;
        }
        let fuel = self.code.header(types::I32, field::FUEL);
        let fuel = self.code.ins().iadd_imm_s(fuel, -units);
        self.code.set_header(fuel, field::FUEL);
        let spent = self.code.ins().icmp_imm_s(IntCC::SignedLessThan, fuel, 0);
        self.code.if_then(spent, true, |code| {
            code.check_stop();
            let full = code.i32(INTERVAL);
            code.set_header(full, field::FUEL);
        });
    }

    /// Looks first, if it may be too much.
    fn count_or_look(&mut self, work: u64) {
        // What never comes back, as what panics, looks for itself.
        if self.pace.unseen + work > UNSEEN && !self.last {
            self.code.check_stop();
            self.pace.unseen = 0;
            if let Some(ticks) = self.ticks {
                let full = self.code.i32(INTERVAL);
                self.code.b.def_var(ticks, full);
            }
        }
        self.count(work);
    }

    fn count(&mut self, work: u64) {
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
}
