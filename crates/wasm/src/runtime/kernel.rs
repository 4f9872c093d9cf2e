//! The kernels that run a batch: thread `i` runs the instance in slot `i`.

use super::{ENTRY, Helper};
use crate::code::{self, Code};
use crate::provided::Imported;
use crate::translate::{Env, clif_signature};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AtomicRmwOp, Block, BlockCall, InstBuilder, JumpTableData, Signature, StackSlotData, StackSlotKind, Value, types,
};
use gpu_run_abi::hostcall::Call;
use gpu_run_abi::intrinsic::{INTERVAL, Intrinsic, namespace, region};
use gpu_run_abi::launch::offset;
use gpu_run_abi::layout::{MEMORY_TAIL, WARP, WORD, field};
use gpu_run_abi::{Layout, Status, TrapCode};

/// The kernel that runs instances. Its parameters: address of slot 0; bytes of a slot; number of instances; selector of
/// the entry function (a position in `Options::entries`); flags [`START`] and [`FRESH`]; bytes of stack that a thread
/// may use; address of the `abi::Launch`.
pub const KERNEL: &str = "batch";
/// The kernel that collects how instances ended. Its parameters: address of slot 0; bytes of a slot; number of
/// instances; address to write to, for each instance an `abi::launch::Ending`, `results` words of results, and the words
/// of `slot::CallsPlace` if calls are noted; the number `results`.
pub const ENDINGS: &str = "endings";

/// Flag: the module's start function runs first.
pub const START: u32 = 1;
/// Flag: the slots become fresh instances first.
pub const FRESH: u32 = 2;

pub(super) fn batch_signature() -> Signature {
    use types::{I32, I64};
    code::signature([I64, I64, I32, I32, I32, I32, I64], [])
}

pub(super) fn batch(code: &mut Code<'_>, env: &Env<'_>) {
    let (selector, flags, stack, launch) = (code.param(3), code.param(4), code.param(5), code.param(6));
    let (thread, done) = own_slot(code);
    note_time_if_asked(code, env, launch);
    let fresh = code.ins().band_imm_u(flags, i64::from(FRESH));
    let local = local_memory(code, env, thread);
    code.if_then(fresh, false, |code| {
        code.call_helper(Helper::SetUp, &[launch, thread, local]);
    });
    let start = code.ins().band_imm_u(flags, i64::from(START));
    set_limits(code, stack);
    let entry = code.function(namespace::RUNTIME, ENTRY, || code::signature([types::I64, types::I32, types::I32], []));
    let instance = code.instance;
    code.ins().call(entry, &[instance, selector, start]);
    let returned = code.i64(Status::Returned as i64);
    code.set_header(returned, field::STATUS);
    code.ins().jump(done, &[]);
    code.open(done);
    code.ins().return_(&[]);
}

/// Sets how deep the thread's stack may grow, given its bytes of stack, and how much work recursive functions may do
/// before they check the stop word.
pub(super) fn set_limits(code: &mut Code<'_>, stack: Value) {
    let pointer = code.ins().get_stack_pointer(types::I64);
    let pointer = code.ins().ireduce(types::I32, pointer);
    let floor = code.ins().isub(pointer, stack);
    code.set_header(floor, field::STACK_FLOOR);
    let fuel = code.i32(INTERVAL);
    code.set_header(fuel, field::FUEL);
}

/// Records when the launch began, for programs that ask for the time.
pub(super) fn note_time_if_asked(code: &mut Code<'_>, env: &Env<'_>, launch: Value) {
    if env.module.imports.contains(&Imported::Host(Call::clock_time_get)) {
        note_time(code, launch);
    }
}

/// Records the device's timer at the launch's begin: the lowest value that any thread reads.
fn note_time(code: &mut Code<'_>, launch: Value) {
    let now = code.intrinsic(Intrinsic::GlobalTimer, &[]).expect("it has a result");
    let flags = code.trusted(region::BUS);
    let at = code.ins().iadd_imm_s(launch, offset::CLOCK_DEVICE as i64);
    code.ins().atomic_rmw(types::I64, flags, AtomicRmwOp::Umin, at, now);
}

