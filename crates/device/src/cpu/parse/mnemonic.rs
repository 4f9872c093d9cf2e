//! The instruction table: what a mnemonic with its modifiers means, and how many operands it has.
//!
//! To teach the device an instruction, add a row here and an arm in `compile`.

use crate::cpu::ast::{Atomic, Binary, Compare, Opcode, Order, Round, Shuffle, Type, Unary, Vote};

/// Decodes `setp.lt.u32` and the like; `None` if the dialect does not have it.
pub(super) fn decode(mnemonic: &str) -> Option<Opcode> {
    let mut parts = [""; 8];
    let mut count = 0;
    for part in mnemonic.split('.') {
        *parts.get_mut(count)? = part;
        count += 1;
    }
    instruction(&parts[..count])
}

fn instruction(parts: &[&str]) -> Option<Opcode> {
    Some(match parts {
        ["mov", t] => Opcode::Mov(of(t, |t| !t.is_narrow() || t == Type::Pred)?),

        ["add", t] => Opcode::Binary(Binary::Add, word(t)?),
        ["sub", t] => Opcode::Binary(Binary::Sub, word(t)?),
        ["mul", "lo", t] => Opcode::Binary(Binary::Mul, word(t)?),
        ["mul", "hi", t] => Opcode::Binary(Binary::MulHigh, word(t)?),
        ["mul", "wide", "u32"] => Opcode::MulWide,
        ["mad", "lo", t] => Opcode::MadLow(word(t)?),
        ["mad", "wide", "u32"] => Opcode::MadWide,
        ["div", t] => Opcode::Binary(Binary::Div, word(t)?),
        ["rem", t] => Opcode::Binary(Binary::Rem, word(t)?),
        ["min", t] => Opcode::Binary(Binary::Min, word(t).or_else(|| float(t))?),
        ["max", t] => Opcode::Binary(Binary::Max, word(t).or_else(|| float(t))?),
        ["abs", t] => Opcode::Unary(Unary::Abs, signed(t).or_else(|| float(t))?),
        ["neg", t] => Opcode::Unary(Unary::Neg, signed(t).or_else(|| float(t))?),

        ["and", t] => Opcode::Binary(Binary::And, logic(t)?),
        ["or", t] => Opcode::Binary(Binary::Or, logic(t)?),
        ["xor", t] => Opcode::Binary(Binary::Xor, logic(t)?),
        ["not", t] => Opcode::Unary(Unary::Not, logic(t)?),
        ["shl", t] => Opcode::Binary(Binary::ShiftLeft, of(t, Type::is_bits)?),
        ["shr", t] => Opcode::Binary(Binary::ShiftRight, of(t, |t| !t.is_narrow() && (t.is_integer() || t.is_bits()))?),
        ["shf", direction @ ("l" | "r"), mode @ ("wrap" | "clamp"), "b32"] => {
            Opcode::Funnel { left: *direction == "l", wrap: *mode == "wrap" }
        }
        ["clz", t] => Opcode::Unary(Unary::LeadingZeros, of(t, Type::is_bits)?),
        ["popc", t] => Opcode::Unary(Unary::Ones, of(t, Type::is_bits)?),
        ["brev", t] => Opcode::Unary(Unary::Reverse, of(t, Type::is_bits)?),
        ["bfe", t] => Opcode::BitField(word(t)?),
        ["prmt", "b32"] => Opcode::Permute,

        ["add", "rn", t] => Opcode::Binary(Binary::Add, float(t)?),
        ["sub", "rn", t] => Opcode::Binary(Binary::Sub, float(t)?),
        ["mul", "rn", t] => Opcode::Binary(Binary::Mul, float(t)?),
        ["div", "rn", t] => Opcode::Binary(Binary::Div, float(t)?),
        ["sqrt", "rn", t] => Opcode::Unary(Unary::SquareRoot, float(t)?),
        ["rcp", "approx", "ftz", "f64"] => Opcode::Unary(Unary::AboutInverse, Type::F64),
        ["rsqrt", "approx", "ftz", "f64"] => Opcode::Unary(Unary::AboutInverseRoot, Type::F64),
        ["sin", "approx", "f32"] => Opcode::Unary(Unary::Sine, Type::F32),
        ["cos", "approx", "f32"] => Opcode::Unary(Unary::Cosine, Type::F32),
        ["ex2", "approx", "f32"] => Opcode::Unary(Unary::Exp2, Type::F32),
        ["lg2", "approx", "f32"] => Opcode::Unary(Unary::Log2, Type::F32),
        ["rsqrt", "approx", "f32"] => Opcode::Unary(Unary::InverseRoot, Type::F32),
        ["fma", "rn", t] => Opcode::Fma(float(t)?),
        ["copysign", t] => Opcode::Binary(Binary::CopySign, float(t)?),

        ["cvt", to, from] => convert(Round::Exact, to, from)?,
        ["cvt", "rn", to, from] => convert(Round::Nearest, to, from)?,
        ["cvt", "rni", to, from] => convert(Round::NearestInteger, to, from)?,
        ["cvt", "rzi", to, from] => convert(Round::Zero, to, from)?,
        ["cvt", "rmi", to, from] => convert(Round::Down, to, from)?,
        ["cvt", "rpi", to, from] => convert(Round::Up, to, from)?,

        ["setp", c, t] => compare(c, t)?,
        ["selp", t] => Opcode::Select(of(t, |t| !t.is_narrow())?),

        ["ld", "param", t] => Opcode::LoadParam(of(t, |t| !t.is_narrow())?),
        ["st", "param", t] => Opcode::StoreParam(of(t, |t| !t.is_narrow())?),
        ["ld", "global" | "shared" | "local", t] => Opcode::Load(Order::Weak, memory(t)?),
        ["st", "global" | "shared" | "local", t] => Opcode::Store(Order::Weak, memory(t)?),
        ["ld", "volatile", "global" | "shared", t] => Opcode::Load(Order::Volatile, memory(t)?),
        ["st", "volatile", "global" | "shared", t] => Opcode::Store(Order::Volatile, memory(t)?),
        ["ld", "global", "nc", t] => Opcode::Load(Order::Weak, memory(t)?),
        ["ld", "global", "L1::no_allocate", t] => Opcode::Load(Order::Volatile, memory(t)?),
        ["ld", "acquire", "cta" | "gpu" | "sys", "global" | "shared", t] => {
            Opcode::Load(Order::Synchronizing, memory(t)?)
        }
        ["st", "release", "cta" | "gpu" | "sys", "global" | "shared", t] => {
            Opcode::Store(Order::Synchronizing, memory(t)?)
        }
        ["ld", "relaxed", "cta" | "gpu" | "sys", "global" | "shared", t] => Opcode::Load(Order::Volatile, memory(t)?),
        ["st", "relaxed", "cta" | "gpu" | "sys", "global" | "shared", t] => Opcode::Store(Order::Volatile, memory(t)?),
        ["ld", "relaxed", "sys", "global", "v2", "u64"] => Opcode::LoadPair,
        ["st", "relaxed", "sys", "global", "v2", "u64"] => Opcode::StorePair,

        [
            "atom",
            "relaxed" | "acquire" | "release" | "acq_rel",
            "cta" | "gpu" | "sys",
            "global" | "shared",
            operation,
            t,
        ] => atomic(operation, t)?,
        ["membar", "cta"] | ["fence", "acq_rel" | "sc", "cta"] => Opcode::Fence { local: true },
        ["membar", "gl" | "sys"] | ["fence", "acq_rel" | "sc", "gpu" | "sys"] => Opcode::Fence { local: false },

        ["bra"] => Opcode::Branch,
        ["brx", "idx"] => Opcode::BranchTable,
        ["call"] => Opcode::Call,
        ["ret"] => Opcode::Return,
        ["exit"] => Opcode::Exit,
        ["trap"] => Opcode::Trap,

        ["bar" | "barrier", "sync"] => Opcode::Barrier,
        ["bar", "warp", "sync"] => Opcode::WarpBarrier,
        ["shfl", "sync", "idx", "b32"] => Opcode::Shuffle(Shuffle::Index),
        ["shfl", "sync", "up", "b32"] => Opcode::Shuffle(Shuffle::Up),
        ["shfl", "sync", "down", "b32"] => Opcode::Shuffle(Shuffle::Down),
        ["shfl", "sync", "bfly", "b32"] => Opcode::Shuffle(Shuffle::Butterfly),
        ["vote", "sync", "any", "pred"] => Opcode::Vote(Vote::Any),
        ["vote", "sync", "all", "pred"] => Opcode::Vote(Vote::All),
        ["vote", "sync", "uni", "pred"] => Opcode::Vote(Vote::Uniform),
        ["vote", "sync", "ballot", "b32"] => Opcode::Vote(Vote::Ballot),
        ["activemask", "b32"] => Opcode::ActiveMask,
        ["nanosleep", "u32"] => Opcode::Sleep,
        ["stacksave", "u32"] => Opcode::StackSave,
        _ => return None,
    })
}

