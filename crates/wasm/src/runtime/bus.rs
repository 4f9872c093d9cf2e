//! The device side of the bus; `abi::bus` describes the protocol.

use super::Helper;
use crate::code::Code;
use crate::translate::Env;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AtomicRmwOp, InstBuilder, Type, Value, types};
use gpu_run_abi::bus::{ReplyWord, RingEntry, offset, op};
use gpu_run_abi::intrinsic::{Intrinsic, region};
use gpu_run_abi::launch::local;
use gpu_run_abi::layout::field;
use gpu_run_abi::{Status, TrapCode};

/// How long a waiting instance sleeps between two looks at its reply, in nanoseconds: not at all at first, then a quarter longer each time and a
/// little more. A look is a journey over PCIe, and a hundred thousand lanes that all look again at once leave no room for the answers.
const NAP_MORE: i64 = 16;
const NAP_MOST: i64 = 250_000;
/// From this nap on the stop word is looked at, too: that is another journey.
const NAP_STOP: i64 = 500;

/// In the header's `port_left`, beside the bytes that are left of this packet: there are more packets.
const MORE: i64 = 1 << 31;

/// Writes a word of the port.
pub(super) fn port_store(code: &mut Code<'_>, value: Value, at: u64) {
    let (port, flags) = (code.fixed(field::PORT), code.trusted(region::BUS));
    code.ins().store(flags, value, port, at as i32);
}

pub(super) fn port_load(code: &mut Code<'_>, ty: Type, at: u64) -> Value {
    let (port, flags) = (code.fixed(field::PORT), code.trusted(region::BUS));
    code.ins().load(ty, flags, port, at as i32)
}

/// (op) -> errno. The packet's length is the cursor; afterwards the cursor stands at the reply's first byte.
pub(super) fn post(code: &mut Code<'_>, _: &Env<'_>) {
    // First: what follows does not wait for it.
    let ticket = take_ticket(code);
    let (operation, length) = (code.param(1), code.header(types::I32, field::PORT_CURSOR));
    let (operation, length) = (code.ins().uextend(types::I64, operation), code.ins().uextend(types::I64, length));
    let length = code.ins().ishl_imm_u(length, 32);
    let request = code.ins().bor(operation, length);
    port_store(code, request, offset::REQUEST_OP);
    let sequence = code.header(types::I32, field::PORT_SEQUENCE);
    let sequence = code.ins().iadd_imm_s(sequence, 1);
    code.set_header(sequence, field::PORT_SEQUENCE);
    enter_ring(code, ticket);

    let status = wait_for_reply(code, sequence);
    // The host has emptied the outbox.
    let head = code.i64(local::OUTBOX_HEAD as i64);
    code.set_header(head, field::OUTBOX_USED);
    let exits = code.ins().band_imm_u(status, i64::from(ReplyWord::EXIT));
    code.if_then(exits, true, |code| {
        let exit_code = port_load(code, types::I32, offset::REPLY_SPLIT);
        let exit_code = code.ins().uextend(types::I64, exit_code);
        code.set_header(exit_code, field::EXIT_CODE);
        let exited = code.i64(Status::Exited as i64);
        code.set_header(exited, field::STATUS);
        code.intrinsic(Intrinsic::Exit, &[]);
    });
    let fails = code.ins().band_imm_u(status, i64::from(ReplyWord::TRAP));
    code.trap_if(fails, TrapCode::HostCall);
    let start = code.i32(0);
    code.set_header(start, field::PORT_CURSOR);
    let left = code.ins().ushr_imm_u(status, i64::from(ReplyWord::PAYLOAD_SHIFT));
    let more = code.ins().band_imm_u(status, i64::from(ReplyWord::MORE));
    let more = code.ins().ishl_imm_u(more, i64::from(MORE.trailing_zeros() - ReplyWord::MORE.trailing_zeros()));
    let left = code.ins().bor(left, more);
    code.set_header(left, field::PORT_LEFT);
    let errno = code.ins().band_imm_u(status, i64::from(ReplyWord::ERRNO));
    code.ins().return_(&[errno]);
}

