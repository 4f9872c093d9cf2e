//! Code that only a gang has: the address of its memory, the trap of one thread that stops all others, and the
//! operations of a workgroup.
//!
//! A thread that traps writes its record; only the first record of the gang counts. The thread notifies its workgroup
//! by a word in shared memory and all other threads by the stop word, and exits. All of that is in one function, [`TRAP`]:
//! in each place that may trap it would be two fifths of a kernel. A barrier does not wait for threads
//! that have exited. A thread at a barrier reads the workgroup's word before it waits, so that the read costs no time,
//! and tests it after the barrier.

use super::Printer;
use super::body::{Body, When};
use super::call::{Callee, push_call};
use super::register::{Class, Operand, Reg, argument};
use super::text::{push_address, push_unsigned};
use crate::Error;
use cranelift_codegen::ir::{self, Inst};
use gpu_run_abi::TrapCode;
use gpu_run_abi::gang::{WORKGROUP_BYTES, offset};
use gpu_run_abi::intrinsic::Intrinsic;

/// The name of the memory that a workgroup's threads share.
const WORKGROUP: &str = "workgroup";
/// The name of the word that says whether a thread of the workgroup has trapped.
const TRAPPED: &str = "workgroup_trapped";
/// The name of the function that traps: `(thread, record)`. It never returns.
const TRAP: &str = "gang_trap";
/// A mask of all lanes of a warp.
const ALL: Operand = Operand::Int(-1);

pub(crate) fn declare(out: &mut String) {
    out.push_str(".shared .align 16 .b8 ");
    out.push_str(WORKGROUP);
    out.push('[');
    push_unsigned(out, WORKGROUP_BYTES);
    out.push_str("];\n.shared .align 4 .b8 ");
    out.push_str(TRAPPED);
    out.push_str("[4];\n");
    push_trap(out);
    out.push_str(";\n");
}

fn push_trap(out: &mut String) {
    out.push_str(".func ");
    out.push_str(TRAP);
    out.push_str(" (.reg .b64 %a0, .reg .b64 %a1)");
}

/// Prints the function that traps: it stores the record, notifies the host and all threads, and exits.
pub(crate) fn define(out: &mut String, bytes: u64) {
    let (instance, record) = (argument(0), argument(1));
    let mut body = Body::default();
    trap(&mut body, instance, bytes, record);
    body.op("exit", "", &[]);
    out.push('\n');
    push_trap(out);
    out.push_str("\n{\n");
    body.regs.declare(out);
    out.push_str(&body.out);
    out.push_str("}\n");
}

/// Prints a call of the function that traps. The caller then has to print `exit`, so that the assembler knows that nothing follows.
pub(crate) fn end(body: &mut Body, instance: Reg, record: Reg) {
    push_call(body, &[], false, &Callee::Symbol(TRAP), &[instance.into(), record.into()]);
}

/// Returns the address of the region, which has `region` bytes.
fn region(body: &mut Body, instance: Reg, region: u64) -> Reg {
    body.op_to_temp(Class::B64, "and", ".b64", &[instance.into(), (-(region as i64)).into()])
}

/// Returns the address of guest byte 0. The region has `bytes` bytes.
pub(crate) fn memory(body: &mut Body, instance: Reg, bytes: u64) -> Reg {
    let region = region(body, instance, bytes);
    // If the assembler knew the constant, it would add it to every address. So the constant is hidden in a product.
    let one = body.hidden_one();
    body.op_to_temp(Class::B64, "mad.wide", ".u32", &[one.into(), (bytes as i64).into(), region.into()])
}