/// The number of operands of an instruction. A shuffle's `d|p` counts as two, and `|p` may be left out.
pub(super) fn operands(opcode: Opcode) -> std::ops::RangeInclusive<usize> {
    match opcode {
        Opcode::Fence { .. } | Opcode::Return | Opcode::Exit | Opcode::Trap => 0..=0,
        Opcode::Barrier | Opcode::WarpBarrier | Opcode::ActiveMask | Opcode::Sleep | Opcode::StackSave => 1..=1,
        Opcode::Mov(_)
        | Opcode::Unary(..)
        | Opcode::Convert { .. }
        | Opcode::Load(..)
        | Opcode::Store(..)
        | Opcode::LoadParam(_)
        | Opcode::StoreParam(_) => 2..=2,
        Opcode::Pack
        | Opcode::Unpack
        | Opcode::LoadPair
        | Opcode::StorePair
        | Opcode::Binary(..)
        | Opcode::MulWide
        | Opcode::Compare(..)
        | Opcode::Atomic(..)
        | Opcode::Vote(_) => 3..=3,
        Opcode::MadLow(_)
        | Opcode::MadWide
        | Opcode::Fma(_)
        | Opcode::Funnel { .. }
        | Opcode::BitField(_)
        | Opcode::Permute
        | Opcode::Select(_)
        | Opcode::CompareExchange(_) => 4..=4,
        Opcode::Shuffle(_) => 5..=6,
        Opcode::Branch | Opcode::BranchTable | Opcode::Call => 0..=0,
    }
}

