//! Integer operations that take more than one PTX instruction.
//!
//! i8 and i16 are computed in 32 bits. PTX's shifts clamp an amount that is too large where CLIF's wrap; the rotates
//! use that clamping: a shift by the full width gives 0.

use super::Printer;
use super::body::When;
use super::register::{Class, Operand, Reg, bits, signed, unsigned};
use crate::Error;
use crate::analysis::values;
use cranelift_codegen::ir::{self, Inst, InstructionData, Opcode, Type, Value, types};

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

/// The class of registers integers of a type are computed in.
fn class(ty: Type) -> Class {
    if ty == types::I64 { Class::B64 } else { Class::B32 }
}

fn width(ty: Type) -> i64 {
    i64::from(ty.bits())
}

// ---- arithmetic ----

pub(crate) fn multiply_high(p: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, [a, b]) = (p.result(inst)?, two(p, inst)?);
    let ty = p.ty(a);
    let is_signed = p.func.dfg.insts[inst].opcode() == Opcode::Smulhi;
    let (a, b) =
        if is_signed { (p.sign_extended(a), p.sign_extended(b)) } else { (p.zero_extended(a), p.zero_extended(b)) };
    if ty.bits() >= 32 {
        let suffix = if is_signed { signed(ty) } else { unsigned(ty) };
        p.body.op("mul.hi", suffix, &[result.into(), a, b]);
    } else {
        let product = p.body.op_to_temp(Class::B32, "mul.lo", ".u32", &[a, b]);
        p.body.op("shr", ".u32", &[result.into(), product.into(), width(ty).into()]);
    }
    Ok(())
}

pub(crate) fn udiv(p: &mut Printer<'_>, inst: Inst) -> Done {
    divide(p, inst, "div", false)
}
pub(crate) fn urem(p: &mut Printer<'_>, inst: Inst) -> Done {
    divide(p, inst, "rem", false)
}
pub(crate) fn sdiv(p: &mut Printer<'_>, inst: Inst) -> Done {
    divide(p, inst, "div", true)
}
pub(crate) fn srem(p: &mut Printer<'_>, inst: Inst) -> Done {
    divide(p, inst, "rem", true)
}

/// CLIF's division traps, PTX's gives some number. A front end that wants its own order of checks puts a `trapz` of the
/// divisor before the division in the same block, and is then taken to have checked the overflow too.
fn divide(p: &mut Printer<'_>, inst: Inst, name: &str, is_signed: bool) -> Done {
    let (result, [a, b]) = (p.result(inst)?, two(p, inst)?);
    let ty = p.ty(a);
    let divisor = p.constant(b);
    let is_checked = divisor.is_none() && is_nonzero(p, b);
    if !is_checked && divisor.is_none_or(|d| d == 0) {
        let b = p.zero_extended(b);
        let is_zero = p.body.op_to_temp(Class::Pred, "setp.eq", unsigned(ty), &[b, 0.into()]);
        p.trap_if(is_zero, When::True, ir::TrapCode::INTEGER_DIVISION_BY_ZERO, inst)?;
    }
    let (x, y, suffix) = if is_signed {
        (p.sign_extended(a), p.sign_extended(b), signed(ty))
    } else {
        (p.zero_extended(a), p.zero_extended(b), unsigned(ty))
    };
    if is_signed && name == "div" && !is_checked && divisor.is_none_or(|d| d == -1) {
        let lowest = i64::MIN >> (64 - width(ty));
        let is_lowest = p.body.op_to_temp(Class::Pred, "setp.eq", suffix, &[x, lowest.into()]);
        let is_minus_one = p.body.op_to_temp(Class::Pred, "setp.eq", suffix, &[y, (-1).into()]);
        let overflows = p.body.op_to_temp(Class::Pred, "and", ".pred", &[is_lowest.into(), is_minus_one.into()]);
        p.trap_if(overflows, When::True, ir::TrapCode::INTEGER_OVERFLOW, inst)?;
    }
    p.body.op(name, suffix, &[result.into(), x, y]);
    Ok(())
}

