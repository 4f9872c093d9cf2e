//! The device side of the bus; `abi::bus` describes the protocol.

use super::Helper;
use super::wait::note_call;
use crate::code::Code;
use crate::translate::Env;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Type, Value, types};
use gpu_run_abi::bus::{ARGS_AT_HAND, Reply, Request, offset, op};
use gpu_run_abi::intrinsic::{Intrinsic, region};
use gpu_run_abi::launch::outbox;
use gpu_run_abi::layout::field;
use gpu_run_abi::tagged::{LOW, TAG_SHIFT};
use gpu_run_abi::{Status, TrapCode};

/// How long a waiting instance sleeps between two looks at its reply, in nanoseconds: not at all at first, then each
/// time a quarter longer plus `NAP_MORE`, up to `MAX_NAP_NS`. Every look is a round trip over PCIe, and a hundred
/// thousand lanes that all look at once leave no bandwidth for the replies.
const NAP_MORE: i64 = 16;
const MAX_NAP_NS: i64 = 250_000;
/// From this nap on, the instance checks the stop word too, which is another round trip.
const NAP_STOP: i64 = 500;

/// A flag in the header's `port_left`, beside the remaining bytes of this packet: more packets follow.
const MORE: i64 = 1 << 31;

/// Writes a word of the port.
pub(super) fn port_store(code: &mut Code<'_>, value: Value, at: u64) {
    let (port, flags) = (code.constant_field(field::PORT), code.trusted(region::BUS));
    code.ins().store(flags, value, port, at as i32);
}

pub(super) fn port_load(code: &mut Code<'_>, ty: Type, at: u64) -> Value {
    let (port, flags) = (code.constant_field(field::PORT), code.trusted(region::BUS));
    code.ins().load(ty, flags, port, at as i32)
}

/// (op, two arguments) -> errno. The packet's length is the cursor; afterwards the cursor is at the reply's first byte.
pub(super) fn post(code: &mut Code<'_>, _: &Env<'_>) {
    // The ticket is taken first: the code up to its first use does not wait for it.
    let ticket_at = code.constant_field(field::RING_TICKET);
    let ticket = code.intrinsic(Intrinsic::Ticket, &[ticket_at]).expect("it has a result");
    let operation = with_port(code);
    let args = [code.param(2), code.param(3)];
    enter_ring(code, ticket, operation, args);

    let sequence = code.header(types::I32, field::PORT_SEQUENCE);
    let sequence = code.ins().iadd_imm_s(sequence, 1);
    code.set_header(sequence, field::PORT_SEQUENCE);
    let (status, result) = wait_for_reply(code, sequence);
    note_call(code, None);
    code.set_header(result, field::PORT_RESULT);
    // The host has emptied the outbox.
    let (head, none, nothing) = (code.i64(outbox::HEAD as i64), code.i64(0), code.i32(0));
    code.set_header(head, field::OUTBOX_USED);
    code.set_header(none, field::ANNEX_USED);
    code.set_header(nothing, field::UNHEARD);
    let exits = code.ins().band_imm_u(status, i64::from(Reply::EXIT));
    code.if_then(exits, true, |code| {
        code.set_header(result, field::EXIT_CODE);
        let exited = code.i64(Status::Exited as i64);
        code.set_header(exited, field::STATUS);
        if code.is_shared {
            super::threads::end_program(code);
        }
        code.intrinsic(Intrinsic::Exit, &[]);
    });
    let fails = code.ins().band_imm_u(status, i64::from(Reply::TRAP));
    code.trap_if(fails, TrapCode::HostCall);
    code.set_header(nothing, field::PORT_CURSOR);
    let left = code.ins().ushr_imm_u(status, i64::from(Reply::PAYLOAD_SHIFT));
    let more = code.ins().band_imm_u(status, i64::from(Reply::MORE));
    let more = code.ins().ishl_imm_u(more, i64::from(MORE.trailing_zeros() - Reply::MORE.trailing_zeros()));
    let left = code.ins().bor(left, more);
    code.set_header(left, field::PORT_LEFT);
    // The port's contents were written before the reply, and must not be read before it.
    code.if_then(left, false, |code| {
        code.intrinsic(Intrinsic::FenceHost, &[]);
    });
    let errno = code.ins().band_imm_u(status, i64::from(Reply::ERRNO));
    code.ins().return_(&[errno]);
}

