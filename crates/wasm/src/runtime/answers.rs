//! Host calls that the device answers by itself, from the data that `abi::launch` describes.
//!
//! A stub calls [`answer`] first. Where the launch allows it, the code made here answers the call and returns.
//! Otherwise (the flag is not set, the descriptor is another, or the outbox is full) it falls through to the bus. The
//! host empties an instance's outbox before it answers any call, so effects keep the order in which the guest made
//! them.

use super::Helper;
use super::bus::each_vector;
use crate::code::Code;
use crate::translate::Env;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use gpu_run_abi::Status;
use gpu_run_abi::bus::op;
use gpu_run_abi::hostcall::Call;
use gpu_run_abi::intrinsic::{Intrinsic, region};
use gpu_run_abi::launch::{answers, offset, outbox};
use gpu_run_abi::layout::field;

/// Emits the device's own answer to a call, if there is one; the code after it is reached where the answer does not
/// apply.
pub(super) fn answer(code: &mut Code<'_>, call: Call) {
    match call {
        Call::args_sizes_get => sizes(code, offset::ARGS_COUNT, offset::ARGS_BYTES, false),
        Call::environ_sizes_get => sizes(code, offset::ENV_COUNT, offset::ENV_BYTES, true),
        Call::args_get => strings(code, [offset::ARGS_COUNT, offset::ARGS_BYTES, offset::ARGS], false),
        Call::environ_get => strings(code, [offset::ENV_COUNT, offset::ENV_BYTES, offset::ENV], true),
        Call::clock_time_get => clock(code),
        Call::poll_oneoff => sleep(code),
        Call::sched_yield => give_way(code),
        Call::random_get => random(code),
        Call::fd_read => read(code),
        Call::fd_write => write(code),
        Call::fd_close | Call::fd_renumber => forget(code, call),
        Call::proc_exit => exit(code),
        _ => {}
    }
}

/// Loads a word of the launch's description.
fn launch_word(code: &mut Code<'_>, at: u64) -> Value {
    let launch = code.constant_field(field::LAUNCH);
    let flags = code.trusted(region::CONSTANT).with_readonly();
    code.ins().load(types::I64, flags, launch, at as i32)
}

/// Emits `then`, which returns from the function, to run if one of these flags is set.
fn if_answered(code: &mut Code<'_>, flags: u64, then: impl FnOnce(&mut Code<'_>)) {
    let set = code.header(types::I32, field::ANSWERS);
    let set = code.ins().band_imm_u(set, flags as i64);
    if_leaving(code, set, then);
}

/// Emits `then`, which leaves the function, to run if `condition` holds.
fn if_leaving(code: &mut Code<'_>, condition: Value, then: impl FnOnce(&mut Code<'_>)) {
    let (taken, stay) = (code.b.create_block(), code.b.create_block());
    code.ins().brif(condition, taken, &[], stay, &[]);
    code.open(taken);
    then(code);
    code.open(stay);
}

fn succeed(code: &mut Code<'_>) {
    let success = code.i32(0);
    code.ins().return_(&[success]);
}

/// Stores to guest memory, checked like the guest's own stores.
fn guest_store(code: &mut Code<'_>, value: Value, at: Value) {
    let flags = code.guest_flags(true);
    let address = code.ins().uextend(types::I64, at);
    code.ins().store(flags, value, address, 0);
}

fn guest_store_byte(code: &mut Code<'_>, value: Value, at: Value) {
    let flags = code.guest_flags(true);
    let address = code.ins().uextend(types::I64, at);
    code.ins().istore8(flags, value, address, 0);
}

// ---- arguments and environment ----

/// Returns the instance's number, and how many decimal digits it has.
fn number(code: &mut Code<'_>) -> (Value, Value) {
    let (first, index) = (launch_word(code, offset::FIRST), code.header(types::I64, field::INDEX));
    let number = code.ins().iadd(first, index);
    let (one, rest) = (code.i32(1), code.variable(types::I64, number));
    let digits = code.variable(types::I32, one);
    code.while_loop(
        |code| {
            let rest = code.b.use_var(rest);
            code.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, rest, 9)
        },
        |code| {
            let value = code.b.use_var(rest);
            let value = code.ins().udiv_imm_u(value, 10);
            code.b.def_var(rest, value);
            let count = code.b.use_var(digits);
            let count = code.ins().iadd_imm_s(count, 1);
            code.b.def_var(digits, count);
        },
    );
    let digits = code.b.use_var(digits);
    (number, digits)
}

