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

pub(crate) fn one(e: &Printer<'_>, inst: Inst) -> Result<Value, Error> {
    match *e.func.dfg.inst_args(inst) {
        [a] => Ok(a),
        _ => Err(e.unsupported(inst)),
    }
}
pub(crate) fn two(e: &Printer<'_>, inst: Inst) -> Result<[Value; 2], Error> {
    match *e.func.dfg.inst_args(inst) {
        [a, b] => Ok([a, b]),
        _ => Err(e.unsupported(inst)),
    }
}
pub(crate) fn three(e: &Printer<'_>, inst: Inst) -> Result<[Value; 3], Error> {
    match *e.func.dfg.inst_args(inst) {
        [a, b, c] => Ok([a, b, c]),
        _ => Err(e.unsupported(inst)),
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

pub(crate) fn multiply_high(e: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, [a, b]) = (e.result(inst)?, two(e, inst)?);
    let ty = e.ty(a);
    let is_signed = e.func.dfg.insts[inst].opcode() == Opcode::Smulhi;
    let (a, b) =
        if is_signed { (e.sign_extended(a), e.sign_extended(b)) } else { (e.zero_extended(a), e.zero_extended(b)) };
    if ty.bits() >= 32 {
        let suffix = if is_signed { signed(ty) } else { unsigned(ty) };
        e.body.op("mul.hi", suffix, &[result.into(), a, b]);
    } else {
        let product = e.body.op_to_temp(Class::B32, "mul.lo", ".u32", &[a, b]);
        e.body.op("shr", ".u32", &[result.into(), product.into(), width(ty).into()]);
    }
    Ok(())
}

pub(crate) fn udiv(e: &mut Printer<'_>, inst: Inst) -> Done {
    divide(e, inst, "div", false)
}
pub(crate) fn urem(e: &mut Printer<'_>, inst: Inst) -> Done {
    divide(e, inst, "rem", false)
}
pub(crate) fn sdiv(e: &mut Printer<'_>, inst: Inst) -> Done {
    divide(e, inst, "div", true)
}
pub(crate) fn srem(e: &mut Printer<'_>, inst: Inst) -> Done {
    divide(e, inst, "rem", true)
}

/// CLIF's division traps, PTX's gives some number. A front end that wants its own order of checks puts a `trapz` of the
/// divisor before the division in the same block, and is then taken to have checked the overflow too.
fn divide(e: &mut Printer<'_>, inst: Inst, name: &str, is_signed: bool) -> Done {
    let (result, [a, b]) = (e.result(inst)?, two(e, inst)?);
    let ty = e.ty(a);
    let divisor = e.constant(b);
    let is_checked = divisor.is_none() && is_nonzero(e, b);
    if !is_checked && divisor.is_none_or(|d| d == 0) {
        let b = e.zero_extended(b);
        let is_zero = e.body.op_to_temp(Class::Pred, "setp.eq", unsigned(ty), &[b, 0.into()]);
        e.trap_if(is_zero, When::True, ir::TrapCode::INTEGER_DIVISION_BY_ZERO, inst)?;
    }
    let (x, y, suffix) = if is_signed {
        (e.sign_extended(a), e.sign_extended(b), signed(ty))
    } else {
        (e.zero_extended(a), e.zero_extended(b), unsigned(ty))
    };
    if is_signed && name == "div" && !is_checked && divisor.is_none_or(|d| d == -1) {
        let lowest = i64::MIN >> (64 - width(ty));
        let is_lowest = e.body.op_to_temp(Class::Pred, "setp.eq", suffix, &[x, lowest.into()]);
        let is_minus_one = e.body.op_to_temp(Class::Pred, "setp.eq", suffix, &[y, (-1).into()]);
        let overflows = e.body.op_to_temp(Class::Pred, "and", ".pred", &[is_lowest.into(), is_minus_one.into()]);
        e.trap_if(overflows, When::True, ir::TrapCode::INTEGER_OVERFLOW, inst)?;
    }
    e.body.op(name, suffix, &[result.into(), x, y]);
    Ok(())
}

/// Whether a `trapz` of this block, or what the value is made of, says that it is not 0.
fn is_nonzero(e: &Printer<'_>, value: Value) -> bool {
    let value = values::condition(e.func, value);
    if e.block.nonzero.contains(&value) {
        return true;
    }
    let Some(inst) = e.func.dfg.value_def(value).inst() else { return false };
    let arm =
        |v: Value| e.block.nonzero.contains(&values::condition(e.func, v)) || e.constant(v).is_some_and(|c| c != 0);
    match e.func.dfg.insts[inst] {
        InstructionData::Ternary { opcode: Opcode::Select, args: [_, yes, no] } => arm(yes) && arm(no),
        _ => false,
    }
}

/// `uadd_overflow_trap`: the sum is smaller than an operand where it wrapped.
pub(crate) fn add_or_trap(e: &mut Printer<'_>, inst: Inst) -> Done {
    let InstructionData::IntAddTrap { args: [a, b], code, .. } = e.func.dfg.insts[inst] else {
        return Err(e.unsupported(inst));
    };
    let (result, ty) = (e.result(inst)?, e.ty(a));
    if ty.bits() < 32 {
        return Err(e.unsupported(inst));
    }
    let (a, b) = (e.number(a), e.number(b));
    e.body.op("add", unsigned(ty), &[result.into(), a, b]);
    let wrapped = e.body.op_to_temp(Class::Pred, "setp.lt", unsigned(ty), &[result.into(), a]);
    e.trap_if(wrapped, When::True, code, inst)
}

// ---- bits ----

/// `(x & c) | (y & !c)`, in three instructions: `y ^ (c & (x ^ y))`.
pub(crate) fn bitselect(e: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, [c, x, y]) = (e.result(inst)?, three(e, inst)?);
    let ty = e.ty(x);
    if !ty.is_int() {
        return Err(e.unsupported(inst));
    }
    let (c, x, y) = (e.number(c), e.number(x), e.number(y));
    let differ = e.body.op_to_temp(class(ty), "xor", bits(ty), &[x, y]);
    let chosen = e.body.op_to_temp(class(ty), "and", bits(ty), &[differ.into(), c]);
    e.body.op("xor", bits(ty), &[result.into(), chosen.into(), y]);
    Ok(())
}

