//! Linear memory: loads, stores, size, growth, bulk operations.
//!
//! An access names the guest's address and nothing else: where that is on the device, whether it is inside the memory and whether it is aligned, is decided
//! where the instruction is printed (`crates/ptx`, region `GUEST`), which sees all accesses of a block together.

use super::Translator;
use crate::runtime::Helper;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Inst, InstBuilder, MemFlagsData, Type, Value, types};
use cranelift_frontend::FuncInstBuilder;
use gpu_run_abi::TrapCode;
use gpu_run_abi::intrinsic::region;
use gpu_run_abi::layout::{GUARD, PAGE, field};
use wasmparser::{MemArg, Operator as Op};

/// Translates `op` if it is about linear memory.
pub(super) fn translate(t: &mut Translator<'_, '_>, op: &Op<'_>) -> bool {
    use types::{F32, F64, I32, I64};
    match *op {
        Op::I32Load { memarg } => t.load(memarg, 4, |i, f, p, o| i.load(I32, f, p, o)),
        Op::I64Load { memarg } => t.load(memarg, 8, |i, f, p, o| i.load(I64, f, p, o)),
        Op::F32Load { memarg } => t.load(memarg, 4, |i, f, p, o| i.load(F32, f, p, o)),
        Op::F64Load { memarg } => t.load(memarg, 8, |i, f, p, o| i.load(F64, f, p, o)),
        Op::I32Load8S { memarg } => t.load(memarg, 1, |i, f, p, o| i.sload8(I32, f, p, o)),
        Op::I32Load8U { memarg } => t.load(memarg, 1, |i, f, p, o| i.uload8(I32, f, p, o)),
        Op::I32Load16S { memarg } => t.load(memarg, 2, |i, f, p, o| i.sload16(I32, f, p, o)),
        Op::I32Load16U { memarg } => t.load(memarg, 2, |i, f, p, o| i.uload16(I32, f, p, o)),
        Op::I64Load8S { memarg } => t.load(memarg, 1, |i, f, p, o| i.sload8(I64, f, p, o)),
        Op::I64Load8U { memarg } => t.load(memarg, 1, |i, f, p, o| i.uload8(I64, f, p, o)),
        Op::I64Load16S { memarg } => t.load(memarg, 2, |i, f, p, o| i.sload16(I64, f, p, o)),
        Op::I64Load16U { memarg } => t.load(memarg, 2, |i, f, p, o| i.uload16(I64, f, p, o)),
        Op::I64Load32S { memarg } => t.load(memarg, 4, |i, f, p, o| i.sload32(f, p, o)),
        Op::I64Load32U { memarg } => t.load(memarg, 4, |i, f, p, o| i.uload32(f, p, o)),
        Op::I32Store { memarg } | Op::F32Store { memarg } => t.store(memarg, 4, |i, f, v, p, o| i.store(f, v, p, o)),
        Op::I64Store { memarg } | Op::F64Store { memarg } => t.store(memarg, 8, |i, f, v, p, o| i.store(f, v, p, o)),
        Op::I32Store8 { memarg } | Op::I64Store8 { memarg } => {
            t.store(memarg, 1, |i, f, v, p, o| i.istore8(f, v, p, o))
        }
        Op::I32Store16 { memarg } | Op::I64Store16 { memarg } => {
            t.store(memarg, 2, |i, f, v, p, o| i.istore16(f, v, p, o))
        }
        Op::I64Store32 { memarg } => t.store(memarg, 4, |i, f, v, p, o| i.istore32(f, v, p, o)),
        Op::MemorySize { .. } => {
            let bytes = t.code.header(types::I64, field::MEMORY_BYTES);
            let pages = t.pages(bytes);
            t.push(pages);
        }
        Op::MemoryGrow { .. } => t.memory_grow(),
        Op::MemoryFill { .. } => {
            let (length, byte, to) = (t.pop(), t.pop(), t.pop());
            t.code.check_range(to, length);
            t.code.call_helper(Helper::GuestFill, &[to, byte, length]);
        }
        Op::MemoryCopy { .. } => {
            let (length, from, to) = (t.pop(), t.pop(), t.pop());
            t.code.check_range(to, length);
            t.code.check_range(from, length);
            t.code.call_helper(Helper::GuestCopy, &[to, from, length]);
        }
        Op::MemoryInit { data_index, .. } => t.memory_init(data_index),
        Op::DataDrop { data_index } => {
            let none = t.code.i64(0);
            t.code.slot_store(none, region::HEADER, t.env.slots.data[data_index as usize].cell);
        }
        _ => return false,
    }
    true
}

