//! The threads of a program, on the device: starting them, parking them, and the memory they share. `abi::threads`
//! describes what they have in common.

use super::ENTRY;
use super::Helper;
use super::kernel::{note_time_if_asked, own_slot, set_limits};
use crate::code::{self, Code};
use crate::translate::Env;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AtomicRmwOp, InstBuilder, Value, types};
use gpu_run_abi::Status;
use gpu_run_abi::intrinsic::{Intrinsic, namespace, region};
use gpu_run_abi::launch;
use gpu_run_abi::layout::{WORD, field};
use gpu_run_abi::threads::{MAX_ID, offset};

/// The kernel that runs a program with threads. Its parameters are those of the batch kernel.
pub const THREADS: &str = "threads";

/// What starting a thread returns when all of them run: WASI's errno `again`, negative.
const NONE_PARKED: i64 = -6;
/// The lower half of [`gpu_run_abi::threads::Record::parked`]: a slot plus one.
const SLOT_MASK: i64 = u32::MAX as i64;

/// The kernel: thread 0 runs the program, the others run what it starts.
pub(super) fn kernel(code: &mut Code<'_>, env: &Env<'_>, thread_start: u32) {
    let (selector, flags, stack, launch) = (code.param(3), code.param(4), code.param(5), code.param(6));
    let (thread, done) = own_slot(code);
    note_time_if_asked(code, env, launch);
    let start = code.ins().band_imm_u(flags, i64::from(super::kernel::START));
    set_up(code, launch, thread, stack);
    let (main, parked) = (code.b.create_block(), code.b.create_block());
    code.ins().brif(thread, parked, &[], main, &[]);
    code.open(main);
    let entry = code.function(namespace::RUNTIME, ENTRY, || code::signature([types::I64, types::I32, types::I32], []));
    let instance = code.instance;
    code.ins().call(entry, &[instance, selector, start]);
    let returned = code.i64(Status::Returned as i64);
    code.set_header(returned, field::STATUS);
    end_program(code);
    code.ins().jump(done, &[]);

    code.b.switch_to_block(parked);
    let message = wait_for_message(code, launch, thread);
    let (id, argument) = (code.ins().band_imm_u(message, SLOT_MASK), code.ins().ushr_imm_u(message, 32));
    code.slot_store(id, region::HEADER, env.slots.arguments);
    code.slot_store(argument, region::HEADER, env.slots.arguments + WORD);
    let selector = code.i32(thread_start.into());
    code.ins().call(entry, &[instance, selector, start]);
    // The next message finds a fresh instance. The host counts the packets of a slot, whoever sends them.
    let sequence = code.header(types::I32, field::PORT_SEQUENCE);
    set_up(code, launch, thread, stack);
    code.set_header(sequence, field::PORT_SEQUENCE);
    park(code, launch, thread);
    code.ins().jump(parked, &[]);
    code.b.seal_block(parked);
    code.open(done);
    code.ins().return_(&[]);
}

fn set_up(code: &mut Code<'_>, launch: Value, thread: Value, stack: Value) {
    let no_local_memory = code.i64(0);
    code.call_helper(Helper::SetUp, &[launch, thread, no_local_memory]);
    set_limits(code, stack);
}

/// Returns the device address of guest byte 0, for code that may run before the slot has its header.
fn memory(code: &mut Code<'_>, launch: Value) -> Value {
    let flags = code.trusted(region::BUS);
    code.ins().load(types::I64, flags, launch, launch::offset::THREADS as i32)
}

/// Returns a word of the record that does not change.
fn record_word(code: &mut Code<'_>, memory: Value, at: i32) -> Value {
    let flags = code.trusted(region::BUS);
    code.ins().load(types::I64, flags, memory, at)
}

/// Returns the device address of a slot's entry in an array of words.
fn entry_of(code: &mut Code<'_>, array: Value, slot: Value) -> Value {
    let wide = code.ins().uextend(types::I64, slot);
    let offset = code.ins().imul_imm_u(wide, WORD as i64);
    code.ins().iadd(array, offset)
}

