//! The rows of the table: what each kind of row prints.

use super::operand::Need;
use super::register::{bits, plain};
use super::{Printer, division, integer as i, memory as m, table};
use crate::Error;
use cranelift_codegen::ir::{Inst, Type};

/// Prints an instruction that is more than one line.
type Print = fn(&mut Printer<'_>, Inst) -> Result<(), Error>;

/// The suffix for a type: `.u32`, for instance.
pub(crate) type Suffix = fn(Type) -> &'static str;

pub(crate) enum Row {
    /// `name suffix result, a`, with `a` in a register. The suffix is of the operand's type here and below.
    Op1(&'static str, Suffix, Need),
    /// `name suffix result, a, b`
    Op2(&'static str, Suffix, [Need; 2]),
    /// `name suffix result, a, b`, behind the tests that the form asks for.
    Divide(&'static str, Suffix, Need),
    /// `name suffix result, operands`: floats as they are.
    Floats(&'static str, Suffix),
    /// `name to from result, a`, with the suffixes of the result's and the operand's type, and `a` in a register.
    Convert(&'static str, Suffix, Suffix, Need),
    /// `name.pred result, operands`: predicates as they are.
    Predicates(&'static str),
    /// `name.b32 result, a, a, b`: the bits that `a` loses on one side come in on the other.
    Funnel(&'static str),
    /// `name.b64`, whose result of 32 bits is widened.
    Count64(&'static str),
    /// `prmt.b32 result, a, 0, selector`: the bytes of `a` in another order.
    Permute(i64),
    /// `mov result, a`, of the operand at this position.
    Move(usize),
    /// `mov result, number`
    Number(i64),
    /// By a device address: `name suffix result, [a]`, `name suffix [a], b`.
    Load(&'static str),
    Store(&'static str),
    /// More than one instruction, or operands of several types.
    Special(Print),
    /// Says nothing to the device.
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