/// Returns the operation with all its flags. Whatever the host reads in other places is visible before the operation
/// is.
fn with_port(code: &mut Code<'_>) -> Value {
    let (operation, length) = (code.param(1), code.header(types::I32, field::PORT_CURSOR));
    let (flag, none) = (code.i32(op::PORT.into()), code.i32(0));
    let port = code.ins().select(length, flag, none);
    let operation = code.ins().bor(operation, port);
    let in_port = code.ins().band_imm_u(operation, i64::from(op::PORT));
    code.if_then(in_port, false, |code| {
        let length = code.ins().uextend(types::I64, length);
        port_store(code, length, offset::LENGTH);
    });
    let unheard = code.header(types::I32, field::UNHEARD);
    let elsewhere = code.ins().bor(in_port, unheard);
    code.if_then(elsewhere, false, |code| {
        code.intrinsic(Intrinsic::FenceHost, &[]);
    });
    code.ins().bor(operation, unheard)
}

/// Writes a [`Request`] to the ring. The order of its words does not matter.
fn enter_ring(code: &mut Code<'_>, ticket: Value, operation: Value, args: [Value; ARGS_AT_HAND]) {
    let mask = code.constant_field(field::RING_MASK);
    let mask = code.ins().ireduce(types::I32, mask);
    let shift = code.ins().popcnt(mask);
    let lap = code.ins().ushr(ticket, shift);
    let lap = code.ins().iadd_imm_s(lap, 1);
    let lap = code.ins().uextend(types::I64, lap);
    let tag = code.ins().ishl_imm_u(lap, i64::from(TAG_SHIFT));

    let slot = code.header(types::I64, field::INDEX);
    let operation = code.ins().uextend(types::I64, operation);
    let operation = code.ins().ishl_imm_u(operation, i64::from(Request::OP_SHIFT));
    let first = code.ins().bor(operation, slot);
    let mut high = code.i64(0);
    let mut words = vec![first];
    for (arg, shift) in args.into_iter().zip(Request::HIGH_SHIFTS) {
        words.push(low_bits(code, arg));
        let part = code.ins().ushr_imm_u(arg, i64::from(TAG_SHIFT));
        let part = code.ins().ishl_imm_u(part, i64::from(shift));
        high = code.ins().bor(high, part);
    }
    words.push(high);
    let words: Vec<_> = words.into_iter().map(|word| code.ins().bor(word, tag)).collect();

    let place = code.ins().band(ticket, mask);
    let place = code.ins().uextend(types::I64, place);
    let place = code.ins().imul_imm_u(place, Request::BYTES as i64);
    let ring = code.constant_field(field::RING);
    let place = code.ins().iadd(ring, place);
    for (pair, at) in words.chunks(2).zip((0..).step_by(16)) {
        let place = code.ins().iadd_imm_s(place, at);
        code.intrinsic(Intrinsic::BusPut2, &[place, pair[0], pair[1]]);
    }
}

/// Returns a word without its tag.
fn low_bits(code: &mut Code<'_>, word: Value) -> Value {
    code.ins().band_imm_u(word, LOW as i64)
}

/// Reads the reply until its words carry this sequence number; returns its status and its result.
fn wait_for_reply(code: &mut Code<'_>, sequence: Value) -> (Value, Value) {
    // Replies lie behind the ring's entries.
    let (ring, mask) = (code.constant_field(field::RING), code.constant_field(field::RING_MASK));
    let entries = code.ins().iadd_imm_s(mask, 1);
    let before = code.ins().imul_imm_u(entries, Request::BYTES as i64);
    let at = code.ins().iadd(ring, before);
    let index = code.header(types::I64, field::INDEX);
    let before = code.ins().imul_imm_u(index, Reply::BYTES as i64);
    let at = code.ins().iadd(at, before);
    let tag = code.ins().uextend(types::I64, sequence);
    let tag = code.ins().ishl_imm_u(tag, i64::from(TAG_SHIFT));

    let (none, at_first) = (code.i64(0), code.i32(0));
    let words = [(); Reply::WORDS].map(|()| code.variable(types::I64, none));
    let nap = code.variable(types::I32, at_first);
    let shared = code.is_shared.then(|| code.intrinsic(Intrinsic::StepLeave, &[]).expect("it has a result"));
    code.while_loop(
        |code| {
            let seen = code.intrinsics(Intrinsic::BusLoad2, &[at]);
            let mut differ = none;
            for (variable, word) in words.into_iter().zip(seen) {
                let rest = code.ins().bxor(word, tag);
                code.b.def_var(variable, rest);
                differ = code.ins().bor(differ, rest);
            }
            code.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, differ, LOW as i64)
        },
        |code| {
            let time = code.b.use_var(nap);
            let long = code.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, time, NAP_STOP);
            code.if_then(long, false, |code| code.check_stop());
            code.intrinsic(Intrinsic::NanoSleep, &[time]);
            let quarter = code.ins().ushr_imm_u(time, 2);
            let next = code.ins().iadd(time, quarter);
            let next = code.ins().iadd_imm_s(next, NAP_MORE);
            let most = code.i32(MAX_NAP_NS);
            let next = code.ins().umin(next, most);
            code.b.def_var(nap, next);
        },
    );
    if let Some(shared) = shared {
        code.intrinsic(Intrinsic::StepJoin, &[shared]);
    }
    // The comparison has already removed the tags.
    let [first, low] = words.map(|variable| code.b.use_var(variable));
    let status = code.ins().ushr_imm_u(first, i64::from(Reply::STATUS_SHIFT));
    let status = code.ins().ireduce(types::I32, status);
    let high = code.ins().ishl_imm_u(first, i64::from(TAG_SHIFT));
    (status, code.ins().bor(high, low))
}

