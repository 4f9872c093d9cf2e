//! What all generated code has in common, whether it comes from wasm or from the runtime: it accesses its instance's
//! slot, turns guest addresses into device addresses, and traps.

use crate::slot::{GangPlace, MemoryPlace, SlotLayout, hot};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self, AbiParam, AliasRegion, AliasRegionData, Block, BlockArg, ExtFuncData, ExternalName, FuncRef, InstBuilder,
    MemFlagsData, Signature, Type, UserExternalName, Value, types,
};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FuncInstBuilder, FunctionBuilder, Variable};
use gpu_run_abi::intrinsic::{self, Intrinsic, namespace, region};
use gpu_run_abi::layout::{GUARD, field};
use gpu_run_abi::{Layout, TrapCode, gang, threads};
use std::collections::HashMap;
use std::ops::Range;

/// Calling convention of all generated code. Cranelift never lowers it: PTX has its own.
pub(crate) const CONVENTION: CallConv = CallConv::SystemV;

pub(crate) struct Code<'b> {
    pub(crate) b: FunctionBuilder<'b>,
    pub(crate) layout: Layout,
    /// Guest addresses below this have no memory, see [`SlotLayout::low`].
    low: u64,
    /// See [`SlotLayout::read_only`].
    read_only: Range<u64>,
    /// Whether the guest's memory is in the thread's local memory.
    pub(crate) is_local: bool,
    /// Whether accesses of 8 bytes have to be aligned to 8.
    pub(crate) whole_words: bool,
    /// Whether threads share the guest's memory.
    pub(crate) is_shared: bool,
    /// Set if the code is for a gang's thread.
    pub(crate) gang: Option<GangPlace>,
    /// The instance pointer: the function's first parameter.
    pub(crate) instance: Value,
    params: Vec<Value>,
    functions: HashMap<(u32, u32), FuncRef>,
}

pub(crate) fn signature(params: impl IntoIterator<Item = Type>, results: impl IntoIterator<Item = Type>) -> Signature {
    let mut signature = Signature::new(CONVENTION);
    signature.params.extend(params.into_iter().map(AbiParam::new));
    signature.returns.extend(results.into_iter().map(AbiParam::new));
    signature
}

/// Converts values to a block argument list, as CLIF takes it.
pub(crate) fn block_args(values: &[Value]) -> Vec<BlockArg> {
    values.iter().map(|v| BlockArg::from(*v)).collect()
}

impl<'b> Code<'b> {
    /// Opens the function's entry block; `instance` is its first parameter.
    pub(crate) fn new(mut b: FunctionBuilder<'b>, layout: Layout, slots: &SlotLayout) -> Self {
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        b.seal_block(entry);
        let params = b.block_params(entry).to_vec();
        Self {
            b,
            layout,
            low: slots.low,
            read_only: slots.read_only.clone(),
            is_local: slots.is_local(),
            whole_words: slots.is_local() || (slots.low > 0 && layout.spread() == 1),
            is_shared: slots.is_shared(),
            gang: slots.gang(),
            instance: params[0],
            params,
            functions: HashMap::new(),
        }
    }

    pub(crate) fn ins(&mut self) -> FuncInstBuilder<'_, 'b> {
        self.b.ins()
    }
    pub(crate) fn i32(&mut self, value: i64) -> Value {
        // CLIF keeps constants zero-extended.
        self.ins().iconst(types::I32, i64::from(value as u32))
    }
    pub(crate) fn i64(&mut self, value: i64) -> Value {
        self.ins().iconst(types::I64, value)
    }
    pub(crate) fn param(&self, index: usize) -> Value {
        self.params[index]
    }
    pub(crate) fn variable(&mut self, ty: Type, init: Value) -> Variable {
        let variable = self.b.declare_var(ty);
        self.b.def_var(variable, init);
        variable
    }

    // Memory regions and flags.

