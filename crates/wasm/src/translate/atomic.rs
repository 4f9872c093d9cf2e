//! Atomic accesses, fences, wait and notify.
//!
//! All atomic accesses require natural alignment, and trap without it. A memory that is not shared belongs to one
//! thread alone, and so does every memory of an interleaved slot: there, an atomic access is an ordinary one. Accesses
//! to a shared memory are the device's atomic instructions, each with a fence before it, so that all threads see one
//! order. Those instructions take 32 or 64 bits; a narrower access is a compare-and-exchange of the word around it,
//! repeated until no other thread interferes.

use super::Translator;
use crate::code::Code;
use crate::runtime::Helper;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AtomicRmwOp, InstBuilder, InstructionData, MemFlagsData, Opcode, Type, Value, ValueDef, types,
};
use gpu_run_abi::intrinsic::{Intrinsic, region};
use gpu_run_abi::{Layout, TrapCode};
use types::{I8, I16, I32, I64};
use wasmparser::{MemArg, Operator as Op};

/// Translates `op` if it is an atomic operator.
#[rustfmt::skip] // a table
pub(super) fn translate(t: &mut Translator<'_, '_>, op: &Op<'_>) -> bool {
    use AtomicRmwOp::{Add, And, Or, Sub, Xchg, Xor};
    match *op {
        Op::I32AtomicLoad { memarg } => t.atomic_load(memarg, 4, I32),
        Op::I64AtomicLoad { memarg } => t.atomic_load(memarg, 8, I64),
        Op::I32AtomicLoad8U { memarg } => t.atomic_load(memarg, 1, I32),
        Op::I32AtomicLoad16U { memarg } => t.atomic_load(memarg, 2, I32),
        Op::I64AtomicLoad8U { memarg } => t.atomic_load(memarg, 1, I64),
        Op::I64AtomicLoad16U { memarg } => t.atomic_load(memarg, 2, I64),
        Op::I64AtomicLoad32U { memarg } => t.atomic_load(memarg, 4, I64),

        Op::I32AtomicStore { memarg } | Op::I64AtomicStore32 { memarg } => t.atomic_store(memarg, 4),
        Op::I64AtomicStore { memarg } => t.atomic_store(memarg, 8),
        Op::I32AtomicStore8 { memarg } | Op::I64AtomicStore8 { memarg } => t.atomic_store(memarg, 1),
        Op::I32AtomicStore16 { memarg } | Op::I64AtomicStore16 { memarg } => t.atomic_store(memarg, 2),

        Op::I32AtomicRmwAdd { memarg } => t.atomic_rmw(memarg, 4, Add),
        Op::I64AtomicRmwAdd { memarg } => t.atomic_rmw(memarg, 8, Add),
        Op::I32AtomicRmw8AddU { memarg } | Op::I64AtomicRmw8AddU { memarg } => t.atomic_rmw(memarg, 1, Add),
        Op::I32AtomicRmw16AddU { memarg } | Op::I64AtomicRmw16AddU { memarg } => t.atomic_rmw(memarg, 2, Add),
        Op::I64AtomicRmw32AddU { memarg } => t.atomic_rmw(memarg, 4, Add),
        Op::I32AtomicRmwSub { memarg } => t.atomic_rmw(memarg, 4, Sub),
        Op::I64AtomicRmwSub { memarg } => t.atomic_rmw(memarg, 8, Sub),
        Op::I32AtomicRmw8SubU { memarg } | Op::I64AtomicRmw8SubU { memarg } => t.atomic_rmw(memarg, 1, Sub),
        Op::I32AtomicRmw16SubU { memarg } | Op::I64AtomicRmw16SubU { memarg } => t.atomic_rmw(memarg, 2, Sub),
        Op::I64AtomicRmw32SubU { memarg } => t.atomic_rmw(memarg, 4, Sub),
        Op::I32AtomicRmwAnd { memarg } => t.atomic_rmw(memarg, 4, And),
        Op::I64AtomicRmwAnd { memarg } => t.atomic_rmw(memarg, 8, And),
        Op::I32AtomicRmw8AndU { memarg } | Op::I64AtomicRmw8AndU { memarg } => t.atomic_rmw(memarg, 1, And),
        Op::I32AtomicRmw16AndU { memarg } | Op::I64AtomicRmw16AndU { memarg } => t.atomic_rmw(memarg, 2, And),
        Op::I64AtomicRmw32AndU { memarg } => t.atomic_rmw(memarg, 4, And),
        Op::I32AtomicRmwOr { memarg } => t.atomic_rmw(memarg, 4, Or),
        Op::I64AtomicRmwOr { memarg } => t.atomic_rmw(memarg, 8, Or),
        Op::I32AtomicRmw8OrU { memarg } | Op::I64AtomicRmw8OrU { memarg } => t.atomic_rmw(memarg, 1, Or),
        Op::I32AtomicRmw16OrU { memarg } | Op::I64AtomicRmw16OrU { memarg } => t.atomic_rmw(memarg, 2, Or),
        Op::I64AtomicRmw32OrU { memarg } => t.atomic_rmw(memarg, 4, Or),
        Op::I32AtomicRmwXor { memarg } => t.atomic_rmw(memarg, 4, Xor),
        Op::I64AtomicRmwXor { memarg } => t.atomic_rmw(memarg, 8, Xor),
        Op::I32AtomicRmw8XorU { memarg } | Op::I64AtomicRmw8XorU { memarg } => t.atomic_rmw(memarg, 1, Xor),
        Op::I32AtomicRmw16XorU { memarg } | Op::I64AtomicRmw16XorU { memarg } => t.atomic_rmw(memarg, 2, Xor),
        Op::I64AtomicRmw32XorU { memarg } => t.atomic_rmw(memarg, 4, Xor),
        Op::I32AtomicRmwXchg { memarg } => t.atomic_rmw(memarg, 4, Xchg),
        Op::I64AtomicRmwXchg { memarg } => t.atomic_rmw(memarg, 8, Xchg),
        Op::I32AtomicRmw8XchgU { memarg } | Op::I64AtomicRmw8XchgU { memarg } => t.atomic_rmw(memarg, 1, Xchg),
        Op::I32AtomicRmw16XchgU { memarg } | Op::I64AtomicRmw16XchgU { memarg } => t.atomic_rmw(memarg, 2, Xchg),
        Op::I64AtomicRmw32XchgU { memarg } => t.atomic_rmw(memarg, 4, Xchg),

        Op::I32AtomicRmwCmpxchg { memarg } | Op::I64AtomicRmw32CmpxchgU { memarg } => t.atomic_exchange(memarg, 4),
        Op::I64AtomicRmwCmpxchg { memarg } => t.atomic_exchange(memarg, 8),
        Op::I32AtomicRmw8CmpxchgU { memarg } | Op::I64AtomicRmw8CmpxchgU { memarg } => t.atomic_exchange(memarg, 1),
        Op::I32AtomicRmw16CmpxchgU { memarg } | Op::I64AtomicRmw16CmpxchgU { memarg } => t.atomic_exchange(memarg, 2),

        Op::MemoryAtomicWait32 { memarg } => t.wait(memarg, 4),
        Op::MemoryAtomicWait64 { memarg } => t.wait(memarg, 8),
        Op::MemoryAtomicNotify { memarg } => t.notify(memarg),
        Op::AtomicFence => { t.code.ins().fence(); }
        _ => return false,
    }
    true
}

