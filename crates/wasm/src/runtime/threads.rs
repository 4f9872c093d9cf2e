//! The threads of a program, on the device: the lanes that run them, and the memory they share. `abi::threads` describes
//! what they have in common; [`super::spawn`] starts them.

use super::ENTRY;
use super::Helper;
use super::kernel::{note_time_if_asked, set_limits, slot, thread_number};
use super::spawn::{self, Field, Shared};
use crate::code::{self, Code};
use crate::translate::Env;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use gpu_run_abi::Status;
use gpu_run_abi::intrinsic::{Intrinsic, namespace, region};
use gpu_run_abi::layout::{WORD, field};
use gpu_run_abi::threads::{Mailbox, Warp, message, offset};
use std::mem::offset_of;

/// The kernel that runs a program with threads. Its parameters are those of the batch kernel; it has at least one lane for
/// each slot.
pub const THREADS: &str = "threads";

/// How long a parked lane naps between two looks at its mailbox, in nanoseconds: a program that starts a thread waits for
/// half of that, on average.
const NAP: i64 = 4_000;
/// The same for a lane whose warp is in use: the lanes in use stand still while it looks.
const NAP_IN_USE: i64 = 200_000;
/// How often a parked lane looks whether its warp is in use.
const LOOK_EVERY: i64 = 1_000_000;
/// How long a warp that is being filled waits for the next thread, in nanoseconds.
const FILL_TIME: i64 = 2_000_000;

/// The kernel: lane 0 runs the program, the others run what it starts.
pub(super) fn kernel(code: &mut Code<'_>, env: &Env<'_>, thread_start: u32) {
    let (slots, slot_bytes, count) = (code.param(0), code.param(1), code.param(2));
    let (selector, flags, stack, launch) = (code.param(3), code.param(4), code.param(5), code.param(6));
    let lane = thread_number(code);
    code.intrinsic(Intrinsic::StepClear, &[]);
    note_time_if_asked(code, env, launch);
    let start = code.ins().band_imm_u(flags, i64::from(super::kernel::START));
    code.instance = slot(code, slots, slot_bytes, lane);
    let has_slot = code.ins().icmp(IntCC::UnsignedLessThan, lane, count);
    code.if_then(has_slot, false, |code| set_up(code, launch, lane));
    let shared = Shared::of_launch(code, launch);
    let entry = code.function(namespace::RUNTIME, ENTRY, || code::signature([types::I64, types::I32, types::I32], []));
    let (main, parked) = (code.b.create_block(), code.b.create_block());
    code.ins().brif(lane, parked, &[], main, &[]);

    code.open(main);
    set_limits(code, stack);
    let instance = code.instance;
    code.intrinsic(Intrinsic::TakeHotWords, &[instance]);
    code.ins().call(entry, &[instance, selector, start]);
    let returned = code.i64(Status::Returned as i64);
    code.set_header(returned, field::STATUS);
    end_program(code);
    code.ins().return_(&[]);

    code.b.switch_to_block(parked);
    let (lanes, warp) = (
        code.intrinsic(Intrinsic::WorkgroupThreads, &[]).expect("it has a result"),
        code.intrinsic(Intrinsic::Workgroup, &[]).expect("it has a result"),
    );
    let warp = shared.warp(code, warp);
    let (flags, begins) = wait_for_message(code, &shared, lane, lanes, warp);
    let number = code.ins().ireduce(types::I32, flags);
    let number = code.ins().iadd_imm_s(number, -1);
    code.instance = slot(code, slots, slot_bytes, number);
    set_limits(code, stack);
    let (id, argument) =
        (code.ins().band_imm_u(begins, i64::from(u32::MAX)), code.ins().ushr_imm_u(begins, i64::from(u32::BITS)));
    code.slot_store(id, region::HEADER, env.slots.arguments);
    code.slot_store(argument, region::HEADER, env.slots.arguments + WORD);
    let is_together = code.ins().band_imm_u(flags, message::TOGETHER as i64);
    code.if_then(is_together, false, |code| meet(code, &shared, warp));
    let is_alone = code.ins().band_imm_u(flags, message::ALONE as i64);
    let (none, no, starts) = (code.i64(0), code.i32(0), code.i32(2));
    let shared_warp = code.ins().select(is_alone, none, warp);
    code.set_header(shared_warp, field::WARP);
    let shares = code.ins().select(is_alone, no, starts);
    code.intrinsic(Intrinsic::StepJoin, &[shares]);
    // The memory may have grown since the slot became a fresh instance: the thread's stack is likely to be in the new part.
    let length = code.memory_length();
    code.set_memory_length(length);
    let (instance, selector) = (code.instance, code.i32(thread_start.into()));
    code.intrinsic(Intrinsic::TakeHotWords, &[instance]);
    code.ins().call(entry, &[instance, selector, start]);
    code.intrinsic(Intrinsic::StepLeave, &[]);
    // The next thread in this slot finds a fresh instance. The host counts the packets of a slot, whoever sends them.
    let sequence = code.header(types::I32, field::PORT_SEQUENCE);
    set_up(code, launch, number);
    code.set_header(sequence, field::PORT_SEQUENCE);
    spawn::release(code, &shared, number, warp, flags);
    code.ins().jump(parked, &[]);
    code.b.seal_block(parked);
}

fn set_up(code: &mut Code<'_>, launch: Value, number: Value) {
    let no_local_memory = code.i64(0);
    code.call_helper(Helper::SetUp, &[launch, number, no_local_memory]);
}

