//! Sign operations work on the bits: PTX's `neg` and `abs` may change a NaN, which wasm's and CLIF's must not.

use super::Printer;
use super::integer::{class, one, two};
use super::register::{Class, Operand, float, plain, signed, unsigned};
use crate::Error;
use crate::analysis::legalize::Form;
use crate::analysis::values::sign_extend;
use cranelift_codegen::ir::{Inst, Type, types};

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

/// CLIF takes the magnitude first, PTX the sign.
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

/// PTX's `min` and `max` ignore a NaN that CLIF's return. If an operand is NaN, the result is the sum, which is NaN,
/// too.
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

pub(crate) fn to_signed_saturating(p: &mut Printer<'_>, inst: Inst) -> Done {
    to_int_saturating(p, inst, true)
}
pub(crate) fn to_unsigned_saturating(p: &mut Printer<'_>, inst: Inst) -> Done {
    to_int_saturating(p, inst, false)
}

/// Prints a saturating conversion. PTX's own conversions saturate to 32 or 64 bits.
fn to_int_saturating(p: &mut Printer<'_>, inst: Inst, is_signed: bool) -> Done {
    let Form::Saturating { clamps, tests_nan } = p.form(inst) else { return Err(p.unsupported(inst)) };
    let (result, x) = (p.result(inst)?, one(p, inst)?);
    let (to, from) = (p.func.dfg.ctrl_typevar(inst), p.ty(x));
    let suffix = if is_signed { signed(to) } else { unsigned(to) };
    let operand = p.in_register(x);
    let class = class(to);
    let mut number = p.body.temp(class);
    p.body.convert("cvt.rzi", suffix, float(from), number, operand);
    if clamps {
        let (low, high) = to.bounds(is_signed);
        if is_signed {
            let low = sign_extend(low as u64 as i64, to);
            number = p.body.op_to_temp(class, "max", suffix, &[number.into(), low.into()]);
        }
        number = p.body.op_to_temp(class, "min", suffix, &[number.into(), (high as u64 as i64).into()]);
    }
    if tests_nan {
        let is_nan = p.body.op_to_temp(Class::Pred, "setp.nan", float(from), &[operand.into(), operand.into()]);
        p.body.op("selp", plain(to), &[result.into(), 0.into(), number.into(), is_nan.into()]);
    } else {
        p.body.op("mov", ".b32", &[result.into(), number.into()]);
    }
    Ok(())
}

/// Prints the constant's bits as a constant of the other class.
pub(crate) fn bitcast_constant(p: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, x) = (p.result(inst)?, one(p, inst)?);
    let ty = p.func.dfg.ctrl_typevar(inst);
    let number = match p.value(x) {
        Operand::Int(n) => n,
        Operand::F32(bits) => i64::from(bits as i32),
        Operand::F64(bits) => bits as i64,
        _ => return Err(p.unsupported(inst)),
    };
    let constant = match ty {
        types::F32 => Operand::F32(number as u32),
        types::F64 => Operand::F64(number as u64),
        _ => Operand::Int(number),
    };
    p.body.op("mov", plain(ty), &[result.into(), constant]);
    Ok(())
}