/// Where an aligned access goes.
#[derive(Clone, Copy)]
enum Place {
    /// The device address, in memory that other threads may access.
    Shared(Value),
    /// An ordinary access.
    Own(MemFlagsData, Value, i32),
    /// The checked guest address in a memory other than the first: also an ordinary access, as long as an instance is
    /// one thread.
    Side(u32, Value),
}

/// Returns the type in which accesses of `bytes` bytes are computed.
fn unit(bytes: u64) -> Type {
    if bytes == 8 { I64 } else { I32 }
}

/// Returns the new value of a read-modify-write.
fn apply(c: &mut Code<'_>, op: AtomicRmwOp, old: Value, by: Value) -> Value {
    match op {
        AtomicRmwOp::Add => c.ins().iadd(old, by),
        AtomicRmwOp::Sub => c.ins().isub(old, by),
        AtomicRmwOp::And => c.ins().band(old, by),
        AtomicRmwOp::Or => c.ins().bor(old, by),
        AtomicRmwOp::Xor => c.ins().bxor(old, by),
        _ => by,
    }
}

impl Translator<'_, '_> {
    fn is_shared(&self) -> bool {
        let declared = self.env.module.memories.first().is_some_and(|memory| memory.shared);
        self.code.gang.is_some() || declared && self.env.layout == Layout::Linear
    }

