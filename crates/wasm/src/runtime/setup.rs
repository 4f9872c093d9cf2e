//! Turns a slot into a fresh instance. The thread that will run the instance does this, so that lanes in step write
//! side by side.

use super::Helper;
use crate::code::Code;
use crate::translate::Env;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use cranelift_frontend::Variable;
use gpu_run_abi::intrinsic::region;
use gpu_run_abi::launch::{answers, offset, outbox};
use gpu_run_abi::layout::{PAGE, WORD, field};

/// (launch, index, own): clears what the last instance left, copies the image, and fills in the slot's own fields.
/// `own` is where guest byte 0 is in the thread's local memory.
pub(super) fn set_up(code: &mut Code<'_>, env: &Env<'_>) {
    let (launch, index) = (code.param(1), code.param(2));
    let (zero, low) = (code.i32(0), env.slots.low as i64);
    let first = code.i32(low);
    // The guest address up to which local memory is initialised. Local memory may hold what another instance left
    // there.
    let ready = code.variable(types::I32, first);
    match code.is_local {
        // Threads share a memory: what is in it is not this thread's to clear.
        _ if code.is_shared => {}
        true => {
            let own = code.param(3);
            code.set_header(own, field::MEMORY_AT);
        }
        false => {
            // A slot that was never used has 0 here.
            let used = code.header(types::I32, field::MEMORY_BYTES);
            let cleared = read(code, launch, offset::CLEARED);
            let cleared = code.ins().ireduce(types::I32, cleared);
            let first = code.ins().umax(first, cleared);
            let end = code.ins().umax(first, used);
            let length = code.ins().isub(end, first);
            code.call_helper(Helper::GuestFill, &[first, zero, length]);
        }
    }
    for memory in &env.slots.memories {
        let used = code.header(types::I32, memory.length);
        let base = code.side_memory(memory);
        code.call_helper(Helper::FillIn, &[zero, zero, used, base]);
    }
    copy_image(code, env, launch, ready);
    if code.is_local {
        let end = code.i32(env.module.memories.first().map_or(0, |m| m.minimum * PAGE) as i64);
        clear_to(code, ready, end);
    }
    code.set_header(launch, field::LAUNCH);
    let index = code.ins().uextend(types::I64, index);
    code.set_header(index, field::INDEX);
    let port = place(code, launch, index, offset::PORTS, offset::PORT_BYTES);
    code.set_header(port, field::PORT);
    let flags = read(code, launch, offset::ANSWERS);
    code.set_header(flags, field::ANSWERS);
    let streams = code.ins().band_imm_s(flags, !answers::CLOCK as i64);
    code.if_then(streams, false, |code| {
        let outbox = place(code, launch, index, offset::OUTBOX, offset::OUTBOX_BYTES);
        code.set_header(outbox, field::OUTBOX);
        let head = code.i64(outbox::HEAD as i64);
        code.set_header(head, field::OUTBOX_USED);
        let stdin = read(code, launch, offset::STDIN);
        let pair = code.ins().imul_imm_u(index, 2 * WORD as i64);
        let stdin = code.ins().iadd(stdin, pair);
        let (at, length) = (read(code, stdin, 0), read(code, stdin, WORD));
        code.set_header(at, field::STDIN);
        code.set_header(length, field::STDIN_LEFT);
        let bus = code.trusted(region::BUS);
        let (empty, left) = (code.i64(outbox::EMPTY as i64), code.ins().ireduce(types::I32, length));
        code.ins().store(bus, empty, outbox, outbox::USED as i32);
        code.ins().store(bus, left, outbox, outbox::STDIN_LEFT as i32);
        super::answers::unheard(code);
    });
    code.ins().return_(&[]);
}

/// Loads a word of the launch's description.
fn read(code: &mut Code<'_>, base: Value, at: u64) -> Value {
    let flags = code.trusted(region::CONSTANT);
    code.ins().load(types::I64, flags, base, at as i32)
}

/// Returns where the slot's own element of an array begins.
fn place(code: &mut Code<'_>, launch: Value, index: Value, first: u64, bytes: u64) -> Value {
    let (first, bytes) = (read(code, launch, first), read(code, launch, bytes));
    let offset = code.ins().imul(index, bytes);
    code.ins().iadd(first, offset)
}

/// Clears the thread's local memory from `ready` to a guest address (i32).
fn clear_to(code: &mut Code<'_>, ready: Variable, end: Value) {
    let (first, zero) = (code.b.use_var(ready), code.i32(0));
    let length = code.ins().isub(end, first);
    code.call_helper(Helper::GuestFill, &[first, zero, length]);
}

/// Copies the image's pieces, each of which is an offset in the slot, a number of words, and the words. The pieces of a
/// memory are in ascending order.
fn copy_image(code: &mut Code<'_>, env: &Env<'_>, launch: Value, ready: Variable) {
    let (image, pieces) = (read(code, launch, offset::IMAGE), read(code, launch, offset::PIECES));
    let (from, left) = (code.variable(types::I64, image), code.variable(types::I64, pieces));
    code.while_loop(
        |code| code.b.use_var(left),
        |code| {
            let piece = code.b.use_var(from);
            let (at, words) = (read(code, piece, 0), read(code, piece, WORD));
            let source = code.ins().iadd_imm_s(piece, 2 * WORD as i64);
            let bytes = code.ins().imul_imm_u(words, WORD as i64);
            let words_to_slot = |code: &mut Code<'_>| {
                let spread = code.layout.spread() as i64;
                let to = code.ins().imul_imm_u(at, spread);
                let instance = code.instance;
                let to = code.ins().iadd(instance, to);
                let count = code.ins().ireduce(types::I32, words);
                code.call_helper(Helper::WordsInit, &[to, source, count]);
            };
            match code.is_local {
                false => words_to_slot(code),
                true => {
                    let own = code.param(3);
                    let (slot, memory, join) = (code.b.create_block(), code.b.create_block(), code.b.create_block());
                    let first = env.slots.memory as i64;
                    let is_memory = code.ins().icmp_imm_u(IntCC::UnsignedGreaterThanOrEqual, at, first);
                    code.ins().brif(is_memory, memory, &[], slot, &[]);
                    code.open(slot);
                    words_to_slot(code);
                    code.set_header(own, field::MEMORY_AT);
                    code.ins().jump(join, &[]);
                    code.open(memory);
                    let to = code.ins().ireduce(types::I32, at);
                    let to = code.ins().iadd_imm_s(to, env.slots.low as i64 - first);
                    let length = code.ins().ireduce(types::I32, bytes);
                    clear_to(code, ready, to);
                    code.call_helper(Helper::GuestWrite, &[to, source, length]);
                    let end = code.ins().iadd(to, length);
                    code.b.def_var(ready, end);
                    code.ins().jump(join, &[]);
                    code.open(join);
                }
            }
            let next = code.ins().iadd(source, bytes);
            code.b.def_var(from, next);
            let rest = code.b.use_var(left);
            let rest = code.ins().iadd_imm_s(rest, -1);
            code.b.def_var(left, rest);
        },
    );
}
