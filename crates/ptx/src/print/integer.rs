//! i8 and i16 are computed in 32 bits. PTX's shifts clamp an amount that is too large, while CLIF's wrap it. The
//! rotations rely on the clamping: a shift by the full width gives 0.

use super::Printer;
use super::body::When;
use super::operand::Need;
use super::register::{Class, Operand, Reg, bits, plain, signed, unsigned};
use super::row::Suffix;
use crate::Error;
use crate::analysis::legalize::Form;
use cranelift_codegen::ir::{self, Inst, InstructionData, Type, Value, types};

type Done = Result<(), Error>;

// ---- an instruction's operands ----

pub(crate) fn one(p: &Printer<'_>, inst: Inst) -> Result<Value, Error> {
    match *p.func.dfg.inst_args(inst) {
        [a] => Ok(a),
        _ => Err(p.unsupported(inst)),
    }
}
pub(crate) fn two(p: &Printer<'_>, inst: Inst) -> Result<[Value; 2], Error> {
    match *p.func.dfg.inst_args(inst) {
        [a, b] => Ok([a, b]),
        _ => Err(p.unsupported(inst)),
    }
}
pub(crate) fn three(p: &Printer<'_>, inst: Inst) -> Result<[Value; 3], Error> {
    match *p.func.dfg.inst_args(inst) {
        [a, b, c] => Ok([a, b, c]),
        _ => Err(p.unsupported(inst)),
    }
}

/// Returns the class of the registers in which integers of a type are computed.
pub(crate) fn class(ty: Type) -> Class {
    if ty == types::I64 { Class::B64 } else { Class::B32 }
}

fn width(ty: Type) -> i64 {
    i64::from(ty.bits())
}

// ---- arithmetic ----

pub(crate) fn umulhi_narrow(p: &mut Printer<'_>, inst: Inst) -> Done {
    multiply_high_narrow(p, inst, Need::Zero)
}
pub(crate) fn smulhi_narrow(p: &mut Printer<'_>, inst: Inst) -> Done {
    multiply_high_narrow(p, inst, Need::Sign)
}

/// 32 bits hold the whole product, so its upper half is a shift away.
fn multiply_high_narrow(p: &mut Printer<'_>, inst: Inst, need: Need) -> Done {
    let (result, [a, b]) = (p.result(inst)?, two(p, inst)?);
    let ty = p.ty(a);
    let (a, b) = (p.operand(a, need, ty), p.operand(b, need, ty));
    let product = p.body.op_to_temp(Class::B32, "mul.lo", ".u32", &[a, b]);
    p.body.op("shr", ".u32", &[result.into(), product.into(), width(ty).into()]);
    Ok(())
}

/// Prints a division or remainder after the tests of its form.
pub(crate) fn divide(p: &mut Printer<'_>, inst: Inst, name: &str, suffix: Suffix, need: Need) -> Done {
    let (zero, overflow) = match p.form(inst) {
        Form::Tested { zero, overflow } => (zero, overflow),
        _ => (false, false),
    };
    let (result, [a, b]) = (p.result(inst)?, two(p, inst)?);
    let ty = p.ty(a);
    let suffix = suffix(ty);
    if zero {
        let b = p.zero_extended(b);
        let is_zero = p.body.op_to_temp(Class::Pred, "setp.eq", unsigned(ty), &[b, 0.into()]);
        p.trap_if(is_zero, When::True, ir::TrapCode::INTEGER_DIVISION_BY_ZERO, inst)?;
    }
    let (a, b) = (p.operand(a, need, ty), p.operand(b, need, ty));
    if overflow {
        let lowest = i64::MIN >> (64 - width(ty));
        let is_lowest = p.body.op_to_temp(Class::Pred, "setp.eq", suffix, &[a, lowest.into()]);
        let is_minus_one = p.body.op_to_temp(Class::Pred, "setp.eq", suffix, &[b, (-1).into()]);
        let overflows = p.body.op_to_temp(Class::Pred, "and", ".pred", &[is_lowest.into(), is_minus_one.into()]);
        p.trap_if(overflows, When::True, ir::TrapCode::INTEGER_OVERFLOW, inst)?;
    }
    p.body.op(name, suffix, &[result.into(), a, b]);
    Ok(())
}

/// `uadd_overflow_trap`: if the sum wrapped, it is smaller than an operand.
pub(crate) fn add_or_trap(p: &mut Printer<'_>, inst: Inst) -> Done {
    let InstructionData::IntAddTrap { args: [a, b], code, .. } = p.func.dfg.insts[inst] else {
        return Err(p.unsupported(inst));
    };
    let (result, ty) = (p.result(inst)?, p.ty(a));
    if ty.bits() < 32 {
        return Err(p.unsupported(inst));
    }
    let (a, b) = (p.number(a), p.number(b));
    p.body.op("add", unsigned(ty), &[result.into(), a, b]);
    let wrapped = p.body.op_to_temp(Class::Pred, "setp.lt", unsigned(ty), &[result.into(), a]);
    p.trap_if(wrapped, When::True, code, inst)
}

