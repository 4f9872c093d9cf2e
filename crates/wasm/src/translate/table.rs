//! Tables and references. An element is one word of the slot, which holds a reference as
//! [`crate::types::ValType::clif`] describes.

use super::Translator;
use crate::decode::Module;
use crate::runtime::Helper;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use gpu_run_abi::TrapCode;
use gpu_run_abi::intrinsic::region;
use gpu_run_abi::layout::{WORD, field};
use wasmparser::Operator as Op;

/// Translates `op` if it is about tables or references.
pub(super) fn translate(t: &mut Translator<'_, '_>, op: &Op<'_>) -> bool {
    let place = |t: &Translator<'_, '_>, table: u32| t.part.tables[table as usize];
    match *op {
        Op::RefNull { .. } => {
            let null = t.code.i64(0);
            t.push(null);
        }
        Op::RefIsNull => {
            let reference = t.pop();
            let null = t.code.ins().icmp_imm_s(IntCC::Equal, reference, 0);
            t.push_flag(null);
        }
        Op::RefAsNonNull => {
            let reference = t.peek();
            t.code.trap_unless(reference, TrapCode::NullReference);
        }
        Op::RefFunc { function_index } => {
            let function = t.part.functions[function_index as usize];
            let reference = t.code.i64(function_reference(t.env.module, function) as i64);
            t.push(reference);
        }
        Op::TableGet { table } => {
            let (table, index) = (place(t, table), t.pop());
            let index = t.table_index(table, index, TrapCode::TableOutOfBounds);
            let element = t.table_element(table, index, TrapCode::TableOutOfBounds);
            t.push(element);
        }
        Op::TableSet { table } => {
            let (table, value, index) = (place(t, table), t.pop(), t.pop());
            let index = t.table_index(table, index, TrapCode::TableOutOfBounds);
            let address = t.element_address(table, index, TrapCode::TableOutOfBounds);
            let flags = t.code.trusted(region::TABLE);
            t.code.word_store(value, flags, address, 0);
        }
        Op::TableSize { table } => {
            let table = place(t, table);
            let length = t.table_length(table);
            t.push_length(table, length);
        }
        Op::TableGrow { table } => t.table_grow(place(t, table)),
        Op::TableFill { table } => {
            let (table, count, value, from) = (place(t, table), t.pop(), t.pop(), t.pop());
            let [count, from] = [count, from].map(|v| t.table_index(table, v, TrapCode::TableOutOfBounds));
            let length = t.table_length(table);
            t.check_end(from, count, length, TrapCode::TableOutOfBounds);
            let to = t.unchecked_element(table, from);
            t.code.call_helper(Helper::WordsFill, &[to, value, count]);
        }
        Op::TableCopy { dst_table, src_table } => {
            let (dst_table, src_table) = (place(t, dst_table), place(t, src_table));
            let (count, from, to) = (t.pop(), t.pop(), t.pop());
            let [count, from, to] = [count, from, to].map(|v| t.code.narrow(v, TrapCode::TableOutOfBounds));
            for (table, at) in [(dst_table, to), (src_table, from)] {
                let length = t.table_length(table);
                t.check_end(at, count, length, TrapCode::TableOutOfBounds);
            }
            let (to, from) = (t.unchecked_element(dst_table, to), t.unchecked_element(src_table, from));
            t.code.call_helper(Helper::WordsCopy, &[to, from, count]);
        }
        Op::TableInit { elem_index, table } => {
            let (table, count, from, to) = (place(t, table), t.pop(), t.pop(), t.pop());
            let to = t.table_index(table, to, TrapCode::TableOutOfBounds);
            let segment = t.env.slots.elements[(t.part.elements + elem_index) as usize];
            let length = t.table_length(table);
            t.check_end(to, count, length, TrapCode::TableOutOfBounds);
            t.check_segment(segment.cell, from, count, TrapCode::TableOutOfBounds);
            let to = t.unchecked_element(table, to);
            let constants = t.code.constant_field(field::CONSTANTS);
            let from = t.code.ins().uextend(types::I64, from);
            let from = t.code.ins().ishl_imm_u(from, i64::from(WORD.trailing_zeros()));
            let from = t.code.ins().iadd(constants, from);
            let from = t.code.ins().iadd_imm_s(from, segment.at as i64);
            t.code.call_helper(Helper::WordsInit, &[to, from, count]);
        }
        Op::ElemDrop { elem_index } => {
            let none = t.code.i64(0);
            let segment = t.env.slots.elements[(t.part.elements + elem_index) as usize];
            t.code.slot_store(none, region::HEADER, segment.cell);
        }
        _ => return false,
    }
    true
}

/// Returns the reference to a function. It contains the function's signature, which an indirect call checks.
pub fn function_reference(module: &Module<'_>, function: u32) -> u64 {
    (u64::from(module.signature_of(function)) << 32) | (u64::from(function) + 1)
}

impl Translator<'_, '_> {
    fn table_length(&mut self, table: u32) -> Value {
        self.code.header(types::I64, self.env.slots.tables[table as usize].length)
    }

    pub(super) fn table_element(&mut self, table: u32, index: Value, code: TrapCode) -> Value {
        let address = self.element_address(table, index, code);
        let flags = self.code.trusted(region::TABLE);
        self.code.word_load(types::I64, flags, address, 0)
    }

    fn element_address(&mut self, table: u32, index: Value, code: TrapCode) -> Value {
        let length = self.code.header(types::I32, self.env.slots.tables[table as usize].length);
        let outside = self.code.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, index, length);
        self.code.trap_if(outside, code);
        self.unchecked_element(table, index)
    }

    fn unchecked_element(&mut self, table: u32, index: Value) -> Value {
        let first = self.code.slot_address(self.env.slots.tables[table as usize].at);
        let index = self.code.ins().uextend(types::I64, index);
        let step = (WORD * self.env.layout.spread()).trailing_zeros();
        let offset = self.code.ins().ishl_imm_u(index, i64::from(step));
        self.code.ins().iadd(first, offset)
    }

    /// Returns a table index as an i32. This holds for tables with 64-bit indices too, because none has more elements
    /// than an i32 can index.
    pub(super) fn table_index(&mut self, table: u32, index: Value, code: TrapCode) -> Value {
        debug_assert_eq!(self.env.module.tables[table as usize].is_64, self.code.is_wide(index));
        self.code.narrow(index, code)
    }

    fn push_length(&mut self, table: u32, length: Value) {
        let length = match self.env.module.tables[table as usize].is_64 {
            true => length,
            false => self.code.ins().ireduce(types::I32, length),
        };
        self.push(length);
    }

    fn table_grow(&mut self, table: u32) {
        let (delta, value) = (self.pop(), self.pop());
        let place = self.env.slots.tables[table as usize];
        let wide = self.code.growth(delta);
        let old = self.table_length(table);
        let wanted = self.code.ins().iadd(old, wide);
        let most = self.code.i64(place.capacity as i64);
        let bytes = self.code.ins().ishl_imm_u(wide, i64::from(WORD.trailing_zeros()));
        let is_allowed = self.growth_allowed(wanted, most, bytes);
        let (new, result) = self.grow(old, wanted, is_allowed);
        self.note_growth(is_allowed, bytes);
        self.code.slot_store(new, region::HEADER, place.length);
        let (from, to) = (self.code.ins().ireduce(types::I32, old), self.code.ins().ireduce(types::I32, new));
        let added = self.code.ins().isub(to, from);
        let at = self.unchecked_element(table, from);
        self.code.call_helper(Helper::WordsFill, &[at, value, added]);
        self.push_length(table, result);
    }
}