    /// Pops the address. Traps unless it is aligned and, in a shared memory, in bounds.
    fn atomic_place(&mut self, memarg: MemArg, bytes: u64) -> Place {
        self.synchronises = true;
        let at = self.pop();
        if bytes > 1 {
            // Alignment is checked before bounds: the lowest bits of a sum depend only on the lowest bits of its parts.
            let low = self.code.ins().iadd_imm_s(at, (memarg.offset % bytes) as i64);
            let misaligned = self.code.ins().band_imm_u(low, bytes as i64 - 1);
            self.code.trap_if(misaligned, TrapCode::UnalignedAtomic);
        }
        let at = self.code.narrow(at, TrapCode::MemoryOutOfBounds);
        self.check_offset(memarg);
        let wide = self.code.ins().uextend(I64, at);
        let address = self.code.ins().iadd_imm_s(wide, i64::from(memarg.offset as u32));
        if let Some(memory) = self.side(memarg) {
            return Place::Side(memory, self.side_address(memory, at, memarg, bytes as u32));
        }
        if !self.is_shared() {
            let (flags, address, offset) = self.access(at, memarg, bytes);
            return Place::Own(flags, address, offset);
        }
        let end = self.code.ins().iadd_imm_s(address, bytes as i64);
        self.code.check_end(end);
        if self.env.slots.low > 0 {
            let missing = self.code.ins().icmp_imm_u(IntCC::UnsignedLessThan, address, self.env.slots.low as i64);
            self.code.trap_if(missing, TrapCode::Inexact);
        }
        let memory = self.code.memory_address(self.env.slots);
        let address = self.code.ins().iadd(memory, address);
        // wasm's atomics have one order for all threads. A gang's have it unless they are relaxed.
        if !self.env.relaxed {
            self.code.ins().fence();
        }
        Place::Shared(address)
    }

    fn pop_unit(&mut self, bytes: u64) -> (Value, Type) {
        let value = self.pop();
        let ty = self.code.b.func.dfg.value_type(value);
        (if ty == unit(bytes) { value } else { self.code.ins().ireduce(unit(bytes), value) }, ty)
    }

    fn push_unit(&mut self, value: Value, ty: Type) {
        let unit = self.code.b.func.dfg.value_type(value);
        let value = if ty == unit { value } else { self.code.ins().uextend(ty, value) };
        self.push(value);
    }

    fn load_unit(&mut self, place: Place, bytes: u64) -> Value {
        let flags = self.code.trusted(region::GUEST);
        match (place, bytes) {
            (Place::Shared(at), 1 | 2) => {
                let narrow = self.code.ins().atomic_load(if bytes == 1 { I8 } else { I16 }, flags, at);
                self.code.ins().uextend(I32, narrow)
            }
            (Place::Shared(at), _) => self.code.ins().atomic_load(unit(bytes), flags, at),
            (Place::Side(memory, at), _) => {
                let raw = self.side_load(memory, at, bytes as u32);
                if bytes == 8 { raw } else { self.code.ins().ireduce(I32, raw) }
            }
            (Place::Own(flags, at, offset), 1) => self.code.ins().uload8(I32, flags, at, offset),
            (Place::Own(flags, at, offset), 2) => self.code.ins().uload16(I32, flags, at, offset),
            (Place::Own(flags, at, offset), _) => self.code.ins().load(unit(bytes), flags, at, offset),
        }
    }