impl<'b> Translator<'_, 'b> {
    fn load(
        &mut self,
        memarg: MemArg,
        size: u64,
        make: impl FnOnce(FuncInstBuilder<'_, 'b>, MemFlagsData, Value, i32) -> Value,
    ) {
        let at = self.pop();
        let (flags, address, offset) = self.access(at, memarg, size);
        let value = make(self.code.ins(), flags, address, offset);
        self.push(value);
    }

    fn store(
        &mut self,
        memarg: MemArg,
        size: u64,
        make: impl FnOnce(FuncInstBuilder<'_, 'b>, MemFlagsData, Value, Value, i32) -> Inst,
    ) {
        let (value, at) = (self.pop(), self.pop());
        let (flags, address, offset) = self.access(at, memarg, size);
        make(self.code.ins(), flags, value, address, offset);
    }

    /// The guest address of an access, as CLIF wants it, and what to expect of its alignment.
    pub(super) fn access(&mut self, at: Value, memarg: MemArg, size: u64) -> (MemFlagsData, Value, i32) {
        let needed = size.min(self.env.layout.cell()).trailing_zeros();
        let flags = self.code.guest_flags(u32::from(memarg.align) >= needed);
        let address = self.code.ins().uextend(types::I64, at);
        // Of a vector's pieces the last one's offset must fit, too.
        match i32::try_from(memarg.offset + size) {
            Ok(_) => (flags, address, memarg.offset as i32),
            // Too far for an offset: checked here, so that the sum is an address again.
            Err(_) => {
                let address = self.code.ins().iadd_imm_s(address, memarg.offset as i64);
                let end = self.code.ins().iadd_imm_s(address, size as i64);
                let bytes = self.code.header(types::I64, field::MEMORY_BYTES);
                let outside = self.code.ins().icmp(IntCC::UnsignedGreaterThan, end, bytes);
                self.code.trap_if(outside, TrapCode::MemoryOutOfBounds);
                (flags, address, 0)
            }
        }
    }

    fn pages(&mut self, bytes: Value) -> Value {
        let pages = self.code.ins().ushr_imm_u(bytes, i64::from(PAGE.trailing_zeros()));
        self.code.ins().ireduce(types::I32, pages)
    }

    /// The slot has room up to its limit, and that room is zero: growing is changing the length.
    fn memory_grow(&mut self) {
        let delta = self.pop();
        let delta = self.code.ins().uextend(types::I64, delta);
        let delta = self.code.ins().ishl_imm_u(delta, i64::from(PAGE.trailing_zeros()));
        let old = self.code.header(types::I64, field::MEMORY_BYTES);
        let wanted = self.code.ins().iadd(old, delta);
        let limit = self.code.header(types::I64, field::MEMORY_LIMIT);
        let (new, result) = self.grow(old, wanted, limit);
        self.code.set_header(new, field::MEMORY_BYTES);
        // A page is more than the guard, and a memory of none stays below it.
        let guard = self.code.i64(GUARD as i64);
        let most = self.code.ins().umax(new, guard);
        let fast = self.code.ins().isub(most, guard);
        self.code.set_header(fast, field::MEMORY_FAST);
        let pages = self.pages(result);
        self.push(pages);
    }

    /// The new length, and the old one or -1 (in all bits) if there is no room.
    pub(super) fn grow(&mut self, old: Value, wanted: Value, limit: Value) -> (Value, Value) {
        let fits = self.code.ins().icmp(IntCC::UnsignedLessThanOrEqual, wanted, limit);
        let failed = self.code.i64(-1);
        let new = self.code.ins().select(fits, wanted, old);
        let result = self.code.ins().select(fits, old, failed);
        (new, result)
    }

    fn memory_init(&mut self, segment: u32) {
        let (length, from, to) = (self.pop(), self.pop(), self.pop());
        let segment = self.env.slots.data[segment as usize];
        self.code.check_range(to, length);
        self.check_segment(segment.cell, from, length, TrapCode::MemoryOutOfBounds);
        let constants = self.code.fixed(field::CONSTANTS);
        let wide = self.code.ins().uextend(types::I64, from);
        let source = self.code.ins().iadd(constants, wide);
        let source = self.code.ins().iadd_imm_s(source, segment.at as i64);
        self.code.call_helper(Helper::GuestWrite, &[to, source, length]);
    }

    /// Traps unless `from + length` is within what is left of a segment.
    pub(super) fn check_segment(&mut self, cell: u64, from: Value, length: Value, code: TrapCode) {
        let left = self.code.header(types::I64, cell);
        self.check_end(from, length, left, code);
    }

    /// Traps if `from + length` (i32 each) is more than `limit` (i64).
    pub(super) fn check_end(&mut self, from: Value, length: Value, limit: Value, code: TrapCode) {
        let wide = |t: &mut Self, value, ty: Type| t.code.ins().uextend(ty, value);
        let (from, length) = (wide(self, from, types::I64), wide(self, length, types::I64));
        let end = self.code.ins().iadd(from, length);
        let outside = self.code.ins().icmp(IntCC::UnsignedGreaterThan, end, limit);
        self.code.trap_if(outside, code);
    }
}