fn of(name: &str, allowed: impl Fn(Type) -> bool) -> Option<Type> {
    Type::named(name).filter(|t| allowed(*t))
}
/// u32, s32, u64, s64
fn word(name: &str) -> Option<Type> {
    of(name, |t| t.is_integer() && !t.is_narrow())
}
fn signed(name: &str) -> Option<Type> {
    of(name, |t| t.is_signed() && !t.is_narrow())
}
fn float(name: &str) -> Option<Type> {
    of(name, Type::is_float)
}
fn logic(name: &str) -> Option<Type> {
    of(name, |t| t.is_bits() || t == Type::Pred)
}
fn memory(name: &str) -> Option<Type> {
    of(name, |t| t != Type::Pred)
}

fn convert(round: Round, to: &str, from: &str) -> Option<Opcode> {
    let (to, from) = (Type::named(to)?, Type::named(from)?);
    let known = match round {
        Round::Exact => (to.is_integer() && from.is_integer()) || (to == Type::F64 && from == Type::F32),
        Round::Nearest => {
            (to.is_float() && from.is_integer() && !from.is_narrow()) || (to == Type::F32 && from == Type::F64)
        }
        Round::Zero => from.is_float() && (to == from || (to.is_integer() && !to.is_narrow())),
        Round::NearestInteger | Round::Down | Round::Up => from.is_float() && to == from,
    };
    known.then_some(Opcode::Convert { to, from, round })
}

fn compare(condition: &str, of_type: &str) -> Option<Opcode> {
    let condition = match condition {
        "eq" => Compare::Eq,
        "ne" => Compare::Ne,
        "lt" => Compare::Lt,
        "le" => Compare::Le,
        "gt" => Compare::Gt,
        "ge" => Compare::Ge,
        "equ" => Compare::Equ,
        "neu" => Compare::Neu,
        "ltu" => Compare::Ltu,
        "leu" => Compare::Leu,
        "gtu" => Compare::Gtu,
        "geu" => Compare::Geu,
        "num" => Compare::Num,
        "nan" => Compare::Nan,
        _ => return None,
    };
    let ty = of(of_type, |t| !t.is_narrow())?;
    let known = match condition {
        Compare::Eq | Compare::Ne => true,
        Compare::Lt | Compare::Le | Compare::Gt | Compare::Ge => !ty.is_bits(),
        _ => ty.is_float(),
    };
    known.then_some(Opcode::Compare(condition, ty))
}

fn atomic(operation: &str, of_type: &str) -> Option<Opcode> {
    let ty = of(of_type, |t| !t.is_narrow() && !t.is_float())?;
    let (operation, known) = match operation {
        "cas" => return ty.is_bits().then_some(Opcode::CompareExchange(ty)),
        "exch" => (Atomic::Exchange, ty.is_bits()),
        "and" => (Atomic::And, ty.is_bits()),
        "or" => (Atomic::Or, ty.is_bits()),
        "xor" => (Atomic::Xor, ty.is_bits()),
        "add" => (Atomic::Add, ty.is_unsigned() || ty == Type::S32),
        "min" => (Atomic::Min, ty.is_integer()),
        "max" => (Atomic::Max, ty.is_integer()),
        _ => return None,
    };
    known.then_some(Opcode::Atomic(operation, ty))
}