    fn store_unit(&mut self, place: Place, bytes: u64, value: Value) {
        let flags = self.code.trusted(region::GUEST);
        match (place, bytes) {
            (Place::Shared(at), 1 | 2) => {
                let narrow = self.code.ins().ireduce(if bytes == 1 { I8 } else { I16 }, value);
                self.code.ins().atomic_store(flags, narrow, at);
            }
            (Place::Shared(at), _) => drop(self.code.ins().atomic_store(flags, value, at)),
            (Place::Own(flags, at, offset), 1) => drop(self.code.ins().istore8(flags, value, at, offset)),
            (Place::Own(flags, at, offset), 2) => drop(self.code.ins().istore16(flags, value, at, offset)),
            (Place::Own(flags, at, offset), _) => drop(self.code.ins().store(flags, value, at, offset)),
            (Place::Side(memory, at), _) => self.side_store(memory, at, bytes as u32, value),
        }
    }

    fn atomic_load(&mut self, memarg: MemArg, bytes: u64, ty: Type) {
        let place = self.atomic_place(memarg, bytes);
        let value = self.load_unit(place, bytes);
        self.push_unit(value, ty);
    }

    fn atomic_store(&mut self, memarg: MemArg, bytes: u64) {
        let (value, _) = self.pop_unit(bytes);
        let place = self.atomic_place(memarg, bytes);
        self.store_unit(place, bytes, value);
        self.give_way();
    }

    fn atomic_rmw(&mut self, memarg: MemArg, bytes: u64, op: AtomicRmwOp) {
        let (by, ty) = self.pop_unit(bytes);
        let place = self.atomic_place(memarg, bytes);
        let flags = self.code.trusted(region::GUEST);
        let old = match place {
            Place::Shared(at) if bytes >= 4 => self.code.ins().atomic_rmw(unit(bytes), flags, op, at, by),
            Place::Shared(at) => self.replace_within_word(at, bytes, |c, old| apply(c, op, old, by)),
            own => self.replace_own(own, bytes, |c, old| apply(c, op, old, by)),
        };
        if matches!(op, AtomicRmwOp::Sub | AtomicRmwOp::And) || op == AtomicRmwOp::Xchg && self.is_zero(by) {
            self.give_way();
        }
        self.push_unit(old, ty);
    }

