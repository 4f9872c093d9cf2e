//! Starting a thread: a slot for it, and a lane to run it. `abi::threads` describes the lists that both come from.
//!
//! A list is a stack without locks. Its head holds a count above the first entry, so that an exchange fails if the list
//! was changed in between, even if the same entry is the first one again.

use super::threads::exit_if_ended;
use crate::code::Code;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AtomicRmwOp, Block, InstBuilder, Value, types};
use gpu_run_abi::intrinsic::{Intrinsic, region};
use gpu_run_abi::launch;
use gpu_run_abi::layout::{WORD, field};
use gpu_run_abi::threads::{LANES, MAX_ID, Mailbox, Waiter, Warp, message, offset};
use std::mem::{offset_of, size_of};

/// What starting a thread returns when all of them run: WASI's errno `again`, negative.
const NONE_FREE: i64 = -6;
/// How long starting a thread waits for another one to end before it is refused, in nanoseconds. A thread that was joined
/// has told so by the guest's memory, and has its slot and its lane a little longer.
const PATIENCE: i64 = 100_000_000;
/// How long it waits between two attempts, and how long it naps in between.
const RETRY_AFTER: i64 = 1_000_000;
const RETRY_NAP: i64 = 4_000;
/// The half of a list's head, or of the word about the filling, that names an entry.
const ENTRY: i64 = u32::MAX as i64;
const COUNT_SHIFT: i64 = u32::BITS as i64;

/// The words that all threads share, at negative offsets from guest byte 0.
#[derive(Clone, Copy)]
pub(super) struct Shared {
    memory: Value,
}

/// A word that several threads change.
#[derive(Clone, Copy)]
pub(super) struct Field {
    base: Value,
    at: i32,
}

impl Shared {
    /// For code that may run before the slot has its header.
    pub(super) fn of_launch(code: &mut Code<'_>, launch: Value) -> Self {
        let flags = code.trusted(region::BUS);
        Self { memory: code.ins().load(types::I64, flags, launch, launch::offset::THREADS as i32) }
    }

    pub(super) fn of_slot(code: &mut Code<'_>) -> Self {
        Self { memory: code.constant_field(field::MEMORY_AT) }
    }

    pub(super) fn word(&self, at: i32) -> Field {
        Field { base: self.memory, at }
    }

    pub(super) fn address(&self, code: &mut Code<'_>, at: i32) -> Value {
        self.word(at).address(code)
    }

    /// Returns a word that does not change.
    fn constant(&self, code: &mut Code<'_>, at: i32) -> Value {
        let flags = code.trusted(region::BUS);
        code.ins().load(types::I64, flags, self.memory, at)
    }

    pub(super) fn warp(&self, code: &mut Code<'_>, number: Value) -> Value {
        self.entry(code, offset::WARPS, number, size_of::<Warp>())
    }

    pub(super) fn mailbox(&self, code: &mut Code<'_>, lane: Value) -> Value {
        self.entry(code, offset::MAILBOXES, lane, size_of::<Mailbox>())
    }

    /// Returns the address of entry `number` (i32) of an array.
    pub(super) fn entry(&self, code: &mut Code<'_>, array: i32, number: Value, bytes: usize) -> Value {
        let array = self.constant(code, array);
        let number = code.ins().uextend(types::I64, number);
        let at = code.ins().imul_imm_u(number, bytes as i64);
        code.ins().iadd(array, at)
    }
}

impl Field {
    pub(super) fn at(base: Value, at: usize) -> Self {
        Self { base, at: at as i32 }
    }

    pub(super) fn address(self, code: &mut Code<'_>) -> Value {
        code.ins().iadd_imm_s(self.base, i64::from(self.at))
    }

    pub(super) fn load(self, code: &mut Code<'_>) -> Value {
        let (address, flags) = (self.address(code), code.trusted(region::BUS));
        code.ins().atomic_load(types::I64, flags, address)
    }

    pub(super) fn store(self, code: &mut Code<'_>, value: Value) {
        let (address, flags) = (self.address(code), code.trusted(region::BUS));
        code.ins().atomic_store(flags, value, address);
    }

    /// Adds to the word, and orders nothing else; returns what it was.
    fn add(self, code: &mut Code<'_>, by: i64) -> Value {
        let (address, by) = (self.address(code), code.i64(by));
        code.intrinsic(Intrinsic::Count, &[address, by]).expect("it has a result")
    }

