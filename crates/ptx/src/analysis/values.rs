//! Small questions about one value or instruction: is it a constant, what is it computed from, how many of its low bits are 0?

use cranelift_codegen::ir::{Function, InstructionData, Opcode, Type, Value, ValueDef, types};

/// How many instructions back [`trailing_zeros`] looks.
const MAX_DEPTH_OF_ZEROS: u32 = 4;

/// Sign-extends a CLIF immediate of type `ty`: only its low bits are defined, and PTX reads a signed number.
pub(crate) fn sign_extend(bits: i64, ty: Type) -> i64 {
    match ty {
        types::I8 => i64::from(bits as i8),
        types::I16 => i64::from(bits as i16),
        types::I32 => i64::from(bits as i32),
        _ => bits,
    }
}

/// Returns the integer that a value is, if it is constant.
pub(crate) fn constant(func: &Function, value: Value) -> Option<i64> {
    let dfg = &func.dfg;
    let inst = dfg.value_def(dfg.resolve_aliases(value)).inst()?;
    match dfg.insts[inst] {
        InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } => {
            Some(sign_extend(imm.bits(), dfg.ctrl_typevar(inst)))
        }
        _ => None,
    }
}

/// Returns the bits of the float that a value is, if it is constant.
pub(crate) fn float_bits(func: &Function, value: Value) -> Option<u64> {
    let dfg = &func.dfg;
    let inst = dfg.value_def(dfg.resolve_aliases(value)).inst()?;
    match dfg.insts[inst] {
        InstructionData::UnaryIeee32 { imm, .. } => Some(imm.bits().into()),
        InstructionData::UnaryIeee64 { imm, .. } => Some(imm.bits()),
        _ => None,
    }
}

/// Splits an address into a base and an offset that fits PTX's address operand (32 bits, signed).
pub(crate) fn address(func: &Function, at: Value, offset: i64) -> (Value, i64) {
    let dfg = &func.dfg;
    let at = dfg.resolve_aliases(at);
    let Some(inst) = dfg.value_def(at).inst() else { return (at, offset) };
    if let InstructionData::Binary { opcode: Opcode::Iadd, args: [a, b] } = dfg.insts[inst] {
        for (base, constant) in [(a, constant(func, b)), (b, constant(func, a))] {
            let sum = constant.and_then(|c| c.checked_add(offset)).filter(|&s| i32::try_from(s).is_ok());
            if let Some(sum) = sum {
                return (dfg.resolve_aliases(base), sum);
            }
        }
    }
    (at, offset)
}

/// Returns the value that decides a condition by being zero or not. Extensions are looked through: they do not change
/// that.
pub(crate) fn condition(func: &Function, value: Value) -> Value {
    let dfg = &func.dfg;
    let mut value = dfg.resolve_aliases(value);
    while let Some(inst) = dfg.value_def(value).inst()
        && let InstructionData::Unary { opcode: Opcode::Uextend | Opcode::Sextend, arg } = dfg.insts[inst]
    {
        value = dfg.resolve_aliases(arg);
    }
    value
}

/// Whether an instruction orders what threads do.
pub(crate) fn synchronises(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::AtomicLoad | Opcode::AtomicStore | Opcode::AtomicRmw | Opcode::AtomicCas | Opcode::Fence)
}

/// Returns how many low bits of a value are surely 0.
pub(crate) fn trailing_zeros(func: &Function, value: Value) -> u32 {
    zeros_within(func, value, MAX_DEPTH_OF_ZEROS)
}

fn zeros_within(func: &Function, value: Value, depth: u32) -> u32 {
    let dfg = &func.dfg;
    let value = dfg.resolve_aliases(value);
    if let Some(constant) = constant(func, value) {
        return constant.trailing_zeros();
    }
    let ValueDef::Result(inst, _) = dfg.value_def(value) else { return 0 };
    if depth == 0 {
        return 0;
    }
    let of = |v| zeros_within(func, v, depth - 1);
    match dfg.insts[inst] {
        InstructionData::Binary { opcode: Opcode::Iadd | Opcode::Isub | Opcode::Bor | Opcode::Bxor, args } => {
            of(args[0]).min(of(args[1]))
        }
        InstructionData::Binary { opcode: Opcode::Band, args } => of(args[0]).max(of(args[1])),
        InstructionData::Binary { opcode: Opcode::Imul, args } => of(args[0]) + of(args[1]),
        InstructionData::Binary { opcode: Opcode::Ishl, args } => match constant(func, args[1]) {
            Some(by @ 0..32) => of(args[0]) + by as u32,
            _ => of(args[0]),
        },
        InstructionData::Ternary { opcode: Opcode::Select, args } => of(args[1]).min(of(args[2])),
        InstructionData::Unary { opcode: Opcode::Uextend, arg } => of(arg),
        _ => 0,
    }
}
