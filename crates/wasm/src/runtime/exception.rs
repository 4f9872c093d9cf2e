//! References to exceptions.
//!
//! A reference is a number; the slot keeps the last [`KEPT_EXCEPTIONS`] exceptions that have one, each in the entry
//! that its number selects. An exception that is thrown again keeps its number. A reference to an exception that is no
//! longer kept cannot be thrown: that is a trap of its own.

use crate::code::Code;
use crate::slot::{KEPT_EXCEPTIONS, exception_words};
use crate::translate::Env;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use gpu_run_abi::TrapCode;
use gpu_run_abi::intrinsic::region;
use gpu_run_abi::layout::WORD;

/// () -> the number of the pending exception, which gets one if it has none.
pub(super) fn keep(code: &mut Code<'_>, env: &Env<'_>) {
    let place = env.slots.exception;
    if place.kept == 0 {
        let none = code.i64(0);
        code.ins().return_(&[none]);
        return;
    }
    let known = code.header(types::I64, place.number);
    let (return_known, new) = (code.b.create_block(), code.b.create_block());
    code.ins().brif(known, return_known, &[], new, &[]);
    code.open(return_known);
    code.ins().return_(&[known]);
    code.open(new);
    let count = code.header(types::I64, place.count);
    let number = code.ins().iadd_imm_s(count, 1);
    code.set_header(number, place.count);
    let entry = entry(code, env, number);
    let flags = code.trusted(region::TABLE);
    code.word_store(number, flags, entry, 0);
    for (i, at) in copied(env).enumerate() {
        let word = code.header(types::I64, at);
        code.word_store(word, flags, entry, WORD * (1 + i as u64));
    }
    code.ins().return_(&[number]);
}

/// (number): makes this exception the pending one.
pub(super) fn take(code: &mut Code<'_>, env: &Env<'_>) {
    let place = env.slots.exception;
    if place.kept == 0 {
        code.trap(TrapCode::LostException);
        return;
    }
    let number = code.param(1);
    let entry = entry(code, env, number);
    let flags = code.trusted(region::TABLE);
    let found = code.word_load(types::I64, flags, entry, 0);
    let other = code.ins().icmp(IntCC::NotEqual, found, number);
    code.trap_if(other, TrapCode::LostException);
    code.set_header(number, place.number);
    for (i, at) in copied(env).enumerate() {
        let word = code.word_load(types::I64, flags, entry, WORD * (1 + i as u64));
        code.set_header(word, at);
    }
    code.ins().return_(&[]);
}

/// Returns the offsets of the pending exception's words that are kept: tag and values.
fn copied(env: &Env<'_>) -> impl Iterator<Item = u64> {
    let place = env.slots.exception;
    std::iter::once(place.tag).chain((0..exception_words(env.module)).map(move |i| place.values + WORD * i))
}

/// Returns the address of the entry that keeps the exception with this number.
fn entry(code: &mut Code<'_>, env: &Env<'_>, number: Value) -> Value {
    let words = 2 + exception_words(env.module);
    let first = code.slot_address(env.slots.exception.kept);
    let index = code.ins().band_imm_u(number, KEPT_EXCEPTIONS as i64 - 1);
    let bytes = (words * WORD * code.layout.spread()) as i64;
    let offset = code.ins().imul_imm_u(index, bytes);
    code.ins().iadd(first, offset)
}