/// Whether a `trapz` of this block, or what the value is made of, says that it is not 0.
fn is_nonzero(p: &Printer<'_>, value: Value) -> bool {
    let value = values::condition(p.func, value);
    if p.block.nonzero.contains(&value) {
        return true;
    }
    let Some(inst) = p.func.dfg.value_def(value).inst() else { return false };
    let arm =
        |v: Value| p.block.nonzero.contains(&values::condition(p.func, v)) || p.constant(v).is_some_and(|c| c != 0);
    match p.func.dfg.insts[inst] {
        InstructionData::Ternary { opcode: Opcode::Select, args: [_, yes, no] } => arm(yes) && arm(no),
        _ => false,
    }
}

/// `uadd_overflow_trap`: the sum is smaller than an operand where it wrapped.
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

pub(crate) fn bmask(p: &mut Printer<'_>, inst: Inst) -> Done {
    use super::operand::Truth;
    let (result, arg) = (p.result(inst)?, one(p, inst)?);
    let ty = p.func.dfg.ctrl_typevar(inst);
    match p.truth(arg) {
        Truth::If(predicate) => p.body.op("selp", bits(ty), &[result.into(), (-1).into(), 0.into(), predicate.into()]),
        Truth::Always => p.body.op("mov", bits(ty), &[result.into(), (-1).into()]),
        Truth::Never => p.body.op("mov", bits(ty), &[result.into(), 0.into()]),
    }
    Ok(())
}

/// A shift's amount modulo the width, in 32 bits.
fn amount(p: &mut Printer<'_>, value: Value, ty: Type) -> Operand {
    let mask = width(ty) - 1;
    if let Some(n) = p.constant(value) {
        return (n & mask).into();
    }
    let low = low_word(p, value);
    p.body.op_to_temp(Class::B32, "and", ".b32", &[low, mask.into()]).into()
}

/// The value's low 32 bits.
pub(crate) fn low_word(p: &mut Printer<'_>, value: Value) -> Operand {
    match p.number(value) {
        Operand::Int(n) => i64::from(n as i32).into(),
        operand if p.ty(value) == types::I64 => p.body.op_to_temp(Class::B32, "cvt", ".u32.u64", &[operand]).into(),
        operand => operand,
    }
}

/// Two halves of 64 bits, and back.
pub(crate) fn concatenate(p: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, [low, high]) = (p.result(inst)?, two(p, inst)?);
    if result.class != Class::B64 {
        return Err(p.unsupported(inst));
    }
    let (low, high) = (p.number(low), p.number(high));
    p.body.pack(result, low, high);
    Ok(())
}

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

pub(crate) fn shift_left(p: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, [x, n]) = (p.result(inst)?, two(p, inst)?);
    let ty = p.ty(x);
    let (x, n) = (p.number(x), amount(p, n, ty));
    p.body.op("shl", bits(ty), &[result.into(), x, n]);
    Ok(())
}

pub(crate) fn shift_right_unsigned(p: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, [x, n]) = (p.result(inst)?, two(p, inst)?);
    let ty = p.ty(x);
    let (x, n) = (p.zero_extended(x), amount(p, n, ty));
    p.body.op("shr", unsigned(ty), &[result.into(), x, n]);
    Ok(())
}

pub(crate) fn shift_right_signed(p: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, [x, n]) = (p.result(inst)?, two(p, inst)?);
    let ty = p.ty(x);
    let (x, n) = (p.sign_extended(x), amount(p, n, ty));
    p.body.op("shr", signed(ty), &[result.into(), x, n]);
    Ok(())
}

pub(crate) fn rotate_left(p: &mut Printer<'_>, inst: Inst) -> Done {
    rotate(p, inst, "shf.l.wrap", "shl", "shr")
}
pub(crate) fn rotate_right(p: &mut Printer<'_>, inst: Inst) -> Done {
    rotate(p, inst, "shf.r.wrap", "shr", "shl")
}