/// The local memories of a multiprocessor's warps are about a large power of two apart, so that the same offset in all
/// of them would share a few lines of its cache. So each warp's memory begins at one of `SKEWS` offsets that are `SKEW`
/// bytes apart.
const SKEWS: u32 = 32;
const SKEW: u32 = 256;

/// Returns where guest byte 0 is, or would be, in the thread's local memory; 0 if the guest's memory is elsewhere.
fn local_memory(code: &mut Code<'_>, env: &Env<'_>, thread: Value) -> Value {
    if !code.is_local {
        return code.i64(0);
    }
    let bytes = (env.slots.local_bytes() + MEMORY_TAIL) as u32 + SKEWS * SKEW;
    let slot = code.b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 4));
    let first = code.ins().stack_addr(types::I64, slot, 0);
    let warp = code.ins().ushr_imm_u(thread, i64::from(WARP.trailing_zeros()));
    let mixed = code.ins().imul_imm_u(warp, 0x9e37_79b1);
    let skew = code.ins().ushr_imm_u(mixed, i64::from(u32::BITS - SKEWS.trailing_zeros()));
    let skew = code.ins().imul_imm_u(skew, i64::from(SKEW));
    let skew = code.ins().uextend(types::I64, skew);
    let first = code.ins().iadd(first, skew);
    code.ins().iadd_imm_s(first, -(env.slots.low as i64))
}

pub(super) fn collect_signature() -> Signature {
    use types::{I32, I64};
    code::signature([I64, I64, I32, I64, I32], [])
}

pub(super) fn collect(code: &mut Code<'_>, env: &Env<'_>) {
    let (out, results) = (code.param(3), code.param(4));
    let (thread, done) = own_slot(code);
    let words = [field::STATUS, field::TRAP, field::EXIT_CODE, field::MEMORY_BYTES, field::GROWTH_REFUSED];
    let mut fixed = words.map(|at| code.header(types::I64, at));
    if code.is_local {
        fixed[0] = outgrown(code, env, fixed[0]);
    }
    let calls = env.slots.calls;
    let words = code.ins().iadd_imm_s(results, (fixed.len() as u64 + calls.words()) as i64);
    let (thread, words) = (code.ins().uextend(types::I64, thread), code.ins().uextend(types::I64, words));
    let offset = code.ins().imul(thread, words);
    let offset = code.ins().imul_imm_u(offset, WORD as i64);
    let mut to = code.ins().iadd(out, offset);
    let flags = code.trusted(region::BUS);
    for word in fixed {
        code.ins().store(flags, word, to, 0);
        to = code.ins().iadd_imm_s(to, WORD as i64);
    }
    let (to, left) = (code.variable(types::I64, to), code.variable(types::I32, results));
    let from = code.slot_address(env.slots.arguments);
    let from = code.variable(types::I64, from);
    let step = (WORD * code.layout.spread()) as i64;
    code.while_loop(
        |code| code.b.use_var(left),
        |code| {
            let (source, target, rest) = (code.b.use_var(from), code.b.use_var(to), code.b.use_var(left));
            let word = code.word_load(types::I64, flags, source, 0);
            code.ins().store(flags, word, target, 0);
            for (variable, value, by) in [(from, source, step), (to, target, WORD as i64), (left, rest, -1)] {
                let next = code.ins().iadd_imm_s(value, by);
                code.b.def_var(variable, next);
            }
        },
    );
    for i in 0..calls.words() {
        let word = code.header(types::I64, calls.depth + WORD * i);
        let to = code.b.use_var(to);
        code.ins().store(flags, word, to, (WORD * i) as i32);
    }
    code.ins().jump(done, &[]);
    code.open(done);
    code.ins().return_(&[]);
}

