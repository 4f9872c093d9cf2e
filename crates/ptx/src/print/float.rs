//! Floating-point operations that take more than one PTX instruction, and conversions.
//!
//! Sign operations work on the bits: PTX's `neg` and `abs` may change a NaN, wasm's and CLIF's must not.

use super::Printer;
use super::integer::{one, two};
use super::register::{Class, Operand, float, plain};
use crate::Error;
use crate::analysis::values::sign_extend;
use cranelift_codegen::ir::{Inst, Opcode, Type, types};

type Done = Result<(), Error>;

pub(crate) fn negate(p: &mut Printer<'_>, inst: Inst) -> Done {
    change_sign(p, inst, "xor", i64::from(i32::MIN), i64::MIN)
}
pub(crate) fn absolute(p: &mut Printer<'_>, inst: Inst) -> Done {
    change_sign(p, inst, "and", i64::from(i32::MAX), i64::MAX)
}

fn change_sign(p: &mut Printer<'_>, inst: Inst, name: &str, mask32: i64, mask64: i64) -> Done {
    let (result, x) = (p.result(inst)?, one(p, inst)?);
    let operand = p.in_register(x);
    let (class, suffix, mask) =
        if p.ty(x) == types::F64 { (Class::B64, ".b64", mask64) } else { (Class::B32, ".b32", mask32) };
    let bits = p.body.op_to_temp(class, "mov", suffix, &[operand.into()]);
    let changed = p.body.op_to_temp(class, name, suffix, &[bits.into(), mask.into()]);
    p.body.op("mov", suffix, &[result.into(), changed.into()]);
    Ok(())
}

/// CLIF's magnitude comes first, PTX's sign does.
pub(crate) fn copy_sign(p: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, [magnitude, sign]) = (p.result(inst)?, two(p, inst)?);
    let suffix = float(p.ty(magnitude));
    p.body.op("copysign", suffix, &[result.into(), p.value(sign), p.value(magnitude)]);
    Ok(())
}

pub(crate) fn minimum(p: &mut Printer<'_>, inst: Inst) -> Done {
    extremum(p, inst, "min")
}
pub(crate) fn maximum(p: &mut Printer<'_>, inst: Inst) -> Done {
    extremum(p, inst, "max")
}

/// PTX's `min` ignores a NaN that CLIF's passes on: where there is one, the sum takes the result's place, a NaN too.
fn extremum(p: &mut Printer<'_>, inst: Inst, name: &str) -> Done {
    let (result, [a, b]) = (p.result(inst)?, two(p, inst)?);
    let ty = p.ty(a);
    let (suffix, class) = (float(ty), float_class(ty));
    let (a, b) = (p.value(a), p.value(b));
    let is_nan = p.body.op_to_temp(Class::Pred, "setp.nan", suffix, &[a, b]);
    let nan = p.body.op_to_temp(class, "add.rn", suffix, &[a, b]);
    let extremum = p.body.op_to_temp(class, name, suffix, &[a, b]);
    p.body.op("selp", suffix, &[result.into(), nan.into(), extremum.into(), is_nan.into()]);
    Ok(())
}

fn float_class(ty: Type) -> Class {
    if ty == types::F64 { Class::F64 } else { Class::F32 }
}

pub(crate) fn promote(p: &mut Printer<'_>, inst: Inst) -> Done {
    convert(p, inst, "cvt.f64.f32")
}
pub(crate) fn demote(p: &mut Printer<'_>, inst: Inst) -> Done {
    convert(p, inst, "cvt.rn.f32.f64")
}

fn convert(p: &mut Printer<'_>, inst: Inst, name: &str) -> Done {
    let (result, x) = (p.result(inst)?, one(p, inst)?);
    let operand = p.in_register(x);
    p.body.op(name, "", &[result.into(), operand.into()]);
    Ok(())
}

#[rustfmt::skip]
pub(crate) fn from_int(p: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, x) = (p.result(inst)?, one(p, inst)?);
    let (to, ty) = (p.func.dfg.ctrl_typevar(inst), p.ty(x));
    let is_signed = p.func.dfg.insts[inst].opcode() == Opcode::FcvtFromSint;
    let name = match (to, is_signed, ty == types::I64) {
        (types::F32, true,  false) => "cvt.rn.f32.s32",
        (types::F32, true,  true)  => "cvt.rn.f32.s64",
        (types::F32, false, false) => "cvt.rn.f32.u32",
        (types::F32, false, true)  => "cvt.rn.f32.u64",
        (types::F64, true,  false) => "cvt.rn.f64.s32",
        (types::F64, true,  true)  => "cvt.rn.f64.s64",
        (types::F64, false, false) => "cvt.rn.f64.u32",
        (types::F64, false, true)  => "cvt.rn.f64.u64",
        _ => return Err(p.unsupported(inst)),
    };
    let operand = if is_signed { p.sign_extended(x) } else { p.zero_extended(x) };
    let operand = p.load_operand(operand, ty);
    p.body.op(name, "", &[result.into(), operand.into()]);
    Ok(())
}