/// 32 bits are one funnel shift; other widths are two shifts that meet, `there` by the amount and `back` by the rest.
fn rotate(p: &mut Printer<'_>, inst: Inst, funnel: &str, there: &str, back: &str) -> Done {
    let (result, [x, n]) = (p.result(inst)?, two(p, inst)?);
    let ty = p.ty(x);
    if ty == types::I32 {
        let (x, n) = (p.number(x), low_word(p, n));
        p.body.op(funnel, ".b32", &[result.into(), x, x, n]);
        return Ok(());
    }
    let suffix = |name: &str| if name == "shl" { bits(ty) } else { unsigned(ty) };
    let (x, n) = (p.zero_extended(x), amount(p, n, ty));
    let rest = match n {
        Operand::Int(n) => (width(ty) - n).into(),
        n => p.body.op_to_temp(Class::B32, "sub", ".u32", &[width(ty).into(), n]).into(),
    };
    let high = p.body.op_to_temp(class(ty), there, suffix(there), &[x, n]);
    let low = p.body.op_to_temp(class(ty), back, suffix(back), &[x, rest]);
    p.body.op("or", bits(ty), &[result.into(), high.into(), low.into()]);
    Ok(())
}

/// `clz` and `popc` give 32 bits; a count of 64 bits is widened.
fn count(p: &mut Printer<'_>, name: &str, ty: Type, operand: Operand, result: Reg) {
    let operand = p.load_operand(operand, ty);
    if ty == types::I64 {
        let n = p.body.op_to_temp(Class::B32, name, ".b64", &[operand.into()]);
        p.body.op("cvt", ".u64.u32", &[result.into(), n.into()]);
    } else {
        p.body.op(name, ".b32", &[result.into(), operand.into()]);
    }
}

pub(crate) fn leading_zeros(p: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, x) = (p.result(inst)?, one(p, inst)?);
    let (operand, ty) = (p.zero_extended(x), p.ty(x));
    narrow_count(p, ty, operand, result, 0);
    Ok(())
}

/// Leading zeros of a value that was extended to at least 32 bits, less `fewer`.
fn narrow_count(p: &mut Printer<'_>, ty: Type, operand: Operand, result: Reg, fewer: i64) {
    let surplus = (32 - width(ty)).max(0) + fewer;
    count(p, "clz", ty, operand, result);
    if surplus > 0 {
        p.body.op("sub", unsigned(ty), &[result.into(), result.into(), surplus.into()]);
    }
}

/// Bits after the first that equal it: the leading zeros of `x ^ (x >> width - 1)`, less one.
pub(crate) fn leading_signs(p: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, x) = (p.result(inst)?, one(p, inst)?);
    let (operand, ty) = (p.sign_extended(x), p.ty(x));
    let last = if ty == types::I64 { 63 } else { 31 };
    let sign = p.body.op_to_temp(class(ty), "shr", signed(ty), &[operand, last.into()]);
    let differ = p.body.op_to_temp(class(ty), "xor", bits(ty), &[operand, sign.into()]);
    narrow_count(p, ty, differ.into(), result, 1);
    Ok(())
}

pub(crate) fn trailing_zeros(p: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, x) = (p.result(inst)?, one(p, inst)?);
    let ty = p.ty(x);
    let mut operand = p.in_register(x);
    if ty.bits() < 32 {
        // A bit above the type's own ends the count.
        operand = p.body.op_to_temp(Class::B32, "or", ".b32", &[operand.into(), (1i64 << ty.bits()).into()]);
    }
    let reversed = p.body.op_to_temp(class(ty), "brev", bits(ty), &[operand.into()]);
    count(p, "clz", ty, reversed.into(), result);
    Ok(())
}

pub(crate) fn population(p: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, x) = (p.result(inst)?, one(p, inst)?);
    let (operand, ty) = (p.zero_extended(x), p.ty(x));
    count(p, "popc", ty, operand, result);
    Ok(())
}

pub(crate) fn reverse_bits(p: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, x) = (p.result(inst)?, one(p, inst)?);
    let (operand, ty) = (p.in_register(x), p.ty(x));
    if ty.bits() >= 32 {
        p.body.op("brev", bits(ty), &[result.into(), operand.into()]);
    } else {
        let reversed = p.body.op_to_temp(Class::B32, "brev", ".b32", &[operand.into()]);
        p.body.op("shr", ".u32", &[result.into(), reversed.into(), (32 - width(ty)).into()]);
    }
    Ok(())
}