    /// Clears bits of the word; returns what it was.
    fn and(self, code: &mut Code<'_>, bits: Value) -> Value {
        let (address, flags) = (self.address(code), code.trusted(region::BUS));
        code.ins().atomic_rmw(types::I64, flags, AtomicRmwOp::And, address, bits)
    }

    /// Replaces `old` by `new`; returns what was there.
    fn exchange(self, code: &mut Code<'_>, old: Value, new: Value) -> Value {
        let (address, flags) = (self.address(code), code.trusted(region::BUS));
        code.ins().atomic_cas(flags, address, old, new)
    }

    /// Replaces the word by what `with` makes of it, again and again until no other thread interferes. Returns what it
    /// was.
    pub(super) fn update(self, code: &mut Code<'_>, with: impl FnOnce(&mut Code<'_>, Value) -> Value) -> Value {
        let word = self.load(code);
        let word = code.variable(types::I64, word);
        code.while_loop(
            |code| {
                let seen = code.b.use_var(word);
                let new = with(code, seen);
                let found = self.exchange(code, seen, new);
                code.b.def_var(word, found);
                code.ins().icmp(IntCC::NotEqual, found, seen)
            },
            |_| {},
        );
        code.b.use_var(word)
    }

    /// Takes the first entry from the list with this head: returns its number (i32). If there is none, goes to `empty`.
    fn take(self, code: &mut Code<'_>, next: impl Fn(&mut Code<'_>, Value) -> Field, empty: Block) -> Value {
        let head = self.update(code, |code, head| {
            let first = entry_of(code, head);
            let some = code.b.create_block();
            let any = code.ins().band_imm_u(head, ENTRY);
            code.ins().brif(any, some, &[], empty, &[]);
            code.open(some);
            let after = next(code, first).load(code);
            raised(code, head, after)
        });
        entry_of(code, head)
    }

    /// Puts an entry at the front of the list with this head.
    fn give(self, code: &mut Code<'_>, entry: Value, next: Field) {
        let entry = code.ins().uextend(types::I64, entry);
        let first = code.ins().iadd_imm_s(entry, 1);
        self.update(code, |code, head| {
            let before = code.ins().band_imm_u(head, ENTRY);
            next.store(code, before);
            raised(code, head, first)
        });
    }
}

/// Returns the entry that a word names (i32).
fn entry_of(code: &mut Code<'_>, word: Value) -> Value {
    let entry = code.ins().ireduce(types::I32, word);
    code.ins().iadd_imm_s(entry, -1)
}

/// Returns a list's head with another first entry and the next count.
fn raised(code: &mut Code<'_>, head: Value, first: Value) -> Value {
    let count = code.ins().ushr_imm_u(head, COUNT_SHIFT);
    let count = code.ins().iadd_imm_s(count, 1);
    let count = code.ins().ishl_imm_u(count, COUNT_SHIFT);
    code.ins().bor(count, first)
}

/// Returns the lowest `count` bits.
pub(super) fn lowest(code: &mut Code<'_>, count: Value) -> Value {
    let one = code.i64(1);
    let above = code.ins().ishl(one, count);
    code.ins().iadd_imm_s(above, -1)
}

fn next_slot(code: &mut Code<'_>, shared: &Shared, slot: Value) -> Field {
    Field::at(shared.entry(code, offset::NEXT_SLOTS, slot, WORD as usize), 0)
}

fn next_warp(code: &mut Code<'_>, shared: &Shared, warp: Value) -> Field {
    Field::at(shared.warp(code, warp), offset_of!(Warp, next))
}

fn take_warp(code: &mut Code<'_>, shared: &Shared, empty: Block) -> Value {
    shared.word(offset::FREE_WARPS).take(code, |code, warp| next_warp(code, shared, warp), empty)
}

fn give_warp(code: &mut Code<'_>, shared: &Shared, warp: Value) {
    let next = next_warp(code, shared, warp);
    shared.word(offset::FREE_WARPS).give(code, warp, next);
}

fn give_slot(code: &mut Code<'_>, shared: &Shared, slot: Value) {
    let next = next_slot(code, shared, slot);
    shared.word(offset::FREE_SLOTS).give(code, slot, next);
}

