//! Loads and stores of memories other than the first.
//!
//! Few programs have any, so the code is simple: bounds are checked here, to the byte; an aligned access is one
//! instruction, a misaligned one goes byte by byte in a helper.

use super::Translator;
use crate::runtime::Helper;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Type, Value, types};
use gpu_run_abi::TrapCode;
use gpu_run_abi::intrinsic::region;
use wasmparser::{MemArg, Operator as Op};

/// The memory access of an operator.
struct Access {
    memarg: MemArg,
    bytes: u32,
    /// The type it loads, and whether it sign-extends; `None` for a store.
    load: Option<(Type, bool)>,
}

#[rustfmt::skip]
fn access(op: &Op<'_>) -> Option<Access> {
    use types::{F32, F64, I32, I64};
    let load = |memarg, bytes, ty, signed| Some(Access { memarg, bytes, load: Some((ty, signed)) });
    let store = |memarg, bytes| Some(Access { memarg, bytes, load: None });
    match *op {
        Op::I32Load { memarg }    => load(memarg, 4, I32, false),
        Op::I64Load { memarg }    => load(memarg, 8, I64, false),
        Op::F32Load { memarg }    => load(memarg, 4, F32, false),
        Op::F64Load { memarg }    => load(memarg, 8, F64, false),
        Op::I32Load8S { memarg }  => load(memarg, 1, I32, true),
        Op::I32Load8U { memarg }  => load(memarg, 1, I32, false),
        Op::I32Load16S { memarg } => load(memarg, 2, I32, true),
        Op::I32Load16U { memarg } => load(memarg, 2, I32, false),
        Op::I64Load8S { memarg }  => load(memarg, 1, I64, true),
        Op::I64Load8U { memarg }  => load(memarg, 1, I64, false),
        Op::I64Load16S { memarg } => load(memarg, 2, I64, true),
        Op::I64Load16U { memarg } => load(memarg, 2, I64, false),
        Op::I64Load32S { memarg } => load(memarg, 4, I64, true),
        Op::I64Load32U { memarg } => load(memarg, 4, I64, false),
        Op::I32Store8 { memarg } | Op::I64Store8 { memarg }   => store(memarg, 1),
        Op::I32Store16 { memarg } | Op::I64Store16 { memarg } => store(memarg, 2),
        Op::I32Store { memarg } | Op::F32Store { memarg } | Op::I64Store32 { memarg } => store(memarg, 4),
        Op::I64Store { memarg } | Op::F64Store { memarg }     => store(memarg, 8),
        _ => None,
    }
}

/// Translates `op` if it accesses a memory other than the first.
pub(super) fn translate(t: &mut Translator<'_, '_>, op: &Op<'_>) -> bool {
    let Some(access) = access(op) else { return false };
    let memory = t.part.memories[access.memarg.memory as usize];
    if memory == 0 {
        return false;
    }
    match access.load {
        Some((ty, signed)) => {
            let at = t.pop();
            let at = t.side_address(memory, at, access.memarg, access.bytes);
            let raw = t.side_load(memory, at, access.bytes);
            let value = t.widened(raw, access.bytes, ty, signed);
            t.push(value);
        }
        None => {
            let (value, at) = (t.pop(), t.pop());
            let at = t.side_address(memory, at, access.memarg, access.bytes);
            t.side_store(memory, at, access.bytes, value);
        }
    }
    true
}

impl Translator<'_, '_> {
    /// Returns the memory of an access, if it is not the first.
    pub(super) fn side(&self, memarg: MemArg) -> Option<u32> {
        Some(self.part.memories[memarg.memory as usize]).filter(|memory| *memory > 0)
    }

    /// Returns the guest address (i32) of an access; traps if the access is not inside the memory.
    pub(super) fn side_address(&mut self, memory: u32, at: Value, memarg: MemArg, bytes: u32) -> Value {
        let at = if self.code.is_wide(at) { at } else { self.code.ins().uextend(types::I64, at) };
        // No memory is as long as 2^33 bytes.
        let reach = memarg.offset.saturating_add(bytes.into()).min(1 << 33);
        let length = self.code.header(types::I64, self.memory_words(memory).0);
        let reach = self.code.i64(reach as i64);
        let short = self.code.ins().icmp(IntCC::UnsignedLessThan, length, reach);
        self.code.trap_if(short, TrapCode::MemoryOutOfBounds);
        let last = self.code.ins().isub(length, reach);
        let outside = self.code.ins().icmp(IntCC::UnsignedGreaterThan, at, last);
        self.code.trap_if(outside, TrapCode::MemoryOutOfBounds);
        let offset = self.code.i64(memarg.offset as i64);
        let address = self.code.ins().iadd(at, offset);
        self.code.ins().ireduce(types::I32, address)
    }

