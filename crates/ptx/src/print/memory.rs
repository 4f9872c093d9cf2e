//! Loads, stores and atomics.
//!
//! Memory is `.global`, but for what is the thread's own. Accesses of the guest are [`crate::guest`]'s; the rest are one instruction each, the
//! address's sum folded into it.

use crate::function::Emitter;
use crate::print::integer::low_word;
use crate::print::register::{Class, Operand, Reg, bits};
use crate::{Atomics, Error};
use cranelift_codegen::ir::{AtomicRmwOp, Endianness, Inst, InstructionData, MemFlags, Opcode, Type, Value, types};
use gpu_run_abi::intrinsic::region;
use gpu_run_abi::layout::field;

type Done = Result<(), Error>;

/// What a load reads and what becomes of it.
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

    /// The suffix of `ld`; a 64-bit register takes 32 bits only through [`Read::widening`].
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

    /// The `cvt` that makes the result of the zero-extended bits in a 32-bit register, if it takes one.
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

/// Where an access goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) base: Reg,
    pub(crate) offset: i64,
}

impl Emitter<'_> {
    pub(crate) fn place(&mut self, at: Value, offset: i64) -> Place {
        let (base, offset) = self.address(at, offset);
        Place { base: self.in_register(base), offset }
    }

    /// Whether an access by a device address is to memory of the thread's own: its frame, or the guest's memory where that is.
    fn is_own(&self, flags: MemFlags) -> bool {
        let regions = &self.func.dfg.alias_regions;
        let is =
            |id| self.func.dfg.mem_flags[flags].alias_region().is_some_and(|region| regions.get(id) == Some(region));
        is(region::FRAME) || (self.symbols.memory().own && is(region::CELLS))
    }

    /// An access's flags must not ask for what is not done.
    fn check_flags(&self, inst: Inst, flags: MemFlags) -> Done {
        match self.func.dfg.mem_flags[flags].explicit_endianness() {
            Some(Endianness::Big) => Err(self.unsupported(inst)),
            _ => Ok(()),
        }
    }

    pub(crate) fn plain_load(&mut self, ld: &str, read: Read, result: Reg, place: Place) {
        match read.widening() {
            Some(widening) if read.bytes == 4 => {
                let word = self.body.temp(Class::B32);
                self.body.load(ld, ".u32", word, place.base, place.offset);
                self.body.op("cvt", widening, &[result.into(), word.into()]);
            }
            _ => self.body.load(ld, read.suffix(), result, place.base, place.offset),
        }
    }
}

pub(crate) fn load(e: &mut Emitter<'_>, inst: Inst) -> Done {
    let InstructionData::Load { opcode, arg, flags, offset } = e.func.dfg.insts[inst] else {
        return Err(e.unsupported(inst));
    };
    let result = e.result(inst)?;
    let read = Read::of(opcode, e.func.dfg.ctrl_typevar(inst));
    e.check_flags(inst, flags)?;
    if let Some(access) = e.guest_access(inst) {
        return e.guest_load(inst, read, result, &access);
    }
    let place = e.place(arg, offset.into());
    let ld = if e.is_own(flags) { "ld.local" } else { "ld.global" };
    e.plain_load(ld, read, result, place);
    Ok(())
}

pub(crate) fn store(e: &mut Emitter<'_>, inst: Inst) -> Done {
    let InstructionData::Store { opcode, args: [value, at], flags, offset } = e.func.dfg.insts[inst] else {
        return Err(e.unsupported(inst));
    };
    let ty = e.ty(value);
    let bytes = match opcode {
        Opcode::Istore8 => 1,
        Opcode::Istore16 => 2,
        Opcode::Istore32 => 4,
        _ => ty.bytes(),
    };
    e.check_flags(inst, flags)?;
    let operand = if bytes < 8 && ty == types::I64 { low_word(e, value) } else { e.number(value) };
    let suffix = match (ty, bytes) {
        (types::F32, _) => ".f32",
        (types::F64, _) => ".f64",
        (_, 1) => ".u8",
        (_, 2) => ".u16",
        (_, 4) => ".u32",
        _ => ".u64",
    };
    if let Some(access) = e.guest_access(inst) {
        return e.guest_store(inst, suffix, operand, &access);
    }
    let place = e.place(at, offset.into());
    let st = if e.is_own(flags) { "st.local" } else { "st.global" };
    e.body.store(st, suffix, place.base, place.offset, operand);
    // Memory that has grown: what is kept of its length is old.
    let length = e.symbols.layout().offset(field::MEMORY_BYTES) as i64;
    if place.offset == length && place.base == e.instance()? { e.fast_length() } else { Ok(()) }
}

/// Where a stack slot is, among the thread's own memory.
pub(crate) fn own_address(e: &mut Emitter<'_>, inst: Inst) -> Done {
    let InstructionData::StackAddr { stack_slot, offset, .. } = e.func.dfg.insts[inst] else {
        return Err(e.unsupported(inst));
    };
    let result = e.result(inst)?;
    e.body.begin("mov", ".u64");
    e.body.operand(result);
    e.body.out.push_str(", own");
    crate::print::text::push_unsigned(&mut e.body.out, stack_slot.as_u32().into());
    e.body.end();
    match i32::from(offset) {
        0 => {}
        offset => e.body.op("add", ".u64", &[result.into(), result.into(), i64::from(offset).into()]),
    }
    Ok(())
}

// ---- atomics: always aligned, the front end traps before ----