/// Waits until the thread's mailbox holds a message, and takes it. Exits if the program has ended.
fn wait_for_message(code: &mut Code<'_>, launch: Value, thread: Value) -> Value {
    let memory = memory(code, launch);
    let mailboxes = record_word(code, memory, offset::MAILBOXES);
    let (mailbox, flags) = (entry_of(code, mailboxes, thread), code.trusted(region::BUS));
    let end = code.ins().iadd_imm_s(memory, i64::from(offset::ENDED_BY));
    let none = code.i64(0);
    let message = code.variable(types::I64, none);
    code.while_loop(
        |code| {
            let word = code.ins().atomic_load(types::I64, flags, mailbox);
            code.b.def_var(message, word);
            code.ins().icmp_imm_u(IntCC::Equal, word, 0)
        },
        |code| {
            let (none, forever) = (code.i64(0), code.i64(i64::MAX));
            code.intrinsic(Intrinsic::Await, &[mailbox, none, end, forever]);
            let ended = code.ins().atomic_load(types::I64, flags, end);
            code.if_then(ended, true, |code| {
                code.intrinsic(Intrinsic::Exit, &[]);
            });
        },
    );
    let none = code.i64(0);
    code.ins().atomic_store(flags, none, mailbox);
    // What the starting thread wrote before its message is seen from here on.
    code.ins().fence();
    code.b.use_var(message)
}

/// Adds the thread to the parked ones.
fn park(code: &mut Code<'_>, launch: Value, thread: Value) {
    let memory = memory(code, launch);
    let flags = code.trusted(region::BUS);
    let less = code.i64(-1);
    let running = code.ins().iadd_imm_s(memory, i64::from(offset::RUNNING));
    code.ins().atomic_rmw(types::I64, flags, AtomicRmwOp::Add, running, less);
    let next = record_word(code, memory, offset::NEXT_PARKED);
    let next = entry_of(code, next, thread);
    let own = code.ins().uextend(types::I64, thread);
    let own = code.ins().iadd_imm_s(own, 1);
    let parked = code.ins().iadd_imm_s(memory, i64::from(offset::PARKED));
    exchange(code, parked, |code, head| {
        let first = code.ins().band_imm_u(head, SLOT_MASK);
        code.ins().atomic_store(flags, first, next);
        own
    });
}

/// Replaces the first of the parked threads by what `with` returns for the present head, and raises the count above it.
/// Repeats that until no other thread interferes. Returns the head that was replaced.
fn exchange(code: &mut Code<'_>, at: Value, with: impl FnOnce(&mut Code<'_>, Value) -> Value) -> Value {
    let flags = code.trusted(region::BUS);
    let head = code.ins().atomic_load(types::I64, flags, at);
    let head = code.variable(types::I64, head);
    code.while_loop(
        |code| {
            let seen = code.b.use_var(head);
            let first = with(code, seen);
            let count = code.ins().ushr_imm_u(seen, 32);
            let count = code.ins().iadd_imm_s(count, 1);
            let count = code.ins().ishl_imm_u(count, 32);
            let new = code.ins().bor(count, first);
            let found = code.ins().atomic_cas(flags, at, seen, new);
            code.b.def_var(head, found);
            code.ins().icmp(IntCC::NotEqual, found, seen)
        },
        |_| {},
    );
    code.b.use_var(head)
}