/// Waits until the lane's mailbox holds a message, and takes it. Exits if the program has ended.
fn wait_for_message(code: &mut Code<'_>, shared: &Shared, lane: Value, lanes: Value, warp: Value) -> (Value, Value) {
    let mailbox = shared.mailbox(code, lane);
    let slot_at = Field::at(mailbox, offset_of!(Mailbox, slot));
    let end = shared.address(code, offset::ENDED_BY);
    let (none, nap) = (code.i64(0), code.i32(NAP));
    let (message, nap) = (code.variable(types::I64, none), code.variable(types::I32, nap));
    // A lane that has its warp for itself never has to look for others.
    let is_one = code.ins().icmp_imm_u(IntCC::Equal, lanes, 1);
    let (forever, a_while) = (code.i64(i64::MAX), code.i64(LOOK_EVERY));
    let longest = code.ins().select(is_one, forever, a_while);
    code.while_loop(
        |code| {
            let word = slot_at.load(code);
            code.b.def_var(message, word);
            code.ins().icmp_imm_u(IntCC::Equal, word, 0)
        },
        |code| {
            let (address, none, slept) = (slot_at.address(code), code.i64(0), code.b.use_var(nap));
            code.intrinsic(Intrinsic::Await, &[address, none, end, longest, slept]);
            exit_if_ended(code, shared);
            let busy = Field::at(warp, offset_of!(Warp, busy)).load(code);
            let (short, long) = (code.i32(NAP), code.i32(NAP_IN_USE));
            let next = code.ins().select(busy, long, short);
            code.b.def_var(nap, next);
        },
    );
    let none = code.i64(0);
    slot_at.store(code, none);
    // What the starting thread wrote before its message is seen from here on.
    code.ins().fence();
    let begins = Field::at(mailbox, offset_of!(Mailbox, start)).load(code);
    (code.b.use_var(message), begins)
}

/// Waits until the lanes that start together are here. If nothing was added for a while, the lane ends the filling.
fn meet(code: &mut Code<'_>, shared: &Shared, warp: Value) {
    let together = Field::at(warp, offset_of!(Warp, together));
    let end = shared.address(code, offset::ENDED_BY);
    let none = code.i64(0);
    let lanes = code.variable(types::I64, none);
    code.while_loop(
        |code| {
            let count = together.load(code);
            code.b.def_var(lanes, count);
            code.ins().icmp_imm_u(IntCC::Equal, count, 0)
        },
        |code| {
            let (address, none, time, nap) = (together.address(code), code.i64(0), code.i64(FILL_TIME), code.i32(NAP));
            code.intrinsic(Intrinsic::Await, &[address, none, end, time, nap]);
            exit_if_ended(code, shared);
            let now = code.intrinsic(Intrinsic::GlobalTimer, &[]).expect("it has a result");
            let added = Field::at(warp, offset_of!(Warp, added)).load(code);
            let passed = code.ins().isub(now, added);
            let is_late = code.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, passed, FILL_TIME);
            code.if_then(is_late, true, |code| spawn::finish_filling(code, shared));
        },
    );
    let lanes = code.b.use_var(lanes);
    let mask = spawn::lowest(code, lanes);
    let mask = code.ins().ireduce(types::I32, mask);
    code.intrinsic(Intrinsic::WarpBarrier, &[mask]);
}

/// Ends this lane if the program has ended.
pub(super) fn exit_if_ended(code: &mut Code<'_>, shared: &Shared) {
    let ended = shared.word(offset::ENDED_BY).load(code);
    code.if_then(ended, true, |code| {
        code.intrinsic(Intrinsic::Exit, &[]);
    });
}

/// (bytes) -> the memory's length before, or -1 if it cannot grow by so much.
pub(super) fn grow(code: &mut Code<'_>, _: &Env<'_>) {
    let delta = code.param(1);
    if !code.is_shared {
        // Only programs with threads call this.
        let failed = code.i64(-1);
        code.ins().return_(&[failed]);
        return;
    }
    let shared = Shared::of_slot(code);
    let (limit, at) = (shared.word(offset::LIMIT).load(code), shared.word(offset::LENGTH));
    let old = at.update(code, |code, seen| {
        let wanted = code.ins().iadd(seen, delta);
        let is_refused = code.ins().icmp(IntCC::UnsignedGreaterThan, wanted, limit);
        code.if_then(is_refused, true, |code| code.set_header(wanted, field::GROWTH_REFUSED));
        let failed = code.i64(-1);
        code.if_return(is_refused, failed);
        wanted
    });
    let new = code.ins().iadd(old, delta);
    code.set_memory_length(new);
    code.ins().return_(&[old]);
}

/// Notes which thread ended the program, if it is the first, and stops all others.
pub(super) fn end_program(code: &mut Code<'_>) {
    let shared = Shared::of_slot(code);
    let (at, flags) = (shared.address(code, offset::ENDED_BY), code.trusted(region::BUS));
    let (nobody, index) = (code.i64(0), code.header(types::I64, field::INDEX));
    let own = code.ins().iadd_imm_s(index, 1);
    code.ins().atomic_cas(flags, at, nobody, own);
    let (stop, now) = (code.stop_address(), code.i32(1));
    code.ins().atomic_store(flags, now, stop);
    code.intrinsic(Intrinsic::Wake, &[at]);
}