/// Stores the trap `record` and notifies the host and all threads.
fn trap(body: &mut Body, instance: Reg, bytes: u64, record: Reg) {
    let region = region(body, instance, bytes);
    let found = body.temp(Class::B64);
    body.begin("atom.relaxed.gpu.global.cas", ".b64");
    body.operand(found);
    body.out.push_str(", ");
    push_address(&mut body.out, region, offset::TRAP as i64);
    body.out.push_str(", 0, ");
    body.operand(record);
    body.end();
    let first = body.op_to_temp(Class::Pred, "setp.eq", ".u64", &[found.into(), 0.into()]);
    let report = body.temp(Class::B64);
    body.load("ld.global", ".u64", report, region, offset::REPORT as i64);
    body.store_if(first, "st.relaxed.sys.global.u64", report, offset::TRAPPED as i64, instance.into());
    body.store_if(first, "st.release.sys.global.u64", report, offset::TRAP as i64, record.into());
    body.store("st.relaxed.gpu.global", ".u32", region, offset::STOP as i64, 1.into());
    shared_store(body, TRAPPED, 1.into());
}

/// `st.volatile.shared.u32 [name], value;`
fn shared_store(body: &mut Body, name: &str, value: Operand) {
    body.begin("st.volatile.shared", ".u32");
    body.out.push('[');
    body.out.push_str(name);
    body.out.push_str("], ");
    body.operand(value);
    body.end();
}

/// Returns the address of byte `at` of the workgroup's memory, as a base and an offset.
fn workgroup(p: &mut Printer<'_>, at: ir::Value) -> (Reg, i64) {
    let base = p.body.op_to_temp(Class::B64, "mov", ".u64", &[Operand::Name(WORKGROUP)]);
    if let Some(constant) = p.constant(at) {
        return (base, i64::from(constant as u32));
    }
    let at = p.number(at);
    let wide = p.body.op_to_temp(Class::B64, "cvt", ".u64.u32", &[at]);
    (p.body.op_to_temp(Class::B64, "add", ".u64", &[base.into(), wide.into()]), 0)
}

pub(crate) fn intrinsic(p: &mut Printer<'_>, intrinsic: Intrinsic, inst: Inst) -> Result<(), Error> {
    let args = p.func.dfg.inst_args(inst);
    match (intrinsic, args) {
        (Intrinsic::GangBarrier, []) => barrier(p, inst),
        (Intrinsic::GangSleep, [nanoseconds, stop]) => sleep(p, inst, *nanoseconds, *stop),
        (Intrinsic::Ballot, [value]) => {
            let (result, value) = (p.result(inst)?, p.number(*value));
            let test = p.body.op_to_temp(Class::Pred, "setp.ne", ".u32", &[value, 0.into()]);
            p.body.op("vote.sync.ballot", ".b32", &[result.into(), test.into(), ALL]);
            Ok(())
        }
        (Intrinsic::ShuffleIndex, [value, lane]) => shuffle(p, inst, "shfl.sync.idx", *value, *lane, 31),
        (Intrinsic::ShuffleUp, [value, delta]) => shuffle(p, inst, "shfl.sync.up", *value, *delta, 0),
        (Intrinsic::ShuffleXor, [value, mask]) => shuffle(p, inst, "shfl.sync.bfly", *value, *mask, 31),
        (Intrinsic::LocalReset, []) => {
            shared_store(&mut p.body, TRAPPED, 0.into());
            Ok(())
        }
        (Intrinsic::LocalLoad, [at]) => {
            let (result, (base, offset)) = (p.result(inst)?, workgroup(p, *at));
            p.body.load("ld.shared", ".u32", result, base, offset);
            Ok(())
        }
        (Intrinsic::LocalStore, [at, value]) => {
            let (value, (base, offset)) = (p.number(*value), workgroup(p, *at));
            p.body.store("st.shared", ".u32", base, offset, value);
            Ok(())
        }
        (Intrinsic::LocalAdd, [at, value]) => {
            let (result, value, (base, offset)) = (p.result(inst)?, p.number(*value), workgroup(p, *at));
            p.body.begin("atom.relaxed.cta.shared.add", ".u32");
            p.body.operand(result);
            p.body.out.push_str(", ");
            push_address(&mut p.body.out, base, offset);
            p.body.out.push_str(", ");
            p.body.operand(value);
            p.body.end();
            Ok(())
        }
        (Intrinsic::BusLoad, [at]) => {
            let (result, address) = (p.result(inst)?, p.address(*at, 0));
            p.body.load("ld.relaxed.sys.global", ".u64", result, address.base, address.offset);
            Ok(())
        }
        (Intrinsic::BusStore, [at, value]) => bus_store(p, "st.release.sys.global", *at, *value),
        (Intrinsic::BusPut, [at, value]) => bus_store(p, "st.relaxed.sys.global", *at, *value),
        (Intrinsic::BusLoad2, [at]) => {
            let address = p.address(*at, 0);
            let results = p.func.dfg.inst_results(inst).to_vec();
            p.body.begin("ld.relaxed.sys.global.v2", ".u64");
            pair(p, &results);
            p.body.out.push_str(", ");
            push_address(&mut p.body.out, address.base, address.offset);
            p.body.end();
            Ok(())
        }
        (Intrinsic::BusPut2, [at, values @ ..]) => {
            let address = p.address(*at, 0);
            p.body.begin("st.relaxed.sys.global.v2", ".u64");
            push_address(&mut p.body.out, address.base, address.offset);
            p.body.out.push_str(", ");
            pair(p, values);
            p.body.end();
            Ok(())
        }
        _ => Err(p.unsupported(inst)),
    }
}

