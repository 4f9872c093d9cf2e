//! A stub for each imported function, generated from its row in `abi::hostcall`.

use super::Helper;
use super::bus::{left_here, port_load, port_store, take};
use super::wait::note_call;
use crate::code::Code;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};
use gpu_run_abi::TrapCode;
use gpu_run_abi::bus::{ARGS_AT_HAND, MAX_INPUT, offset, op};
use gpu_run_abi::hostcall::{Call, Move};
use gpu_run_abi::layout::{WORD, field};

/// The most bytes of input in a call. A longer write is a short write; any other longer input is refused.
const INPUT_LIMIT: i64 = MAX_INPUT as i64;
/// The most random bytes that one call to the host asks for.
const RANDOM_PIECE: i64 = 64 << 10;
/// WASI's errno for a list or name that is too long.
const ERRNO_TOO_LONG: i64 = 37;

pub(super) fn build(code: &mut Code<'_>, call: Call) {
    let row = call.function();
    for (pointer, align) in row.moves.iter().filter_map(|step| step.alignment()) {
        check_alignment(code, pointer, align);
    }
    if call == Call::random_get {
        // With length 0 nothing is written, so the pointer does not matter.
        let (length, success) = (parameter(code, 1), code.i32(0));
        let is_empty = code.ins().icmp_imm_s(IntCC::Equal, length, 0);
        code.if_return(is_empty, success);
    }
    super::answers::answer(code, call);
    if call == Call::random_get {
        return random(code, call);
    }
    let start = code.i32(0);
    code.set_header(start, field::PORT_CURSOR);
    let words: Vec<Value> = row.moves.iter().filter_map(|step| word(code, *step)).collect();
    let mut operation = call as u16;
    for (word, at) in words.iter().zip((offset::ARGS..).step_by(WORD as usize)).skip(ARGS_AT_HAND) {
        port_store(code, *word, at);
        operation |= op::PORT;
    }
    let (mut operation, none) = (code.i32(operation.into()), code.i64(0));
    if call == Call::fd_write {
        let (own, flag, other) = (super::answers::own_stream(code), code.i32(op::OWN.into()), code.i32(0));
        let flag = code.ins().select(own, flag, other);
        operation = code.ins().bor(operation, flag);
        // If there are several packets, the first one carries the flag, too.
        let unheard = code.header(types::I32, field::UNHEARD);
        let unheard = code.ins().bor(unheard, flag);
        code.set_header(unheard, field::UNHEARD);
    }
    for step in row.moves {
        send(code, *step);
    }
    let argument = |index: usize| words.get(index).copied().unwrap_or(none);
    note_call(code, Some(call));
    let errno = code.call_helper(Helper::BusPost, &[operation, argument(0), argument(1)]);
    let Some(errno) = errno.filter(|_| row.returns_errno) else {
        code.ins().return_(&[]);
        return;
    };
    let failed = code.ins().icmp_imm_s(IntCC::NotEqual, errno, 0);
    code.if_return(failed, errno);
    results(code, row.moves);
    let mut first_answer = true;
    for step in row.moves {
        match *step {
            Move::Output { ptr, len, size } => {
                let length = scaled(code, len, size);
                let pointer = parameter(code, ptr);
                code.call_helper(Helper::BusReceive, &[pointer, length]);
            }
            Move::Scatter { iovs, count } => {
                let (iovs, count) = (parameter(code, iovs), parameter(code, count));
                code.call_helper(Helper::IoReceive, &[iovs, count]);
            }
            Move::Answer { ptr, .. } => {
                let length = if first_answer { super::bus::split(code) } else { code.i32(-1) };
                first_answer = false;
                let pointer = parameter(code, ptr);
                code.call_helper(Helper::BusReceive, &[pointer, length]);
            }
            Move::Value(_) | Move::Input { .. } | Move::Gather { .. } | Move::Result { .. } => {}
        }
    }
    code.ins().return_(&[errno]);
}

