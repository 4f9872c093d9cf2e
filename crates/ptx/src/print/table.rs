//! The table from opcode and form to a row, which [`super::row`] prints. Whoever adds an opcode adds a row.
//!
//! A row names the PTX instruction and says what it requires of its operands: an i8 or i16 lives in a 32-bit register
//! whose upper bits are undefined, so a row whose result depends on those bits has the operand extended. Where an
//! opcode has several forms, `analysis::legalize` has chosen one. Whatever takes more than one instruction is a small
//! function in [`super::integer`], [`super::float`], [`super::division`], [`super::vector`], [`super::memory`],
//! [`super::atomic`], [`super::control`], [`super::call`] or [`super::trap`].

use super::operand::Need;
use super::register::{bits, float, float_to_itself, own_signed, own_unsigned, signed, size, unsigned};
use super::row::Row;
use super::{atomic, call, control as c, division, float as f, integer as i, memory as m, trap as t, vector as v};
use crate::analysis::legalize::Form;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstructionData, Opcode};

#[rustfmt::skip]
pub(crate) fn row(data: &InstructionData, form: Form) -> Row {
    use Form::*;
    use Need::*;
    use Row::*;
    match data.opcode() {
        // Constants are folded into the instructions that use them.
        Opcode::Iconst | Opcode::F32const | Opcode::F64const => Nothing,
        Opcode::Nop | Opcode::SequencePoint => Nothing,

        Opcode::Iadd   => Op2("add", unsigned, [AsIs, AsIs]),
        Opcode::Isub   => Op2("sub", unsigned, [AsIs, AsIs]),
        Opcode::Imul   => Op2("mul.lo", unsigned, [AsIs, AsIs]),
        Opcode::Umulhi => match form {
            Narrow => Special(i::umulhi_narrow),
            _      => Op2("mul.hi", unsigned, [Zero, Zero]),
        },
        Opcode::Smulhi => match form {
            Narrow => Special(i::smulhi_narrow),
            _      => Op2("mul.hi", signed, [Sign, Sign]),
        },
        Opcode::Udiv   => Divide("div", unsigned, Zero),
        Opcode::Sdiv   => Divide("div", signed, Sign),
        Opcode::Urem   => Divide("rem", unsigned, Zero),
        Opcode::Srem   => Divide("rem", signed, Sign),
        Opcode::Umin   => Op2("min", unsigned, [Zero, Zero]),
        Opcode::Umax   => Op2("max", unsigned, [Zero, Zero]),
        Opcode::Smin   => Op2("min", signed, [Sign, Sign]),
        Opcode::Smax   => Op2("max", signed, [Sign, Sign]),
        Opcode::Ineg   => Op1("neg", signed, Sign),
        Opcode::Iabs   => Op1("abs", signed, Sign),
        Opcode::UaddOverflowTrap => Special(i::add_or_trap),

        Opcode::Band   => match form { Predicate => Predicates("and"), _ => Op2("and", bits, [AsIs, AsIs]) },
        Opcode::Bor    => match form { Predicate => Predicates("or"), _ => Op2("or", bits, [AsIs, AsIs]) },
        Opcode::Bxor   => match form {
            Predicate    => Predicates("xor"),
            NotPredicate => Special(i::not_predicate),
            _            => Op2("xor", bits, [AsIs, AsIs]),
        },
        Opcode::Bnot   => Op1("not", bits, AsIs),
        Opcode::Bitselect => Special(i::bitselect),
        Opcode::Bmask  => match form {
            Always => Number(-1),
            Never  => Number(0),
            _      => Special(i::bmask),
        },
        Opcode::Ishl   => Op2("shl", bits, [AsIs, Amount]),
        Opcode::Ushr   => Op2("shr", unsigned, [Zero, Amount]),
        Opcode::Sshr   => Op2("shr", signed, [Sign, Amount]),
        Opcode::Rotl   => match form { Narrow | Wide => Special(i::rotate_left), _ => Funnel("shf.l.wrap") },
        Opcode::Rotr   => match form { Narrow | Wide => Special(i::rotate_right), _ => Funnel("shf.r.wrap") },
        Opcode::Clz    => match form {
            Narrow => Special(i::leading_zeros_narrow),
            Wide   => Count64("clz"),
            _      => Op1("clz", bits, Zero),
        },
        Opcode::Cls    => Special(i::leading_signs),
        Opcode::Ctz    => Special(i::trailing_zeros),
        Opcode::Popcnt => match form { Wide => Count64("popc"), _ => Op1("popc", bits, Zero) },
        Opcode::Bitrev => match form { Narrow => Special(i::reverse_bits_narrow), _ => Op1("brev", bits, AsIs) },
        Opcode::Bswap  => match form {
            Narrow => Permute(i::SWAP_LOW),
            Wide   => Special(i::swap_bytes_wide),
            _      => Permute(i::REVERSE),
        },
        Opcode::Uextend => match form {
            Predicate => Special(i::extend_predicate),
            _         => Convert("cvt", unsigned, own_unsigned, AsIs),
        },
        Opcode::Sextend => match form {
            Predicate => Special(i::extend_predicate),
            _         => Convert("cvt", signed, own_signed, AsIs),
        },
        Opcode::Ireduce => match form {
            Wide => Convert("cvt", unsigned, unsigned, AsIs),
            _    => Op1("mov", bits, AsIs),
        },
        Opcode::Iconcat => Special(i::concatenate),
        Opcode::Isplit  => Special(i::split),

        Opcode::Icmp   => icmp(data),
        Opcode::Fcmp   => fcmp(data),
        Opcode::Select | Opcode::SelectSpectreGuard => match form {
            Always => Move(1),
            Never  => Move(2),
            _      => Special(i::select),
        },

        Opcode::Fadd   => Floats("add.rn", float),
        Opcode::Fsub   => Floats("sub.rn", float),
        Opcode::Fmul   => Floats("mul.rn", float),
        Opcode::Fdiv   => match form {
            BranchlessDivision { .. } => Special(division::divide),
            _                         => Floats("div.rn", float),
        },
        Opcode::Sqrt   => match form {
            BranchlessRoot => Special(division::square_root),
            _              => Floats("sqrt.rn", float),
        },
        Opcode::Fma    => Floats("fma.rn", float),
        Opcode::Fneg   => Special(f::negate),
        Opcode::Fabs   => Special(f::absolute),
        Opcode::Fcopysign => Special(f::copy_sign),
        Opcode::Fmin   => Special(f::minimum),
        Opcode::Fmax   => Special(f::maximum),
        // Rounding to an integral number is a conversion to the float's own type.
        Opcode::Ceil   => Floats("cvt.rpi", float_to_itself),
        Opcode::Floor  => Floats("cvt.rmi", float_to_itself),
        Opcode::Trunc  => Floats("cvt.rzi", float_to_itself),
        Opcode::Nearest => Floats("cvt.rni", float_to_itself),
        Opcode::Fpromote => Convert("cvt", float, float, AsIs),
        Opcode::Fdemote => Convert("cvt.rn", float, float, AsIs),
        Opcode::FcvtFromSint => Convert("cvt.rn", float, signed, Sign),
        Opcode::FcvtFromUint => Convert("cvt.rn", float, unsigned, Zero),
        // Explicit traps before these instructions have checked the range.
        Opcode::FcvtToSint => Convert("cvt.rzi", signed, float, AsIs),
        Opcode::FcvtToUint => Convert("cvt.rzi", unsigned, float, AsIs),
        Opcode::FcvtToSintSat => Special(f::to_signed_saturating),
        Opcode::FcvtToUintSat => Special(f::to_unsigned_saturating),
        // The result has the same bits in a register of another class.
        Opcode::Bitcast => match form {
            Renaming => Nothing,
            Constant => Special(f::bitcast_constant),
            _        => Op1("mov", size, AsIs),
        },

        // A vector is four registers. Making a vector of words, or taking a word out, only names registers.
        Opcode::Vconst | Opcode::Splat | Opcode::ScalarToVector | Opcode::Insertlane => Nothing,
        Opcode::Extractlane => Special(v::extract),
        Opcode::Shuffle => Special(v::shuffle),
        Opcode::Swizzle => Special(v::swizzle),

        Opcode::Load | Opcode::Uload8 | Opcode::Sload8 | Opcode::Uload16 | Opcode::Sload16
            | Opcode::Uload32 | Opcode::Sload32 => match form {
            Local => Load("ld.local"),
            _     => Load("ld.global"),
        },
        Opcode::Store | Opcode::Istore8 | Opcode::Istore16 | Opcode::Istore32 => match form {
            Local => Store("st.local"),
            _     => Store("st.global"),
        },
        Opcode::AtomicLoad  => Special(atomic::load),
        Opcode::AtomicStore => Special(atomic::store),
        Opcode::AtomicRmw   => Special(atomic::read_modify_write),
        Opcode::AtomicCas   => Special(atomic::compare_and_swap),
        Opcode::Fence       => Special(atomic::fence),

        Opcode::Jump   => Special(c::jump),
        Opcode::Brif   => match form {
            Always => Special(c::jump),
            Never  => Special(c::jump_else),
            _      => Special(c::branch),
        },
        Opcode::BrTable => Special(c::branch_table),
        Opcode::Return => Special(call::return_),
        Opcode::Call | Opcode::CallIndirect => Special(call::call),
        Opcode::ReturnCall | Opcode::ReturnCallIndirect => Special(call::tail_call),
        Opcode::FuncAddr => Special(call::address),
        Opcode::SymbolValue => Special(call::symbol_value),
        Opcode::GetStackPointer => Special(call::stack_pointer),
        Opcode::StackAddr => Special(m::stack_address),
        Opcode::Trap   => Special(t::trap),
        Opcode::Trapz  => match form {
            Always => Nothing,
            Never  => Special(t::trap),
            _      => Special(t::trap_unless),
        },
        Opcode::Trapnz => match form {
            Always => Special(t::trap),
            Never  => Nothing,
            _      => Special(t::trap_when),
        },

        _ => Unsupported,
    }
}