/// `wasi.thread-spawn`: (argument) -> the thread's identifier, or a negative number if all threads run.
pub(super) fn spawn(code: &mut Code<'_>) {
    let argument = code.param(1);
    let shared = Shared::of_slot(code);
    let not_yet = code.i64(0);
    let first_refused = code.variable(types::I64, not_yet);
    let (attempt, refused) = (code.b.create_block(), code.b.create_block());
    code.ins().jump(attempt, &[]);
    code.b.switch_to_block(attempt);
    let free = shared.word(offset::FREE_SLOTS);
    let slot = free.take(code, |code, slot| next_slot(code, &shared, slot), refused);
    let number = shared.word(offset::LAST_ID).add(code, 1);
    // Identifiers are 1 to MAX_ID, and then from 1 on again.
    let count = code.i64(MAX_ID.into());
    let id = code.ins().urem(number, count);
    let id = code.ins().iadd_imm_s(id, 1);
    let waiter = shared.entry(code, offset::WAITERS, slot, size_of::<Waiter>());
    // For the host only: the message behind it has the fence.
    let flags = code.trusted(region::BUS);
    code.ins().store(flags, id, waiter, offset_of!(Waiter, id) as i32);
    let high = code.ins().uextend(types::I64, argument);
    let high = code.ins().ishl_imm_u(high, i64::from(u32::BITS));
    let start = code.ins().bor(id, high);
    let message = code.ins().uextend(types::I64, slot);
    let message = code.ins().iadd_imm_s(message, 1);
    let id = code.ins().ireduce(types::I32, id);
    let done = code.b.create_block();

    let [not_alone, in_warp, in_use, none] = std::array::from_fn(|_| code.b.create_block());
    alone(code, &shared, message, start, not_alone, done);
    code.open(not_alone);
    let lanes = code.intrinsic(Intrinsic::WorkgroupThreads, &[]).expect("it has a result");
    let is_one = code.ins().icmp_imm_u(IntCC::Equal, lanes, 1);
    code.ins().brif(is_one, none, &[], in_warp, &[]);
    code.open(in_warp);
    together(code, &shared, message, start, in_use, done);
    code.open(in_use);
    among_others(code, &shared, message, start, none, done);
    code.open(none);
    give_slot(code, &shared, slot);
    code.ins().jump(refused, &[]);

    code.open(done);
    shared.word(offset::STARTED).add(code, 1);
    let running = shared.word(offset::RUNNING).add(code, 1);
    let running = code.ins().iadd_imm_s(running, 1);
    let (most, flags) = (shared.address(code, offset::MOST_RUNNING), code.trusted(region::BUS));
    // An old value is a smaller one.
    let seen = code.ins().load(types::I64, flags, most, 0);
    let is_more = code.ins().icmp(IntCC::UnsignedGreaterThan, running, seen);
    code.if_then(is_more, true, |code| {
        code.ins().atomic_rmw(types::I64, flags, AtomicRmwOp::Umax, most, running);
    });
    code.ins().return_(&[id]);
    code.open(refused);
    let now = code.intrinsic(Intrinsic::GlobalTimer, &[]).expect("it has a result");
    let before = code.b.use_var(first_refused);
    let begun = code.ins().select(before, before, now);
    code.b.def_var(first_refused, begun);
    let passed = code.ins().isub(now, begun);
    let is_late = code.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, passed, PATIENCE);
    let again = code.i32(NONE_FREE);
    code.if_return(is_late, again);
    finish_filling(code, &shared);
    let (address, seen) = (free.address(code), free.load(code));
    let end = shared.address(code, offset::ENDED_BY);
    let (time, nap) = (code.i64(RETRY_AFTER), code.i32(RETRY_NAP));
    code.intrinsic(Intrinsic::Await, &[address, seen, end, time, nap]);
    exit_if_ended(code, &shared);
    code.ins().jump(attempt, &[]);
    code.b.seal_block(attempt);
}

/// Starts the thread in a warp of its own, and goes to `done`; or goes to `otherwise`, if there are enough of them.
fn alone(code: &mut Code<'_>, shared: &Shared, message: Value, start: Value, otherwise: Block, done: Block) {
    let (count, most) = (shared.word(offset::ALONE).load(code), shared.constant(code, offset::MOST_ALONE));
    let may = code.ins().icmp(IntCC::UnsignedLessThan, count, most);
    let yes = code.b.create_block();
    code.ins().brif(may, yes, &[], otherwise, &[]);
    code.open(yes);
    let warp = take_warp(code, shared, otherwise);
    shared.word(offset::ALONE).add(code, 1);
    let (place, first) = (shared.warp(code, warp), code.i64(1));
    Field::at(place, offset_of!(Warp, busy)).store(code, first);
    let lanes = code.intrinsic(Intrinsic::WorkgroupThreads, &[]).expect("it has a result");
    let lane = code.ins().imul(warp, lanes);
    let message = code.ins().bor_imm_u(message, message::ALONE as i64);
    send(code, shared, lane, message, start);
    code.ins().jump(done, &[]);
}

