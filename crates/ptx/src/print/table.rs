//! From opcode to text. Whoever adds an opcode adds a row.
//!
//! A row says which PTX instruction it is and what it asks of its operands; i8 and i16 live in 32-bit registers whose
//! upper bits are undefined, so a row that looks at them extends first. What is more than one instruction is a small
//! function in [`super::integer`], [`super::float`], [`super::vector`], [`super::memory`], [`super::atomic`],
//! [`super::call`] or [`super::trap`].

use super::Printer;
use super::operand::Truth;
use super::register::{Class, Operand, bits, float, plain, signed, unsigned};
use super::{atomic, call, division, float as f, integer as i, memory as m, trap as t, vector as v};
use crate::Error;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{Inst, InstructionData, Opcode};

type Emit = fn(&mut Printer<'_>, Inst) -> Result<(), Error>;

enum Row {
    /// Two integers; the result's low bits depend on their low bits alone.
    Wrapping(&'static str),
    /// Two integers or predicates, bit by bit.
    Logic(&'static str),
    /// Two integers, zero-extended, sign-extended.
    Unsigned(&'static str),
    Signed(&'static str),
    /// One integer, bit by bit; one integer, sign-extended.
    Bits1(&'static str),
    Signed1(&'static str),
    /// One float or more.
    Float(&'static str),
    /// A float's rounding, which PTX writes as a conversion to its own type: `cvt.rni.f32.f32`.
    Round(&'static str),
    /// More than one instruction, or operands of several types.
    Special(Emit),
    /// Says nothing to the device.
    Nothing,
    Unsupported,
}

#[rustfmt::skip]
fn row(opcode: Opcode) -> Row {
    use Row::*;
    match opcode {
        // Constants are folded into operands.
        Opcode::Iconst | Opcode::F32const | Opcode::F64const => Nothing,
        Opcode::Nop | Opcode::SequencePoint => Nothing,

        Opcode::Iadd   => Wrapping("add"),
        Opcode::Isub   => Wrapping("sub"),
        Opcode::Imul   => Wrapping("mul.lo"),
        Opcode::Umulhi | Opcode::Smulhi => Special(i::multiply_high),
        Opcode::Udiv   => Special(i::udiv),
        Opcode::Sdiv   => Special(i::sdiv),
        Opcode::Urem   => Special(i::urem),
        Opcode::Srem   => Special(i::srem),
        Opcode::Umin   => Unsigned("min"),
        Opcode::Umax   => Unsigned("max"),
        Opcode::Smin   => Signed("min"),
        Opcode::Smax   => Signed("max"),
        Opcode::Ineg   => Signed1("neg"),
        Opcode::Iabs   => Signed1("abs"),
        Opcode::UaddOverflowTrap => Special(i::add_or_trap),

        Opcode::Band   => Logic("and"),
        Opcode::Bor    => Logic("or"),
        Opcode::Bxor   => Logic("xor"),
        Opcode::Bnot   => Bits1("not"),
        Opcode::Bitselect => Special(i::bitselect),
        Opcode::Bmask  => Special(i::bmask),
        Opcode::Ishl   => Special(i::shift_left),
        Opcode::Ushr   => Special(i::shift_right_unsigned),
        Opcode::Sshr   => Special(i::shift_right_signed),
        Opcode::Rotl   => Special(i::rotate_left),
        Opcode::Rotr   => Special(i::rotate_right),
        Opcode::Clz    => Special(i::leading_zeros),
        Opcode::Cls    => Special(i::leading_signs),
        Opcode::Ctz    => Special(i::trailing_zeros),
        Opcode::Popcnt => Special(i::population),
        Opcode::Bitrev => Special(i::reverse_bits),
        Opcode::Bswap  => Special(i::swap_bytes),
        Opcode::Uextend => Special(i::extend_unsigned),
        Opcode::Sextend => Special(i::extend_signed),
        Opcode::Ireduce => Special(i::reduce),
        Opcode::Iconcat => Special(i::concatenate),
        Opcode::Isplit  => Special(i::split),

        Opcode::Icmp   => Special(icmp),
        Opcode::Fcmp   => Special(fcmp),
        Opcode::Select | Opcode::SelectSpectreGuard => Special(select),

        Opcode::Fadd   => Float("add.rn"),
        Opcode::Fsub   => Float("sub.rn"),
        Opcode::Fmul   => Float("mul.rn"),
        Opcode::Fdiv   => Special(divide),
        Opcode::Sqrt   => Special(square_root),
        Opcode::Fma    => Float("fma.rn"),
        Opcode::Fneg   => Special(f::negate),
        Opcode::Fabs   => Special(f::absolute),
        Opcode::Fcopysign => Special(f::copy_sign),
        Opcode::Fmin   => Special(f::minimum),
        Opcode::Fmax   => Special(f::maximum),
        Opcode::Ceil   => Round("cvt.rpi"),
        Opcode::Floor  => Round("cvt.rmi"),
        Opcode::Trunc  => Round("cvt.rzi"),
        Opcode::Nearest => Round("cvt.rni"),
        Opcode::Fpromote => Special(f::promote),
        Opcode::Fdemote => Special(f::demote),
        Opcode::FcvtFromSint | Opcode::FcvtFromUint => Special(f::from_int),
        Opcode::FcvtToSint | Opcode::FcvtToUint => Special(f::to_int),
        Opcode::FcvtToSintSat | Opcode::FcvtToUintSat => Special(f::to_int_saturating),
        Opcode::Bitcast => Special(f::bitcast),

        // A vector is four registers: making one of words, and asking for a word, is naming them.
        Opcode::Vconst | Opcode::Splat | Opcode::ScalarToVector | Opcode::Insertlane => Nothing,
        Opcode::Extractlane => Special(v::extract),
        Opcode::Shuffle => Special(v::shuffle),
        Opcode::Swizzle => Special(v::swizzle),

        Opcode::Load | Opcode::Uload8 | Opcode::Sload8 | Opcode::Uload16 | Opcode::Sload16
            | Opcode::Uload32 | Opcode::Sload32 => Special(m::load),
        Opcode::Store | Opcode::Istore8 | Opcode::Istore16 | Opcode::Istore32 => Special(m::store),
        Opcode::AtomicLoad  => Special(atomic::load),
        Opcode::AtomicStore => Special(atomic::store),
        Opcode::AtomicRmw   => Special(atomic::read_modify_write),
        Opcode::AtomicCas   => Special(atomic::compare_and_swap),
        Opcode::Fence       => Special(atomic::fence),

        Opcode::Jump | Opcode::Brif | Opcode::BrTable => Special(branch),
        Opcode::Return => Special(call::return_),
        Opcode::Call | Opcode::CallIndirect => Special(call::call),
        Opcode::ReturnCall | Opcode::ReturnCallIndirect => Special(call::tail_call),
        Opcode::FuncAddr => Special(call::address),
        Opcode::SymbolValue => Special(call::symbol_value),
        Opcode::GetStackPointer => Special(call::stack_pointer),
        Opcode::StackAddr => Special(m::stack_address),
        Opcode::Trap | Opcode::Trapz | Opcode::Trapnz => Special(t::trap),

        _ => Unsupported,
    }
}

/// Prints one instruction.
pub(crate) fn emit(e: &mut Printer<'_>, inst: Inst) -> Result<(), Error> {
    let data = e.func.dfg.insts[inst];
    if data.opcode().is_terminator() || data.opcode().is_call() {
        division::stop_if_wrong(e);
    }
    match row(data.opcode()) {
        Row::Wrapping(name) => binary(e, inst, name, Extension::None),
        Row::Unsigned(name) => binary(e, inst, name, Extension::Zero),
        Row::Signed(name) => binary(e, inst, name, Extension::Sign),
        Row::Logic(name) => logic(e, inst, name),
        Row::Bits1(name) => {
            let (result, arg) = (e.result(inst)?, i::one(e, inst)?);
            let operand = e.in_register(arg);
            e.body.op(name, bits(e.ty(arg)), &[result.into(), operand.into()]);
            Ok(())
        }
        Row::Signed1(name) => {
            let (result, arg) = (e.result(inst)?, i::one(e, inst)?);
            let (operand, ty) = (e.sign_extended(arg), e.ty(arg));
            let operand = e.load_operand(operand, ty);
            e.body.op(name, signed(ty), &[result.into(), operand.into()]);
            Ok(())
        }
        Row::Float(name) => floats(e, inst, name, ""),
        Row::Round(name) => {
            let suffix = float(e.func.dfg.ctrl_typevar(inst));
            floats(e, inst, name, suffix)
        }
        Row::Special(emit) => emit(e, inst),
        Row::Nothing => Ok(()),
        Row::Unsupported => Err(e.unsupported(inst)),
    }
}

/// What a row asks of narrow operands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extension {
    None,
    Zero,
    Sign,
}

/// `name.u32 result, a, b`, signed where the operands are sign-extended.
fn binary(e: &mut Printer<'_>, inst: Inst, name: &str, extension: Extension) -> Result<(), Error> {
    let (result, [a, b]) = (e.result(inst)?, i::two(e, inst)?);
    let ty = e.ty(a);
    let (a, b, suffix) = match extension {
        Extension::None => (e.number(a), e.number(b), unsigned(ty)),
        Extension::Zero => (e.zero_extended(a), e.zero_extended(b), unsigned(ty)),
        Extension::Sign => (e.sign_extended(a), e.sign_extended(b), signed(ty)),
    };
    e.body.op(name, suffix, &[result.into(), a, b]);
    Ok(())
}

/// An instruction on floats of one type: `name source.type result, operands`.
fn floats(e: &mut Printer<'_>, inst: Inst, name: &str, source: &str) -> Result<(), Error> {
    let func = e.func;
    let result = e.result(inst)?;
    let args = func.dfg.inst_args(inst);
    e.body.begin(name, source);
    e.body.out.pop();
    e.body.out.push_str(float(func.dfg.ctrl_typevar(inst)));
    e.body.out.push(' ');
    e.body.operand(result);
    for &arg in args {
        e.body.out.push_str(", ");
        e.body.operand(e.value(arg));
    }
    e.body.end();
    Ok(())
}

fn divide(e: &mut Printer<'_>, inst: Inst) -> Result<(), Error> {
    if division::is_branchless(e, inst) { division::divide(e, inst) } else { floats(e, inst, "div.rn", "") }
}

fn square_root(e: &mut Printer<'_>, inst: Inst) -> Result<(), Error> {
    if division::is_branchless(e, inst) { division::square_root(e, inst) } else { floats(e, inst, "sqrt.rn", "") }
}

#[rustfmt::skip]
fn icmp(e: &mut Printer<'_>, inst: Inst) -> Result<(), Error> {
    let InstructionData::IntCompare { cond, .. } = e.func.dfg.insts[inst] else {
        return Err(e.unsupported(inst));
    };
    use Extension::{Sign, Zero};
    let (name, extension) = match cond {
        IntCC::Equal                       => ("setp.eq", Zero),
        IntCC::NotEqual                    => ("setp.ne", Zero),
        IntCC::UnsignedLessThan            => ("setp.lt", Zero),
        IntCC::UnsignedLessThanOrEqual     => ("setp.le", Zero),
        IntCC::UnsignedGreaterThan         => ("setp.gt", Zero),
        IntCC::UnsignedGreaterThanOrEqual  => ("setp.ge", Zero),
        IntCC::SignedLessThan              => ("setp.lt", Sign),
        IntCC::SignedLessThanOrEqual       => ("setp.le", Sign),
        IntCC::SignedGreaterThan           => ("setp.gt", Sign),
        IntCC::SignedGreaterThanOrEqual    => ("setp.ge", Sign),
    };
    binary(e, inst, name, extension)
}

#[rustfmt::skip]
fn fcmp(e: &mut Printer<'_>, inst: Inst) -> Result<(), Error> {
    let InstructionData::FloatCompare { cond, args: [a, b], .. } = e.func.dfg.insts[inst] else {
        return Err(e.unsupported(inst));
    };
    // `u` at the end: true also where an operand is NaN. CLIF's `ne` is such a one, its `one` is not.
    let name = match cond {
        FloatCC::Ordered                     => "setp.num",
        FloatCC::Unordered                   => "setp.nan",
        FloatCC::Equal                       => "setp.eq",
        FloatCC::NotEqual                    => "setp.neu",
        FloatCC::OrderedNotEqual             => "setp.ne",
        FloatCC::UnorderedOrEqual            => "setp.equ",
        FloatCC::LessThan                    => "setp.lt",
        FloatCC::LessThanOrEqual             => "setp.le",
        FloatCC::GreaterThan                 => "setp.gt",
        FloatCC::GreaterThanOrEqual          => "setp.ge",
        FloatCC::UnorderedOrLessThan         => "setp.ltu",
        FloatCC::UnorderedOrLessThanOrEqual  => "setp.leu",
        FloatCC::UnorderedOrGreaterThan      => "setp.gtu",
        FloatCC::UnorderedOrGreaterThanOrEqual => "setp.geu",
    };
    let suffix = float(e.ty(a));
    let result = e.result(inst)?;
    e.body.op(name, suffix, &[result.into(), e.value(a), e.value(b)]);
    Ok(())
}

fn select(e: &mut Printer<'_>, inst: Inst) -> Result<(), Error> {
    let (result, [condition, yes, no]) = (e.result(inst)?, i::three(e, inst)?);
    let suffix = plain(e.ty(yes));
    match e.truth(condition) {
        Truth::If(p) => {
            let (yes, no) = (e.number(yes), e.number(no));
            e.body.op("selp", suffix, &[result.into(), yes, no, p.into()]);
        }
        constant => {
            let chosen = e.number(if matches!(constant, Truth::Always) { yes } else { no });
            e.body.op("mov", suffix, &[result.into(), chosen]);
        }
    }
    Ok(())
}

/// `and`, `or`, `xor`: on predicates where the result is one.
fn logic(e: &mut Printer<'_>, inst: Inst, name: &str) -> Result<(), Error> {
    let (result, [a, b]) = (e.result(inst)?, i::two(e, inst)?);
    if result.class == Class::Pred {
        match e.value(b) {
            Operand::Int(_) => e.body.op("not", ".pred", &[result.into(), e.value(a)]), // `bxor a, 1`
            b => e.body.op(name, ".pred", &[result.into(), e.value(a), b]),
        }
    } else {
        let suffix = bits(e.ty(a));
        let (a, b) = (e.number(a), e.number(b));
        e.body.op(name, suffix, &[result.into(), a, b]);
    }
    Ok(())
}

fn branch(e: &mut Printer<'_>, inst: Inst) -> Result<(), Error> {
    match e.func.dfg.insts[inst] {
        InstructionData::Jump { destination, .. } => e.jump(&destination),
        InstructionData::Brif { arg, blocks, .. } => e.branch(arg, blocks),
        InstructionData::BranchTable { arg, table, .. } => e.branch_table(arg, table),
        _ => return Err(e.unsupported(inst)),
    }
    Ok(())
}
