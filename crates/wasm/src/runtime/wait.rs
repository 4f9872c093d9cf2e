//! Waiting for a notification, and sending one.
//!
//! An instance alone is one thread: nobody can notify it while it waits, and nobody waits while it notifies. So its wait
//! stops when its time runs out or, if it has no timeout, when the host sets the stop word.
//!
//! Threads that share a memory wait in *buckets* ([`gpu_run_abi::threads::Bucket`]), found by the address. A waiter takes
//! the bucket's lock, compares the value, and adds itself at the end. A notification takes the lock and removes waiters
//! from the front. No wake-up is lost: a waiter that reads the old value has taken the lock before, so that a notification
//! after the new value finds the lock taken or the waiter there. The lock is taken and released within one iteration of a
//! loop: a lane that holds it never waits for lanes of its warp that want it.

use super::spawn::{Field, Shared, finish_filling};
use super::threads::exit_if_ended;
use crate::code::Code;
use crate::translate::Env;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use gpu_run_abi::hostcall::Call;
use gpu_run_abi::intrinsic::{Intrinsic, region};
use gpu_run_abi::layout::field;
use gpu_run_abi::threads::{BUCKETS, Bucket, Waiter, doing, offset};
use std::mem::{offset_of, size_of};

/// The results of a wait that was notified, and of one whose time ran out.
const NOTIFIED: i64 = 0;
const DIFFERENT: i64 = 1;
const TIMED_OUT: i64 = 2;
/// The longest sleep between two checks of the clock and the stop word, in nanoseconds.
const MAX_SLEEP: i64 = 100_000;
/// How long a thread sleeps before it tries to take a bucket's lock again, in nanoseconds.
const LOCK_SLEEP: i64 = 100;
/// How long a thread that waits naps between two looks, in nanoseconds.
const NAP: i64 = 4_000;
/// How often thread 0 looks at the host's stop word while it waits, in nanoseconds; it ends the program for all. Threads
/// that all looked would fill the way to the host.
const STOP_INTERVAL: i64 = 20_000_000;