/// Adds the thread to the warp that is being filled, and goes to `done`; or goes to `otherwise`, if there is no warp.
fn together(code: &mut Code<'_>, shared: &Shared, message: Value, start: Value, otherwise: Block, done: Block) {
    let retry = code.b.create_block();
    code.ins().jump(retry, &[]);

    code.b.switch_to_block(retry);
    let filling = shared.word(offset::FILLING);
    let seen = filling.load(code);
    let (fresh, add, added) = (code.b.create_block(), code.b.create_block(), code.b.create_block());
    for ty in [types::I32, types::I64] {
        code.b.append_block_param(added, ty);
    }
    code.ins().brif(seen, add, &[], fresh, &[]);

    // The warp has a lane left: a warp whose last lane is taken is not being filled any more.
    code.open(add);
    let count = code.ins().ushr_imm_u(seen, COUNT_SHIFT);
    let next = code.ins().iadd_imm_s(count, 1);
    let is_full = code.ins().icmp_imm_u(IntCC::Equal, next, LANES as i64);
    let (none, one_more) = (code.i64(0), code.ins().iadd_imm_s(seen, 1 << COUNT_SHIFT));
    let new = code.ins().select(is_full, none, one_more);
    let found = filling.exchange(code, seen, new);
    let is_ours = code.ins().icmp(IntCC::Equal, found, seen);
    let warp = entry_of(code, seen);
    code.ins().brif(is_ours, added, &[warp.into(), count.into()], retry, &[]);

    code.open(fresh);
    let warp = take_warp(code, shared, otherwise);
    let first = code.ins().uextend(types::I64, warp);
    let first = code.ins().iadd_imm_s(first, 1 + (1 << COUNT_SHIFT));
    let none = code.i64(0);
    let found = filling.exchange(code, none, first);
    let (lost, won) = (code.b.create_block(), code.b.create_block());
    code.ins().brif(found, lost, &[], won, &[]);
    code.open(lost);
    give_warp(code, shared, warp);
    code.ins().jump(retry, &[]);
    code.open(won);
    let none = code.i64(0);
    code.ins().jump(added, &[warp.into(), none.into()]);
    code.b.seal_block(retry);

    code.open(added);
    let [warp, count] = *code.b.block_params(added) else { unreachable!("it has two") };
    let place = shared.warp(code, warp);
    let now = code.intrinsic(Intrinsic::GlobalTimer, &[]).expect("it has a result");
    Field::at(place, offset_of!(Warp, added)).store(code, now);
    let first = code.ins().imul_imm_u(warp, LANES as i64);
    let lane = code.ins().ireduce(types::I32, count);
    let lane = code.ins().iadd(first, lane);
    let message = code.ins().bor_imm_u(message, message::TOGETHER as i64);
    send(code, shared, lane, message, start);
    let is_last = code.ins().icmp_imm_u(IntCC::Equal, count, LANES as i64 - 1);
    code.if_then(is_last, false, |code| {
        let lanes = code.i64(LANES as i64);
        begin(code, shared, warp, lanes);
    });
    code.ins().jump(done, &[]);
}