/// Looks at the reply word until it has this sequence number; its other half.
fn wait_for_reply(code: &mut Code<'_>, sequence: Value) -> Value {
    // The words lie behind the ring's entries.
    let (ring, mask) = (code.fixed(field::RING), code.fixed(field::RING_MASK));
    let entries = code.ins().iadd_imm_s(mask, 1);
    let index = code.header(types::I64, field::INDEX);
    let before = code.ins().iadd(entries, index);
    let before = code.ins().imul_imm_u(before, ReplyWord::BYTES as i64);
    let at = code.ins().iadd(ring, before);
    const _: () = assert!(ReplyWord::BYTES == RingEntry::BYTES);

    let flags = code.trusted(region::BUS);
    let (none, at_first) = (code.i64(0), code.i32(0));
    let (reply, nap) = (code.variable(types::I64, none), code.variable(types::I32, at_first));
    code.while_loop(
        |code| {
            let word = code.ins().atomic_load(types::I64, flags, at);
            code.b.def_var(reply, word);
            let seen = code.ins().ireduce(types::I32, word);
            code.ins().icmp(IntCC::NotEqual, seen, sequence)
        },
        |code| {
            let time = code.b.use_var(nap);
            let long = code.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, time, NAP_STOP);
            code.if_then(long, false, |code| code.check_stop());
            code.intrinsic(Intrinsic::NanoSleep, &[time]);
            let quarter = code.ins().ushr_imm_u(time, 2);
            let next = code.ins().iadd(time, quarter);
            let next = code.ins().iadd_imm_s(next, NAP_MORE);
            let most = code.i32(NAP_MOST);
            let next = code.ins().umin(next, most);
            code.b.def_var(nap, next);
        },
    );
    let reply = code.b.use_var(reply);
    let status = code.ins().ushr_imm_u(reply, 32);
    code.ins().ireduce(types::I32, status)
}

/// A place in the ring.
fn take_ticket(code: &mut Code<'_>) -> Value {
    let flags = code.trusted(region::BUS);
    let (ticket_at, one) = (code.fixed(field::RING_TICKET), code.i32(1));
    code.ins().atomic_rmw(types::I32, flags, AtomicRmwOp::Add, ticket_at, one)
}

/// Tells the host which port to look at. The store releases everything written to the port.
fn enter_ring(code: &mut Code<'_>, ticket: Value) {
    let flags = code.trusted(region::BUS);
    let mask = code.fixed(field::RING_MASK);
    let mask = code.ins().ireduce(types::I32, mask);
    let shift = code.ins().popcnt(mask);
    let lap = code.ins().ushr(ticket, shift);
    let lap = code.ins().iadd_imm_s(lap, 1);
    let lap = code.ins().uextend(types::I64, lap);
    let lap = code.ins().ishl_imm_u(lap, 32);
    let slot = code.header(types::I64, field::INDEX);
    let entry = code.ins().bor(lap, slot);
    let place = code.ins().band(ticket, mask);
    let place = code.ins().uextend(types::I64, place);
    let place = code.ins().imul_imm_u(place, RingEntry::BYTES as i64);
    let ring = code.fixed(field::RING);
    let place = code.ins().iadd(ring, place);
    code.ins().atomic_store(flags, entry, place);
}

/// (from, length, limit) -> what is left of the limit.
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
                let more = code.i32(op::MORE.into());
                code.call_helper(Helper::BusPost, &[more]);
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

/// (to, length): as much of the output as there is, at most `length`.
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
                let pull = code.i32(op::PULL.into());
                code.call_helper(Helper::BusPost, &[pull]);
            });
            let (here, want) = (left_here(code), code.b.use_var(wanted));
            let count = code.ins().umin(here, want);
            let (target, source) = (code.b.use_var(to), payload_at_cursor(code));
            // What the guest pointed at is only looked at now, and never believed.
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
    let capacity = code.fixed(field::PORT_PAYLOAD);
    let capacity = code.ins().ireduce(types::I32, capacity);
    let cursor = code.header(types::I32, field::PORT_CURSOR);
    code.ins().isub(capacity, cursor)
}

/// Bytes of the reply that are left in this packet.
pub(super) fn left_here(code: &mut Code<'_>) -> Value {
    let left = code.header(types::I32, field::PORT_LEFT);
    code.ins().band_imm_u(left, MORE - 1)
}

/// Bytes of this packet were taken; there are that many.
pub(super) fn take(code: &mut Code<'_>, count: Value) {
    move_cursor(code, count);
    let left = code.header(types::I32, field::PORT_LEFT);
    let rest = code.ins().isub(left, count);
    code.set_header(rest, field::PORT_LEFT);
}

pub(super) fn payload_at_cursor(code: &mut Code<'_>) -> Value {
    let (port, cursor) = (code.fixed(field::PORT), code.header(types::I32, field::PORT_CURSOR));
    let cursor = code.ins().uextend(types::I64, cursor);
    let at = code.ins().iadd(port, cursor);
    code.ins().iadd_imm_s(at, offset::PAYLOAD as i64)
}

fn move_cursor(code: &mut Code<'_>, by: Value) {
    let cursor = code.header(types::I32, field::PORT_CURSOR);
    let cursor = code.ins().iadd(cursor, by);
    code.set_header(cursor, field::PORT_CURSOR);
}

/// The length of the output's first answer.
pub(super) fn split(code: &mut Code<'_>) -> Value {
    port_load(code, types::I32, offset::REPLY_SPLIT)
}
