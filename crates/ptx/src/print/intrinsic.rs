//! Intrinsics: calls in CLIF that become one or a few instructions in PTX.

use super::Printer;
use super::body::When;
use super::gang;
use super::hot;
use super::register::{Class, Operand, Reg};
use super::step;
use super::text::push_address;
use super::wait;
use crate::Error;
use crate::analysis::waiting::Kind;
use cranelift_codegen::ir::{self, Inst};
use gpu_run_abi::TrapCode;
use gpu_run_abi::intrinsic::{INTERVAL, Intrinsic};

type Done = Result<(), Error>;

pub(crate) fn print(p: &mut Printer<'_>, intrinsic: Intrinsic, inst: Inst) -> Done {
    match intrinsic {
        Intrinsic::ThreadInWorkgroup => special_register(p, inst, ".u32", "%tid.x")?,
        Intrinsic::Workgroup => special_register(p, inst, ".u32", "%ctaid.x")?,
        Intrinsic::WorkgroupThreads => special_register(p, inst, ".u32", "%ntid.x")?,
        Intrinsic::Lane => special_register(p, inst, ".u32", "%laneid")?,
        Intrinsic::GlobalTimer => special_register(p, inst, ".u64", "%globaltimer")?,
        Intrinsic::NanoSleep => {
            let [nanoseconds] = *p.func.dfg.inst_args(inst) else { return Err(p.unsupported(inst)) };
            let nanoseconds = p.number(nanoseconds);
            p.body.op("nanosleep.u32", "", &[nanoseconds]);
        }
        Intrinsic::Exit => {
            p.body.op("exit", "", &[]);
            p.block.ended = true;
        }
        Intrinsic::Tick => tick(p, inst)?,
        Intrinsic::FenceSystem => p.body.op("membar.sys", "", &[]),
        Intrinsic::Barrier => p.body.op("bar.sync", "", &[0.into()]),
        Intrinsic::ActiveMask => {
            let result = p.result(inst)?;
            p.body.op("activemask.b32", "", &[result.into()]);
        }
        Intrinsic::Glance => {
            let [address] = *p.func.dfg.inst_args(inst) else { return Err(p.unsupported(inst)) };
            let (result, address) = (p.result(inst)?, p.in_register(address));
            p.body.load("ld.global.L1::no_allocate", ".u32", result, address, 0);
        }
        Intrinsic::GridWorkgroups => special_register(p, inst, ".u32", "%nctaid.x")?,
        Intrinsic::Processor => special_register(p, inst, ".u32", "%smid")?,
        Intrinsic::Cycles => special_register(p, inst, ".u64", "%clock64")?,
        Intrinsic::Ticket => {
            let [address] = *p.func.dfg.inst_args(inst) else { return Err(p.unsupported(inst)) };
            count(p, inst, ".u32", address, 1.into())?;
        }
        Intrinsic::Count => {
            let [address, by] = *p.func.dfg.inst_args(inst) else { return Err(p.unsupported(inst)) };
            let by = p.number(by);
            count(p, inst, ".u64", address, by)?;
        }
        Intrinsic::FenceDevice => p.body.op("fence.acq_rel.gpu", "", &[]),
        Intrinsic::FenceHost => p.body.op("fence.acq_rel.sys", "", &[]),
        Intrinsic::Await => call(p, wait::AWAIT, inst),
        Intrinsic::Wake => call(p, wait::WAKE, inst),
        Intrinsic::WarpBarrier => {
            let [lanes] = *p.func.dfg.inst_args(inst) else { return Err(p.unsupported(inst)) };
            let lanes = p.number(lanes);
            p.body.op("bar.warp.sync", "", &[lanes]);
        }
        Intrinsic::BallotAmong => {
            let [value, lanes] = *p.func.dfg.inst_args(inst) else { return Err(p.unsupported(inst)) };
            let (result, value, lanes) = (p.result(inst)?, p.number(value), p.number(lanes));
            let test = p.body.op_to_temp(Class::Pred, "setp.ne", ".u32", &[value, 0.into()]);
            p.body.op("vote.sync.ballot", ".b32", &[result.into(), test.into(), lanes]);
        }
        Intrinsic::ShuffleAmong => {
            let [value, lane, lanes] = *p.func.dfg.inst_args(inst) else { return Err(p.unsupported(inst)) };
            let (result, value, lane, lanes) = (p.result(inst)?, p.number(value), p.number(lane), p.number(lanes));
            p.body.op("shfl.sync.idx", ".b32", &[result.into(), value, lane, 31.into(), lanes]);
        }
        Intrinsic::Sin => approximate(p, inst, "sin.approx")?,
        Intrinsic::Cos => approximate(p, inst, "cos.approx")?,
        Intrinsic::Exp2 => approximate(p, inst, "ex2.approx")?,
        Intrinsic::Log2 => approximate(p, inst, "lg2.approx")?,
        Intrinsic::InverseRoot => approximate(p, inst, "rsqrt.approx")?,
        Intrinsic::TakeHotWords => hot::take(p, inst)?,
        Intrinsic::StepClear => call(p, step::CLEAR, inst),
        Intrinsic::StepJoin => call(p, step::JOIN, inst),
        Intrinsic::StepLeave => {
            let result = p.result(inst)?;
            p.call_helper(Some(result), step::LEAVE, &[]);
        }
        Intrinsic::StepMeet => meet(p, inst),
        Intrinsic::GiveWay => give_way(p),
        other => return gang::intrinsic(p, other, inst),
    }
    Ok(())
}