/// (count, size)
fn sizes(code: &mut Code<'_>, count: u64, bytes: u64, numbered: bool) {
    if_answered(code, answers::STRINGS, |code| {
        let (count, bytes) = (launch_word(code, count), launch_word(code, bytes));
        let (count, bytes) = (code.ins().ireduce(types::I32, count), code.ins().ireduce(types::I32, bytes));
        let bytes = if numbered {
            let (_, digits) = number(code);
            let bytes = code.ins().iadd(bytes, digits);
            code.ins().iadd_imm_s(bytes, 1)
        } else {
            bytes
        };
        let (count_at, bytes_at) = (code.param(1), code.param(2));
        guest_store(code, count, count_at);
        guest_store(code, bytes, bytes_at);
        succeed(code);
    });
}

/// (pointers, buffer)
fn strings(code: &mut Code<'_>, [count, bytes, starts]: [u64; 3], numbered: bool) {
    if_answered(code, answers::STRINGS, |code| {
        let (pointers, buffer) = (code.param(1), code.param(2));
        let (count, bytes, starts) = (launch_word(code, count), launch_word(code, bytes), launch_word(code, starts));
        let bytes = code.ins().ireduce(types::I32, bytes);
        // The strings' bytes follow the array of their starts.
        let source = code.ins().imul_imm_u(count, 4);
        let source = code.ins().iadd(starts, source);
        let count = code.ins().ireduce(types::I32, count);
        let (at, from, left) =
            (code.variable(types::I32, pointers), code.variable(types::I64, starts), code.variable(types::I32, count));
        code.while_loop(
            |code| code.b.use_var(left),
            |code| {
                let flags = code.trusted(region::CONSTANT);
                let (to, start) = (code.b.use_var(at), code.b.use_var(from));
                let offset = code.ins().load(types::I32, flags, start, 0);
                let pointer = code.ins().iadd(buffer, offset);
                guest_store(code, pointer, to);
                for (variable, value, step) in [(at, to, 4), (from, start, 4)] {
                    let next = code.ins().iadd_imm_s(value, step);
                    code.b.def_var(variable, next);
                }
                let rest = code.b.use_var(left);
                let rest = code.ins().iadd_imm_s(rest, -1);
                code.b.def_var(left, rest);
            },
        );
        code.check_written(buffer, bytes);
        code.call_helper(Helper::GuestWrite, &[buffer, source, bytes]);
        if numbered {
            let end = code.ins().iadd(buffer, bytes);
            write_number(code, end);
        }
        succeed(code);
    });
}

/// Writes the instance's number in decimal, and a NUL.
fn write_number(code: &mut Code<'_>, at: Value) {
    let (number, digits) = number(code);
    let nul_at = code.ins().iadd(at, digits);
    let nul = code.i32(0);
    guest_store_byte(code, nul, nul_at);
    let (place, rest) = (code.variable(types::I32, nul_at), code.variable(types::I64, number));
    code.while_loop(
        |code| {
            let place = code.b.use_var(place);
            code.ins().icmp(IntCC::NotEqual, place, at)
        },
        |code| {
            let (value, before) = (code.b.use_var(rest), code.b.use_var(place));
            let tenth = code.ins().udiv_imm_u(value, 10);
            let tens = code.ins().imul_imm_u(tenth, 10);
            let digit = code.ins().isub(value, tens);
            let digit = code.ins().ireduce(types::I32, digit);
            let digit = code.ins().iadd_imm_s(digit, i64::from(b'0'));
            let here = code.ins().iadd_imm_s(before, -1);
            guest_store_byte(code, digit, here);
            code.b.def_var(place, here);
            code.b.def_var(rest, tenth);
        },
    );
}

// ---- the clock ----

/// WASI's number of the monotonic clock. The host answers for other clocks: the realtime clock may be set while the
/// launch runs.
const MONOTONIC: i64 = 1;