    pub(crate) fn region(&mut self, id: u32) -> AliasRegion {
        let description = match id {
            region::GUEST => "guest".into(),
            region::HEADER => "header".into(),
            region::TABLE => "table".into(),
            region::BUS => "bus".into(),
            region::CELLS => "cells".into(),
            region::CONSTANT => "constant".into(),
            region::FRAME => "frame".into(),
            region::SHARED => "shared".into(),
            global => format!("global {}", global - region::GLOBALS).into(),
        };
        self.b.func.dfg.alias_regions.insert(AliasRegionData { user_id: id, description })
    }
    /// Returns the flags of an access that is aligned and in bounds by construction.
    pub(crate) fn trusted(&mut self, id: u32) -> MemFlagsData {
        MemFlagsData::trusted().with_alias_region(Some(self.region(id)))
    }
    /// Returns the flags of an access to the guest's memory by guest address; `aligned` is an expectation, not a
    /// promise.
    pub(crate) fn guest_flags(&mut self, aligned: bool) -> MemFlagsData {
        let flags = MemFlagsData::new().with_alias_region(Some(self.region(region::GUEST)));
        if aligned { flags.with_aligned() } else { flags }
    }

    // The slot.

    pub(crate) fn slot_load(&mut self, ty: Type, id: u32, at: u64) -> Value {
        let (flags, instance) = (self.trusted(id), self.instance);
        self.word_load(ty, flags, instance, at)
    }
    pub(crate) fn slot_store(&mut self, value: Value, id: u32, at: u64) {
        let (flags, instance) = (self.trusted(id), self.instance);
        self.word_store(value, flags, instance, at);
    }
    pub(crate) fn header(&mut self, ty: Type, field: u64) -> Value {
        match self.hot_field(field) {
            Some((place, word)) => self.hot_load(&place, region::HEADER, word),
            None => self.slot_load(ty, region::HEADER, field),
        }
    }
    pub(crate) fn set_header(&mut self, value: Value, field: u64) {
        match self.hot_field(field) {
            Some((place, word)) => self.hot_store(&place, value, region::HEADER, word),
            None => self.slot_store(value, region::HEADER, field),
        }
    }
    /// Returns the hot word that replaces a field of the header in a gang.
    fn hot_field(&self, at: u64) -> Option<(GangPlace, u64)> {
        let word = match at {
            field::STACK_FLOOR => hot::STACK_FLOOR,
            field::FUEL => hot::FUEL,
            _ => return None,
        };
        Some((self.gang?, word))
    }
    /// Returns the address that the thread's hot words are counted from: the upper bits of its slot's offset are its
    /// number.
    fn hot_base(&mut self, place: &GangPlace) -> Value {
        let (record, instance) = (self.region_address(place), self.instance);
        let slot = self.ins().band_imm_u(instance, place.region as i64 - 1);
        let offset = self.ins().ushr_imm_u(slot, i64::from(place.slot_bytes.trailing_zeros()) - 2);
        self.ins().iadd(record, offset)
    }
    /// Loads a hot word of a gang's thread (i32).
    pub(crate) fn hot_load(&mut self, place: &GangPlace, id: u32, word: u64) -> Value {
        let (flags, base) = (self.trusted(id), self.hot_base(place));
        self.ins().load(types::I32, flags, base, (place.hot + word * place.hot_stride) as i32)
    }
    pub(crate) fn hot_store(&mut self, place: &GangPlace, value: Value, id: u32, word: u64) {
        let (flags, base) = (self.trusted(id), self.hot_base(place));
        self.ins().store(flags, value, base, (place.hot + word * place.hot_stride) as i32);
    }
    /// Loads a word of the slot that does not change while the instance runs, so that one load can serve all its uses.
    pub(crate) fn constant_field(&mut self, at: u64) -> Value {
        let flags = self.trusted(region::CONSTANT).with_readonly().with_can_move();
        let instance = self.instance;
        self.word_load(types::I64, flags, instance, at)
    }
    /// Returns the device address of byte `at` of the slot.
    pub(crate) fn slot_address(&mut self, at: u64) -> Value {
        let (instance, offset) = (self.instance, self.layout.offset(at) as i64);
        self.ins().iadd_imm_s(instance, offset)
    }

    /// Loads a word of a slot, `at` bytes behind `base`; in two halves where a cell is half a word.
    pub(crate) fn word_load(&mut self, ty: Type, flags: MemFlagsData, base: Value, at: u64) -> Value {
        let offset = |at| self.layout.offset(at) as i32;
        let (low_at, high_at) = (offset(at), offset(at + u64::from(types::I32.bytes())));
        if ty.is_vector() {
            let words = [0, 4, 8, 12].map(|i| {
                let offset = self.layout.offset(at + i) as i32;
                self.ins().load(types::I32, flags, base, offset)
            });
            return self.join_vector(words);
        }
        if u64::from(ty.bytes()) <= self.layout.cell() {
            return self.ins().load(ty, flags, base, low_at);
        }
        let low = self.ins().load(types::I32, flags, base, low_at);
        let high = self.ins().load(types::I32, flags, base, high_at);
        let word = self.ins().iconcat(low, high);
        if ty == types::F64 { self.ins().bitcast(ty, MemFlagsData::new(), word) } else { word }
    }

