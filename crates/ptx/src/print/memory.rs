//! Loads and stores by device addresses, which are aligned and checked: one instruction each, with a constant summand
//! of the address folded into its offset.
//!
//! They access `.global` memory, with three exceptions. Those to stack slots, and those to guest memory where a speculative
//! build keeps it there, access the thread's `.local` memory. Those to [`super::hot`] words access `.shared` memory. `guest`
//! prints accesses by guest addresses.

use super::Printer;
use super::hot::Hot;
use super::register::{Class, Operand, Reg};
use super::text::push_unsigned;
use crate::Error;
use crate::analysis::values;
use cranelift_codegen::ir::{Endianness, Inst, InstructionData, MemFlags, Opcode, Type, Value, types};

type Done = Result<(), Error>;

/// The bytes that a load reads, and how they become its result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    pub(crate) bytes: u32,
    pub(crate) is_signed: bool,
    /// The result's type.
    pub(crate) ty: Type,
}

impl Read {
    fn of(opcode: Opcode, ty: Type) -> Read {
        let (bytes, is_signed) = match opcode {
            Opcode::Uload8 => (1, false),
            Opcode::Sload8 => (1, true),
            Opcode::Uload16 => (2, false),
            Opcode::Sload16 => (2, true),
            Opcode::Uload32 => (4, false),
            Opcode::Sload32 => (4, true),
            _ => (ty.bytes(), false),
        };
        Read { bytes, is_signed, ty }
    }

    /// Returns the suffix of `ld`. To load 32 bits into a 64-bit register takes [`Read::widening`] as well.
    fn suffix(self) -> &'static str {
        match (self.bytes, self.is_signed) {
            _ if self.ty == types::F32 => ".f32",
            _ if self.ty == types::F64 => ".f64",
            (1, false) => ".u8",
            (1, true) => ".s8",
            (2, false) => ".u16",
            (2, true) => ".s16",
            (4, _) => ".u32",
            _ => ".u64",
        }
    }

    /// Returns the suffix of the `cvt` that makes the result from the zero-extended bits in a 32-bit register, if one
    /// is needed.
    pub(crate) fn widening(self) -> Option<&'static str> {
        match (self.ty, self.bytes, self.is_signed) {
            (types::I64, 2, false) => Some(".u64.u16"),
            (types::I64, 2, true) => Some(".s64.s16"),
            (types::I64, 4, false) => Some(".u64.u32"),
            (types::I64, 4, true) => Some(".s64.s32"),
            (types::I32, 2, true) => Some(".s32.s16"),
            _ => None,
        }
    }
}

/// A device address: `[base+offset]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address {
    pub(crate) base: Reg,
    pub(crate) offset: i64,
}

impl Printer<'_> {
    /// Returns the address of an access, with a constant summand folded into the offset.
    pub(crate) fn address(&mut self, at: Value, offset: i64) -> Address {
        let (base, offset) = values::address(self.func, at, offset);
        Address { base: self.in_register(base), offset }
    }

    /// Refuses flags that this crate does not support: big-endian accesses.
    fn check_flags(&self, inst: Inst, flags: MemFlags) -> Done {
        match self.func.dfg.mem_flags[flags].explicit_endianness() {
            Some(Endianness::Big) => Err(self.unsupported(inst)),
            _ => Ok(()),
        }
    }

    pub(crate) fn plain_load(&mut self, ld: &str, read: Read, result: Reg, address: Address) {
        match read.widening() {
            Some(widening) if read.bytes == 4 => {
                let word = self.body.temp(Class::B32);
                self.body.load(ld, ".u32", word, address.base, address.offset);
                self.body.op("cvt", widening, &[result.into(), word.into()]);
            }
            _ => self.body.load(ld, read.suffix(), result, address.base, address.offset),
        }
    }
}

/// Returns what a load instruction reads, and the register of its result.
pub(crate) fn read(p: &Printer<'_>, inst: Inst) -> Result<(Read, Reg), Error> {
    let InstructionData::Load { opcode, flags, .. } = p.func.dfg.insts[inst] else {
        return Err(p.unsupported(inst));
    };
    let result = p.result(inst)?;
    p.check_flags(inst, flags)?;
    Ok((Read::of(opcode, p.func.dfg.ctrl_typevar(inst)), result))
}

/// Returns what a store instruction writes: the suffix of `st`, and the operand.
pub(crate) fn written(p: &mut Printer<'_>, inst: Inst) -> Result<(&'static str, Operand), Error> {
    let InstructionData::Store { opcode, args: [value, _], flags, .. } = p.func.dfg.insts[inst] else {
        return Err(p.unsupported(inst));
    };
    let ty = p.ty(value);
    let bytes = match opcode {
        Opcode::Istore8 => 1,
        Opcode::Istore16 => 2,
        Opcode::Istore32 => 4,
        _ => ty.bytes(),
    };
    p.check_flags(inst, flags)?;
    let operand = if bytes < 8 && ty == types::I64 { p.low_word(value) } else { p.number(value) };
    let suffix = match (ty, bytes) {
        (types::F32, _) => ".f32",
        (types::F64, _) => ".f64",
        (_, 1) => ".u8",
        (_, 2) => ".u16",
        (_, 4) => ".u32",
        _ => ".u64",
    };
    Ok((suffix, operand))
}

/// Prints a load by a device address.
pub(crate) fn load(p: &mut Printer<'_>, inst: Inst, ld: &str) -> Done {
    let (read, result) = read(p, inst)?;
    let InstructionData::Load { arg, offset, .. } = p.func.dfg.insts[inst] else {
        return Err(p.unsupported(inst));
    };
    let address = p.address(arg, offset.into());
    match p.hot(address) {
        Some(hot) => p.plain_load("ld.shared", read, result, hot.address),
        None => p.plain_load(ld, read, result, address),
    }
    Ok(())
}

/// Prints a store by a device address.
pub(crate) fn store(p: &mut Printer<'_>, inst: Inst, st: &str) -> Done {
    let (suffix, operand) = written(p, inst)?;
    let InstructionData::Store { args: [_, at], offset, .. } = p.func.dfg.insts[inst] else {
        return Err(p.unsupported(inst));
    };
    let address = p.address(at, offset.into());
    let hot = p.hot(address);
    if hot.as_ref().is_none_or(|hot| hot.is_watched) {
        p.body.store(st, suffix, address.base, address.offset, operand);
    }
    if let Some(Hot { address, .. }) = hot {
        p.body.store("st.shared", suffix, address.base, address.offset, operand);
    }
    Ok(())
}

/// `stack_addr`: the address of a stack slot in the thread's local memory. Slot 0 is declared as `own0` at the
/// function's start.
pub(crate) fn stack_address(p: &mut Printer<'_>, inst: Inst) -> Done {
    let InstructionData::StackAddr { stack_slot, offset, .. } = p.func.dfg.insts[inst] else {
        return Err(p.unsupported(inst));
    };
    let result = p.result(inst)?;
    p.body.begin("mov", ".u64");
    p.body.operand(result);
    p.body.out.push_str(", own");
    push_unsigned(&mut p.body.out, stack_slot.as_u32().into());
    p.body.end();
    match i32::from(offset) {
        0 => {}
        offset => p.body.op("add", ".u64", &[result.into(), result.into(), i64::from(offset).into()]),
    }
    Ok(())
}