/// (clock, precision, time): ignores the precision. If only some precisions were answered here, a guest would see two
/// clocks that are microseconds apart, and time could run backwards.
fn clock(code: &mut Code<'_>) {
    let (id, at) = (code.param(1), code.param(3));
    let set = code.header(types::I32, field::ANSWERS);
    let set = code.ins().band_imm_u(set, answers::CLOCK as i64);
    let is_monotonic = code.ins().icmp_imm_s(IntCC::Equal, id, MONOTONIC);
    let zero = code.i32(0);
    let applies = code.ins().select(is_monotonic, set, zero);
    if_leaving(code, applies, |code| {
        let (time, length) = (monotonic(code), code.i32(8));
        code.check_range(at, length);
        // The pointer is a multiple of 8 (see `stub`), and both layouts can store 4 bytes in one access.
        let high = code.ins().ushr_imm_u(time, 32);
        for (part, word) in [(0, time), (4, high)] {
            let (word, at) = (code.ins().ireduce(types::I32, word), code.ins().iadd_imm_s(at, part));
            guest_store(code, word, at);
        }
        succeed(code);
    });
}

/// Returns the time by the monotonic clock, in nanoseconds.
fn monotonic(code: &mut Code<'_>) -> Value {
    let (launch, flags) = (code.constant_field(field::LAUNCH), code.trusted(region::BUS));
    let host = code.ins().load(types::I64, flags, launch, offset::CLOCK_HOST as i32);
    let begun = code.ins().load(types::I64, flags, launch, offset::CLOCK_DEVICE as i32);
    let now = code.intrinsic(Intrinsic::GlobalTimer, &[]).expect("it has a result");
    let passed = code.ins().isub(now, begun);
    code.ins().iadd(host, passed)
}

/// `sched_yield` of a program with threads: others run first, and what they wrote is seen afterwards.
fn give_way(code: &mut Code<'_>) {
    if !code.is_shared {
        return;
    }
    // On a GPU, a sleep of 0 is none, and the lanes of a warp that are not in step would not get their turn.
    let moment = code.i32(1);
    code.intrinsic(Intrinsic::NanoSleep, &[moment]);
    code.ins().fence();
    succeed(code);
    let unreachable = code.b.create_block();
    code.open(unreachable);
}

/// `poll_oneoff` (subscriptions, events, count, stored) of a program with threads, if all it asks for is to sleep: one
/// subscription to a clock, for a duration or until a time of the monotonic clock. The host answers all others.
fn sleep(code: &mut Code<'_>) {
    if !code.is_shared {
        return;
    }
    let (subscription, event, count, stored) = (code.param(1), code.param(2), code.param(3), code.param(4));
    let is_one = code.ins().icmp_imm_u(IntCC::Equal, count, 1);
    let (look, other) = (code.b.create_block(), code.b.create_block());
    code.ins().brif(is_one, look, &[], other, &[]);
    code.open(look);
    let length = code.i32(poll::SUBSCRIPTION as i64);
    code.check_range(subscription, length);
    let at = code.ins().uextend(types::I64, subscription);
    let flags = code.guest_flags(false);
    let kind = code.ins().uload8(types::I32, flags, at, poll::KIND);
    let clock = code.ins().load(types::I32, flags, at, poll::CLOCK);
    let how = code.ins().uload16(types::I32, flags, at, poll::FLAGS);
    let wanted = code.ins().load(types::I64, flags, at, poll::TIMEOUT);
    let userdata = code.ins().load(types::I64, flags, at, poll::USERDATA);
    // A duration by either of the first two clocks, or a time by the second.
    let most = code.ins().isub(clock, how);
    let is_clock = code.ins().icmp_imm_u(IntCC::Equal, kind, 0);
    let is_known = code.ins().icmp_imm_u(IntCC::UnsignedLessThanOrEqual, clock, MONOTONIC);
    let is_sleep = code.ins().icmp_imm_u(IntCC::UnsignedLessThanOrEqual, most, MONOTONIC);
    let is_flag = code.ins().icmp_imm_u(IntCC::UnsignedLessThanOrEqual, how, 1);
    let applies = [is_known, is_sleep, is_flag].into_iter().fold(is_clock, |all, one| code.ins().band(all, one));
    let asleep = code.b.create_block();
    code.ins().brif(applies, asleep, &[], other, &[]);
    code.open(asleep);
    let now = monotonic(code);
    let later = code.ins().umax(wanted, now);
    let until = code.ins().isub(later, now);
    let duration = code.ins().select(how, until, wanted);
    // A negative one would have no end; nobody sleeps for 292 years.
    let longest = code.i64(i64::MAX);
    let duration = code.ins().umin(duration, longest);
    let nowhere = code.i32(0);
    code.call_helper(Helper::Wait, &[nowhere, duration]);
    let length = code.i32(poll::EVENT as i64);
    code.check_written(event, length);
    let (at, flags, none) = (code.ins().uextend(types::I64, event), code.guest_flags(true), code.i64(0));
    // No error, of the kind of clocks, and no bytes.
    for (part, word) in (0..).step_by(8).zip([userdata, none, none, none]) {
        code.ins().store(flags, word, at, part);
    }
    let one = code.i32(1);
    guest_store(code, one, stored);
    succeed(code);
    code.open(other);
}