    pub(crate) fn word_store(&mut self, value: Value, flags: MemFlagsData, base: Value, at: u64) {
        let offset = |at| self.layout.offset(at) as i32;
        let (low_at, high_at) = (offset(at), offset(at + u64::from(types::I32.bytes())));
        let ty = self.b.func.dfg.value_type(value);
        if ty.is_vector() {
            for (i, word) in (0..).zip(self.split_vector(value)) {
                let offset = self.layout.offset(at + 4 * i) as i32;
                self.ins().store(flags, word, base, offset);
            }
            return;
        }
        if u64::from(ty.bytes()) <= self.layout.cell() {
            self.ins().store(flags, value, base, low_at);
            return;
        }
        let word = if ty == types::F64 { self.ins().bitcast(types::I64, MemFlagsData::new(), value) } else { value };
        let (low, high) = self.ins().isplit(word);
        self.ins().store(flags, low, base, low_at);
        self.ins().store(flags, high, base, high_at);
    }

    // Vectors: four 32-bit words in one value.

    pub(crate) fn join_vector(&mut self, [first, rest @ ..]: [Value; 4]) -> Value {
        let vector = self.ins().scalar_to_vector(types::I32X4, first);
        (1..).zip(rest).fold(vector, |vector, (lane, word)| self.ins().insertlane(vector, word, lane))
    }
    pub(crate) fn split_vector(&mut self, vector: Value) -> [Value; 4] {
        [0, 1, 2, 3].map(|lane: u8| self.ins().extractlane(vector, lane))
    }
    pub(crate) fn vector_constant(&mut self, bytes: [u8; 16]) -> Value {
        let constant = self.b.func.dfg.constants.insert(bytes.to_vec().into());
        self.ins().vconst(types::I32X4, constant)
    }

    // Guest memory.

    /// Returns the device address of guest byte `at`, which was checked. Copies use this, which move whole cells, and
    /// accesses to memories other than the first. Ordinary accesses to memory 0 leave address, bounds and alignment to
    /// `crates/ptx`, see [`Code::guest_flags`].
    pub(crate) fn guest_address(&mut self, at: Value, memory: Value) -> Value {
        let cell = self.layout.cell() as i64;
        if self.is_local || self.layout.spread() == 1 {
            let wide = self.ins().uextend(types::I64, at);
            return self.ins().iadd(memory, wide);
        }
        let cells = self.ins().band_imm_s(at, -cell);
        let cells = self.ins().uextend(types::I64, cells);
        let spread = self.layout.spread() as i64;
        let cells = self.ins().imul_imm_u(cells, spread);
        let address = self.ins().iadd(memory, cells);
        let byte = self.ins().band_imm_u(at, cell - 1);
        let byte = self.ins().uextend(types::I64, byte);
        self.ins().bor(address, byte)
    }

    pub(crate) fn is_wide(&self, value: Value) -> bool {
        self.b.func.dfg.value_type(value) == types::I64
    }

    /// Returns an index or length as an i32. Nothing is long enough to need more than 32 bits, so a larger value traps.
    pub(crate) fn narrow(&mut self, value: Value, code: TrapCode) -> Value {
        if !self.is_wide(value) {
            return value;
        }
        let high = self.ins().ushr_imm_u(value, 32);
        self.trap_if(high, code);
        self.ins().ireduce(types::I32, value)
    }

    /// Returns the amount to grow by as an i64 that can be added and multiplied without overflow; an impossible amount
    /// stays impossible.
    pub(crate) fn growth(&mut self, delta: Value) -> Value {
        if !self.is_wide(delta) {
            return self.ins().uextend(types::I64, delta);
        }
        let most = self.i64(1 << 33);
        self.ins().umin(delta, most)
    }

    /// Traps unless the `length` (i32) bytes at `at` (i32) are inside the memory. A speculative build also stops the
    /// instance if those bytes begin below `low`.
    pub(crate) fn check_range(&mut self, at: Value, length: Value) {
        let (at, length) = (self.ins().uextend(types::I64, at), self.ins().uextend(types::I64, length));
        let end = self.ins().iadd(at, length);
        self.check_end(end);
        if self.low > 0 {
            let low = self.low as i64;
            let below = self.ins().icmp_imm_u(IntCC::UnsignedLessThan, at, low);
            let any = self.ins().icmp_imm_s(IntCC::NotEqual, length, 0);
            let missing = self.ins().band(below, any);
            self.trap_if(missing, TrapCode::Inexact);
        }
    }