    /// Returns a value other than 0 if the address is misaligned for an access of `bytes`.
    fn skew(&mut self, at: Value, bytes: u32) -> Value {
        self.code.ins().band_imm_u(at, i64::from(bytes) - 1)
    }

    /// Loads `bytes` bytes, zero-extended.
    pub(super) fn side_load(&mut self, memory: u32, at: Value, bytes: u32) -> Value {
        let base = self.memory_base(memory);
        let (odd, even, done) = (self.code.b.create_block(), self.code.b.create_block(), self.code.b.create_block());
        let result = self.code.b.append_block_param(done, types::I64);
        let skew = self.skew(at, bytes);
        self.code.ins().brif(skew, odd, &[], even, &[]);
        self.code.open(odd);
        let size = self.code.i32(bytes.into());
        let slow = self.code.call_helper(Helper::LoadIn, &[base, at, size]).expect("it has a result");
        self.code.ins().jump(done, &[slow.into()]);
        self.code.open(even);
        let (address, flags) = (self.code.guest_address(at, base), self.code.trusted(region::BUS));
        let quick = match bytes {
            1 => self.code.ins().uload8(types::I64, flags, address, 0),
            2 => self.code.ins().uload16(types::I64, flags, address, 0),
            4 => self.code.ins().uload32(flags, address, 0),
            _ => self.code.word_load(types::I64, flags, address, 0),
        };
        self.code.ins().jump(done, &[quick.into()]);
        self.code.open(done);
        result
    }

    pub(super) fn side_store(&mut self, memory: u32, at: Value, bytes: u32, value: Value) {
        let raw = self.bits_of(value);
        let base = self.memory_base(memory);
        let (odd, even, done) = (self.code.b.create_block(), self.code.b.create_block(), self.code.b.create_block());
        let skew = self.skew(at, bytes);
        self.code.ins().brif(skew, odd, &[], even, &[]);
        self.code.open(odd);
        let size = self.code.i32(bytes.into());
        self.code.call_helper(Helper::StoreIn, &[base, at, size, raw]);
        self.code.ins().jump(done, &[]);
        self.code.open(even);
        let (address, flags) = (self.code.guest_address(at, base), self.code.trusted(region::BUS));
        match bytes {
            1 => drop(self.code.ins().istore8(flags, raw, address, 0)),
            2 => drop(self.code.ins().istore16(flags, raw, address, 0)),
            4 => drop(self.code.ins().istore32(flags, raw, address, 0)),
            _ => self.code.word_store(raw, flags, address, 0),
        }
        self.code.ins().jump(done, &[]);
        self.code.open(done);
    }

    fn widened(&mut self, raw: Value, bytes: u32, ty: Type, signed: bool) -> Value {
        let ins = |t: &mut Self, bits: Type| t.code.ins().ireduce(bits, raw);
        match (ty, signed) {
            (types::F64, _) => self.code.ins().bitcast(types::F64, MemFlagsData::new(), raw),
            (types::F32, _) => {
                let bits = ins(self, types::I32);
                self.code.ins().bitcast(types::F32, MemFlagsData::new(), bits)
            }
            (types::I32, false) => ins(self, types::I32),
            (ty, true) => {
                let narrow = match bytes {
                    1 => types::I8,
                    2 => types::I16,
                    _ => types::I32,
                };
                let value = ins(self, narrow);
                self.code.ins().sextend(ty, value)
            }
            _ => raw,
        }
    }

    fn bits_of(&mut self, value: Value) -> Value {
        let flags = MemFlagsData::new();
        let bits = match self.code.b.func.dfg.value_type(value) {
            types::F32 => self.code.ins().bitcast(types::I32, flags, value),
            types::F64 => return self.code.ins().bitcast(types::I64, flags, value),
            _ => value,
        };
        if self.code.is_wide(bits) { bits } else { self.code.ins().uextend(types::I64, bits) }
    }
}