/// Sizes and offsets in bytes of `poll_oneoff`'s structures.
mod poll {
    pub(super) const SUBSCRIPTION: u32 = 48;
    pub(super) const EVENT: u32 = 32;
    pub(super) const USERDATA: i32 = 0;
    pub(super) const KIND: i32 = 8;
    pub(super) const CLOCK: i32 = 16;
    pub(super) const TIMEOUT: i32 = 24;
    pub(super) const FLAGS: i32 = 40;
}

// ---- random bytes ----

/// (buffer, length)
fn random(code: &mut Code<'_>) {
    if_answered(code, answers::RANDOM, |code| {
        let (buffer, length) = (code.param(1), code.param(2));
        code.check_written(buffer, length);
        let (at, left) = (code.variable(types::I32, buffer), code.variable(types::I32, length));
        code.while_loop(
            |code| code.b.use_var(left),
            |code| {
                code.check_stop();
                let word = code.call_helper(Helper::RandomWord, &[]).expect("it has a result");
                let (rest, bytes) = (code.b.use_var(left), code.i32(8));
                let count = code.ins().umin(rest, bytes);
                let remaining = code.ins().isub(rest, count);
                code.b.def_var(left, remaining);
                let (word, count) = (code.variable(types::I64, word), code.variable(types::I32, count));
                code.while_loop(
                    |code| code.b.use_var(count),
                    |code| {
                        let (bits, to, more) = (code.b.use_var(word), code.b.use_var(at), code.b.use_var(count));
                        guest_store_byte(code, bits, to);
                        let bits = code.ins().ushr_imm_u(bits, 8);
                        code.b.def_var(word, bits);
                        let to = code.ins().iadd_imm_s(to, 1);
                        code.b.def_var(at, to);
                        let more = code.ins().iadd_imm_s(more, -1);
                        code.b.def_var(count, more);
                    },
                );
            },
        );
        succeed(code);
    });
}

/// () -> 64 random bits: SipHash-2-4 of the instance's number and of how many words it has drawn, under the launch's
/// key.
pub(super) fn random_word(code: &mut Code<'_>, _: &Env<'_>) {
    let (k0, k1) = (launch_word(code, offset::KEY), launch_word(code, offset::KEY + 8));
    let (first, index) = (launch_word(code, offset::FIRST), code.header(types::I64, field::INDEX));
    let number = code.ins().iadd(first, index);
    let drawn = code.header(types::I64, field::DRAWN);
    let next = code.ins().iadd_imm_s(drawn, 1);
    code.set_header(next, field::DRAWN);
    let start = [0x736f_6d65_7073_6575, 0x646f_7261_6e64_6f6d, 0x6c79_6765_6e65_7261, 0x7465_6462_7974_6573u64];
    let mut v: Vec<_> = start
        .into_iter()
        .zip([k0, k1, k0, k1])
        .map(|(constant, key)| {
            let constant = code.i64(constant as i64);
            code.ins().bxor(key, constant)
        })
        .collect();
    // Two words of message, and the last block: the message's length in bytes in the top byte.
    let length = code.i64(16 << 56);
    for message in [number, drawn, length] {
        v[3] = code.ins().bxor(v[3], message);
        (0..2).for_each(|_| sip_round(code, &mut v));
        v[0] = code.ins().bxor(v[0], message);
    }
    let last = code.i64(0xff);
    v[2] = code.ins().bxor(v[2], last);
    (0..4).for_each(|_| sip_round(code, &mut v));
    let low = code.ins().bxor(v[0], v[1]);
    let high = code.ins().bxor(v[2], v[3]);
    let word = code.ins().bxor(low, high);
    code.ins().return_(&[word]);
}

