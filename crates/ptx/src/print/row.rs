//! The kinds of rows in the table, and the PTX that each kind prints.

use super::operand::Need;
use super::register::{bits, plain};
use super::{Printer, division, integer as i, memory as m, table};
use crate::Error;
use cranelift_codegen::ir::{Inst, Type};

/// A function that prints an instruction on its own.
type Print = fn(&mut Printer<'_>, Inst) -> Result<(), Error>;

/// Returns the suffix for a type: `.u32`, for instance.
pub(crate) type Suffix = fn(Type) -> &'static str;

pub(crate) enum Row {
    /// `name suffix result, a`, with `a` in a register. The suffix is that of the first operand's type, here and below,
    /// unless stated otherwise.
    Op1(&'static str, Suffix, Need),
    /// `name suffix result, a, b`
    Op2(&'static str, Suffix, [Need; 2]),
    /// `name suffix result, a, b`, after the tests of the instruction's form.
    Divide(&'static str, Suffix, Need),
    /// `name suffix result, operands`: the operands are floats and need no preparation. The suffix is that of the
    /// instruction's controlling type.
    Floats(&'static str, Suffix),
    /// `name to from result, a`, with the suffixes of the result's and the operand's type, and `a` in a register.
    Convert(&'static str, Suffix, Suffix, Need),
    /// `name.pred result, operands`: the operands are predicates and need no preparation.
    Predicates(&'static str),
    /// `name.b32 result, a, a, b`: a rotation. Bits that leave `a` on one side enter on the other.
    Funnel(&'static str),
    /// `name.b64`; its 32-bit result is widened to 64 bits.
    Count64(&'static str),
    /// `prmt.b32 result, a, 0, selector`: the bytes of `a` in another order.
    Permute(i64),
    /// `mov result, a`, where `a` is the operand at this position.
    Move(usize),
    /// `mov result, number`
    Number(i64),
    /// A load by a device address: `name suffix result, [a]`.
    Load(&'static str),
    /// A store by a device address: `name suffix [a], b`.
    Store(&'static str),
    /// More than one PTX instruction, or operands of several types.
    Special(Print),
    /// Prints nothing.
    Nothing,
    Unsupported,
}

/// Prints one instruction.
pub(crate) fn print(p: &mut Printer<'_>, inst: Inst) -> Result<(), Error> {
    let data = &p.func.dfg.insts[inst];
    if data.opcode().is_terminator() || data.opcode().is_call() {
        division::stop_if_wrong(p);
    }
    match table::row(data, p.form(inst)) {
        Row::Op1(name, suffix, need) => {
            let (result, a) = (p.result(inst)?, i::one(p, inst)?);
            let ty = p.ty(a);
            let operand = p.operand_in_register(a, need);
            p.body.op(name, suffix(ty), &[result.into(), operand.into()]);
        }
        Row::Op2(name, suffix, needs) => {
            let (result, [a, b]) = (p.result(inst)?, i::two(p, inst)?);
            let ty = p.ty(a);
            let (a, b) = (p.operand(a, needs[0], ty), p.operand(b, needs[1], ty));
            p.body.op(name, suffix(ty), &[result.into(), a, b]);
        }
        Row::Divide(name, suffix, need) => i::divide(p, inst, name, suffix, need)?,
        Row::Floats(name, suffix) => {
            let suffix = suffix(p.func.dfg.ctrl_typevar(inst));
            operands_as_they_are(p, inst, name, suffix)?;
        }
        Row::Convert(name, to, from, need) => {
            let (result, a) = (p.result(inst)?, i::one(p, inst)?);
            let (to, from) = (to(p.func.dfg.ctrl_typevar(inst)), from(p.ty(a)));
            let operand = p.operand_in_register(a, need);
            p.body.convert(name, to, from, result, operand);
        }
        Row::Predicates(name) => operands_as_they_are(p, inst, name, ".pred")?,
        Row::Funnel(name) => {
            let (result, [a, b]) = (p.result(inst)?, i::two(p, inst)?);
            let (a, b) = (p.number(a), p.low_word(b));
            p.body.op(name, ".b32", &[result.into(), a, a, b]);
        }
        Row::Count64(name) => {
            let (result, a) = (p.result(inst)?, i::one(p, inst)?);
            let operand = p.in_register(a);
            i::count64(p, name, operand, result);
        }
        Row::Permute(selector) => {
            let (result, a) = (p.result(inst)?, i::one(p, inst)?);
            let operand = p.in_register(a);
            p.body.op("prmt", ".b32", &[result.into(), operand.into(), 0.into(), selector.into()]);
        }
        Row::Move(index) => {
            let (result, chosen) = (p.result(inst)?, p.func.dfg.inst_args(inst)[index]);
            let suffix = plain(p.ty(chosen));
            let chosen = p.number(chosen);
            p.body.op("mov", suffix, &[result.into(), chosen]);
        }
        Row::Number(number) => {
            let (result, suffix) = (p.result(inst)?, bits(p.func.dfg.ctrl_typevar(inst)));
            p.body.op("mov", suffix, &[result.into(), number.into()]);
        }
        Row::Load(name) => m::load(p, inst, name)?,
        Row::Store(name) => m::store(p, inst, name)?,
        Row::Special(print) => print(p, inst)?,
        Row::Nothing => {}
        Row::Unsupported => return Err(p.unsupported(inst)),
    }
    Ok(())
}

/// `name suffix result, operands`
fn operands_as_they_are(p: &mut Printer<'_>, inst: Inst, name: &str, suffix: &str) -> Result<(), Error> {
    let result = p.result(inst)?;
    let args = p.func.dfg.inst_args(inst);
    p.body.begin(name, suffix);
    p.body.operand(result);
    for &arg in args {
        p.body.out.push_str(", ");
        p.body.operand(p.value(arg));
    }
    p.body.end();
    Ok(())
}