/// Adds to a word, and orders nothing else.
fn count(p: &mut Printer<'_>, inst: Inst, suffix: &str, address: ir::Value, by: Operand) -> Done {
    let (result, address) = (p.result(inst)?, p.in_register(address));
    p.body.begin("atom.relaxed.gpu.global.add", suffix);
    p.body.operand(result);
    p.body.out.push_str(", ");
    push_address(&mut p.body.out, address, 0);
    p.body.out.push_str(", ");
    p.body.operand(by);
    p.body.end();
    Ok(())
}

fn approximate(p: &mut Printer<'_>, inst: Inst, name: &str) -> Done {
    let [x] = *p.func.dfg.inst_args(inst) else { return Err(p.unsupported(inst)) };
    let (result, x) = (p.result(inst)?, p.in_register(x));
    p.body.op(name, ".f32", &[result.into(), x.into()]);
    Ok(())
}

/// Prints a call of a function that a program with threads defines (see [`wait`]).
fn call(p: &mut Printer<'_>, name: &str, inst: Inst) {
    let arguments: Vec<Operand> = p.func.dfg.inst_args(inst).iter().map(|value| p.number(*value)).collect();
    p.call_helper(None, name, &arguments);
}

fn special_register(p: &mut Printer<'_>, inst: Inst, suffix: &str, name: &'static str) -> Done {
    let result = p.result(inst)?;
    p.body.op("mov", suffix, &[result.into(), Operand::Name(name)]);
    Ok(())
}

/// Prints [`Intrinsic::StepMeet`]. A warp whose lanes are all here is in step.
fn meet(p: &mut Printer<'_>, inst: Inst) {
    let active = p.body.temp(Class::B32);
    p.body.op("activemask.b32", "", &[active.into()]);
    let apart = p.body.op_to_temp(Class::Pred, "setp.ne", ".u32", &[active.into(), i64::from(u32::MAX).into()]);
    let place = place(p, inst);
    call_if(p, apart, step::MEET, &[place.into()]);
}

/// Prints [`Intrinsic::GiveWay`]. The lanes that share the warp are these and others, or the warp is not shared: so their mask is
/// the greater number exactly if there are others.
fn give_way(p: &mut Printer<'_>) {
    let (active, sharing) = (p.body.temp(Class::B32), p.body.temp(Class::B32));
    p.body.op("activemask.b32", "", &[active.into()]);
    p.body.op("ld.shared.u32", "", &[sharing.into(), Operand::Name(step::SHARING)]);
    let apart = p.body.op_to_temp(Class::Pred, "setp.gt", ".u32", &[sharing.into(), active.into()]);
    call_if(p, apart, wait::GIVE_WAY, &[]);
}