/// Sends a packet without arguments.
fn post_bare(code: &mut Code<'_>, operation: u16) {
    let (operation, none) = (code.i32(operation.into()), code.i64(0));
    code.call_helper(Helper::BusPost, &[operation, none, none]);
}

/// (from, length, limit) -> the remaining limit.
pub(super) fn send(code: &mut Code<'_>, _: &Env<'_>) {
    let (from, length, limit) = (code.param(1), code.param(2), code.param(3));
    code.check_range(from, length);
    let length = code.ins().umin(length, limit);
    let rest = code.ins().isub(limit, length);
    let (from, left) = (code.variable(types::I32, from), code.variable(types::I32, length));
    code.while_loop(
        |code| code.b.use_var(left),
        |code| {
            let room = room_in_port(code);
            let full = code.ins().icmp_imm_s(IntCC::Equal, room, 0);
            code.if_then(full, false, |code| {
                post_bare(code, op::MORE);
            });
            let (room, wanted) = (room_in_port(code), code.b.use_var(left));
            let count = code.ins().umin(room, wanted);
            let (to, source) = (payload_at_cursor(code), code.b.use_var(from));
            code.call_helper(Helper::GuestRead, &[to, source, count]);
            move_cursor(code, count);
            let next = code.ins().iadd(source, count);
            code.b.def_var(from, next);
            let next = code.ins().isub(wanted, count);
            code.b.def_var(left, next);
        },
    );
    code.ins().return_(&[rest]);
}

/// (to, length): copies the output to guest memory, at most `length` bytes of it.
pub(super) fn receive(code: &mut Code<'_>, _: &Env<'_>) {
    let (to, length) = (code.param(1), code.param(2));
    let (to, wanted) = (code.variable(types::I32, to), code.variable(types::I32, length));
    code.while_loop(
        |code| {
            let more = code.b.use_var(wanted);
            let more = code.ins().icmp_imm_s(IntCC::NotEqual, more, 0);
            let any = code.header(types::I32, field::PORT_LEFT);
            let any = code.ins().icmp_imm_s(IntCC::NotEqual, any, 0);
            code.ins().band(more, any)
        },
        |code| {
            let here = left_here(code);
            let empty = code.ins().icmp_imm_s(IntCC::Equal, here, 0);
            code.if_then(empty, false, |code| {
                post_bare(code, op::PULL);
            });
            let (here, want) = (left_here(code), code.b.use_var(wanted));
            let count = code.ins().umin(here, want);
            let (target, source) = (code.b.use_var(to), payload_at_cursor(code));
            // The guest's pointer is only used now, and it is checked before.
            code.check_written(target, count);
            code.call_helper(Helper::GuestWrite, &[target, source, count]);
            take(code, count);
            let next = code.ins().iadd(target, count);
            code.b.def_var(to, next);
            let next = code.ins().isub(want, count);
            code.b.def_var(wanted, next);
        },
    );
    code.ins().return_(&[]);
}

/// (iovs, count) -> bytes.
pub(super) fn io_total(code: &mut Code<'_>, _: &Env<'_>) {
    let zero = code.i64(0);
    let total = code.variable(types::I64, zero);
    let (iovs, count) = (code.param(1), code.param(2));
    each_vector(code, iovs, count, |code, _, length| {
        let length = code.ins().uextend(types::I64, length);
        let sum = code.b.use_var(total);
        let sum = code.ins().iadd(sum, length);
        code.b.def_var(total, sum);
    });
    let (sum, most) = (code.b.use_var(total), code.i64(u32::MAX.into()));
    let sum = code.ins().umin(sum, most);
    let sum = code.ins().ireduce(types::I32, sum);
    code.ins().return_(&[sum]);
}