// ---- bits ----

/// `(x & c) | (y & !c)`, in three instructions: `y ^ (c & (x ^ y))`.
pub(crate) fn bitselect(p: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, [c, x, y]) = (p.result(inst)?, three(p, inst)?);
    let ty = p.ty(x);
    if !ty.is_int() {
        return Err(p.unsupported(inst));
    }
    let (c, x, y) = (p.number(c), p.number(x), p.number(y));
    let differ = p.body.op_to_temp(class(ty), "xor", bits(ty), &[x, y]);
    let chosen = p.body.op_to_temp(class(ty), "and", bits(ty), &[differ.into(), c]);
    p.body.op("xor", bits(ty), &[result.into(), chosen.into(), y]);
    Ok(())
}

/// `bxor` of a predicate and 1.
pub(crate) fn not_predicate(p: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, [predicate, _]) = (p.result(inst)?, two(p, inst)?);
    p.body.op("not", ".pred", &[result.into(), p.value(predicate)]);
    Ok(())
}

pub(crate) fn bmask(p: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, arg) = (p.result(inst)?, one(p, inst)?);
    let suffix = bits(p.func.dfg.ctrl_typevar(inst));
    let condition = p.condition(arg);
    p.body.op("selp", suffix, &[result.into(), (-1).into(), 0.into(), condition.into()]);
    Ok(())
}

pub(crate) fn select(p: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, [condition, yes, no]) = (p.result(inst)?, three(p, inst)?);
    let suffix = plain(p.ty(yes));
    let condition = p.condition(condition);
    let (yes, no) = (p.number(yes), p.number(no));
    p.body.op("selp", suffix, &[result.into(), yes, no, condition.into()]);
    Ok(())
}

pub(crate) fn rotate_left(p: &mut Printer<'_>, inst: Inst) -> Done {
    rotate(p, inst, ("shl", bits), ("shr", unsigned))
}
pub(crate) fn rotate_right(p: &mut Printer<'_>, inst: Inst) -> Done {
    rotate(p, inst, ("shr", unsigned), ("shl", bits))
}

/// A shift's name, and its suffix for a type.
type Shift = (&'static str, Suffix);

/// Prints a rotation of a type that has not 32 bits, by two shifts whose results are joined: `there` by the amount,
/// `back` by the rest of the width.
fn rotate(p: &mut Printer<'_>, inst: Inst, there: Shift, back: Shift) -> Done {
    let (result, [x, n]) = (p.result(inst)?, two(p, inst)?);
    let ty = p.ty(x);
    let (x, n) = (p.zero_extended(x), p.amount(n, ty));
    let rest = match n {
        Operand::Int(n) => (width(ty) - n).into(),
        n => p.body.op_to_temp(Class::B32, "sub", ".u32", &[width(ty).into(), n]).into(),
    };
    let high = p.body.op_to_temp(class(ty), there.0, there.1(ty), &[x, n]);
    let low = p.body.op_to_temp(class(ty), back.0, back.1(ty), &[x, rest]);
    p.body.op("or", bits(ty), &[result.into(), high.into(), low.into()]);
    Ok(())
}

/// Prints `clz` or `popc` of 64 bits. PTX's result has 32 bits, so it is widened.
pub(crate) fn count64(p: &mut Printer<'_>, name: &str, operand: Reg, result: Reg) {
    let n = p.body.op_to_temp(Class::B32, name, ".b64", &[operand.into()]);
    p.body.op("cvt", ".u64.u32", &[result.into(), n.into()]);
}

/// Counts the leading zeros of a register.
fn count_zeros(p: &mut Printer<'_>, form: Form, operand: Reg, result: Reg) {
    match form {
        Form::Wide => count64(p, "clz", operand, result),
        _ => p.body.op("clz", ".b32", &[result.into(), operand.into()]),
    }
}

/// Counts the leading zeros of 32 bits and subtracts those above the type's width.
pub(crate) fn leading_zeros_narrow(p: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, x) = (p.result(inst)?, one(p, inst)?);
    let ty = p.ty(x);
    let operand = p.operand_in_register(x, Need::Zero);
    p.body.op("clz", ".b32", &[result.into(), operand.into()]);
    p.body.op("sub", ".u32", &[result.into(), result.into(), (32 - width(ty)).into()]);
    Ok(())
}