pub(crate) fn bmask(e: &mut Printer<'_>, inst: Inst) -> Done {
    use super::operand::Truth;
    let (result, arg) = (e.result(inst)?, one(e, inst)?);
    let ty = e.func.dfg.ctrl_typevar(inst);
    match e.truth(arg) {
        Truth::If(p) => e.body.op("selp", bits(ty), &[result.into(), (-1).into(), 0.into(), p.into()]),
        Truth::Always => e.body.op("mov", bits(ty), &[result.into(), (-1).into()]),
        Truth::Never => e.body.op("mov", bits(ty), &[result.into(), 0.into()]),
    }
    Ok(())
}

/// A shift's amount modulo the width, in 32 bits.
fn amount(e: &mut Printer<'_>, value: Value, ty: Type) -> Operand {
    let mask = width(ty) - 1;
    if let Some(n) = e.constant(value) {
        return (n & mask).into();
    }
    let low = low_word(e, value);
    e.body.op_to_temp(Class::B32, "and", ".b32", &[low, mask.into()]).into()
}

/// The value's low 32 bits.
pub(crate) fn low_word(e: &mut Printer<'_>, value: Value) -> Operand {
    match e.number(value) {
        Operand::Int(n) => i64::from(n as i32).into(),
        operand if e.ty(value) == types::I64 => e.body.op_to_temp(Class::B32, "cvt", ".u32.u64", &[operand]).into(),
        operand => operand,
    }
}

/// Two halves of 64 bits, and back.
pub(crate) fn concatenate(e: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, [low, high]) = (e.result(inst)?, two(e, inst)?);
    if result.class != Class::B64 {
        return Err(e.unsupported(inst));
    }
    let (low, high) = (e.number(low), e.number(high));
    e.body.pack(result, low, high);
    Ok(())
}

pub(crate) fn split(e: &mut Printer<'_>, inst: Inst) -> Done {
    let arg = one(e, inst)?;
    let &[low, high] = e.func.dfg.inst_results(inst) else { return Err(e.unsupported(inst)) };
    if e.ty(arg) != types::I64 {
        return Err(e.unsupported(inst));
    }
    let value = e.number(arg);
    let halves = e.body.unpack(value);
    for (result, half) in [low, high].into_iter().zip(halves) {
        let result = e.value(result);
        e.body.op("mov", ".b32", &[result, half]);
    }
    Ok(())
}

pub(crate) fn shift_left(e: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, [x, n]) = (e.result(inst)?, two(e, inst)?);
    let ty = e.ty(x);
    let (x, n) = (e.number(x), amount(e, n, ty));
    e.body.op("shl", bits(ty), &[result.into(), x, n]);
    Ok(())
}

