//! Puts checks of the stop word where loops and function entries do not have them, see [`crate::work`].

use super::Translator;
use crate::work::{self, Callee, MAX_UNSEEN_WORK, UNIT};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, types};
use gpu_run_abi::intrinsic::INTERVAL;
use gpu_run_abi::layout::field;
use wasmparser::Operator;

/// The most work in straight code without a check. A call never counts for more than [`MAX_UNSEEN_WORK`], however much
/// work is below it, because then there are checks inside it. So there must be a check between two such calls, or a
/// tree of them would have none.
const UNSEEN: u64 = 2 * MAX_UNSEEN_WORK;

/// How much work may have been done when a place in the code is reached.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// Work since the last check or the head of the innermost loop, in straight code.
    unseen: u64,
    /// The sum of `unseen` at the entries of all open loops. Work before a loop is no reason for a check in each of its
    /// iterations, because iterations pay for their calls. Where the loop is left, it counts again.
    outside: u64,
    /// Work in a loop that is not yet charged to its iterations.
    uncharged: u64,
}

impl Pace {
    /// Returns the pace at the end of a block that begins here, before any branch leads there.
    pub(super) fn begin(self) -> Pace {
        Pace { outside: self.outside, ..Pace::default() }
    }

    pub(super) fn enter_loop(&mut self) {
        self.outside += std::mem::take(&mut self.unseen);
        // Entering a loop is charged as an iteration. A short loop does not pay for work that is left over from before
        // it.
        self.uncharged = 0;
    }

    /// Adds another branch that leads here, out of any number of loops.
    pub(super) fn meet(&mut self, other: Pace) {
        self.unseen = self.unseen.max(other.unseen + other.outside - self.outside);
        self.uncharged = self.uncharged.max(other.uncharged);
    }

    /// Returns the pace after code that may have done any amount of work.
    pub(super) fn unknown(self) -> Pace {
        Pace { unseen: UNSEEN, ..self.begin() }
    }
}

impl Translator<'_, '_> {
    /// Counts an operator that is about to be translated.
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
            // The callee pays for itself.
            0 => {}
            work => self.count_or_look(work),
        }
    }

    /// Pays after a call: if the function may have called itself in there, this may be one of many calls that now
    /// return.
    pub(super) fn come_back(&mut self, callee: Callee) {
        let module = self.env.module;
        if !self.last {
            let done = Some(self.done).filter(|_| self.loops == 0);
            self.pay(module.work.of_return(module, self.index, callee, done));
        }
    }

    /// Takes `units` from the fuel that all recursive functions share, and checks the stop word if the fuel is used up.
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

    /// Counts work, after a check of the stop word if the work would be too much without one.
    fn count_or_look(&mut self, work: u64) {
        // A call that never returns, such as a panic, has checks of its own.
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