/// Starts the thread in a parked lane of a warp in use, and goes to `done`; or goes to `otherwise`, if there is none.
fn among_others(code: &mut Code<'_>, shared: &Shared, message: Value, start: Value, otherwise: Block, done: Block) {
    let (from, count) = (shared.word(offset::SEARCHED).load(code), shared.constant(code, offset::WARP_COUNT));
    let left = code.variable(types::I64, count);
    let at = code.variable(types::I64, from);
    let found = code.b.create_block();
    for ty in [types::I32, types::I64] {
        code.b.append_block_param(found, ty);
    }
    code.while_loop(
        |code| code.b.use_var(left),
        |code| {
            let number = code.b.use_var(at);
            let number = code.ins().urem(number, count);
            let warp = code.ins().ireduce(types::I32, number);
            let place = shared.warp(code, warp);
            let busy = Field::at(place, offset_of!(Warp, busy));
            let seen = busy.load(code);
            // Neither unused nor full.
            let idle = code.ins().bnot(seen);
            let idle = code.ins().band_imm_u(idle, ENTRY);
            let is_used = code.ins().icmp_imm_u(IntCC::NotEqual, seen, 0);
            let is_partly = code.ins().icmp_imm_u(IntCC::NotEqual, idle, 0);
            let is_candidate = code.ins().band(is_used, is_partly);
            code.if_then(is_candidate, false, |code| {
                let lane = code.ins().ctz(idle);
                let one = code.i64(1);
                let bit = code.ins().ishl(one, lane);
                let new = code.ins().bor(seen, bit);
                let before = busy.exchange(code, seen, new);
                let is_ours = code.ins().icmp(IntCC::Equal, before, seen);
                let stay = code.b.create_block();
                code.ins().brif(is_ours, found, &[warp.into(), lane.into()], stay, &[]);
                code.open(stay);
            });
            let next = code.ins().iadd_imm_s(number, 1);
            code.b.def_var(at, next);
            let rest = code.b.use_var(left);
            let rest = code.ins().iadd_imm_s(rest, -1);
            code.b.def_var(left, rest);
        },
    );
    code.ins().jump(otherwise, &[]);
    code.open(found);
    let [warp, lane] = *code.b.block_params(found) else { unreachable!("it has two") };
    // The next search begins where this one ended: the warp may have more such lanes.
    let here = code.ins().uextend(types::I64, warp);
    shared.word(offset::SEARCHED).store(code, here);
    let first = code.ins().imul_imm_u(warp, LANES as i64);
    let lane = code.ins().ireduce(types::I32, lane);
    let lane = code.ins().iadd(first, lane);
    send(code, shared, lane, message, start);
    code.ins().jump(done, &[]);
}

/// Writes a message into a parked lane's mailbox.
fn send(code: &mut Code<'_>, shared: &Shared, lane: Value, message: Value, start: Value) {
    let mailbox = shared.mailbox(code, lane);
    Field::at(mailbox, offset_of!(Mailbox, start)).store(code, start);
    let slot = Field::at(mailbox, offset_of!(Mailbox, slot));
    // All that this thread wrote before is seen by the thread it starts.
    code.ins().fence();
    slot.store(code, message);
    let address = slot.address(code);
    code.intrinsic(Intrinsic::Wake, &[address]);
}

/// Lets the lanes of a warp start that is not being filled any more.
fn begin(code: &mut Code<'_>, shared: &Shared, warp: Value, lanes: Value) {
    let place = shared.warp(code, warp);
    let busy = lowest(code, lanes);
    Field::at(place, offset_of!(Warp, busy)).store(code, busy);
    Field::at(place, offset_of!(Warp, together)).store(code, lanes);
    shared.word(offset::FILLINGS).add(code, 1);
    let filled = shared.address(code, offset::FILLED);
    let flags = code.trusted(region::BUS);
    code.ins().atomic_rmw(types::I64, flags, AtomicRmwOp::Add, filled, lanes);
}

/// Lets the lanes of the warp start that is being filled, if there is one.
pub(super) fn finish_filling(code: &mut Code<'_>, shared: &Shared) {
    let filling = shared.word(offset::FILLING);
    let seen = filling.load(code);
    code.if_then(seen, true, |code| {
        let none = code.i64(0);
        let found = filling.exchange(code, seen, none);
        let is_ours = code.ins().icmp(IntCC::Equal, found, seen);
        code.if_then(is_ours, false, |code| {
            let (warp, lanes) = (entry_of(code, seen), code.ins().ushr_imm_u(seen, COUNT_SHIFT));
            begin(code, shared, warp, lanes);
        });
    });
}

/// A thread has ended: gives back its slot and its lane.
pub(super) fn release(code: &mut Code<'_>, shared: &Shared, slot: Value, warp: Value, flags: Value) {
    let is_alone = code.ins().band_imm_u(flags, message::ALONE as i64);
    code.if_then(is_alone, false, |code| {
        shared.word(offset::ALONE).add(code, -1);
    });
    shared.word(offset::RUNNING).add(code, -1);
    give_slot(code, shared, slot);
    let lane = code.intrinsic(Intrinsic::ThreadInWorkgroup, &[]).expect("it has a result");
    let one = code.i64(1);
    let bit = code.ins().ishl(one, lane);
    let others = code.ins().bnot(bit);
    let before = Field::at(warp, offset_of!(Warp, busy)).and(code, others);
    let is_last = code.ins().icmp(IntCC::Equal, before, bit);
    code.if_then(is_last, false, |code| {
        let none = code.i64(0);
        Field::at(warp, offset_of!(Warp, together)).store(code, none);
        let number = code.intrinsic(Intrinsic::Workgroup, &[]).expect("it has a result");
        give_warp(code, shared, number);
    });
}
