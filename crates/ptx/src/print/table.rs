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
pub(crate) fn emit(p: &mut Printer<'_>, inst: Inst) -> Result<(), Error> {
    let data = p.func.dfg.insts[inst];
    if data.opcode().is_terminator() || data.opcode().is_call() {
        division::stop_if_wrong(p);
    }
    match row(data.opcode()) {
        Row::Wrapping(name) => binary(p, inst, name, Extension::None),
        Row::Unsigned(name) => binary(p, inst, name, Extension::Zero),
        Row::Signed(name) => binary(p, inst, name, Extension::Sign),
        Row::Logic(name) => logic(p, inst, name),
        Row::Bits1(name) => {
            let (result, arg) = (p.result(inst)?, i::one(p, inst)?);
            let operand = p.in_register(arg);
            p.body.op(name, bits(p.ty(arg)), &[result.into(), operand.into()]);
            Ok(())
        }
        Row::Signed1(name) => {
            let (result, arg) = (p.result(inst)?, i::one(p, inst)?);
            let (operand, ty) = (p.sign_extended(arg), p.ty(arg));
            let operand = p.load_operand(operand, ty);
            p.body.op(name, signed(ty), &[result.into(), operand.into()]);
            Ok(())
        }
        Row::Float(name) => floats(p, inst, name, ""),
        Row::Round(name) => {
            let suffix = float(p.func.dfg.ctrl_typevar(inst));
            floats(p, inst, name, suffix)
        }
        Row::Special(emit) => emit(p, inst),
        Row::Nothing => Ok(()),
        Row::Unsupported => Err(p.unsupported(inst)),
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
fn binary(p: &mut Printer<'_>, inst: Inst, name: &str, extension: Extension) -> Result<(), Error> {
    let (result, [a, b]) = (p.result(inst)?, i::two(p, inst)?);
    let ty = p.ty(a);
    let (a, b, suffix) = match extension {
        Extension::None => (p.number(a), p.number(b), unsigned(ty)),
        Extension::Zero => (p.zero_extended(a), p.zero_extended(b), unsigned(ty)),
        Extension::Sign => (p.sign_extended(a), p.sign_extended(b), signed(ty)),
    };
    p.body.op(name, suffix, &[result.into(), a, b]);
    Ok(())
}

/// An instruction on floats of one type: `name source.type result, operands`.
fn floats(p: &mut Printer<'_>, inst: Inst, name: &str, source: &str) -> Result<(), Error> {
    let func = p.func;
    let result = p.result(inst)?;
    let args = func.dfg.inst_args(inst);
    p.body.begin(name, source);
    p.body.out.pop();
    p.body.out.push_str(float(func.dfg.ctrl_typevar(inst)));
    p.body.out.push(' ');
    p.body.operand(result);
    for &arg in args {
        p.body.out.push_str(", ");
        p.body.operand(p.value(arg));
    }
    p.body.end();
    Ok(())
}

fn divide(p: &mut Printer<'_>, inst: Inst) -> Result<(), Error> {
    if division::is_branchless(p, inst) { division::divide(p, inst) } else { floats(p, inst, "div.rn", "") }
}

fn square_root(p: &mut Printer<'_>, inst: Inst) -> Result<(), Error> {
    if division::is_branchless(p, inst) { division::square_root(p, inst) } else { floats(p, inst, "sqrt.rn", "") }
}

#[rustfmt::skip]
fn icmp(p: &mut Printer<'_>, inst: Inst) -> Result<(), Error> {
    let InstructionData::IntCompare { cond, .. } = p.func.dfg.insts[inst] else {
        return Err(p.unsupported(inst));
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
    binary(p, inst, name, extension)
}

#[rustfmt::skip]
fn fcmp(p: &mut Printer<'_>, inst: Inst) -> Result<(), Error> {
    let InstructionData::FloatCompare { cond, args: [a, b], .. } = p.func.dfg.insts[inst] else {
        return Err(p.unsupported(inst));
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
    let suffix = float(p.ty(a));
    let result = p.result(inst)?;
    p.body.op(name, suffix, &[result.into(), p.value(a), p.value(b)]);
    Ok(())
}

fn select(p: &mut Printer<'_>, inst: Inst) -> Result<(), Error> {
    let (result, [condition, yes, no]) = (p.result(inst)?, i::three(p, inst)?);
    let suffix = plain(p.ty(yes));
    match p.truth(condition) {
        Truth::If(predicate) => {
            let (yes, no) = (p.number(yes), p.number(no));
            p.body.op("selp", suffix, &[result.into(), yes, no, predicate.into()]);
        }
        constant => {
            let chosen = p.number(if matches!(constant, Truth::Always) { yes } else { no });
            p.body.op("mov", suffix, &[result.into(), chosen]);
        }
    }
    Ok(())
}

/// `and`, `or`, `xor`: on predicates where the result is one.
fn logic(p: &mut Printer<'_>, inst: Inst, name: &str) -> Result<(), Error> {
    let (result, [a, b]) = (p.result(inst)?, i::two(p, inst)?);
    if result.class == Class::Pred {
        match p.value(b) {
            Operand::Int(_) => p.body.op("not", ".pred", &[result.into(), p.value(a)]), // `bxor a, 1`
            b => p.body.op(name, ".pred", &[result.into(), p.value(a), b]),
        }
    } else {
        let suffix = bits(p.ty(a));
        let (a, b) = (p.number(a), p.number(b));
        p.body.op(name, suffix, &[result.into(), a, b]);
    }
    Ok(())
}

fn branch(p: &mut Printer<'_>, inst: Inst) -> Result<(), Error> {
    match p.func.dfg.insts[inst] {
        InstructionData::Jump { destination, .. } => p.jump(&destination),
        InstructionData::Brif { arg, blocks, .. } => p.branch(arg, blocks),
        InstructionData::BranchTable { arg, table, .. } => p.branch_table(arg, table),
        _ => return Err(p.unsupported(inst)),
    }
    Ok(())
}
