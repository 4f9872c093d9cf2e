//! Atomic operations. Their addresses are always aligned: the front end traps if they are not.

use super::Printer;
use super::memory::Address;
use super::register::{Class, Operand, Reg, bits};
use super::text::push_address;
use crate::{Atomics, Error};
use cranelift_codegen::ir::{AtomicRmwOp, Inst, InstructionData, Opcode, Type, types};
use gpu_run_abi::intrinsic::region;

type Done = Result<(), Error>;

/// Returns the suffix of an atomic load or store.
fn suffix_of(ty: Type) -> Option<&'static str> {
    match ty {
        types::I8 => Some(".u8"),
        types::I16 => Some(".u16"),
        types::I32 => Some(".u32"),
        types::I64 => Some(".u64"),
        _ => None,
    }
}

/// Returns what an operation orders.
fn ordering(p: &Printer<'_>, inst: Inst) -> Atomics {
    let dfg = &p.func.dfg;
    let region = dfg.insts[inst].memflags().and_then(|flags| dfg.mem_flags[flags].alias_region());
    let shared = dfg.alias_regions.get(region::SHARED);
    if region.is_some() && region == shared { Atomics::Relaxed } else { p.program.atomics() }
}

pub(crate) fn load(p: &mut Printer<'_>, inst: Inst) -> Done {
    let InstructionData::LoadNoOffset { arg, .. } = p.func.dfg.insts[inst] else {
        return Err(p.unsupported(inst));
    };
    let suffix = suffix_of(p.func.dfg.ctrl_typevar(inst)).ok_or_else(|| p.unsupported(inst))?;
    let result = p.result(inst)?;
    let address = p.address(arg, 0);
    let ld = match ordering(p, inst) {
        Atomics::System => "ld.acquire.sys.global",
        Atomics::Device => "ld.acquire.gpu.global",
        Atomics::Relaxed => "ld.relaxed.gpu.global",
    };
    p.body.load(ld, suffix, result, address.base, address.offset);
    Ok(())
}

pub(crate) fn store(p: &mut Printer<'_>, inst: Inst) -> Done {
    let InstructionData::StoreNoOffset { args: [value, at], .. } = p.func.dfg.insts[inst] else {
        return Err(p.unsupported(inst));
    };
    let suffix = suffix_of(p.ty(value)).ok_or_else(|| p.unsupported(inst))?;
    let address = p.address(at, 0);
    let operand = p.number(value);
    let st = match ordering(p, inst) {
        Atomics::System => "st.release.sys.global",
        Atomics::Device if follows_fence(p, inst) => "st.relaxed.gpu.global",
        Atomics::Device => "st.release.gpu.global",
        Atomics::Relaxed => "st.relaxed.gpu.global",
    };
    p.body.store(st, suffix, address.base, address.offset, operand);
    Ok(())
}

#[rustfmt::skip]
pub(crate) fn read_modify_write(p: &mut Printer<'_>, inst: Inst) -> Done {
    let InstructionData::AtomicRmw { args: [at, value], op, .. } = p.func.dfg.insts[inst] else {
        return Err(p.unsupported(inst));
    };
    let is_wide = match p.ty(value) {
        types::I32 => false,
        types::I64 => true,
        _ => return Err(p.unsupported(inst)),
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
        AtomicRmwOp::Nand => return Err(p.unsupported(inst)),
    };
    let result = p.result(inst)?;
    let address = p.address(at, 0);
    let operand = match (op, p.number(value)) {
        (AtomicRmwOp::Sub, Operand::Int(n)) => Operand::Int(n.wrapping_neg()),
        (AtomicRmwOp::Sub, operand) if is_wide => p.body.op_to_temp(Class::B64, "neg", ".s64", &[operand]).into(),
        (AtomicRmwOp::Sub, operand) => p.body.op_to_temp(Class::B32, "neg", ".s32", &[operand]).into(),
        (_, operand) => operand,
    };
    atom(p, inst, if is_wide { wide } else { narrow }, result, address, &[operand]);
    Ok(())
}

pub(crate) fn compare_and_swap(p: &mut Printer<'_>, inst: Inst) -> Done {
    let InstructionData::AtomicCas { args: [at, expected, new], .. } = p.func.dfg.insts[inst] else {
        return Err(p.unsupported(inst));
    };
    let ty = p.ty(new);
    if ty.bits() < 32 {
        return Err(p.unsupported(inst));
    }
    let result = p.result(inst)?;
    let address = p.address(at, 0);
    let (expected, new) = (p.number(expected), p.number(new));
    atom(p, inst, if bits(ty) == ".b64" { ".cas.b64" } else { ".cas.b32" }, result, address, &[expected, new]);
    Ok(())
}

/// Whether a fence comes before the operation with no other access in between but of constants, as before those of the guest: such a fence
/// orders what came before, and another one would take as long again.
fn follows_fence(p: &Printer<'_>, inst: Inst) -> bool {
    let before = std::iter::successors(p.func.layout.prev_inst(inst), |inst| p.func.layout.prev_inst(*inst));
    let insts = &p.func.dfg.insts;
    // What never changes can be read at any time.
    let is_constant = |inst: Inst| insts[inst].memflags().is_some_and(|flags| p.func.dfg.mem_flags[flags].readonly());
    let mut opcodes = before.filter(|inst| !is_constant(*inst)).map(|inst| insts[inst].opcode());
    let accesses = |opcode: &Opcode| opcode.can_load() || opcode.can_store() || opcode.is_call();
    opcodes.find(|opcode| accesses(opcode) || *opcode == Opcode::Fence) == Some(Opcode::Fence)
}

fn atom(p: &mut Printer<'_>, inst: Inst, suffix: &str, result: Reg, address: Address, operands: &[Operand]) {
    let name = match ordering(p, inst) {
        Atomics::System => "atom.acq_rel.sys.global",
        Atomics::Device if follows_fence(p, inst) => "atom.acquire.gpu.global",
        Atomics::Device => "atom.acq_rel.gpu.global",
        Atomics::Relaxed => "atom.relaxed.gpu.global",
    };
    p.body.begin(name, suffix);
    p.body.operand(result);
    p.body.out.push_str(", ");
    push_address(&mut p.body.out, address.base, address.offset);
    for &operand in operands {
        p.body.out.push_str(", ");
        p.body.operand(operand);
    }
    p.body.end();
}

pub(crate) fn fence(p: &mut Printer<'_>, _: Inst) -> Done {
    let name = if p.program.atomics() == Atomics::System { "fence.sc.sys" } else { "fence.sc.gpu" };
    p.body.op(name, "", &[]);
    Ok(())
}