fn sip_round(code: &mut Code<'_>, v: &mut [Value]) {
    let mut mix = |v: &mut [Value], a: usize, b: usize, by: i64, half: bool| {
        v[a] = code.ins().iadd(v[a], v[b]);
        let turned = code.ins().rotl_imm_u(v[b], by);
        v[b] = code.ins().bxor(turned, v[a]);
        if half {
            v[a] = code.ins().rotl_imm_u(v[a], 32);
        }
    };
    mix(v, 0, 1, 13, true);
    mix(v, 2, 3, 16, false);
    mix(v, 0, 3, 21, false);
    mix(v, 2, 1, 17, true);
}

// ---- streams ----

/// (fd, iovs, count, read)
fn read(code: &mut Code<'_>) {
    let (fd, iovs, count, result) = (code.param(1), code.param(2), code.param(3), code.param(4));
    let set = code.header(types::I32, field::ANSWERS);
    let set = code.ins().band_imm_u(set, answers::STREAMS[0] as i64);
    let is_stdin = code.ins().icmp_imm_s(IntCC::Equal, fd, 0);
    let zero = code.i32(0);
    let applies = code.ins().select(is_stdin, set, zero);
    if_leaving(code, applies, |code| {
        let total = code.variable(types::I32, zero);
        each_vector(code, iovs, count, |code, pointer, length| {
            let left = code.header(types::I32, field::STDIN_LEFT);
            let bytes = code.ins().umin(length, left);
            code.check_written(pointer, bytes);
            let from = code.header(types::I64, field::STDIN);
            code.call_helper(Helper::GuestWrite, &[pointer, from, bytes]);
            let wide = code.ins().uextend(types::I64, bytes);
            let from = code.ins().iadd(from, wide);
            code.set_header(from, field::STDIN);
            let left = code.ins().isub(left, bytes);
            code.set_header(left, field::STDIN_LEFT);
            let sum = code.b.use_var(total);
            let sum = code.ins().iadd(sum, bytes);
            code.b.def_var(total, sum);
        });
        let (left, flags) = (code.header(types::I32, field::STDIN_LEFT), code.trusted(region::BUS));
        let outbox = code.header(types::I64, field::OUTBOX);
        code.ins().store(flags, left, outbox, outbox::STDIN_LEFT as i32);
        unheard(code);
        let sum = code.b.use_var(total);
        guest_store(code, sum, result);
        succeed(code);
    });
}

/// (fd, iovs, count, written)
fn write(code: &mut Code<'_>) {
    let own = own_stream(code);
    let (fd, iovs, count, result) = (code.param(1), code.param(2), code.param(3), code.param(4));
    if_then_write(code, own, fd, iovs, count, result);
}

/// Returns whether `fd_write` is for the stdout or stderr that the instance was given.
pub(super) fn own_stream(code: &mut Code<'_>) -> Value {
    let fd = code.param(1);
    let set = code.header(types::I32, field::ANSWERS);
    // A descriptor's flag is 1 << fd; descriptors other than stdout and stderr have none.
    let one = code.i32(1);
    let flag = code.ins().ishl(one, fd);
    let streams = code.ins().band_imm_u(flag, (answers::STREAMS[1] | answers::STREAMS[2]) as i64);
    let small = code.ins().icmp_imm_u(IntCC::UnsignedLessThan, fd, 3);
    let zero = code.i32(0);
    let streams = code.ins().select(small, streams, zero);
    code.ins().band(set, streams)
}

