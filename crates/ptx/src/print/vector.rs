//! Vectors: a CLIF i32x4 is four 32-bit operands, which most instructions only rename.
//!
//! The front end computes with words. It joins words to a vector (`scalar_to_vector`, `insertlane`) where a value
//! crosses a block's edge or a call, and takes the vector apart (`extractlane`) on the other side. Neither prints code:
//! a lane is the operand it was made of, which [`Printer::lanes`] finds. Only vectors that are not made of words have
//! registers of their own: parameters, results of calls, and results of the two instructions that work on bytes, which
//! become PTX's `prmt`.

use super::Printer;
use super::assign::Operands;
use super::integer::two;
use super::register::{Class, Operand, Reg};
use crate::{Error, Function};
use cranelift_codegen::ir::{self, Inst, InstructionData, Opcode, Value, types};

type Done = Result<(), Error>;

/// Whether the vector that an instruction makes needs registers. Other vectors are made of existing operands.
pub(crate) fn needs_registers(function: &Function, inst: Inst, result: Value) -> Result<bool, Error> {
    let dfg = &function.clif.dfg;
    let is_words = dfg.value_type(result) == types::I32X4;
    match dfg.insts[inst].opcode() {
        Opcode::Vconst => Ok(false),
        Opcode::Bitcast if dfg.value_type(dfg.inst_args(inst)[0]).is_vector() => Ok(false),
        Opcode::Splat | Opcode::ScalarToVector | Opcode::Insertlane if is_words => Ok(false),
        Opcode::Shuffle | Opcode::Swizzle | Opcode::Call | Opcode::CallIndirect => Ok(true),
        _ => Err(Error::unsupported(function, inst)),
    }
}

/// Gives each extracted lane the register it was made of. Runs once all values have their operands.
pub(crate) fn name_lanes(function: &Function, operands: &mut Operands) -> Done {
    let func = &function.clif;
    for inst in func.layout.blocks().flat_map(|block| func.layout.block_insts(block)) {
        let InstructionData::BinaryImm8 { opcode: Opcode::Extractlane, arg, imm } = func.dfg.insts[inst] else {
            continue;
        };
        if func.dfg.value_type(arg) != types::I32X4 {
            return Err(Error::unsupported(function, inst));
        }
        // If the lane is a constant, the result keeps its own register: not every operand position takes a constant.
        if let Operand::Reg(register) = lane(func, operands, arg, usize::from(imm)) {
            operands.scalars[func.dfg.first_result(inst)] = register.into();
        }
    }
    Ok(())
}

/// Returns the operand that a lane of a vector was made of.
fn lane(func: &ir::Function, operands: &Operands, mut vector: Value, mut lane: usize) -> Operand {
    let dfg = &func.dfg;
    loop {
        vector = dfg.resolve_aliases(vector);
        if let Some(registers) = operands.vectors.get(&vector) {
            return registers[lane].into();
        }
        let Some(inst) = dfg.value_def(vector).inst() else { return Operand::Int(0) };
        let scalar = match dfg.insts[inst] {
            InstructionData::UnaryConst { constant_handle, .. } => {
                let bytes = dfg.constants.get(constant_handle).as_slice();
                let word: [u8; 4] =
                    bytes.get(4 * lane..4 * lane + 4).and_then(|b| b.try_into().ok()).unwrap_or_default();
                return i64::from(i32::from_le_bytes(word)).into();
            }
            InstructionData::Unary { opcode: Opcode::ScalarToVector, .. } if lane > 0 => return Operand::Int(0),
            InstructionData::Unary { arg, .. } => arg,
            InstructionData::TernaryImm8 { imm, args: [_, scalar], .. } if usize::from(imm) == lane => scalar,
            _ => {
                vector = dfg.inst_args(inst)[0];
                continue;
            }
        };
        let scalar = dfg.resolve_aliases(scalar);
        let from = dfg.value_def(scalar).inst().map(|inst| dfg.insts[inst]);
        match from {
            Some(InstructionData::BinaryImm8 { opcode: Opcode::Extractlane, arg, imm }) => {
                (vector, lane) = (arg, usize::from(imm));
            }
            _ => return operands.scalars[scalar],
        }
    }
}

impl Printer<'_> {
    /// Returns the four words of a vector.
    pub(crate) fn lanes(&self, vector: Value) -> [Operand; 4] {
        [0, 1, 2, 3].map(|at| lane(self.func, &self.operands, vector, at))
    }

    /// Returns the registers of the vector that an instruction makes.
    fn vector_result(&self, inst: Inst) -> Result<[Reg; 4], Error> {
        let result = self.func.dfg.inst_results(inst).first();
        result.and_then(|result| self.operands.vectors.get(result)).copied().ok_or_else(|| self.unsupported(inst))
    }
}

/// `extractlane`: prints nothing, unless the lane is a constant.
pub(crate) fn extract(p: &mut Printer<'_>, inst: Inst) -> Done {
    let InstructionData::BinaryImm8 { arg, imm, .. } = p.func.dfg.insts[inst] else { return Err(p.unsupported(inst)) };
    let lane = lane(p.func, &p.operands, arg, usize::from(imm));
    if lane.register().is_none() {
        let result = p.result(inst)?;
        p.body.op("mov", ".b32", &[result.into(), lane]);
    }
    Ok(())
}

