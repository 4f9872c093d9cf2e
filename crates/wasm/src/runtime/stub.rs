//! A stub for each imported function, generated from its row in `abi::hostcall`.

use super::Helper;
use super::bus::{move_cursor, port_store};
use crate::code::Code;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};
use gpu_run_abi::TrapCode;
use gpu_run_abi::bus::offset;
use gpu_run_abi::hostcall::{Call, Move};
use gpu_run_abi::layout::{WORD, field};

/// Bytes one call sends at most: a write beyond is a short write, any other input beyond is refused. Bounds what the host holds for an instance.
const INPUT_LIMIT: i64 = 1 << 20;
/// WASI's errno for a list or name that is too long.
const ERRNO_TOO_LONG: i64 = 37;

pub(super) fn build(code: &mut Code<'_>, call: Call) {
    let row = call.function();
    super::local::answer(code, call);
    let start = code.i32(0);
    code.set_header(start, field::PORT_CURSOR);
    let mut at = offset::REQUEST_ARGS;
    for step in row.moves {
        if let Some(word) = word(code, *step) {
            port_store(code, word, at);
            at += WORD;
        }
    }
    for step in row.moves {
        send(code, *step);
    }
    let number = code.i32(call as i64);
    let errno = code.call_helper(Helper::BusPost, &[number]);
    let Some(errno) = errno.filter(|_| row.returns_errno) else {
        code.ins().return_(&[]);
        return;
    };
    let failed = code.ins().icmp_imm_s(IntCC::NotEqual, errno, 0);
    code.if_return(failed, errno);
    for step in row.moves {
        if let Move::Result { ptr, bytes } = *step {
            result(code, ptr, bytes);
        }
    }
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
            Move::Answer { ptr } => {
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

/// Parameter `index` of the wasm function.
fn parameter(code: &Code<'_>, index: u8) -> Value {
    code.param(usize::from(index) + 1)
}

/// `len * size` bytes, saturated to 32 bits.
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

/// The argument word of a move, if it has one.
fn word(code: &mut Code<'_>, step: Move) -> Option<Value> {
    let value = match step {
        Move::Value(index) => parameter(code, index),
        Move::Answer { ptr } => parameter(code, ptr),
        Move::Input { len, size, .. } | Move::Output { len, size, .. } => scaled(code, len, size),
        Move::Gather { iovs, count } => {
            let total = total(code, iovs, count)?;
            let limit = code.i32(INPUT_LIMIT);
            code.ins().umin(total, limit)
        }
        Move::Scatter { iovs, count } => total(code, iovs, count)?,
        Move::Result { .. } => return None,
    };
    let ty = code.b.func.dfg.value_type(value);
    Some(match ty {
        types::I32 => code.ins().uextend(types::I64, value),
        types::F32 => {
            let bits = code.ins().bitcast(types::I32, MemFlagsData::new(), value);
            code.ins().uextend(types::I64, bits)
        }
        _ => value,
    })
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

/// A result of fixed size. The host pads each to whole words, so that what follows begins at a word's border.
fn result(code: &mut Code<'_>, ptr: u8, bytes: u32) {
    let (pointer, length) = (parameter(code, ptr), code.i32(bytes.into()));
    code.check_range(pointer, length);
    code.call_helper(Helper::BusReceive, &[pointer, length]);
    let padding = u64::from(bytes).next_multiple_of(WORD) as i64 - i64::from(bytes);
    if padding > 0 {
        let by = code.i32(padding);
        move_cursor(code, by);
        let left = code.header(types::I32, field::PORT_LEFT);
        // The host's word is not taken for it: a reply without padding must not make the count wrap.
        let enough = code.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, left, by);
        code.trap_unless(enough, TrapCode::HostCall);
        let left = code.ins().isub(left, by);
        code.set_header(left, field::PORT_LEFT);
    }
}

impl Code<'_> {
    /// Returns `value` if `condition` holds.
    fn if_return(&mut self, condition: Value, value: Value) {
        let (leave, stay) = (self.b.create_block(), self.b.create_block());
        self.ins().brif(condition, leave, &[], stay, &[]);
        self.open(leave);
        self.ins().return_(&[value]);
        self.open(stay);
    }
}