#[rustfmt::skip]
fn icmp(data: &InstructionData) -> Row {
    let Some(cond) = data.cond_code() else { return Row::Unsupported };
    let unsigned = |name| Row::Op2(name, unsigned, [Need::Zero, Need::Zero]);
    let signed = |name| Row::Op2(name, signed, [Need::Sign, Need::Sign]);
    match cond {
        IntCC::Equal                       => unsigned("setp.eq"),
        IntCC::NotEqual                    => unsigned("setp.ne"),
        IntCC::UnsignedLessThan            => unsigned("setp.lt"),
        IntCC::UnsignedLessThanOrEqual     => unsigned("setp.le"),
        IntCC::UnsignedGreaterThan         => unsigned("setp.gt"),
        IntCC::UnsignedGreaterThanOrEqual  => unsigned("setp.ge"),
        IntCC::SignedLessThan              => signed("setp.lt"),
        IntCC::SignedLessThanOrEqual       => signed("setp.le"),
        IntCC::SignedGreaterThan           => signed("setp.gt"),
        IntCC::SignedGreaterThanOrEqual    => signed("setp.ge"),
    }
}

#[rustfmt::skip]
fn fcmp(data: &InstructionData) -> Row {
    let Some(cond) = data.fp_cond_code() else { return Row::Unsupported };
    // A name that ends with `u` is also true if an operand is NaN. CLIF's `ne` is true then, its `one` is not.
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
    Row::Op2(name, float, [Need::AsIs, Need::AsIs])
}