/// `{%d1, %d2}`
fn pair(p: &mut Printer<'_>, values: &[ir::Value]) {
    for (i, value) in values.iter().enumerate() {
        p.body.out.push_str(if i == 0 { "{" } else { ", " });
        let operand = p.number(*value);
        p.body.operand(operand);
    }
    p.body.out.push('}');
}

fn bus_store(p: &mut Printer<'_>, st: &str, at: ir::Value, value: ir::Value) -> Result<(), Error> {
    let (address, value) = (p.address(at, 0), p.number(value));
    p.body.store(st, ".u64", address.base, address.offset, value);
    Ok(())
}

fn shuffle(
    p: &mut Printer<'_>,
    inst: Inst,
    name: &str,
    value: ir::Value,
    by: ir::Value,
    clamp: i64,
) -> Result<(), Error> {
    let (result, value, by) = (p.result(inst)?, p.number(value), p.number(by));
    p.body.op(name, ".b32", &[result.into(), value, by, clamp.into(), ALL]);
    Ok(())
}

/// Prints a barrier. `bar.sync` would not do: it requires the lanes of a warp to be in step, which nothing promises.
fn barrier(p: &mut Printer<'_>, inst: Inst) -> Result<(), Error> {
    let trapped = p.body.temp(Class::B32);
    p.body.begin("ld.volatile.shared", ".u32");
    p.body.operand(trapped);
    p.body.out.push_str(", [");
    p.body.out.push_str(TRAPPED);
    p.body.out.push(']');
    p.body.end();
    p.body.op("barrier.sync", "", &[0.into()]);
    stop_if(p, inst, trapped)
}

fn sleep(p: &mut Printer<'_>, inst: Inst, nanoseconds: ir::Value, stop: ir::Value) -> Result<(), Error> {
    let (nanoseconds, stop) = (p.number(nanoseconds), p.address(stop, 0));
    let word = p.body.temp(Class::B32);
    p.body.load("ld.relaxed.gpu.global", ".u32", word, stop.base, stop.offset);
    p.body.op("nanosleep.u32", "", &[nanoseconds]);
    stop_if(p, inst, word)
}

fn stop_if(p: &mut Printer<'_>, inst: Inst, word: Reg) -> Result<(), Error> {
    let ends = p.body.op_to_temp(Class::Pred, "setp.ne", ".u32", &[word.into(), 0.into()]);
    p.trap_if(ends, When::True, ir::TrapCode::unwrap_user(TrapCode::Interrupted as u8), inst)
}