/// `shuffle`: each byte of the result is one of 32 bytes. `prmt` picks bytes of two words, so a word of the result
/// takes one `prmt` for each source word after the first.
pub(crate) fn shuffle(p: &mut Printer<'_>, inst: Inst) -> Done {
    let InstructionData::Shuffle { imm, args: [a, b], .. } = p.func.dfg.insts[inst] else {
        return Err(p.unsupported(inst));
    };
    let results = p.vector_result(inst)?;
    let (a, b) = (p.lanes(a), p.lanes(b));
    let mask = p.func.dfg.immediates[imm].as_slice();
    for (result, bytes) in results.into_iter().zip(mask.chunks_exact(4)) {
        let source = |byte: u8| if byte < 16 { a[usize::from(byte / 4)] } else { b[usize::from(byte / 4 - 4) % 4] };
        permute(p, result, [0, 1, 2, 3].map(|i| (source(bytes[i]), bytes[i] % 4)));
    }
    Ok(())
}

/// Makes a word of four bytes, each of which is a byte of some operand.
fn permute(p: &mut Printer<'_>, result: Reg, bytes: [(Operand, u8); 4]) {
    let first = bytes[0].0;
    if bytes.iter().zip(0..).all(|(&(operand, byte), i)| operand == first && byte == i) {
        return p.body.op("mov", ".b32", &[result.into(), first]);
    }
    // The position of each byte in `word`; `None` for bytes that are not in it yet.
    let mut places = bytes.map(|(operand, byte)| (operand == first).then_some(byte));
    let mut word = p.load_operand(first, types::I32);
    loop {
        let next = bytes.iter().zip(&places).find(|(_, place)| place.is_none()).map_or(Operand::Int(0), |(b, _)| b.0);
        let digits = [0, 1, 2, 3].map(|i| match places[i] {
            Some(place) => place,
            None if bytes[i].0 == next => 4 + bytes[i].1,
            None => 0,
        });
        for (i, place) in (0..).zip(&mut places) {
            *place = (place.is_some() || bytes[usize::from(i)].0 == next).then_some(i);
        }
        let selector = (0..).zip(digits).fold(0, |all, (i, digit)| all | i64::from(digit) << (4 * i));
        if places.iter().all(Option::is_some) {
            return p.body.op("prmt", ".b32", &[result.into(), word.into(), next, selector.into()]);
        }
        word = p.body.op_to_temp(Class::B32, "prmt", ".b32", &[word.into(), next, selector.into()]);
    }
}

/// The selector of `prmt` that replaces each byte by a mask of its sign.
const SIGNS: i64 = 0xba98;

/// `swizzle`: each byte of the second vector is an index, which is replaced by that byte of the first vector, or by 0
/// if the index is 16 or more.
pub(crate) fn swizzle(p: &mut Printer<'_>, inst: Inst) -> Done {
    let [table, indices] = two(p, inst)?;
    let results = p.vector_result(inst)?;
    let table = p.lanes(table).map(|word| p.load_operand(word, types::I32));
    let indices = p.lanes(indices).map(|word| p.load_operand(word, types::I32));
    for (result, index) in results.into_iter().zip(indices) {
        look_up(p, result, table, index.into());
    }
    Ok(())
}

/// Looks up four bytes in a table of 16. `prmt` picks by digits of four bits: the lower three bits of each index pick a
/// byte from both halves of the table, the fourth bit chooses between the two, and any higher bit makes the result 0.
fn look_up(p: &mut Printer<'_>, result: Reg, table: [Reg; 4], index: Operand) {
    let mut op = |name: &str, suffix: &str, operands: &[Operand]| -> Operand {
        p.body.op_to_temp(Class::B32, name, suffix, operands).into()
    };
    let low = op("and", ".b32", &[index, 0x0707_0707.into()]);
    let shifted = op("shr", ".u32", &[low, 4.into()]);
    let pairs = op("or", ".b32", &[low, shifted]);
    let selector = op("prmt", ".b32", &[pairs, 0.into(), 0x4420.into()]);
    let [lower, upper] =
        [[table[0], table[1]], [table[2], table[3]]].map(|[a, b]| op("prmt", ".b32", &[a.into(), b.into(), selector]));
    let fourth = op("shl", ".b32", &[index, 4.into()]);
    let is_upper = op("prmt", ".b32", &[fourth, 0.into(), SIGNS.into()]);
    let differ = op("xor", ".b32", &[lower, upper]);
    let chosen = op("and", ".b32", &[differ, is_upper]);
    let byte = op("xor", ".b32", &[chosen, lower]);
    let beyond = op("and", ".b32", &[index, 0x7070_7070.into()]);
    let beyond = op("add", ".u32", &[beyond, 0x7070_7070.into()]);
    let beyond = op("or", ".b32", &[beyond, index]);
    let is_beyond = op("prmt", ".b32", &[beyond, 0.into(), SIGNS.into()]);
    let within = op("not", ".b32", &[is_beyond]);
    p.body.op("and", ".b32", &[result.into(), byte, within]);
}