/// Emits `random_get`, which cannot return fewer bytes than asked for. So it calls the host piece by piece, after
/// checking that all bytes fit the guest's memory: the host never holds more than one piece, whatever a guest asks for.
fn random(code: &mut Code<'_>, call: Call) {
    let (buffer, length) = (parameter(code, 0), parameter(code, 1));
    code.check_written(buffer, length);
    let (at, left) = (code.variable(types::I32, buffer), code.variable(types::I32, length));
    code.while_loop(
        |code| code.b.use_var(left),
        |code| {
            code.check_stop();
            let (rest, piece) = (code.b.use_var(left), code.i32(RANDOM_PIECE));
            let count = code.ins().umin(rest, piece);
            let start = code.i32(0);
            code.set_header(start, field::PORT_CURSOR);
            let (operation, wanted, none) = (code.i32(call as i64), code.ins().uextend(types::I64, count), code.i64(0));
            note_call(code, Some(call));
            if let Some(errno) = code.call_helper(Helper::BusPost, &[operation, wanted, none]) {
                code.if_return(errno, errno);
            }
            let to = code.b.use_var(at);
            code.call_helper(Helper::BusReceive, &[to, count]);
            let next = code.ins().iadd(to, count);
            code.b.def_var(at, next);
            let rest = code.ins().isub(rest, count);
            code.b.def_var(left, rest);
        },
    );
    let success = code.i32(0);
    code.ins().return_(&[success]);
}

/// Returns parameter `index` of the wasm function.
fn parameter(code: &Code<'_>, index: u8) -> Value {
    code.param(usize::from(index) + 1)
}

/// Traps on a misaligned pointer, as WASI requires.
fn check_alignment(code: &mut Code<'_>, pointer: u8, align: u32) {
    if align > 1 {
        let pointer = parameter(code, pointer);
        let skew = code.ins().band_imm_u(pointer, i64::from(align) - 1);
        code.trap_if(skew, TrapCode::MisalignedPointer);
    }
}

/// Returns `len * size` bytes, saturated to 32 bits.
fn scaled(code: &mut Code<'_>, len: u8, size: u32) -> Value {
    let length = parameter(code, len);
    if size == 1 {
        return length;
    }
    let wide = code.ins().uextend(types::I64, length);
    let bytes = code.ins().imul_imm_u(wide, i64::from(size));
    let most = code.i64(u32::MAX.into());
    let bytes = code.ins().umin(bytes, most);
    code.ins().ireduce(types::I32, bytes)
}

/// Returns the argument word of a move, if it has one.
fn word(code: &mut Code<'_>, step: Move) -> Option<Value> {
    let value = match step {
        Move::Value(index) => parameter(code, index),
        Move::Answer { ptr, .. } => parameter(code, ptr),
        Move::Input { len, size, .. } | Move::Output { len, size, .. } => scaled(code, len, size),
        Move::Gather { iovs, count } => {
            let total = total(code, iovs, count)?;
            let limit = code.i32(INPUT_LIMIT);
            code.ins().umin(total, limit)
        }
        Move::Scatter { iovs, count } => total(code, iovs, count)?,
        Move::Result { .. } => return None,
    };
    Some(as_word(code, value))
}

/// Returns a value, or a float's bits, zero-extended.
pub(super) fn as_word(code: &mut Code<'_>, value: Value) -> Value {
    match code.b.func.dfg.value_type(value) {
        types::I32 => code.ins().uextend(types::I64, value),
        types::F32 => {
            let bits = code.ins().bitcast(types::I32, MemFlagsData::new(), value);
            code.ins().uextend(types::I64, bits)
        }
        types::F64 => code.ins().bitcast(types::I64, MemFlagsData::new(), value),
        _ => value,
    }
}

fn total(code: &mut Code<'_>, iovs: u8, count: u8) -> Option<Value> {
    let (iovs, count) = (parameter(code, iovs), parameter(code, count));
    code.call_helper(Helper::IoTotal, &[iovs, count])
}