    fn is_zero(&self, value: Value) -> bool {
        let dfg = &self.code.b.func.dfg;
        let ValueDef::Result(inst, _) = dfg.value_def(value) else { return false };
        matches!(dfg.insts[inst], InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } if imm.bits() == 0)
    }

    /// Behind an operation that may give back a lock: lets other lanes of the warp run now and then. See `print/wait.rs` in
    /// the crate `gpu-run-ptx`.
    fn give_way(&mut self) {
        if self.code.is_shared {
            self.code.intrinsic(Intrinsic::GiveWay, &[]);
        }
    }

    /// Emits a compare-and-exchange. The expected value is cut to the width of the access.
    fn atomic_exchange(&mut self, memarg: MemArg, bytes: u64) {
        let ((new, ty), (mut expected, _)) = (self.pop_unit(bytes), self.pop_unit(bytes));
        if bytes < 4 {
            expected = self.code.ins().band_imm_u(expected, (1 << (8 * bytes)) - 1);
        }
        let place = self.atomic_place(memarg, bytes);
        let flags = self.code.trusted(region::GUEST);
        let replace = |c: &mut Code<'_>, old: Value| {
            let same = c.ins().icmp(IntCC::Equal, old, expected);
            c.ins().select(same, new, old)
        };
        let old = match place {
            Place::Shared(at) if bytes >= 4 => self.code.ins().atomic_cas(flags, at, expected, new),
            Place::Shared(at) => self.replace_within_word(at, bytes, replace),
            own => self.replace_own(own, bytes, replace),
        };
        self.push_unit(old, ty);
    }

    fn replace_own(&mut self, place: Place, bytes: u64, new: impl Fn(&mut Code<'_>, Value) -> Value) -> Value {
        let old = self.load_unit(place, bytes);
        let new = new(&mut self.code, old);
        self.store_unit(place, bytes, new);
        old
    }

    /// Replaces 8 or 16 bits of a word that other threads may change meanwhile, and returns the old bits.
    fn replace_within_word(&mut self, at: Value, bytes: u64, new: impl Fn(&mut Code<'_>, Value) -> Value) -> Value {
        let c = &mut self.code;
        let flags = c.trusted(region::GUEST);
        let ones = (1i64 << (8 * bytes)) - 1;
        let word_at = c.ins().band_imm_s(at, -4);
        let shift = c.ins().ireduce(I32, at);
        let shift = c.ins().band_imm_u(shift, 3);
        let shift = c.ins().ishl_imm_u(shift, 3);
        let first = c.ins().atomic_load(I32, flags, word_at);
        let seen = c.variable(I32, first);
        let lane = |c: &mut Code<'_>, word: Value| {
            let low = c.ins().ushr(word, shift);
            c.ins().band_imm_u(low, ones)
        };
        c.while_loop(
            |c| {
                let word = c.b.use_var(seen);
                let old = lane(c, word);
                let new = new(c, old);
                // Flips exactly the bits that differ.
                let differ = c.ins().bxor(old, new);
                let differ = c.ins().band_imm_u(differ, ones);
                let differ = c.ins().ishl(differ, shift);
                let replaced = c.ins().bxor(word, differ);
                let found = c.ins().atomic_cas(flags, word_at, word, replaced);
                c.b.def_var(seen, found);
                c.ins().icmp(IntCC::NotEqual, found, word)
            },
            |_| {},
        );
        let word = c.b.use_var(seen);
        lane(c, word)
    }

    /// Pushes 0 if the thread was woken, 1 if the memory did not hold the expected value, 2 if the time ran out.
    fn wait(&mut self, memarg: MemArg, bytes: u64) {
        let (timeout, expected, at) = (self.pop(), self.pop(), self.peek());
        self.check_sum(at, memarg);
        let place = self.atomic_place(memarg, bytes);
        let value = self.load_unit(place, bytes);
        let memory = self.part.memories[memarg.memory as usize];
        if !self.env.module.memories[memory as usize].shared {
            let always = self.code.i32(1);
            self.code.trap_if(always, TrapCode::WaitOnUnshared);
            return self.push(always);
        }
        let at = self.waited(at, memarg);
        if self.code.is_shared {
            // The value is compared again once the thread is among those that a notification finds.
            let expected = if bytes == 8 { expected } else { self.code.ins().uextend(I64, expected) };
            let (bytes, here) = (self.code.i32(bytes as i64), self.code.i32(self.offset as i64));
            let ended = self.code.call_helper(Helper::WaitShared, &[at, expected, bytes, timeout, here]);
            return self.push(ended.expect("it has a result"));
        }
        let differs = self.code.i32(1);
        let result = self.code.variable(I32, differs);
        let equal = self.code.ins().icmp(IntCC::Equal, value, expected);
        self.code.if_then(equal, false, |code| {
            let ended = code.call_helper(Helper::Wait, &[at, timeout]).expect("it has a result");
            code.b.def_var(result, ended);
        });
        let result = self.code.b.use_var(result);
        self.push(result);
    }

    /// Traps if the address overflows, before its alignment is checked: of these two reasons to trap, other engines
    /// report this one.
    fn check_sum(&mut self, at: Value, memarg: MemArg) {
        let offset = if self.code.is_wide(at) { memarg.offset as i64 } else { i64::from(memarg.offset as u32 as i32) };
        let sum = self.code.ins().iadd_imm_s(at, offset);
        let overflows = self.code.ins().icmp(IntCC::UnsignedLessThan, sum, at);
        self.code.trap_if(overflows, TrapCode::MemoryOutOfBounds);
    }

    /// Returns the address (i32) that a wait is identified by; it was checked.
    fn waited(&mut self, at: Value, memarg: MemArg) -> Value {
        let at = if self.code.is_wide(at) { self.code.ins().ireduce(I32, at) } else { at };
        let offset = self.code.i32(memarg.offset as i64);
        self.code.ins().iadd(at, offset)
    }

    fn notify(&mut self, memarg: MemArg) {
        let (count, at) = (self.pop(), self.peek());
        self.check_sum(at, memarg);
        let place = self.atomic_place(memarg, 4);
        // The address is checked as if it were read.
        if let Place::Own(..) = place {
            self.load_unit(place, 4);
        }
        let at = self.waited(at, memarg);
        let woken = self.code.call_helper(Helper::Notify, &[at, count]).expect("it has a result");
        self.push(woken);
    }
}