/// Returns an instance's status, considering the guest's stack. If the instance was stopped with less than the largest
/// frame left of the stack that has memory here, it may have needed more stack than that, and counts as outgrown.
fn outgrown(code: &mut Code<'_>, env: &Env<'_>, status: Value) -> Value {
    let Some(pointer) = env.slots.globals.first().filter(|_| env.slots.low > 0) else { return status };
    let pointer = code.slot_load(types::I32, region::HEADER, *pointer);
    let least = (env.slots.low + env.module.largest_frame()).min(u32::MAX.into());
    let is_deep = code.ins().icmp_imm_u(IntCC::UnsignedLessThan, pointer, least as i64);
    let is_open = code.ins().icmp_imm_u(IntCC::Equal, status, Status::Running as i64);
    let is_outgrown = code.ins().band(is_deep, is_open);
    let outgrown = code.i64(Status::Outgrown as i64);
    code.ins().select(is_outgrown, outgrown, status)
}

/// Returns the thread's number, and sets `code.instance` to its slot (parameters: first slot, bytes of a slot, count).
/// A thread without a slot jumps to the returned block.
fn own_slot(code: &mut Code<'_>) -> (Value, Block) {
    let (slots, slot_bytes, count) = (code.param(0), code.param(1), code.param(2));
    let thread = thread_number(code);
    let (run, done) = (code.b.create_block(), code.b.create_block());
    let mine = code.ins().icmp(IntCC::UnsignedLessThan, thread, count);
    code.ins().brif(mine, run, &[], done, &[]);
    code.open(run);
    code.instance = slot(code, slots, slot_bytes, thread);
    (thread, done)
}

pub(super) fn thread_number(code: &mut Code<'_>) -> Value {
    let mut read = |which| code.intrinsic(which, &[]).expect("it has a result");
    let (block, threads, thread) =
        (read(Intrinsic::Workgroup), read(Intrinsic::WorkgroupThreads), read(Intrinsic::ThreadInWorkgroup));
    let first = code.ins().imul(block, threads);
    code.ins().iadd(first, thread)
}

/// Returns the instance pointer of a slot, computed on the device as `Layout::slot` does.
pub(super) fn slot(code: &mut Code<'_>, slots: Value, slot_bytes: Value, index: Value) -> Value {
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

/// (instance, selector, start): calls the start function if `start` is not 0, then the selected entry with arguments
/// from the slot, and stores the results there.
pub(super) fn entry(code: &mut Code<'_>, env: &Env<'_>, entries: &[u32]) {
    let (selector, start) = (code.param(1), code.param(2));
    // The last call may have stopped anywhere, and left an exception, a tail call or noted calls behind.
    for at in [env.slots.exception.tag, env.slots.tail.next, env.slots.calls.depth].into_iter().filter(|at| *at > 0) {
        let none = code.i64(0);
        code.set_header(none, at);
    }
    if let Some(function) = env.module.start {
        let (run, next) = (code.b.create_block(), code.b.create_block());
        code.ins().brif(start, run, &[], next, &[]);
        code.open(run);
        let ty = env.module.function_type(function);
        let callee = code.function(namespace::WASM, function, || clif_signature(ty));
        let instance = code.instance;
        code.ins().call(callee, &[instance]);
        check_caught(code, env, function);
        code.ins().jump(next, &[]);
        code.open(next);
    }
    // A selector past the last entry calls nothing, for instantiation alone.
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
        let mut at = env.slots.arguments;
        for param in &ty.params {
            args.push(code.slot_load(param.clif(), region::HEADER, at));
            at += WORD * param.words();
        }
        let call = code.ins().call(callee, &args);
        check_caught(code, env, *function);
        let results = code.b.inst_results(call).to_vec();
        let mut at = env.slots.arguments;
        for (result, ty) in results.into_iter().zip(&ty.results) {
            code.slot_store(result, region::HEADER, at);
            at += WORD * ty.words();
        }
        code.ins().return_(&[]);
    }
    code.open(none);
    code.ins().return_(&[]);
}

/// Traps if the called function returned with a pending exception.
fn check_caught(code: &mut Code<'_>, env: &Env<'_>, function: u32) {
    if env.module.traits.throws[function as usize] {
        let tag = code.header(types::I32, env.slots.exception.tag);
        code.trap_if(tag, TrapCode::UncaughtException);
    }
}
