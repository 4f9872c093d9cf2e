//! Waiting for a notification, and sending one.
//!
//! An instance is one thread: nobody can notify it while it waits, and nobody waits while it notifies. So a wait stops
//! when its time runs out or, if it has no timeout, when the host sets the stop word. Threads that share a memory will
//! need a list of waiters in its slot, kept by these two functions: a waiter will enter its guest address there before
//! it reads the value, and sleep until a notifier has removed it.

use crate::code::Code;
use crate::translate::Env;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, types};
use gpu_run_abi::intrinsic::Intrinsic;

/// The result of a wait whose time ran out.
const TIMED_OUT: i64 = 2;
/// The longest sleep between two checks of the clock and the stop word, in nanoseconds.
const MAX_SLEEP: i64 = 100_000;

/// (guest address, nanoseconds; negative means forever) -> how the wait ended
pub(super) fn wait(code: &mut Code<'_>, _: &Env<'_>) {
    let timeout = code.param(2);
    let begun = code.intrinsic(Intrinsic::GlobalTimer, &[]).expect("it has a result");
    let endless = code.ins().icmp_imm_s(IntCC::SignedLessThan, timeout, 0);
    let left = code.variable(types::I64, timeout);
    code.while_loop(
        |code| {
            let now = code.intrinsic(Intrinsic::GlobalTimer, &[]).expect("it has a result");
            let passed = code.ins().isub(now, begun);
            let rest = code.ins().isub(timeout, passed);
            code.b.def_var(left, rest);
            let early = code.ins().icmp(IntCC::UnsignedLessThan, passed, timeout);
            code.ins().bor(endless, early)
        },
        |code| {
            code.check_stop();
            let nap = code.i64(MAX_SLEEP);
            let rest = code.b.use_var(left);
            let nap = code.ins().umin(rest, nap);
            let nap = code.ins().ireduce(types::I32, nap);
            code.intrinsic(Intrinsic::NanoSleep, &[nap]);
        },
    );
    let result = code.i32(TIMED_OUT);
    code.ins().return_(&[result]);
}

/// (guest address, how many at most) -> how many were woken: always 0
pub(super) fn notify(code: &mut Code<'_>, _: &Env<'_>) {
    let nobody = code.i32(0);
    code.ins().return_(&[nobody]);
}