/// Calls a function out of line if the predicate is true, and goes on.
fn call_if(p: &mut Printer<'_>, predicate: Reg, name: &str, arguments: &[Operand]) {
    let (aside, on) = (p.body.local(), p.body.local());
    p.body.branch_if(predicate, When::True, aside);
    p.body.place(on);
    let inline = p.body.begin_out_of_line();
    p.body.place(aside);
    p.call_helper(None, name, arguments);
    p.body.branch(on);
    p.body.end_out_of_line(inline);
}

/// Returns a number for the place in the program: even, and other than 0.
fn place(p: &Printer<'_>, inst: Inst) -> i64 {
    i64::from((p.function.trap_id << 12).wrapping_add(inst.as_u32()) << 1 | 1 << 31)
}

/// How many iterations a long one counts for, and one of a loop that may wait for another thread.
const LARGE_ITERATIONS: i64 = 64;
const WAITING_ITERATIONS: i64 = 512;

/// Prints [`Intrinsic::Tick`]. A loop that surely ends soon does not read the stop word.
///
/// The stop word is read behind a branch, not by a predicated load. A GPU's loads complete in order, even those whose
/// predicate is false, so each iteration would wait for all loads before it.
fn tick(p: &mut Printer<'_>, inst: Inst) -> Done {
    let [left, stop] = *p.func.dfg.inst_args(inst) else { return Err(p.unsupported(inst)) };
    let (result, left) = (p.result(inst)?, p.number(left));
    let block = p.func.layout.inst_block(inst);
    if block.is_some_and(|block| p.analysis.short_loops.contains(&block)) {
        p.body.op("mov", ".b32", &[result.into(), left]);
        return Ok(());
    }
    let stop = p.in_register(stop);
    let kind = block.and_then(|block| p.analysis.waiting.loops.get(&block)).copied().unwrap_or_default();
    let charge = match kind {
        Kind { may_wait: true, .. } => WAITING_ITERATIONS,
        Kind { is_large: true, .. } => LARGE_ITERATIONS,
        _ => 1,
    };
    let in_step = (p.program.is_threads() && kind.may_meet && kind.is_large).then(|| {
        let (lanes, meeting) = (p.body.temp(Class::B32), p.body.temp(Class::B32));
        p.body.op("activemask.b32", "", &[lanes.into()]);
        p.body.op("ld.shared.u32", "", &[meeting.into(), Operand::Name(step::PLACE)]);
        (lanes, meeting)
    });
    let place = if in_step.is_some() { place(p, inst) } else { 0 } | i64::from(kind.may_wait);
    p.body.op("add", ".u32", &[result.into(), left, (-charge).into()]);
    // The count may skip 0: calls may have been charged to it, too.
    let spent = p.body.op_to_temp(Class::Pred, "setp.le", ".s32", &[result.into(), 0.into()]);
    if let Some((_, meeting)) = in_step {
        // Others wait here.
        let here = p.body.op_to_temp(Class::Pred, "setp.eq", ".u32", &[meeting.into(), place.into()]);
        p.body.op("or.pred", "", &[spent.into(), spent.into(), here.into()]);
    }
    let (look, on) = (p.body.local(), p.body.local());
    p.body.branch_if(spent, When::True, look);
    p.body.place(on);
    let inline = p.body.begin_out_of_line();
    p.body.place(look);
    let word = p.body.temp(Class::B32);
    if p.program.is_threads() {
        let lanes = in_step.map_or(0.into(), |(lanes, _)| lanes.into());
        p.call_helper(Some(word), wait::LOOK, &[stop.into(), place.into(), lanes]);
    } else {
        p.body.load("ld.global.L1::no_allocate", ".u32", word, stop, 0);
    }
    if p.program.is_gang() {
        // On `cpu`, a thread that waits in this loop may keep the thread it waits for from running; sleeping lets that
        // one run.
        p.body.op("nanosleep.u32", "", &[0.into()]);
    }
    let ends = p.body.op_to_temp(Class::Pred, "setp.ne", ".u32", &[word.into(), 0.into()]);
    p.trap_if(ends, When::True, ir::TrapCode::unwrap_user(TrapCode::Interrupted as u8), inst)?;
    p.body.op("mov", ".b32", &[result.into(), INTERVAL.into()]);
    p.body.branch(on);
    p.body.end_out_of_line(inline);
    Ok(())
}
