//! Intrinsics: calls in CLIF that are an instruction or a few in PTX.

use super::Printer;
use super::body::When;
use super::gang;
use super::register::{Class, Operand};
use super::text::push_address;
use crate::Error;
use cranelift_codegen::ir::{self, Inst};
use gpu_run_abi::TrapCode;
use gpu_run_abi::intrinsic::{INTERVAL, Intrinsic};

type Done = Result<(), Error>;

pub(crate) fn print(e: &mut Printer<'_>, intrinsic: Intrinsic, inst: Inst) -> Done {
    match intrinsic {
        Intrinsic::ThreadInBlock => special_register(e, inst, ".u32", "%tid.x")?,
        Intrinsic::Block => special_register(e, inst, ".u32", "%ctaid.x")?,
        Intrinsic::BlockThreads => special_register(e, inst, ".u32", "%ntid.x")?,
        Intrinsic::Lane => special_register(e, inst, ".u32", "%laneid")?,
        Intrinsic::GlobalTimer => special_register(e, inst, ".u64", "%globaltimer")?,
        Intrinsic::NanoSleep => {
            let [nanoseconds] = *e.func.dfg.inst_args(inst) else { return Err(e.unsupported(inst)) };
            let nanoseconds = e.number(nanoseconds);
            e.body.op("nanosleep.u32", "", &[nanoseconds]);
        }
        Intrinsic::Exit => {
            e.body.op("exit", "", &[]);
            e.block.ended = true;
        }
        Intrinsic::Tick => tick(e, inst)?,
        Intrinsic::FenceSystem => e.body.op("membar.sys", "", &[]),
        Intrinsic::Barrier => e.body.op("bar.sync", "", &[0.into()]),
        Intrinsic::ActiveMask => {
            let result = e.result(inst)?;
            e.body.op("activemask.b32", "", &[result.into()]);
        }
        Intrinsic::Glance => {
            let [address] = *e.func.dfg.inst_args(inst) else { return Err(e.unsupported(inst)) };
            let (result, address) = (e.result(inst)?, e.in_register(address));
            e.body.load("ld.global.L1::no_allocate", ".u32", result, address, 0);
        }
        Intrinsic::GridBlocks => special_register(e, inst, ".u32", "%nctaid.x")?,
        Intrinsic::Processor => special_register(e, inst, ".u32", "%smid")?,
        Intrinsic::Cycles => special_register(e, inst, ".u64", "%clock64")?,
        Intrinsic::Ticket => {
            let [address] = *e.func.dfg.inst_args(inst) else { return Err(e.unsupported(inst)) };
            let (result, address) = (e.result(inst)?, e.in_register(address));
            e.body.begin("atom.relaxed.gpu.global.add", ".u32");
            e.body.operand(result);
            e.body.out.push_str(", ");
            push_address(&mut e.body.out, address, 0);
            e.body.out.push_str(", 1");
            e.body.end();
        }
        Intrinsic::FenceDevice => e.body.op("fence.acq_rel.gpu", "", &[]),
        Intrinsic::FenceHost => e.body.op("fence.acq_rel.sys", "", &[]),
        other => return gang::intrinsic(e, other, inst),
    }
    Ok(())
}

fn special_register(e: &mut Printer<'_>, inst: Inst, suffix: &str, name: &'static str) -> Done {
    let result = e.result(inst)?;
    e.body.op("mov", suffix, &[result.into(), Operand::Name(name)]);
    Ok(())
}

/// See [`Intrinsic::Tick`]. A loop that ends soon by itself need not look whether it should.
///
/// The look is a branch and no load under a predicate: a GPU's loads come back in order, also those that are not done,
/// so that each round would wait for what others have asked memory for.
fn tick(e: &mut Printer<'_>, inst: Inst) -> Done {
    let [left, stop] = *e.func.dfg.inst_args(inst) else { return Err(e.unsupported(inst)) };
    let (result, left) = (e.result(inst)?, e.number(left));
    let block = e.func.layout.inst_block(inst);
    if block.is_some_and(|block| e.analysis.short_loops.contains(&block)) {
        e.body.op("mov", ".b32", &[result.into(), left]);
        return Ok(());
    }
    let stop = e.in_register(stop);
    e.body.op("add", ".u32", &[result.into(), left, (-1).into()]);
    // Calls may have been charged to it, too.
    let spent = e.body.op_to_temp(Class::Pred, "setp.le", ".s32", &[result.into(), 0.into()]);
    let (look, on) = (e.body.local(), e.body.local());
    e.body.branch_if(spent, When::True, look);
    e.body.place(on);
    let inline = e.body.begin_out_of_line();
    e.body.place(look);
    let word = e.body.temp(Class::B32);
    e.body.load("ld.global.L1::no_allocate", ".u32", word, stop, 0);
    if e.program.is_gang() {
        // Who waits in such a loop for another thread may be in that one's way, on `cpu`.
        e.body.op("nanosleep.u32", "", &[0.into()]);
    }
    let ends = e.body.op_to_temp(Class::Pred, "setp.ne", ".u32", &[word.into(), 0.into()]);
    e.trap_if(ends, When::True, ir::TrapCode::unwrap_user(TrapCode::Interrupted as u8), inst)?;
    e.body.op("mov", ".b32", &[result.into(), INTERVAL.into()]);
    e.body.branch(on);
    e.body.end_out_of_line(inline);
    Ok(())
}