/// (guest address, nanoseconds; negative means forever) -> how the wait ended
pub(super) fn wait(code: &mut Code<'_>, _: &Env<'_>) {
    let timeout = code.param(2);
    let begun = code.intrinsic(Intrinsic::GlobalTimer, &[]).expect("it has a result");
    if code.is_shared {
        // No notification finds this thread: it is in no bucket.
        let own = own_number(code);
        let (waiter, nobody, result) = (waiter(code, own), code.i64(0), code.i32(TIMED_OUT));
        let nowhere = code.i32(0);
        note(code, waiter, doing::SLEEPS, nowhere, timeout);
        sleep_while(code, waiter, nobody, begun, timeout);
        note_run(code, waiter);
        code.ins().return_(&[result]);
        return;
    }
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

/// (guest address, expected value, its bytes, nanoseconds, where in the module) -> how the wait ended
pub(super) fn wait_shared(code: &mut Code<'_>, _: &Env<'_>) {
    if !code.is_shared {
        // Only threads call this.
        let never = code.i32(DIFFERENT);
        code.ins().return_(&[never]);
        return;
    }
    let (address, expected, bytes, timeout) = (code.param(1), code.param(2), code.param(3), code.param(4));
    let here = code.param(5);
    let begun = code.intrinsic(Intrinsic::GlobalTimer, &[]).expect("it has a result");
    let (bucket, own) = (bucket(code, address), own_number(code));
    let waiter = waiter(code, own);
    let same = code.i32(1);
    let is_same = code.variable(types::I32, same);
    locked(code, bucket, |code| {
        let value = guest_value(code, address, bytes);
        let equal = code.ins().icmp(IntCC::Equal, value, expected);
        let equal = code.ins().uextend(types::I32, equal);
        code.b.def_var(is_same, equal);
        code.if_then(equal, false, |code| append(code, bucket, waiter, own, address));
    });
    let (is_same, different) = (code.b.use_var(is_same), code.i32(DIFFERENT));
    let differs = code.ins().icmp_imm_u(IntCC::Equal, is_same, 0);
    code.if_return(differs, different);

    let waiting = waiting_at(code, address);
    note(code, waiter, doing::WAITS, here, timeout);
    sleep_while(code, waiter, waiting, begun, timeout);
    note_run(code, waiter);
    // Whoever was not notified in time leaves the bucket, unless a notification comes just now.
    let (notified, timed_out) = (code.i32(NOTIFIED), code.i32(TIMED_OUT));
    let result = code.variable(types::I32, notified);
    let waits = is_waiting(code, waiter);
    code.if_then(waits, true, |code| {
        locked(code, bucket, |code| {
            let still = is_waiting(code, waiter);
            code.if_then(still, false, |code| {
                let one = code.i32(1);
                remove(code, bucket, one, |code, number, _| {
                    let is_own = code.ins().icmp(IntCC::Equal, number, own);
                    code.ins().uextend(types::I32, is_own)
                });
                code.b.def_var(result, timed_out);
            });
        });
    });
    let result = code.b.use_var(result);
    code.ins().return_(&[result]);
}

/// (guest address, how many at most) -> how many were woken
pub(super) fn notify(code: &mut Code<'_>, _: &Env<'_>) {
    let nobody = code.i32(0);
    if !code.is_shared {
        code.ins().return_(&[nobody]);
        return;
    }
    let (address, most) = (code.param(1), code.param(2));
    let bucket = bucket(code, address);
    // The new value is written before the bucket is looked at.
    code.ins().fence();
    let (lock, ends) = (Field::at(bucket, offset_of!(Bucket, lock)).load(code), ends(code, bucket));
    let any = code.ins().bor(lock, ends);
    let none = code.ins().icmp_imm_u(IntCC::Equal, any, 0);
    code.if_return(none, nobody);
    let woken = code.variable(types::I32, nobody);
    locked(code, bucket, |code| {
        let count = remove(code, bucket, most, |code, _, at| {
            let is_there = code.ins().icmp(IntCC::Equal, at, address);
            code.ins().uextend(types::I32, is_there)
        });
        code.b.def_var(woken, count);
    });
    let woken = code.b.use_var(woken);
    code.ins().return_(&[woken]);
}

/// Notes for the host what this thread does from here on, and where (i32).
fn note(code: &mut Code<'_>, waiter: Value, what: u64, place: Value, time: Value) {
    let flags = code.trusted(region::BUS);
    code.ins().store(flags, time, waiter, offset_of!(Waiter, time) as i32);
    let place = code.ins().uextend(types::I64, place);
    let word = code.ins().bor_imm_u(place, (what << u32::BITS) as i64);
    code.ins().store(flags, word, waiter, offset_of!(Waiter, doing) as i32);
}

fn note_run(code: &mut Code<'_>, waiter: Value) {
    let (flags, runs) = (code.trusted(region::BUS), code.i64(doing::RUNS as i64));
    code.ins().store(flags, runs, waiter, offset_of!(Waiter, doing) as i32);
}

/// Notes that this thread waits for the answer to a host call; `None`: that it has the answer.
pub(super) fn note_call(code: &mut Code<'_>, call: Option<Call>) {
    if !code.is_shared {
        return;
    }
    let own = own_number(code);
    let waiter = waiter(code, own);
    match call {
        Some(call) => {
            let (nowhere, endless) = (code.i32(0), code.i64(-1));
            note(code, waiter, doing::CALLS + call as u64, nowhere, endless);
        }
        None => note_run(code, waiter),
    }
}

/// Sleeps while the waiter's word is `value` and its time has not run out. Exits if the program has ended.
fn sleep_while(code: &mut Code<'_>, waiter: Value, value: Value, begun: Value, timeout: Value) {
    let endless = code.ins().icmp_imm_s(IntCC::SignedLessThan, timeout, 0);
    let index = code.header(types::I64, field::INDEX);
    let (most, forever) = (code.i64(STOP_INTERVAL), code.i64(i64::MAX));
    let most = code.ins().select(index, forever, most);
    // The threads that this one has started may be what it waits for.
    let shared = Shared::of_slot(code);
    finish_filling(code, &shared);
    let end = shared.address(code, offset::ENDED_BY);
    let left = code.variable(types::I64, timeout);
    code.while_loop(
        |code| {
            let now = code.intrinsic(Intrinsic::GlobalTimer, &[]).expect("it has a result");
            let so_far = code.ins().isub(now, begun);
            let rest = code.ins().isub(timeout, so_far);
            code.b.def_var(left, rest);
            let early = code.ins().icmp(IntCC::UnsignedLessThan, so_far, timeout);
            let in_time = code.ins().bor(endless, early);
            let word = Field::at(waiter, offset_of!(Waiter, waits_at)).load(code);
            let waits = code.ins().icmp(IntCC::Equal, word, value);
            code.ins().band(in_time, waits)
        },
        |code| {
            // Without an end, what is left is a very long time.
            let rest = code.b.use_var(left);
            let nap = code.ins().umin(rest, most);
            let at = Field::at(waiter, offset_of!(Waiter, waits_at)).address(code);
            let every = code.i32(NAP);
            code.intrinsic(Intrinsic::Await, &[at, value, end, nap, every]);
            exit_if_ended(code, &shared);
            let is_main = code.ins().icmp_imm_u(IntCC::Equal, index, 0);
            code.if_then(is_main, true, |code| code.check_stop());
        },
    );
}

/// Runs `body` while no other thread changes the bucket.
fn locked(code: &mut Code<'_>, bucket: Value, body: impl FnOnce(&mut Code<'_>)) {
    let (flags, not_yet) = (code.trusted(region::BUS), code.i32(0));
    let done = code.variable(types::I32, not_yet);
    code.while_loop(
        |code| {
            let done = code.b.use_var(done);
            code.ins().icmp_imm_u(IntCC::Equal, done, 0)
        },
        |code| {
            let (free, taken) = (code.i64(0), code.i64(1));
            let before = code.ins().atomic_cas(flags, bucket, free, taken);
            let is_mine = code.ins().icmp_imm_u(IntCC::Equal, before, 0);
            code.if_then(is_mine, false, |code| {
                code.ins().fence();
                body(code);
                code.ins().fence();
                let (free, yes) = (code.i64(0), code.i32(1));
                code.ins().atomic_store(flags, free, bucket);
                code.b.def_var(done, yes);
            });
            let is_done = code.b.use_var(done);
            let waits = code.ins().icmp_imm_u(IntCC::Equal, is_done, 0);
            code.if_then(waits, true, |code| {
                code.check_stop();
                let nap = code.i32(LOCK_SLEEP);
                code.intrinsic(Intrinsic::NanoSleep, &[nap]);
            });
        },
    );
}