/// `prmt` picks four bytes of two words: digit `k` of its selector is the source of byte `k`.
pub(crate) fn swap_bytes(p: &mut Printer<'_>, inst: Inst) -> Done {
    const REVERSE: i64 = 0x0123;
    const SWAP_LOW: i64 = 0x4401;
    let (result, x) = (p.result(inst)?, one(p, inst)?);
    let (operand, ty) = (p.in_register(x), p.ty(x));
    match ty {
        types::I16 => p.body.op("prmt", ".b32", &[result.into(), operand.into(), 0.into(), SWAP_LOW.into()]),
        types::I32 => p.body.op("prmt", ".b32", &[result.into(), operand.into(), 0.into(), REVERSE.into()]),
        types::I64 => {
            let low = p.body.op_to_temp(Class::B32, "cvt", ".u32.u64", &[operand.into()]);
            let upper = p.body.op_to_temp(Class::B64, "shr", ".u64", &[operand.into(), 32.into()]);
            let high = p.body.op_to_temp(Class::B32, "cvt", ".u32.u64", &[upper.into()]);
            let low = p.body.op_to_temp(Class::B32, "prmt", ".b32", &[low.into(), 0.into(), REVERSE.into()]);
            let high = p.body.op_to_temp(Class::B32, "prmt", ".b32", &[high.into(), 0.into(), REVERSE.into()]);
            let low = p.body.op_to_temp(Class::B64, "cvt", ".u64.u32", &[low.into()]);
            let high = p.body.op_to_temp(Class::B64, "cvt", ".u64.u32", &[high.into()]);
            let low = p.body.op_to_temp(Class::B64, "shl", ".b64", &[low.into(), 32.into()]);
            p.body.op("or", ".b64", &[result.into(), low.into(), high.into()]);
        }
        _ => return Err(p.unsupported(inst)),
    }
    Ok(())
}

// ---- widths ----

pub(crate) fn extend_unsigned(p: &mut Printer<'_>, inst: Inst) -> Done {
    extend(p, inst, [".u32.u8", ".u32.u16", ".u64.u8", ".u64.u16", ".u64.u32"])
}
pub(crate) fn extend_signed(p: &mut Printer<'_>, inst: Inst) -> Done {
    extend(p, inst, [".s32.s8", ".s32.s16", ".s64.s8", ".s64.s16", ".s64.s32"])
}

fn extend(p: &mut Printer<'_>, inst: Inst, suffixes: [&str; 5]) -> Done {
    let (result, x) = (p.result(inst)?, one(p, inst)?);
    let to = p.func.dfg.ctrl_typevar(inst);
    // A comparison's result is 0 or 1, which either extension keeps.
    if let Operand::Reg(predicate) = p.value(x)
        && predicate.class == Class::Pred
    {
        p.body.op("selp", bits(to), &[result.into(), 1.into(), 0.into(), predicate.into()]);
        return Ok(());
    }
    let suffix = match (p.ty(x), to) {
        (types::I8, types::I16 | types::I32) => suffixes[0],
        (types::I16, types::I32) => suffixes[1],
        (types::I8, types::I64) => suffixes[2],
        (types::I16, types::I64) => suffixes[3],
        (types::I32, types::I64) => suffixes[4],
        _ => return Err(p.unsupported(inst)),
    };
    let operand = p.in_register(x);
    p.body.op("cvt", suffix, &[result.into(), operand.into()]);
    Ok(())
}

pub(crate) fn reduce(p: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, x) = (p.result(inst)?, one(p, inst)?);
    let operand = p.in_register(x);
    match p.ty(x) {
        types::I64 => p.body.op("cvt", ".u32.u64", &[result.into(), operand.into()]),
        _ => p.body.op("mov", ".b32", &[result.into(), operand.into()]),
    }
    Ok(())
}