/// `wasi.thread-spawn`: (argument) -> the thread's identifier, or a negative number if no thread is parked.
pub(super) fn spawn(code: &mut Code<'_>) {
    let argument = code.param(1);
    let memory = code.constant_field(field::MEMORY_AT);
    let flags = code.trusted(region::BUS);
    let next = record_word(code, memory, offset::NEXT_PARKED);
    let parked = code.ins().iadd_imm_s(memory, i64::from(offset::PARKED));
    let head = exchange(code, parked, |code, head| {
        let first = code.ins().band_imm_u(head, SLOT_MASK);
        let (nobody, refused) = (code.ins().icmp_imm_u(IntCC::Equal, first, 0), code.i32(NONE_PARKED));
        code.if_return(nobody, refused);
        let slot = code.ins().ireduce(types::I32, first);
        let slot = code.ins().iadd_imm_s(slot, -1);
        let at = entry_of(code, next, slot);
        code.ins().atomic_load(types::I64, flags, at)
    });
    let slot = code.ins().ireduce(types::I32, head);
    let slot = code.ins().iadd_imm_s(slot, -1);
    let one = code.i64(1);
    let add = |code: &mut Code<'_>, at: i32| {
        let address = code.ins().iadd_imm_s(memory, i64::from(at));
        code.ins().atomic_rmw(types::I64, flags, AtomicRmwOp::Add, address, one)
    };
    let number = add(code, offset::LAST_ID);
    add(code, offset::STARTED);
    let running = add(code, offset::RUNNING);
    let running = code.ins().iadd_imm_s(running, 1);
    let most = code.ins().iadd_imm_s(memory, i64::from(offset::MOST_RUNNING));
    code.ins().atomic_rmw(types::I64, flags, AtomicRmwOp::Umax, most, running);
    // Identifiers are 1 to MAX_ID, and then from 1 on again.
    let count = code.i64(MAX_ID.into());
    let id = code.ins().urem(number, count);
    let id = code.ins().iadd_imm_s(id, 1);
    let high = code.ins().uextend(types::I64, argument);
    let high = code.ins().ishl_imm_u(high, 32);
    let message = code.ins().bor(id, high);
    let mailboxes = record_word(code, memory, offset::MAILBOXES);
    let mailbox = entry_of(code, mailboxes, slot);
    // All that this thread wrote before is seen by the thread it starts.
    code.ins().fence();
    code.ins().atomic_store(flags, message, mailbox);
    code.intrinsic(Intrinsic::Wake, &[mailbox]);
    let id = code.ins().ireduce(types::I32, id);
    code.ins().return_(&[id]);
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
    let (at, flags) = (code.shared_address(offset::LENGTH), code.trusted(region::BUS));
    let limit = code.shared_word(offset::LIMIT);
    let length = code.ins().atomic_load(types::I64, flags, at);
    let length = code.variable(types::I64, length);
    code.while_loop(
        |code| {
            let seen = code.b.use_var(length);
            let wanted = code.ins().iadd(seen, delta);
            let is_refused = code.ins().icmp(IntCC::UnsignedGreaterThan, wanted, limit);
            code.if_then(is_refused, true, |code| code.set_header(wanted, field::GROWTH_REFUSED));
            let failed = code.i64(-1);
            code.if_return(is_refused, failed);
            let found = code.ins().atomic_cas(flags, at, seen, wanted);
            code.b.def_var(length, found);
            code.ins().icmp(IntCC::NotEqual, found, seen)
        },
        |_| {},
    );
    let old = code.b.use_var(length);
    let new = code.ins().iadd(old, delta);
    code.set_memory_length(new);
    code.ins().return_(&[old]);
}

/// Notes which thread ended the program, if it is the first, and stops all others.
pub(super) fn end_program(code: &mut Code<'_>) {
    let (at, flags) = (code.shared_address(offset::ENDED_BY), code.trusted(region::BUS));
    let (nobody, index) = (code.i64(0), code.header(types::I64, field::INDEX));
    let own = code.ins().iadd_imm_s(index, 1);
    code.ins().atomic_cas(flags, at, nobody, own);
    let (stop, now) = (code.stop_address(), code.i32(1));
    code.ins().atomic_store(flags, now, stop);
    code.intrinsic(Intrinsic::Wake, &[at]);
}