pub(crate) fn shift_right_unsigned(e: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, [x, n]) = (e.result(inst)?, two(e, inst)?);
    let ty = e.ty(x);
    let (x, n) = (e.zero_extended(x), amount(e, n, ty));
    e.body.op("shr", unsigned(ty), &[result.into(), x, n]);
    Ok(())
}

pub(crate) fn shift_right_signed(e: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, [x, n]) = (e.result(inst)?, two(e, inst)?);
    let ty = e.ty(x);
    let (x, n) = (e.sign_extended(x), amount(e, n, ty));
    e.body.op("shr", signed(ty), &[result.into(), x, n]);
    Ok(())
}

pub(crate) fn rotate_left(e: &mut Printer<'_>, inst: Inst) -> Done {
    rotate(e, inst, "shf.l.wrap", "shl", "shr")
}
pub(crate) fn rotate_right(e: &mut Printer<'_>, inst: Inst) -> Done {
    rotate(e, inst, "shf.r.wrap", "shr", "shl")
}

/// 32 bits are one funnel shift; other widths are two shifts that meet, `there` by the amount and `back` by the rest.
fn rotate(e: &mut Printer<'_>, inst: Inst, funnel: &str, there: &str, back: &str) -> Done {
    let (result, [x, n]) = (e.result(inst)?, two(e, inst)?);
    let ty = e.ty(x);
    if ty == types::I32 {
        let (x, n) = (e.number(x), low_word(e, n));
        e.body.op(funnel, ".b32", &[result.into(), x, x, n]);
        return Ok(());
    }
    let suffix = |name: &str| if name == "shl" { bits(ty) } else { unsigned(ty) };
    let (x, n) = (e.zero_extended(x), amount(e, n, ty));
    let rest = match n {
        Operand::Int(n) => (width(ty) - n).into(),
        n => e.body.op_to_temp(Class::B32, "sub", ".u32", &[width(ty).into(), n]).into(),
    };
    let high = e.body.op_to_temp(class(ty), there, suffix(there), &[x, n]);
    let low = e.body.op_to_temp(class(ty), back, suffix(back), &[x, rest]);
    e.body.op("or", bits(ty), &[result.into(), high.into(), low.into()]);
    Ok(())
}

/// `clz` and `popc` give 32 bits; a count of 64 bits is widened.
fn count(e: &mut Printer<'_>, name: &str, ty: Type, operand: Operand, result: Reg) {
    let operand = e.load_operand(operand, ty);
    if ty == types::I64 {
        let n = e.body.op_to_temp(Class::B32, name, ".b64", &[operand.into()]);
        e.body.op("cvt", ".u64.u32", &[result.into(), n.into()]);
    } else {
        e.body.op(name, ".b32", &[result.into(), operand.into()]);
    }
}

pub(crate) fn leading_zeros(e: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, x) = (e.result(inst)?, one(e, inst)?);
    let (operand, ty) = (e.zero_extended(x), e.ty(x));
    narrow_count(e, ty, operand, result, 0);
    Ok(())
}

/// Leading zeros of a value that was extended to at least 32 bits, less `fewer`.
fn narrow_count(e: &mut Printer<'_>, ty: Type, operand: Operand, result: Reg, fewer: i64) {
    let surplus = (32 - width(ty)).max(0) + fewer;
    count(e, "clz", ty, operand, result);
    if surplus > 0 {
        e.body.op("sub", unsigned(ty), &[result.into(), result.into(), surplus.into()]);
    }
}

/// Bits after the first that equal it: the leading zeros of `x ^ (x >> width - 1)`, less one.
pub(crate) fn leading_signs(e: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, x) = (e.result(inst)?, one(e, inst)?);
    let (operand, ty) = (e.sign_extended(x), e.ty(x));
    let last = if ty == types::I64 { 63 } else { 31 };
    let sign = e.body.op_to_temp(class(ty), "shr", signed(ty), &[operand, last.into()]);
    let differ = e.body.op_to_temp(class(ty), "xor", bits(ty), &[operand, sign.into()]);
    narrow_count(e, ty, differ.into(), result, 1);
    Ok(())
}

pub(crate) fn trailing_zeros(e: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, x) = (e.result(inst)?, one(e, inst)?);
    let ty = e.ty(x);
    let mut operand = e.in_register(x);
    if ty.bits() < 32 {
        // A bit above the type's own ends the count.
        operand = e.body.op_to_temp(Class::B32, "or", ".b32", &[operand.into(), (1i64 << ty.bits()).into()]);
    }
    let reversed = e.body.op_to_temp(class(ty), "brev", bits(ty), &[operand.into()]);
    count(e, "clz", ty, reversed.into(), result);
    Ok(())
}