fn if_then_write(code: &mut Code<'_>, applies: Value, fd: Value, iovs: Value, count: Value, result: Value) {
    let stay = code.b.create_block();
    let (taken, fits) = (code.b.create_block(), code.b.create_block());
    code.ins().brif(applies, taken, &[], stay, &[]);
    code.open(taken);
    let total = code.call_helper(Helper::IoTotal, &[iovs, count]).expect("it has a result");
    let outbox = code.header(types::I64, field::OUTBOX);
    let used = [field::OUTBOX_USED, field::ANNEX_USED].map(|field| code.header(types::I64, field));
    let capacity = [offset::OUTBOX_BYTES, offset::ANNEX_BYTES].map(|bytes| launch_word(code, bytes));
    let wide = code.ins().uextend(types::I64, total);
    let wide = code.ins().iadd_imm_s(wide, outbox::RECORD_HEAD as i64 + 3);
    let wide = code.ins().band_imm_s(wide, -4);
    // The record goes to the outbox, or behind the records in the annex.
    let after = used.map(|used| code.ins().iadd(used, wide));
    let [in_outbox, in_annex] =
        [0, 1].map(|at| code.ins().icmp(IntCC::UnsignedLessThanOrEqual, after[at], capacity[at]));
    let is_first = code.ins().icmp_imm_s(IntCC::Equal, used[1], 0);
    let in_outbox = code.ins().band(in_outbox, is_first);
    let room = code.ins().bor(in_outbox, in_annex);
    code.ins().brif(room, fits, &[], stay, &[]);
    code.open(fits);
    let flags = code.trusted(region::BUS);
    let (annexes, index) = (launch_word(code, offset::ANNEX), code.header(types::I64, field::INDEX));
    let annex = code.ins().imul(index, capacity[1]);
    let annex = code.ins().iadd(annexes, annex);
    let base = code.ins().select(in_outbox, outbox, annex);
    let before = code.ins().select(in_outbox, used[0], used[1]);
    let record = code.ins().iadd(base, before);
    let is_stderr = code.ins().icmp_imm_s(IntCC::Equal, fd, 2);
    let (mark, none) = (code.i32(i64::from(outbox::STDERR)), code.i32(0));
    let mark = code.ins().select(is_stderr, mark, none);
    let head = code.ins().bor(total, mark);
    code.ins().store(flags, head, record, 0);
    let to = code.ins().iadd_imm_s(record, outbox::RECORD_HEAD as i64);
    let to = code.variable(types::I64, to);
    each_vector(code, iovs, count, |code, pointer, length| {
        code.check_range(pointer, length);
        let target = code.b.use_var(to);
        code.call_helper(Helper::GuestRead, &[target, pointer, length]);
        let wide = code.ins().uextend(types::I64, length);
        let target = code.ins().iadd(target, wide);
        code.b.def_var(to, target);
    });
    let (in_use, annexed) =
        (code.ins().select(in_outbox, after[0], used[0]), code.ins().select(in_outbox, used[1], after[1]));
    code.set_header(in_use, field::OUTBOX_USED);
    code.set_header(annexed, field::ANNEX_USED);
    let annexed = code.ins().ishl_imm_u(annexed, 32);
    let both = code.ins().bor(in_use, annexed);
    code.ins().store(flags, both, outbox, outbox::USED as i32);
    unheard(code);
    guest_store(code, total, result);
    succeed(code);
    code.open(stay);
}

/// Marks that the host has not yet seen what was done here: the next packet tells it.
pub(super) fn unheard(code: &mut Code<'_>) {
    let flag = code.i32(op::UNHEARD.into());
    code.set_header(flag, field::UNHEARD);
}

/// Leaves a standard stream to the host from now on, when the guest closes it or replaces it by another descriptor.
fn forget(code: &mut Code<'_>, call: Call) {
    let mut fds = vec![code.param(1)];
    if call == Call::fd_renumber {
        fds.push(code.param(2));
    }
    for fd in fds {
        let small = code.ins().icmp_imm_u(IntCC::UnsignedLessThan, fd, 3);
        code.if_then(small, true, |code| {
            let one = code.i32(1);
            let flag = code.ins().ishl(one, fd);
            let set = code.header(types::I32, field::ANSWERS);
            let left = code.ins().band_not(set, flag);
            code.set_header(left, field::ANSWERS);
        });
    }
}

/// (code): exits without telling the host, if the host knows nothing of the instance.
fn exit(code: &mut Code<'_>) {
    let all = answers::STREAMS.iter().sum::<u64>();
    let set = code.header(types::I32, field::ANSWERS);
    let streams = code.ins().band_imm_u(set, all as i64);
    let applies = code.ins().icmp_imm_s(IntCC::Equal, streams, all as i64);
    code.if_then(applies, false, |code| {
        let status = code.param(1);
        let status = code.ins().uextend(types::I64, status);
        code.set_header(status, field::EXIT_CODE);
        let exited = code.i64(Status::Exited as i64);
        code.set_header(exited, field::STATUS);
        code.intrinsic(Intrinsic::Exit, &[]);
    });
}