/// (iovs, count, limit)
pub(super) fn io_send(code: &mut Code<'_>, _: &Env<'_>) {
    let limit = code.param(3);
    let limit = code.variable(types::I32, limit);
    let (iovs, count) = (code.param(1), code.param(2));
    each_vector(code, iovs, count, |code, pointer, length| {
        let left = code.b.use_var(limit);
        if let Some(left) = code.call_helper(Helper::BusSend, &[pointer, length, left]) {
            code.b.def_var(limit, left);
        }
    });
    code.ins().return_(&[]);
}

/// (iovs, count)
pub(super) fn io_receive(code: &mut Code<'_>, _: &Env<'_>) {
    let (iovs, count) = (code.param(1), code.param(2));
    each_vector(code, iovs, count, |code, pointer, length| {
        code.call_helper(Helper::BusReceive, &[pointer, length]);
    });
    code.ins().return_(&[]);
}

/// Runs `body` with the pointer and the length of each of `count` io-vectors.
pub(super) fn each_vector(
    code: &mut Code<'_>,
    at: Value,
    count: Value,
    body: impl FnOnce(&mut Code<'_>, Value, Value),
) {
    const VECTOR: i64 = 8;
    let wide = code.ins().uextend(types::I64, count);
    let bytes = code.ins().imul_imm_u(wide, VECTOR);
    let most = code.i64(u32::MAX.into());
    let bytes = code.ins().umin(bytes, most);
    let bytes = code.ins().ireduce(types::I32, bytes);
    code.check_range(at, bytes);
    let (at, left) = (code.variable(types::I32, at), code.variable(types::I32, count));
    code.while_loop(
        |code| code.b.use_var(left),
        |code| {
            let vector = code.b.use_var(at);
            let (pointer, length) = (guest_load(code, types::I32, vector, 0), guest_load(code, types::I32, vector, 4));
            body(code, pointer, length);
            let vector = code.b.use_var(at);
            let next = code.ins().iadd_imm_s(vector, VECTOR);
            code.b.def_var(at, next);
            let count = code.b.use_var(left);
            let count = code.ins().iadd_imm_s(count, -1);
            code.b.def_var(left, count);
        },
    );
}

fn guest_load(code: &mut Code<'_>, ty: Type, at: Value, offset: u64) -> Value {
    let flags = code.guest_flags(true);
    let address = code.ins().uextend(types::I64, at);
    code.ins().load(ty, flags, address, offset as i32)
}

fn room_in_port(code: &mut Code<'_>) -> Value {
    let capacity = code.constant_field(field::PORT_PAYLOAD);
    let capacity = code.ins().ireduce(types::I32, capacity);
    let cursor = code.header(types::I32, field::PORT_CURSOR);
    code.ins().isub(capacity, cursor)
}

/// Returns how many bytes of the reply are left in this packet.
pub(super) fn left_here(code: &mut Code<'_>) -> Value {
    let left = code.header(types::I32, field::PORT_LEFT);
    code.ins().band_imm_u(left, MORE - 1)
}

/// Counts `count` bytes of this packet as taken.
pub(super) fn take(code: &mut Code<'_>, count: Value) {
    move_cursor(code, count);
    let left = code.header(types::I32, field::PORT_LEFT);
    let rest = code.ins().isub(left, count);
    code.set_header(rest, field::PORT_LEFT);
}

pub(super) fn payload_at_cursor(code: &mut Code<'_>) -> Value {
    let (port, cursor) = (code.constant_field(field::PORT), code.header(types::I32, field::PORT_CURSOR));
    let cursor = code.ins().uextend(types::I64, cursor);
    let at = code.ins().iadd(port, cursor);
    code.ins().iadd_imm_s(at, offset::PAYLOAD as i64)
}

fn move_cursor(code: &mut Code<'_>, by: Value) {
    let cursor = code.header(types::I32, field::PORT_CURSOR);
    let cursor = code.ins().iadd(cursor, by);
    code.set_header(cursor, field::PORT_CURSOR);
}

/// Returns the length of the first answer in the output.
pub(super) fn split(code: &mut Code<'_>) -> Value {
    code.header(types::I32, field::PORT_RESULT)
}
