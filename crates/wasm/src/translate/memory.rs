//! Linear memory: loads, stores, size, growth, bulk operations.
//!
//! An access in CLIF names the guest's address and nothing else. Where that address is on the device, and whether it is
//! inside the memory and aligned, is decided where the instruction is printed (`crates/ptx`, region `GUEST`), which
//! sees all accesses of a block together.

use super::{Translator, side};
use crate::runtime::Helper;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Inst, InstBuilder, MemFlagsData, Type, Value, types};
use cranelift_frontend::FuncInstBuilder;
use gpu_run_abi::intrinsic::{Intrinsic, region};
use gpu_run_abi::layout::{MAX_PAGES, PAGE, WORD, field};
use gpu_run_abi::{Status, TrapCode};
use wasmparser::{MemArg, Operator as Op};

/// Translates `op` if it is about linear memory.
pub(super) fn translate(t: &mut Translator<'_, '_>, op: &Op<'_>) -> bool {
    use types::{F32, F64, I32, I64};
    if side::translate(t, op) {
        return true;
    }
    match *op {
        Op::I64Load { memarg } if t.goes_by_halves(memarg) => t.load_halves(memarg, I64),
        Op::F64Load { memarg } if t.goes_by_halves(memarg) => t.load_halves(memarg, F64),
        Op::I64Store { memarg } | Op::F64Store { memarg } if t.goes_by_halves(memarg) => t.store_halves(memarg),
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
        Op::MemorySize { mem } => t.memory_size(mem),
        Op::MemoryGrow { mem } => t.memory_grow(mem),
        Op::MemoryFill { mem } => t.memory_fill(mem),
        Op::MemoryCopy { dst_mem, src_mem } => t.memory_copy(dst_mem, src_mem),
        Op::MemoryInit { data_index, mem } => t.memory_init(data_index, mem),
        Op::DataDrop { data_index } => {
            let none = t.code.i64(0);
            let segment = t.env.slots.data[(t.part.data + data_index) as usize];
            t.code.slot_store(none, region::HEADER, segment.cell);
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

    /// Returns whether an access of 8 bytes is made as two of 4, and a vector as four: where 8-byte accesses have to be
    /// aligned to 8, and the operator promises an alignment of only 4.
    pub(super) fn goes_by_halves(&self, memarg: MemArg) -> bool {
        const HALF: u64 = WORD / 2;
        self.code.whole_words
            && memarg.align == HALF.trailing_zeros() as u8
            && memarg.offset < i32::MAX as u64 - 2 * WORD
    }

    fn load_halves(&mut self, memarg: MemArg, ty: Type) {
        let at = self.pop();
        let (flags, address, offset) = self.access(at, memarg, WORD / 2);
        let low = self.code.ins().load(types::I32, flags, address, offset);
        let high = self.code.ins().load(types::I32, flags, address, offset + WORD as i32 / 2);
        let word = self.code.ins().iconcat(low, high);
        let value = if ty == types::F64 { self.code.ins().bitcast(ty, MemFlagsData::new(), word) } else { word };
        self.push(value);
    }

    fn store_halves(&mut self, memarg: MemArg) {
        let (value, at) = (self.pop(), self.pop());
        let (flags, address, offset) = self.access(at, memarg, WORD / 2);
        let is_float = self.code.b.func.dfg.value_type(value) == types::F64;
        let word = if is_float { self.code.ins().bitcast(types::I64, MemFlagsData::new(), value) } else { value };
        let (low, high) = self.code.ins().isplit(word);
        self.code.ins().store(flags, low, address, offset);
        self.code.ins().store(flags, high, address, offset + WORD as i32 / 2);
    }

    /// Returns the guest address of an access in CLIF's form, with flags that say whether to expect it to be aligned.
    pub(super) fn access(&mut self, at: Value, memarg: MemArg, size: u64) -> (MemFlagsData, Value, i32) {
        let widest = if self.code.whole_words { WORD } else { self.env.layout.cell() };
        let needed = size.min(widest).trailing_zeros();
        let flags = self.code.guest_flags(u32::from(memarg.align) >= needed);
        let at = self.code.narrow(at, TrapCode::MemoryOutOfBounds);
        self.check_offset(memarg);
        let address = self.code.ins().uextend(types::I64, at);
        // The offset of a vector's last piece must fit, too.
        match i32::try_from(memarg.offset.saturating_add(size)) {
            Ok(_) => (flags, address, memarg.offset as i32),
            // Too large for CLIF's offset: added and checked here, so that the sum is an address again.
            Err(_) => {
                let offset = self.code.i64(memarg.offset as u32 as i64);
                let address = self.code.ins().iadd(address, offset);
                let end = self.code.ins().iadd_imm_s(address, size as i64);
                self.code.check_end(end);
                (flags, address, 0)
            }
        }
    }

    /// Traps if the offset is beyond the end of any memory.
    pub(super) fn check_offset(&mut self, memarg: MemArg) {
        if memarg.offset > u64::from(u32::MAX) {
            let always = self.code.i32(1);
            self.code.trap_if(always, TrapCode::MemoryOutOfBounds);
        }
    }

    /// Pushes a length in bytes as the number of pages that the guest sees.
    fn push_pages(&mut self, memory: u32, bytes: Value) {
        let shift = i64::from(PAGE.trailing_zeros());
        let pages = match self.env.module.memories[memory as usize].is_64 {
            // -1 stays -1.
            true => self.code.ins().sshr_imm_u(bytes, shift),
            false => {
                let pages = self.code.ins().ushr_imm_u(bytes, shift);
                self.code.ins().ireduce(types::I32, pages)
            }
        };
        self.push(pages);
    }

    /// Returns the offsets of the slot's words that hold a memory's length and limit.
    pub(super) fn memory_words(&self, memory: u32) -> (u64, u64) {
        match memory.checked_sub(1) {
            None => (field::MEMORY_BYTES, field::MEMORY_LIMIT),
            Some(side) => {
                let place = self.env.slots.memories[side as usize];
                (place.length, place.limit)
            }
        }
    }

    /// Returns the device address of a memory's byte 0.
    pub(super) fn memory_base(&mut self, memory: u32) -> Value {
        match memory.checked_sub(1) {
            None => self.code.memory_address(self.env.slots),
            Some(side) => self.code.side_memory(&self.env.slots.memories[side as usize]),
        }
    }

    fn memory_size(&mut self, mem: u32) {
        let memory = self.part.memories[mem as usize];
        if let Some(place) = self.code.gang {
            let bytes = self.code.i64(place.sizes.image_bytes as i64);
            return self.push_pages(memory, bytes);
        }
        let bytes = match self.code.is_shared {
            true => self.code.memory_length(),
            false => self.code.header(types::I64, self.memory_words(memory).0),
        };
        self.push_pages(memory, bytes);
    }

    /// Grows a memory by changing its length: the slot has memory up to the limit, which is zero already. Local memory
    /// is cleared first.
    fn memory_grow(&mut self, mem: u32) {
        let (memory, delta) = (self.part.memories[mem as usize], self.pop());
        if let Some(place) = self.code.gang {
            // A gang's memory never grows.
            let none = self.code.ins().icmp_imm_s(IntCC::Equal, delta, 0);
            let (pages, failed) = (self.code.i32((place.sizes.image_bytes / PAGE) as i64), self.code.i32(-1));
            let result = self.code.ins().select(none, pages, failed);
            return self.push(result);
        }
        let (length, limit) = self.memory_words(memory);
        let delta = self.code.growth(delta);
        let delta = self.code.ins().ishl_imm_u(delta, i64::from(PAGE.trailing_zeros()));
        if self.code.is_shared {
            let old = self.code.call_helper(Helper::GrowShared, &[delta]).expect("it has a result");
            return self.push_pages(memory, old);
        }
        let old = self.code.header(types::I64, length);
        let wanted = self.code.ins().iadd(old, delta);
        let most = self.env.module.memories[memory as usize].maximum.unwrap_or(MAX_PAGES).min(MAX_PAGES) * PAGE;
        let most = self.code.i64(most as i64);
        let is_allowed = self.growth_allowed(wanted, most, delta);
        self.end_outgrown(is_allowed, wanted, limit);
        let (new, result) = self.grow(old, wanted, is_allowed);
        self.note_growth(is_allowed, delta);
        let refused = self.code.header(types::I64, field::GROWTH_REFUSED);
        let refused = self.code.ins().select(is_allowed, refused, wanted);
        self.code.set_header(refused, field::GROWTH_REFUSED);
        match memory {
            0 => self.code.set_memory_length(new),
            _ => self.code.set_header(new, length),
        }
        if self.code.is_local {
            // Local memory may hold what another instance left there.
            let (to, zero) = (self.code.ins().ireduce(types::I32, old), self.code.i32(0));
            let grown = self.code.ins().isub(new, old);
            let length = self.code.ins().ireduce(types::I32, grown);
            self.code.call_helper(Helper::GuestFill, &[to, zero, length]);
        }
        self.push_pages(memory, result);
    }

    /// Traps unless `length` (i32) bytes at `at` (i32) are inside a memory.
    fn check_range(&mut self, memory: u32, at: Value, length: Value) {
        match memory {
            0 => self.code.check_range(at, length),
            _ => {
                let bytes = self.code.header(types::I64, self.memory_words(memory).0);
                self.check_end(at, length, bytes, TrapCode::MemoryOutOfBounds);
            }
        }
    }

    /// Like [`Translator::check_range`], for bytes that will be written.
    fn check_written(&mut self, memory: u32, at: Value, length: Value) {
        match memory {
            0 => self.code.check_written(at, length),
            _ => self.check_range(memory, at, length),
        }
    }

    fn memory_fill(&mut self, mem: u32) {
        let (memory, length, byte, to) = (self.part.memories[mem as usize], self.pop(), self.pop(), self.pop());
        let [length, to] = [length, to].map(|v| self.code.narrow(v, TrapCode::MemoryOutOfBounds));
        self.check_written(memory, to, length);
        if memory == 0 {
            self.code.call_helper(Helper::GuestFill, &[to, byte, length]);
            return;
        }
        let base = self.memory_base(memory);
        self.code.call_helper(Helper::FillIn, &[to, byte, length, base]);
    }

    fn memory_copy(&mut self, dst: u32, src: u32) {
        let (dst, src) = (self.part.memories[dst as usize], self.part.memories[src as usize]);
        let (length, from, to) = (self.pop(), self.pop(), self.pop());
        let [length, from, to] = [length, from, to].map(|v| self.code.narrow(v, TrapCode::MemoryOutOfBounds));
        self.check_written(dst, to, length);
        self.check_range(src, from, length);
        if dst == 0 && src == 0 {
            self.code.call_helper(Helper::GuestCopy, &[to, from, length]);
            return;
        }
        let (to_base, from_base) = (self.memory_base(dst), self.memory_base(src));
        self.code.call_helper(Helper::CopyIn, &[to, from, length, to_base, from_base]);
    }

    /// Returns whether a memory or table may have `wanted` bytes or elements in all, and whether the instance may grow
    /// by `bytes` more.
    pub(super) fn growth_allowed(&mut self, wanted: Value, most: Value, bytes: Value) -> Value {
        let left = self.code.header(types::I64, field::GROWTH_LEFT);
        let may_have = self.code.ins().icmp(IntCC::UnsignedLessThanOrEqual, wanted, most);
        let may_grow = self.code.ins().icmp(IntCC::UnsignedLessThanOrEqual, bytes, left);
        self.code.ins().band(may_have, may_grow)
    }

    /// Subtracts growth, if it is allowed, from what the instance may still grow.
    pub(super) fn note_growth(&mut self, is_allowed: Value, bytes: Value) {
        let left = self.code.header(types::I64, field::GROWTH_LEFT);
        let less = self.code.ins().isub(left, bytes);
        let left = self.code.ins().select(is_allowed, less, left);
        self.code.set_header(left, field::GROWTH_LEFT);
    }

    /// Stops the instance if its memory may have `wanted` bytes but the slot does not have them: the host reruns it in
    /// a larger slot.
    fn end_outgrown(&mut self, is_allowed: Value, wanted: Value, limit: u64) {
        let limit = self.code.header(types::I64, limit);
        let is_beyond = self.code.ins().icmp(IntCC::UnsignedGreaterThan, wanted, limit);
        let is_outgrown = self.code.ins().band(is_allowed, is_beyond);
        self.code.if_then(is_outgrown, true, |code| {
            code.set_header(wanted, field::EXIT_CODE);
            let outgrown = code.i64(Status::Outgrown as i64);
            code.set_header(outgrown, field::STATUS);
            code.intrinsic(Intrinsic::Exit, &[]);
        });
    }

    /// Returns the new length, and the old one or -1 (in all bits) if growing is not allowed.
    pub(super) fn grow(&mut self, old: Value, wanted: Value, is_allowed: Value) -> (Value, Value) {
        let failed = self.code.i64(-1);
        let new = self.code.ins().select(is_allowed, wanted, old);
        let result = self.code.ins().select(is_allowed, old, failed);
        (new, result)
    }

    fn memory_init(&mut self, segment: u32, mem: u32) {
        let (memory, length, from, to) = (self.part.memories[mem as usize], self.pop(), self.pop(), self.pop());
        let to = self.code.narrow(to, TrapCode::MemoryOutOfBounds);
        let segment = self.env.slots.data[(self.part.data + segment) as usize];
        self.check_written(memory, to, length);
        self.check_segment(segment.cell, from, length, TrapCode::MemoryOutOfBounds);
        let constants = self.code.constant_field(field::CONSTANTS);
        let wide = self.code.ins().uextend(types::I64, from);
        let source = self.code.ins().iadd(constants, wide);
        let source = self.code.ins().iadd_imm_s(source, segment.at as i64);
        if memory == 0 {
            self.code.call_helper(Helper::GuestWrite, &[to, source, length]);
            return;
        }
        let base = self.memory_base(memory);
        self.code.call_helper(Helper::WriteIn, &[to, source, length, base]);
    }

    /// Traps unless `from + length` is within the remaining length of a segment.
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