    /// Traps if `end` (i64) is after the end of the memory.
    pub(crate) fn check_end(&mut self, end: Value) {
        if !self.is_shared {
            let bytes = self.memory_length();
            let outside = self.ins().icmp(IntCC::UnsignedGreaterThan, end, bytes);
            return self.trap_if(outside, TrapCode::MemoryOutOfBounds);
        }
        // The slot's own word may be out of date: another thread may have grown the memory.
        let noted = self.header(types::I64, field::MEMORY_BYTES);
        let outside = self.ins().icmp(IntCC::UnsignedGreaterThan, end, noted);
        self.if_then(outside, true, |code| {
            let bytes = code.memory_length();
            code.set_memory_length(bytes);
            let outside = code.ins().icmp(IntCC::UnsignedGreaterThan, end, bytes);
            code.trap_if(outside, TrapCode::MemoryOutOfBounds);
        });
    }

    /// Like [`Code::check_range`], for bytes that will be written: also stops the instance if any of them is expected
    /// to be read-only.
    pub(crate) fn check_written(&mut self, at: Value, length: Value) {
        self.check_range(at, length);
        if self.read_only.is_empty() {
            return;
        }
        let (start, end) = (self.read_only.start as i64, self.read_only.end as i64);
        let (first, length) = (self.ins().uextend(types::I64, at), self.ins().uextend(types::I64, length));
        let after = self.ins().iadd(first, length);
        let begins = self.ins().icmp_imm_u(IntCC::UnsignedLessThan, first, end);
        let ends = self.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, after, start);
        let touches = self.ins().band(begins, ends);
        self.trap_if(touches, TrapCode::Inexact);
    }

    /// Returns the length of memory 0 in bytes (i64).
    pub(crate) fn memory_length(&mut self) -> Value {
        match self.gang {
            Some(place) => self.i64(place.memory_bytes as i64),
            None if self.is_shared => {
                // Another thread may change it at any time.
                let (memory, flags) = (self.constant_field(field::MEMORY_AT), self.trusted(region::BUS));
                let address = self.ins().iadd_imm_s(memory, i64::from(threads::offset::LENGTH));
                self.ins().atomic_load(types::I64, flags, address)
            }
            None => self.header(types::I64, field::MEMORY_BYTES),
        }
    }

    /// Notes the length of memory 0 (i64) in the header.
    pub(crate) fn set_memory_length(&mut self, bytes: Value) {
        self.set_header(bytes, field::MEMORY_BYTES);
        // A page is larger than the guard; an empty memory gives 0.
        let guard = self.i64(GUARD as i64);
        let most = self.ins().umax(bytes, guard);
        let fast = self.ins().isub(most, guard);
        self.set_header(fast, field::MEMORY_FAST);
    }

    /// Returns the device address of a gang's region.
    pub(crate) fn region_address(&mut self, place: &GangPlace) -> Value {
        let instance = self.instance;
        self.ins().band_imm_s(instance, -(place.region as i64))
    }

    /// Loads a word of a gang's record that does not change during a launch.
    pub(crate) fn common(&mut self, place: &GangPlace, at: u64) -> Value {
        let flags = self.trusted(region::CONSTANT).with_readonly().with_can_move();
        let record = self.region_address(place);
        self.ins().load(types::I64, flags, record, at as i32)
    }

    /// Returns the device address of the stop word.
    pub(crate) fn stop_address(&mut self) -> Value {
        match self.gang {
            Some(place) => {
                let record = self.region_address(&place);
                self.ins().iadd_imm_s(record, gang::offset::STOP as i64)
            }
            None => self.constant_field(field::STOP),
        }
    }

    /// Returns the device address of guest byte 0, to which the addresses from `low` on are added.
    pub(crate) fn memory_address(&mut self, slots: &SlotLayout) -> Value {
        if let Some(place) = self.gang {
            let region = self.region_address(&place);
            return self.ins().iadd_imm_s(region, place.region as i64);
        }
        if self.is_shared {
            return self.constant_field(field::MEMORY_AT);
        }
        if self.is_local {
            return self.header(types::I64, field::MEMORY_AT);
        }
        let first = self.slot_address(slots.memory);
        let below = (slots.low * self.layout.spread()) as i64;
        self.ins().iadd_imm_s(first, -below)
    }

    /// Returns the device address of byte 0 of a memory other than the first.
    pub(crate) fn side_memory(&mut self, place: &MemoryPlace) -> Value {
        let (offset, instance) = (self.header(types::I64, place.base), self.instance);
        self.ins().iadd(instance, offset)
    }

    // Traps and stops.

    pub(crate) fn trap_if(&mut self, condition: Value, code: TrapCode) {
        self.ins().trapnz(condition, ir::TrapCode::unwrap_user(code as u8));
    }
    pub(crate) fn trap_unless(&mut self, condition: Value, code: TrapCode) {
        self.ins().trapz(condition, ir::TrapCode::unwrap_user(code as u8));
    }
    pub(crate) fn trap(&mut self, code: TrapCode) {
        self.ins().trap(ir::TrapCode::unwrap_user(code as u8));
    }
    /// Traps if the stop word is set.
    pub(crate) fn check_stop(&mut self) {
        let stop = self.stop_address();
        self.check_stop_at(stop);
    }
    /// Like [`Code::check_stop`], for code that may run just after the slot got its header: the load of the address is
    /// not moved up.
    pub(crate) fn check_stop_of_slot(&mut self) {
        let stop = match self.gang {
            Some(_) => self.stop_address(),
            None => self.header(types::I64, field::STOP),
        };
        self.check_stop_at(stop);
    }
    fn check_stop_at(&mut self, stop: Value) {
        let stop = self.intrinsic(Intrinsic::Glance, &[stop]).expect("it has a result");
        self.trap_if(stop, TrapCode::Interrupted);
    }

    // Calls.

    pub(crate) fn function(&mut self, namespace: u32, index: u32, signature: impl FnOnce() -> Signature) -> FuncRef {
        if let Some(known) = self.functions.get(&(namespace, index)) {
            return *known;
        }
        let signature = self.b.import_signature(signature());
        let name = self.b.func.declare_imported_user_function(UserExternalName { namespace, index });
        let data = ExtFuncData { name: ExternalName::User(name), signature, colocated: true, patchable: false };
        let function = self.b.import_function(data);
        self.functions.insert((namespace, index), function);
        function
    }
    pub(crate) fn intrinsic(&mut self, which: Intrinsic, args: &[Value]) -> Option<Value> {
        self.intrinsics(which, args).first().copied()
    }
    /// Like [`Code::intrinsic`], for an intrinsic that may have several results.
    pub(crate) fn intrinsics(&mut self, which: Intrinsic, args: &[Value]) -> Vec<Value> {
        let clif = |ty: &intrinsic::Type| match ty {
            intrinsic::Type::I32 => types::I32,
            intrinsic::Type::I64 => types::I64,
            intrinsic::Type::F32 => types::F32,
            intrinsic::Type::F64 => types::F64,
        };
        let (params, results) = which.signature();
        let function = self.function(namespace::INTRINSIC, which as u32, || {
            signature(params.iter().map(clif), results.iter().map(clif))
        });
        let call = self.ins().call(function, args);
        self.b.inst_results(call).to_vec()
    }

    // Control.

    /// Runs `then` in a new block if `condition` holds; both paths join behind it.
    pub(crate) fn if_then(&mut self, condition: Value, cold: bool, then: impl FnOnce(&mut Self)) {
        let (taken, join) = (self.b.create_block(), self.b.create_block());
        self.ins().brif(condition, taken, &[], join, &[]);
        if cold {
            self.b.set_cold_block(taken);
        }
        self.open(taken);
        then(self);
        self.ins().jump(join, &[]);
        self.open(join);
    }
    /// Repeats `body` while `condition` returns a value other than 0.
    pub(crate) fn while_loop(&mut self, condition: impl FnOnce(&mut Self) -> Value, body: impl FnOnce(&mut Self)) {
        let (head, inside, done) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        self.ins().jump(head, &[]);
        self.b.switch_to_block(head);
        let holds = condition(self);
        self.ins().brif(holds, inside, &[], done, &[]);
        self.open(inside);
        body(self);
        self.ins().jump(head, &[]);
        self.b.seal_block(head);
        self.open(done);
    }
    /// Continues in a block whose predecessors are all known.
    pub(crate) fn open(&mut self, block: Block) {
        self.b.switch_to_block(block);
        self.b.seal_block(block);
    }
}