/// Counts the bits after the first that equal the first: the leading zeros of `x ^ (x >> width - 1)`, less one.
pub(crate) fn leading_signs(p: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, x) = (p.result(inst)?, one(p, inst)?);
    let (operand, ty) = (p.sign_extended(x), p.ty(x));
    // The width after the extension.
    let full = width(ty).max(32);
    let sign = p.body.op_to_temp(class(ty), "shr", signed(ty), &[operand, (full - 1).into()]);
    let differ = p.body.op_to_temp(class(ty), "xor", bits(ty), &[operand, sign.into()]);
    count_zeros(p, p.form(inst), differ, result);
    p.body.op("sub", unsigned(ty), &[result.into(), result.into(), (full - width(ty) + 1).into()]);
    Ok(())
}

pub(crate) fn trailing_zeros(p: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, x) = (p.result(inst)?, one(p, inst)?);
    let (ty, form) = (p.ty(x), p.form(inst));
    let mut operand = p.in_register(x);
    if form == Form::Narrow {
        // A bit set just above the type's width ends the count.
        operand = p.body.op_to_temp(Class::B32, "or", ".b32", &[operand.into(), (1i64 << ty.bits()).into()]);
    }
    let reversed = p.body.op_to_temp(class(ty), "brev", bits(ty), &[operand.into()]);
    count_zeros(p, form, reversed, result);
    Ok(())
}

pub(crate) fn reverse_bits_narrow(p: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, x) = (p.result(inst)?, one(p, inst)?);
    let operand = p.in_register(x);
    let reversed = p.body.op_to_temp(Class::B32, "brev", ".b32", &[operand.into()]);
    p.body.op("shr", ".u32", &[result.into(), reversed.into(), (32 - width(p.ty(x))).into()]);
    Ok(())
}

/// Selectors of `prmt`, which picks four bytes of two words: digit `k` of the selector says where byte `k` comes from.
/// `REVERSE` reverses the first word's bytes, `SWAP_LOW` swaps its low two and clears the rest.
pub(crate) const REVERSE: i64 = 0x0123;
pub(crate) const SWAP_LOW: i64 = 0x4401;

pub(crate) fn swap_bytes_wide(p: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, x) = (p.result(inst)?, one(p, inst)?);
    let operand = p.in_register(x);
    let low = p.body.op_to_temp(Class::B32, "cvt", ".u32.u64", &[operand.into()]);
    let upper = p.body.op_to_temp(Class::B64, "shr", ".u64", &[operand.into(), 32.into()]);
    let high = p.body.op_to_temp(Class::B32, "cvt", ".u32.u64", &[upper.into()]);
    let low = p.body.op_to_temp(Class::B32, "prmt", ".b32", &[low.into(), 0.into(), REVERSE.into()]);
    let high = p.body.op_to_temp(Class::B32, "prmt", ".b32", &[high.into(), 0.into(), REVERSE.into()]);
    let low = p.body.op_to_temp(Class::B64, "cvt", ".u64.u32", &[low.into()]);
    let high = p.body.op_to_temp(Class::B64, "cvt", ".u64.u32", &[high.into()]);
    let low = p.body.op_to_temp(Class::B64, "shl", ".b64", &[low.into(), 32.into()]);
    p.body.op("or", ".b64", &[result.into(), low.into(), high.into()]);
    Ok(())
}

// ---- widths ----

/// Extends a comparison's result. It is 0 or 1, so zero-extension and sign-extension are the same.
pub(crate) fn extend_predicate(p: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, x) = (p.result(inst)?, one(p, inst)?);
    let suffix = bits(p.func.dfg.ctrl_typevar(inst));
    p.body.op("selp", suffix, &[result.into(), 1.into(), 0.into(), p.value(x)]);
    Ok(())
}

/// `iconcat`: joins two halves to 64 bits.
pub(crate) fn concatenate(p: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, [low, high]) = (p.result(inst)?, two(p, inst)?);
    if result.class != Class::B64 {
        return Err(p.unsupported(inst));
    }
    let (low, high) = (p.number(low), p.number(high));
    p.body.pack(result, low, high);
    Ok(())
}

/// `isplit`: splits 64 bits into two halves.
pub(crate) fn split(p: &mut Printer<'_>, inst: Inst) -> Done {
    let arg = one(p, inst)?;
    let &[low, high] = p.func.dfg.inst_results(inst) else { return Err(p.unsupported(inst)) };
    if p.ty(arg) != types::I64 {
        return Err(p.unsupported(inst));
    }
    let value = p.number(arg);
    let halves = p.body.unpack(value);
    for (result, half) in [low, high].into_iter().zip(halves) {
        let result = p.value(result);
        p.body.op("mov", ".b32", &[result, half]);
    }
    Ok(())
}