fn send(code: &mut Code<'_>, step: Move) {
    match step {
        Move::Input { ptr, len, size } => {
            let length = scaled(code, len, size);
            let too_long = code.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, length, INPUT_LIMIT);
            let errno = code.i32(ERRNO_TOO_LONG);
            code.if_return(too_long, errno);
            let (pointer, limit) = (parameter(code, ptr), code.i32(INPUT_LIMIT));
            code.call_helper(Helper::BusSend, &[pointer, length, limit]);
        }
        Move::Gather { iovs, count } => {
            let (iovs, count, limit) = (parameter(code, iovs), parameter(code, count), code.i32(INPUT_LIMIT));
            code.call_helper(Helper::IoSend, &[iovs, count, limit]);
        }
        Move::Value(_) | Move::Output { .. } | Move::Scatter { .. } | Move::Result { .. } | Move::Answer { .. } => {}
    }
}

/// Stores the results of fixed size. The host pads each to whole words, so that the next begins at a word boundary.
/// They come first, in the first packet. All are loaded before any is stored, so that the loads share one round trip.
/// The first word came with the reply.
fn results(code: &mut Code<'_>, moves: &[Move]) {
    let padded = |bytes: u32| u64::from(bytes).next_multiple_of(WORD);
    let all: Vec<(u8, u32)> = moves
        .iter()
        .filter_map(|step| match *step {
            Move::Result { ptr, bytes, .. } => Some((ptr, bytes)),
            _ => None,
        })
        .collect();
    if all.is_empty() {
        return;
    }
    let total: u64 = all.iter().map(|(_, bytes)| padded(*bytes)).sum::<u64>() - WORD;
    // The host is not trusted here: a reply that is too short must not make the count wrap around.
    let (here, by) = (left_here(code), code.i32(total as i64));
    let enough = code.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, here, by);
    code.trap_unless(enough, TrapCode::HostCall);
    let fetch = |code: &mut Code<'_>, i: u64| match i {
        0 => code.header(types::I64, field::PORT_RESULT),
        _ => port_load(code, types::I64, offset::PAYLOAD + (i - 1) * WORD),
    };
    let words: Vec<Value> = (0..=total / WORD).map(|i| fetch(code, i)).collect();
    let mut words = words.as_slice();
    for (ptr, bytes) in all {
        let (own, rest) = words.split_at((padded(bytes) / WORD) as usize);
        result(code, ptr, bytes, own);
        words = rest;
    }
    take(code, by);
}

/// Stores one result, given its words.
fn result(code: &mut Code<'_>, ptr: u8, bytes: u32, words: &[Value]) {
    const PART: u32 = 4;
    const HALF: u32 = 2;
    let (pointer, length) = (parameter(code, ptr), code.i32(bytes.into()));
    code.check_written(pointer, length);
    let (flags, address) = (code.guest_flags(true), code.ins().uextend(types::I64, pointer));
    if bytes == HALF {
        let word = code.ins().ireduce(types::I32, words[0]);
        code.ins().istore16(flags, word, address, 0);
        return;
    }
    // The pointer is aligned (see above), and both layouts can store 4 bytes in one access.
    for part in 0..bytes / PART {
        let word = words[(part / 2) as usize];
        let word = if part % 2 == 0 { word } else { code.ins().ushr_imm_u(word, 32) };
        let word = code.ins().ireduce(types::I32, word);
        code.ins().store(flags, word, address, (part * PART) as i32);
    }
}

impl Code<'_> {
    /// Returns `value` from the function if `condition` holds.
    pub(super) fn if_return(&mut self, condition: Value, value: Value) {
        let (leave, stay) = (self.b.create_block(), self.b.create_block());
        self.ins().brif(condition, leave, &[], stay, &[]);
        self.open(leave);
        self.ins().return_(&[value]);
        self.open(stay);
    }
}
