//! Where the device begins: thread `i` runs the instance in slot `i`.

use super::ENTRY;
use crate::code::{self, Code, STOP_INTERVAL};
use crate::translate::{Env, clif_signature};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{BlockCall, InstBuilder, JumpTableData, Signature, Value, types};
use gpu_run_abi::intrinsic::{Intrinsic, namespace, region};
use gpu_run_abi::layout::{WARP, WORD, field};
use gpu_run_abi::{Layout, Status};

/// The kernel's name. Its parameters: address of slot 0, bytes of a slot, number of instances, selector of the entry function
/// (a position in `Options::entries`), whether the module's start function runs first, bytes of stack a thread may use.
pub const KERNEL: &str = "batch";

pub(super) fn signature() -> Signature {
    use types::{I32, I64};
    code::signature([I64, I64, I32, I32, I32, I32], [])
}

pub(super) fn batch(code: &mut Code<'_>) {
    let (slots, slot_bytes, count) = (code.param(0), code.param(1), code.param(2));
    let (selector, start, stack) = (code.param(3), code.param(4), code.param(5));
    let thread = thread_number(code);
    let (run, done) = (code.b.create_block(), code.b.create_block());
    let mine = code.ins().icmp(IntCC::UnsignedLessThan, thread, count);
    code.ins().brif(mine, run, &[], done, &[]);
    code.open(run);
    code.instance = slot(code, slots, slot_bytes, thread);
    let pointer = code.ins().get_stack_pointer(types::I64);
    let pointer = code.ins().ireduce(types::I32, pointer);
    let floor = code.ins().isub(pointer, stack);
    code.set_header(floor, field::STACK_FLOOR);
    let fuel = code.i32(STOP_INTERVAL);
    code.set_header(fuel, field::FUEL);
    let entry = code.function(namespace::RUNTIME, ENTRY, || code::signature([types::I64, types::I32, types::I32], []));
    let instance = code.instance;
    code.ins().call(entry, &[instance, selector, start]);
    let returned = code.i64(Status::Returned as i64);
    code.set_header(returned, field::STATUS);
    code.ins().jump(done, &[]);
    code.open(done);
    code.ins().return_(&[]);
}

fn thread_number(code: &mut Code<'_>) -> Value {
    let mut read = |which| code.intrinsic(which, &[]).expect("it has a result");
    let (block, threads, thread) =
        (read(Intrinsic::Block), read(Intrinsic::BlockThreads), read(Intrinsic::ThreadInBlock));
    let first = code.ins().imul(block, threads);
    code.ins().iadd(first, thread)
}

/// The instance pointer of a slot: `Layout::slot`, on the device.
fn slot(code: &mut Code<'_>, slots: Value, slot_bytes: Value, index: Value) -> Value {
    let index = code.ins().uextend(types::I64, index);
    let offset = match code.layout {
        Layout::Linear => code.ins().imul(index, slot_bytes),
        Layout::Interleaved => {
            let first = code.ins().band_imm_s(index, -(WARP as i64));
            let warp = code.ins().imul(first, slot_bytes);
            let lane = code.ins().band_imm_u(index, WARP as i64 - 1);
            let cell = code.layout.cell() as i64;
            let lane = code.ins().imul_imm_u(lane, cell);
            code.ins().iadd(warp, lane)
        }
    };
    code.ins().iadd(slots, offset)
}

/// (instance, selector, start): calls the start function if asked to, then the selected entry with arguments from the slot, and leaves
/// its results there.
pub(super) fn entry(code: &mut Code<'_>, env: &Env<'_>, entries: &[u32]) {
    let (selector, start) = (code.param(1), code.param(2));
    if let Some(function) = env.module.start {
        let (run, next) = (code.b.create_block(), code.b.create_block());
        code.ins().brif(start, run, &[], next, &[]);
        code.open(run);
        let ty = env.module.function_type(function);
        let callee = code.function(namespace::WASM, function, || clif_signature(ty));
        let instance = code.instance;
        code.ins().call(callee, &[instance]);
        code.ins().jump(next, &[]);
        code.open(next);
    }
    // A selector past the last entry calls nothing: instantiation alone.
    let none = code.b.create_block();
    let blocks: Vec<_> = entries.iter().map(|_| code.b.create_block()).collect();
    let lists = &mut code.b.func.dfg.value_lists;
    let default = BlockCall::new(none, [], lists);
    let table: Vec<_> = blocks.iter().map(|block| BlockCall::new(*block, [], lists)).collect();
    let table = code.b.create_jump_table(JumpTableData::new(default, &table));
    code.ins().br_table(selector, table);
    for (block, function) in blocks.into_iter().zip(entries) {
        code.open(block);
        let ty = env.module.function_type(*function);
        let callee = code.function(namespace::WASM, *function, || clif_signature(ty));
        let mut args = vec![code.instance];
        for (i, param) in ty.params.iter().enumerate() {
            args.push(code.slot_load(param.clif(), region::HEADER, env.slots.arguments + WORD * i as u64));
        }
        let call = code.ins().call(callee, &args);
        let results = code.b.inst_results(call).to_vec();
        for (i, result) in results.into_iter().enumerate() {
            code.slot_store(result, region::HEADER, env.slots.arguments + WORD * i as u64);
        }
        code.ins().return_(&[]);
    }
    code.open(none);
    code.ins().return_(&[]);
}
