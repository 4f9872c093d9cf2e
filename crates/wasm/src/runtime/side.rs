//! Helpers for memories other than the first: the memory's device address is a parameter.

use super::bulk::{self, Side};
use crate::code::Code;
use crate::translate::Env;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use gpu_run_abi::intrinsic::region;

pub(super) fn copy(code: &mut Code<'_>, _: &Env<'_>) {
    let memories = [code.param(4), code.param(5)];
    bulk::copy(code, |code, to, from| (Side::guest_in(code, to, memories[0]), Side::guest_in(code, from, memories[1])));
}

pub(super) fn fill(code: &mut Code<'_>, _: &Env<'_>) {
    let memory = code.param(4);
    bulk::fill(code, |code, to| Side::guest_in(code, to, memory));
}

pub(super) fn write(code: &mut Code<'_>, _: &Env<'_>) {
    let memory = code.param(4);
    bulk::copy_apart(code, |code, to, from| (Side::guest_in(code, to, memory), Side::plain(code, from)));
}

/// (memory, address, bytes) -> value: loads byte by byte, the lowest first.
pub(super) fn load(code: &mut Code<'_>, _: &Env<'_>) {
    let none = code.i64(0);
    let value = code.variable(types::I64, none);
    each_byte(code, |code, address, shift| {
        let flags = code.trusted(region::BUS);
        let byte = code.ins().uload8(types::I64, flags, address, 0);
        let byte = code.ins().ishl(byte, shift);
        let rest = code.b.use_var(value);
        let all = code.ins().bor(rest, byte);
        code.b.def_var(value, all);
    });
    let value = code.b.use_var(value);
    code.ins().return_(&[value]);
}

/// (memory, address, bytes, value)
pub(super) fn store(code: &mut Code<'_>, _: &Env<'_>) {
    let value = code.param(4);
    each_byte(code, |code, address, shift| {
        let (flags, byte) = (code.trusted(region::BUS), code.ins().ushr(value, shift));
        code.ins().istore8(flags, byte, address, 0);
    });
    code.ins().return_(&[]);
}

/// Runs `with` for each byte of an access, with the byte's device address and its bit position in the value (i64).
fn each_byte(code: &mut Code<'_>, with: impl FnOnce(&mut Code<'_>, Value, Value)) {
    let (memory, first, bytes) = (code.param(1), code.param(2), code.param(3));
    let none = code.i32(0);
    let at = code.variable(types::I32, none);
    code.while_loop(
        |code| {
            let at = code.b.use_var(at);
            code.ins().icmp(IntCC::UnsignedLessThan, at, bytes)
        },
        |code| {
            let index = code.b.use_var(at);
            let guest = code.ins().iadd(first, index);
            let address = code.guest_address(guest, memory);
            let shift = code.ins().uextend(types::I64, index);
            let shift = code.ins().ishl_imm_u(shift, 3);
            with(code, address, shift);
            let next = code.ins().iadd_imm_s(index, 1);
            code.b.def_var(at, next);
        },
    );
}
