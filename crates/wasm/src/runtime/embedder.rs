//! A stub for each function of the embedder: [`Call::embedder`] says what goes over the bus.

use super::Helper;
use super::bus::port_store;
use super::stub::as_word;
use super::wait::note_call;
use crate::code::Code;
use crate::embedder::{EmbedderFunction, Parameter};
use crate::types::ValType;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};
use gpu_run_abi::TrapCode;
use gpu_run_abi::bus::{MAX_INPUT, offset};
use gpu_run_abi::hostcall::Call;
use gpu_run_abi::layout::{WORD, field};

/// A pointer and a length.
#[derive(Clone, Copy)]
struct Span(Value, Value);

/// An argument of the function.
enum Argument {
    Value(Value),
    Bytes(Span),
    Room(Span),
}

pub(super) fn stub(code: &mut Code<'_>, number: u32, function: &EmbedderFunction) {
    let arguments = arguments(code, &function.parameters);
    let in_words = arguments.len() as u64 * WORD;
    let sent: Vec<Span> = arguments
        .iter()
        .filter_map(|argument| match argument {
            Argument::Bytes(span) => Some(*span),
            Argument::Value(_) | Argument::Room(_) => None,
        })
        .collect();
    let limit = MAX_INPUT as i64 - in_words as i64;
    check_lengths(code, &sent, limit);
    for (argument, at) in arguments.iter().zip((offset::PAYLOAD..).step_by(WORD as usize)) {
        let (Argument::Value(value) | Argument::Bytes(Span(_, value)) | Argument::Room(Span(_, value))) = *argument;
        let word = as_word(code, value);
        port_store(code, word, at);
    }
    let cursor = code.i32(in_words as i64);
    code.set_header(cursor, field::PORT_CURSOR);
    for Span(pointer, length) in sent {
        let limit = code.i32(limit);
        code.call_helper(Helper::BusSend, &[pointer, length, limit]);
    }
    let room = arguments.iter().find_map(|argument| match argument {
        Argument::Room(span) => Some(*span),
        Argument::Value(_) | Argument::Bytes(_) => None,
    });
    let most = match room {
        Some(Span(_, length)) => as_word(code, length),
        None => code.i64(0),
    };
    note_call(code, Some(Call::embedder));
    let (operation, number) = (code.i32(Call::embedder as i64), code.i64(number.into()));
    // The errno says nothing: a call that the embedder refuses ends the instance.
    code.call_helper(Helper::BusPost, &[operation, number, most]);
    let result = code.header(types::I64, field::PORT_RESULT);
    if let Some(Span(pointer, length)) = room {
        code.call_helper(Helper::BusReceive, &[pointer, length]);
    }
    let result = function.result.map(|ty| from_word(code, result, ty));
    code.ins().return_(result.as_slice());
}

fn arguments(code: &Code<'_>, parameters: &[Parameter]) -> Vec<Argument> {
    let mut values = (1..).map(|index| code.param(index));
    let mut next = || values.next().expect("there is no end");
    let argument = |parameter: &Parameter| match parameter {
        Parameter::Bytes => Argument::Bytes(Span(next(), next())),
        Parameter::Room => Argument::Room(Span(next(), next())),
        Parameter::I32 | Parameter::I64 | Parameter::F32 | Parameter::F64 => Argument::Value(next()),
    };
    parameters.iter().map(argument).collect()
}

/// Traps if more bytes are to be sent than a call may have.
fn check_lengths(code: &mut Code<'_>, sent: &[Span], limit: i64) {
    let mut total = code.i64(0);
    for Span(_, length) in sent {
        let length = code.ins().uextend(types::I64, *length);
        total = code.ins().iadd(total, length);
    }
    if !sent.is_empty() {
        let too_long = code.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, total, limit);
        code.trap_if(too_long, TrapCode::HostCall);
    }
}

fn from_word(code: &mut Code<'_>, word: Value, ty: ValType) -> Value {
    match ty.clif() {
        types::I32 => code.ins().ireduce(types::I32, word),
        types::F32 => {
            let bits = code.ins().ireduce(types::I32, word);
            code.ins().bitcast(types::F32, MemFlagsData::new(), bits)
        }
        types::F64 => code.ins().bitcast(types::F64, MemFlagsData::new(), word),
        _ => word,
    }
}