/// Adds a waiter at the end of the bucket.
fn append(code: &mut Code<'_>, bucket: Value, waiter: Value, own: Value, address: Value) {
    let last = code.i64(0);
    Field::at(waiter, offset_of!(Waiter, next)).store(code, last);
    let at = waiting_at(code, address);
    Field::at(waiter, offset_of!(Waiter, waits_at)).store(code, at);
    let ends = ends(code, bucket);
    let (first, end) = (code.ins().ireduce(types::I32, ends), code.ins().ushr_imm_u(ends, 32));
    let end = code.ins().ireduce(types::I32, end);
    let own_wide = code.ins().uextend(types::I64, own);
    code.if_then(end, false, |code| {
        let before = self::waiter(code, end);
        Field::at(before, offset_of!(Waiter, next)).store(code, own_wide);
    });
    let is_first = code.ins().icmp_imm_u(IntCC::Equal, first, 0);
    let first = code.ins().select(is_first, own, first);
    set_ends(code, bucket, first, own);
}

/// Removes up to `most` waiters from the bucket, the first ones that `wanted` says are (its number and its address), and
/// wakes them. Returns how many.
fn remove(
    code: &mut Code<'_>,
    bucket: Value,
    most: Value,
    wanted: impl FnOnce(&mut Code<'_>, Value, Value) -> Value,
) -> Value {
    let ends = ends(code, bucket);
    let (first, last) = (code.ins().ireduce(types::I32, ends), code.ins().ushr_imm_u(ends, 32));
    let last = code.ins().ireduce(types::I32, last);
    let none = code.i32(0);
    let [first, last, before, at, count] =
        [first, last, none, first, none].map(|value| code.variable(types::I32, value));
    code.while_loop(
        |code| {
            let (at, count) = (code.b.use_var(at), code.b.use_var(count));
            let any = code.ins().icmp_imm_u(IntCC::NotEqual, at, 0);
            let more = code.ins().icmp(IntCC::UnsignedLessThan, count, most);
            code.ins().band(any, more)
        },
        |code| {
            let number = code.b.use_var(at);
            let waiter = waiter(code, number);
            let next = Field::at(waiter, offset_of!(Waiter, next)).load(code);
            let next = code.ins().ireduce(types::I32, next);
            let place = Field::at(waiter, offset_of!(Waiter, waits_at)).load(code);
            let place = code.ins().ireduce(types::I32, place);
            let is_wanted = wanted(code, number, place);
            let (take, keep, on) = (code.b.create_block(), code.b.create_block(), code.b.create_block());
            code.ins().brif(is_wanted, take, &[], keep, &[]);
            code.open(take);
            let previous = code.b.use_var(before);
            let is_first = code.ins().icmp_imm_u(IntCC::Equal, previous, 0);
            let old_first = code.b.use_var(first);
            let new_first = code.ins().select(is_first, next, old_first);
            code.b.def_var(first, new_first);
            let wide = code.ins().uextend(types::I64, next);
            code.if_then(previous, false, |code| {
                let previous = self::waiter(code, previous);
                Field::at(previous, offset_of!(Waiter, next)).store(code, wide);
            });
            let is_last = code.ins().icmp_imm_u(IntCC::Equal, next, 0);
            let old_last = code.b.use_var(last);
            let new_last = code.ins().select(is_last, previous, old_last);
            code.b.def_var(last, new_last);
            let awake = code.i64(0);
            Field::at(waiter, offset_of!(Waiter, waits_at)).store(code, awake);
            let word = Field::at(waiter, offset_of!(Waiter, waits_at)).address(code);
            code.intrinsic(Intrinsic::Wake, &[word]);
            let so_far = code.b.use_var(count);
            let so_far = code.ins().iadd_imm_s(so_far, 1);
            code.b.def_var(count, so_far);
            code.ins().jump(on, &[]);
            code.open(keep);
            code.b.def_var(before, number);
            code.ins().jump(on, &[]);
            code.open(on);
            code.b.def_var(at, next);
        },
    );
    let (first, last) = (code.b.use_var(first), code.b.use_var(last));
    set_ends(code, bucket, first, last);
    code.b.use_var(count)
}

/// Returns the device address of an address's bucket.
fn bucket(code: &mut Code<'_>, address: Value) -> Value {
    let word = code.ins().ushr_imm_u(address, 2);
    let mixed = code.ins().imul_imm_u(word, 0x9e37_79b1);
    let number = code.ins().ushr_imm_u(mixed, i64::from(u32::BITS - BUCKETS.trailing_zeros()));
    Shared::of_slot(code).entry(code, offset::BUCKETS, number, size_of::<Bucket>())
}

/// Returns this thread's slot plus one (i32).
fn own_number(code: &mut Code<'_>) -> Value {
    let index = code.header(types::I32, field::INDEX);
    code.ins().iadd_imm_s(index, 1)
}

/// Returns the device address of a waiter, by its slot plus one.
fn waiter(code: &mut Code<'_>, number: Value) -> Value {
    let slot = code.ins().iadd_imm_s(number, -1);
    Shared::of_slot(code).entry(code, offset::WAITERS, slot, size_of::<Waiter>())
}

/// Returns the word of a waiter that waits at a guest address (i64).
fn waiting_at(code: &mut Code<'_>, address: Value) -> Value {
    let at = code.ins().uextend(types::I64, address);
    let waiting = code.i64(1 << 32);
    code.ins().bor(at, waiting)
}

/// Returns a value other than 0 while the waiter waits (i64).
fn is_waiting(code: &mut Code<'_>, waiter: Value) -> Value {
    let word = Field::at(waiter, offset_of!(Waiter, waits_at)).load(code);
    code.ins().ushr_imm_u(word, 32)
}

/// Returns the value at a checked guest address, zero-extended.
fn guest_value(code: &mut Code<'_>, address: Value, bytes: Value) -> Value {
    let (memory, flags) = (code.constant_field(field::MEMORY_AT), code.trusted(region::GUEST));
    let wide = code.ins().uextend(types::I64, address);
    let at = code.ins().iadd(memory, wide);
    let low = code.ins().atomic_load(types::I32, flags, at);
    let low = code.ins().uextend(types::I64, low);
    let value = code.variable(types::I64, low);
    let is_long = code.ins().icmp_imm_u(IntCC::Equal, bytes, 8);
    code.if_then(is_long, false, |code| {
        let whole = code.ins().atomic_load(types::I64, flags, at);
        code.b.def_var(value, whole);
    });
    code.b.use_var(value)
}

fn ends(code: &mut Code<'_>, bucket: Value) -> Value {
    Field::at(bucket, offset_of!(Bucket, ends)).load(code)
}

fn set_ends(code: &mut Code<'_>, bucket: Value, first: Value, last: Value) {
    let (first, last) = (code.ins().uextend(types::I64, first), code.ins().uextend(types::I64, last));
    let last = code.ins().ishl_imm_u(last, 32);
    let ends = code.ins().bor(first, last);
    Field::at(bucket, offset_of!(Bucket, ends)).store(code, ends);
}