/// `cvt.rzi` for a result of at least 32 bits.
#[rustfmt::skip]
fn truncation(to: Type, is_signed: bool, from: Type) -> &'static str {
    match (to == types::I64, is_signed, from == types::F64) {
        (false, true,  false) => "cvt.rzi.s32.f32",
        (false, true,  true)  => "cvt.rzi.s32.f64",
        (false, false, false) => "cvt.rzi.u32.f32",
        (false, false, true)  => "cvt.rzi.u32.f64",
        (true,  true,  false) => "cvt.rzi.s64.f32",
        (true,  true,  true)  => "cvt.rzi.s64.f64",
        (true,  false, false) => "cvt.rzi.u64.f32",
        (true,  false, true)  => "cvt.rzi.u64.f64",
    }
}

/// The range was checked by explicit traps before.
pub(crate) fn to_int(p: &mut Printer<'_>, inst: Inst) -> Done {
    let x = one(p, inst)?;
    let is_signed = p.func.dfg.insts[inst].opcode() == Opcode::FcvtToSint;
    let name = truncation(p.func.dfg.ctrl_typevar(inst), is_signed, p.ty(x));
    convert(p, inst, name)
}

/// PTX's conversions saturate. NaN becomes 0 only from f32 to 32 bits: the others give their type's lowest or highest
/// bit.
pub(crate) fn to_int_saturating(p: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, x) = (p.result(inst)?, one(p, inst)?);
    let (to, from) = (p.func.dfg.ctrl_typevar(inst), p.ty(x));
    let is_signed = p.func.dfg.insts[inst].opcode() == Opcode::FcvtToSintSat;
    let name = truncation(to, is_signed, from);
    let operand = p.in_register(x);
    let class = if to == types::I64 { Class::B64 } else { Class::B32 };
    let mut number = p.body.op_to_temp(class, name, "", &[operand.into()]);
    if to.bits() < 32 {
        let (low, high) = to.bounds(is_signed);
        let (low, high) = (low as u64 as i64, high as u64 as i64);
        if is_signed {
            let low = sign_extend(low, to);
            number = p.body.op_to_temp(class, "max", ".s32", &[number.into(), low.into()]);
            number = p.body.op_to_temp(class, "min", ".s32", &[number.into(), high.into()]);
        } else {
            number = p.body.op_to_temp(class, "min", ".u32", &[number.into(), high.into()]);
        }
    }
    if from == types::F32 && to != types::I64 {
        p.body.op("mov", ".b32", &[result.into(), number.into()]);
    } else {
        let is_nan = p.body.op_to_temp(Class::Pred, "setp.nan", float(from), &[operand.into(), operand.into()]);
        p.body.op("selp", plain(to), &[result.into(), 0.into(), number.into(), is_nan.into()]);
    }
    Ok(())
}

/// The same bits in a register of another class.
pub(crate) fn bitcast(p: &mut Printer<'_>, inst: Inst) -> Done {
    let x = one(p, inst)?;
    if p.ty(x).is_vector() {
        return Ok(()); // the same registers
    }
    let result = p.result(inst)?;
    let suffix = if p.ty(x).bits() == 64 { ".b64" } else { ".b32" };
    // A constant of the other class is its bits.
    let operand = match p.number(x) {
        Operand::F32(bits) => Operand::Int(i64::from(bits as i32)),
        Operand::F64(bits) => Operand::Int(bits as i64),
        other => other,
    };
    match (operand, p.func.dfg.ctrl_typevar(inst)) {
        (Operand::Int(n), types::F32) => p.body.op("mov", ".f32", &[result.into(), Operand::F32(n as u32)]),
        (Operand::Int(n), types::F64) => p.body.op("mov", ".f64", &[result.into(), Operand::F64(n as u64)]),
        _ => p.body.op("mov", suffix, &[result.into(), operand]),
    }
    Ok(())
}