pub(crate) fn population(e: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, x) = (e.result(inst)?, one(e, inst)?);
    let (operand, ty) = (e.zero_extended(x), e.ty(x));
    count(e, "popc", ty, operand, result);
    Ok(())
}

pub(crate) fn reverse_bits(e: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, x) = (e.result(inst)?, one(e, inst)?);
    let (operand, ty) = (e.in_register(x), e.ty(x));
    if ty.bits() >= 32 {
        e.body.op("brev", bits(ty), &[result.into(), operand.into()]);
    } else {
        let reversed = e.body.op_to_temp(Class::B32, "brev", ".b32", &[operand.into()]);
        e.body.op("shr", ".u32", &[result.into(), reversed.into(), (32 - width(ty)).into()]);
    }
    Ok(())
}

/// `prmt` picks four bytes of two words: digit `k` of its selector is the source of byte `k`.
pub(crate) fn swap_bytes(e: &mut Printer<'_>, inst: Inst) -> Done {
    const REVERSE: i64 = 0x0123;
    const SWAP_LOW: i64 = 0x4401;
    let (result, x) = (e.result(inst)?, one(e, inst)?);
    let (operand, ty) = (e.in_register(x), e.ty(x));
    match ty {
        types::I16 => e.body.op("prmt", ".b32", &[result.into(), operand.into(), 0.into(), SWAP_LOW.into()]),
        types::I32 => e.body.op("prmt", ".b32", &[result.into(), operand.into(), 0.into(), REVERSE.into()]),
        types::I64 => {
            let low = e.body.op_to_temp(Class::B32, "cvt", ".u32.u64", &[operand.into()]);
            let upper = e.body.op_to_temp(Class::B64, "shr", ".u64", &[operand.into(), 32.into()]);
            let high = e.body.op_to_temp(Class::B32, "cvt", ".u32.u64", &[upper.into()]);
            let low = e.body.op_to_temp(Class::B32, "prmt", ".b32", &[low.into(), 0.into(), REVERSE.into()]);
            let high = e.body.op_to_temp(Class::B32, "prmt", ".b32", &[high.into(), 0.into(), REVERSE.into()]);
            let low = e.body.op_to_temp(Class::B64, "cvt", ".u64.u32", &[low.into()]);
            let high = e.body.op_to_temp(Class::B64, "cvt", ".u64.u32", &[high.into()]);
            let low = e.body.op_to_temp(Class::B64, "shl", ".b64", &[low.into(), 32.into()]);
            e.body.op("or", ".b64", &[result.into(), low.into(), high.into()]);
        }
        _ => return Err(e.unsupported(inst)),
    }
    Ok(())
}

// ---- widths ----

pub(crate) fn extend_unsigned(e: &mut Printer<'_>, inst: Inst) -> Done {
    extend(e, inst, [".u32.u8", ".u32.u16", ".u64.u8", ".u64.u16", ".u64.u32"])
}
pub(crate) fn extend_signed(e: &mut Printer<'_>, inst: Inst) -> Done {
    extend(e, inst, [".s32.s8", ".s32.s16", ".s64.s8", ".s64.s16", ".s64.s32"])
}

fn extend(e: &mut Printer<'_>, inst: Inst, suffixes: [&str; 5]) -> Done {
    let (result, x) = (e.result(inst)?, one(e, inst)?);
    let to = e.func.dfg.ctrl_typevar(inst);
    // A comparison's result is 0 or 1, which either extension keeps.
    if let Operand::Reg(p) = e.value(x)
        && p.class == Class::Pred
    {
        e.body.op("selp", bits(to), &[result.into(), 1.into(), 0.into(), p.into()]);
        return Ok(());
    }
    let suffix = match (e.ty(x), to) {
        (types::I8, types::I16 | types::I32) => suffixes[0],
        (types::I16, types::I32) => suffixes[1],
        (types::I8, types::I64) => suffixes[2],
        (types::I16, types::I64) => suffixes[3],
        (types::I32, types::I64) => suffixes[4],
        _ => return Err(e.unsupported(inst)),
    };
    let operand = e.in_register(x);
    e.body.op("cvt", suffix, &[result.into(), operand.into()]);
    Ok(())
}

pub(crate) fn reduce(e: &mut Printer<'_>, inst: Inst) -> Done {
    let (result, x) = (e.result(inst)?, one(e, inst)?);
    let operand = e.in_register(x);
    match e.ty(x) {
        types::I64 => e.body.op("cvt", ".u32.u64", &[result.into(), operand.into()]),
        _ => e.body.op("mov", ".b32", &[result.into(), operand.into()]),
    }
    Ok(())
}