/// The suffix of acquiring and releasing accesses.
fn atomic_suffix(ty: Type) -> Option<&'static str> {
    match ty {
        types::I8 => Some(".u8"),
        types::I16 => Some(".u16"),
        types::I32 => Some(".u32"),
        types::I64 => Some(".u64"),
        _ => None,
    }
}

pub(crate) fn atomic_load(e: &mut Emitter<'_>, inst: Inst) -> Done {
    let InstructionData::LoadNoOffset { arg, .. } = e.func.dfg.insts[inst] else {
        return Err(e.unsupported(inst));
    };
    let suffix = atomic_suffix(e.func.dfg.ctrl_typevar(inst)).ok_or_else(|| e.unsupported(inst))?;
    let result = e.result(inst)?;
    let place = e.place(arg, 0);
    let ld = match e.symbols.atomics() {
        Atomics::System => "ld.acquire.sys.global",
        Atomics::Device => "ld.acquire.gpu.global",
        Atomics::Relaxed => "ld.relaxed.gpu.global",
    };
    e.body.load(ld, suffix, result, place.base, place.offset);
    Ok(())
}

pub(crate) fn atomic_store(e: &mut Emitter<'_>, inst: Inst) -> Done {
    let InstructionData::StoreNoOffset { args: [value, at], .. } = e.func.dfg.insts[inst] else {
        return Err(e.unsupported(inst));
    };
    let suffix = atomic_suffix(e.ty(value)).ok_or_else(|| e.unsupported(inst))?;
    let place = e.place(at, 0);
    let operand = e.number(value);
    let st = match e.symbols.atomics() {
        Atomics::System => "st.release.sys.global",
        Atomics::Device => "st.release.gpu.global",
        Atomics::Relaxed => "st.relaxed.gpu.global",
    };
    e.body.store(st, suffix, place.base, place.offset, operand);
    Ok(())
}

#[rustfmt::skip]
pub(crate) fn atomic_rmw(e: &mut Emitter<'_>, inst: Inst) -> Done {
    let InstructionData::AtomicRmw { args: [at, value], op, .. } = e.func.dfg.insts[inst] else {
        return Err(e.unsupported(inst));
    };
    let is_wide = match e.ty(value) {
        types::I32 => false,
        types::I64 => true,
        _ => return Err(e.unsupported(inst)),
    };
    let (narrow, wide) = match op {
        AtomicRmwOp::Add | AtomicRmwOp::Sub => (".add.u32", ".add.u64"),
        AtomicRmwOp::And  => (".and.b32", ".and.b64"),
        AtomicRmwOp::Or   => (".or.b32", ".or.b64"),
        AtomicRmwOp::Xor  => (".xor.b32", ".xor.b64"),
        AtomicRmwOp::Xchg => (".exch.b32", ".exch.b64"),
        AtomicRmwOp::Umin => (".min.u32", ".min.u64"),
        AtomicRmwOp::Umax => (".max.u32", ".max.u64"),
        AtomicRmwOp::Smin => (".min.s32", ".min.s64"),
        AtomicRmwOp::Smax => (".max.s32", ".max.s64"),
        AtomicRmwOp::Nand => return Err(e.unsupported(inst)),
    };
    let result = e.result(inst)?;
    let place = e.place(at, 0);
    let operand = match (op, e.number(value)) {
        (AtomicRmwOp::Sub, Operand::Int(n)) => Operand::Int(n.wrapping_neg()),
        (AtomicRmwOp::Sub, operand) if is_wide => e.body.op_to_temp(Class::B64, "neg", ".s64", &[operand]).into(),
        (AtomicRmwOp::Sub, operand) => e.body.op_to_temp(Class::B32, "neg", ".s32", &[operand]).into(),
        (_, operand) => operand,
    };
    atom(e, if is_wide { wide } else { narrow }, result, place, &[operand]);
    Ok(())
}

pub(crate) fn atomic_cas(e: &mut Emitter<'_>, inst: Inst) -> Done {
    let InstructionData::AtomicCas { args: [at, expected, new], .. } = e.func.dfg.insts[inst] else {
        return Err(e.unsupported(inst));
    };
    let ty = e.ty(new);
    if ty.bits() < 32 {
        return Err(e.unsupported(inst));
    }
    let result = e.result(inst)?;
    let place = e.place(at, 0);
    let (expected, new) = (e.number(expected), e.number(new));
    atom(e, if bits(ty) == ".b64" { ".cas.b64" } else { ".cas.b32" }, result, place, &[expected, new]);
    Ok(())
}

fn atom(e: &mut Emitter<'_>, suffix: &str, result: Reg, place: Place, operands: &[Operand]) {
    let name = match e.symbols.atomics() {
        Atomics::System => "atom.acq_rel.sys.global",
        Atomics::Device => "atom.acq_rel.gpu.global",
        Atomics::Relaxed => "atom.relaxed.gpu.global",
    };
    e.body.begin(name, suffix);
    e.body.operand(result);
    e.body.out.push_str(", ");
    crate::print::text::push_address(&mut e.body.out, place.base, place.offset);
    for &operand in operands {
        e.body.out.push_str(", ");
        e.body.operand(operand);
    }
    e.body.end();
}

pub(crate) fn fence(e: &mut Emitter<'_>, _: Inst) -> Done {
    let name = if e.symbols.atomics() == Atomics::System { "fence.sc.sys" } else { "fence.sc.gpu" };
    e.body.op(name, "", &[]);
    Ok(())
}
