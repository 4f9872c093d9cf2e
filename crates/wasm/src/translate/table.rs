//! Tables and references. An element is one word of the slot, holding a reference as [`crate::types::ValType::clif`] describes.

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
        Op::RefFunc { function_index } => {
            let reference = t.code.i64(function_reference(t.env.module, function_index) as i64);
            t.push(reference);
        }
        Op::TableGet { table } => {
            let index = t.pop();
            let element = t.table_element(table, index, TrapCode::TableOutOfBounds);
            t.push(element);
        }
        Op::TableSet { table } => {
            let (value, index) = (t.pop(), t.pop());
            let address = t.element_address(table, index, TrapCode::TableOutOfBounds);
            let flags = t.code.trusted(region::TABLE);
            t.code.word_store(value, flags, address, 0);
        }
        Op::TableSize { table } => {
            let length = t.table_length(table);
            let length = t.code.ins().ireduce(types::I32, length);
            t.push(length);
        }
        Op::TableGrow { table } => t.table_grow(table),
        Op::TableFill { table } => {
            let (count, value, from) = (t.pop(), t.pop(), t.pop());
            let length = t.table_length(table);
            t.check_end(from, count, length, TrapCode::TableOutOfBounds);
            let to = t.unchecked_element(table, from);
            t.code.call_helper(Helper::WordsFill, &[to, value, count]);
        }
        Op::TableCopy { dst_table, src_table } => {
            let (count, from, to) = (t.pop(), t.pop(), t.pop());
            for (table, at) in [(dst_table, to), (src_table, from)] {
                let length = t.table_length(table);
                t.check_end(at, count, length, TrapCode::TableOutOfBounds);
            }
            let (to, from) = (t.unchecked_element(dst_table, to), t.unchecked_element(src_table, from));
            t.code.call_helper(Helper::WordsCopy, &[to, from, count]);
        }
        Op::TableInit { elem_index, table } => {
            let (count, from, to) = (t.pop(), t.pop(), t.pop());
            let segment = t.env.slots.elements[elem_index as usize];
            let length = t.table_length(table);
            t.check_end(to, count, length, TrapCode::TableOutOfBounds);
            t.check_segment(segment.cell, from, count, TrapCode::TableOutOfBounds);
            let to = t.unchecked_element(table, to);
            let constants = t.code.fixed(field::CONSTANTS);
            let from = t.code.ins().uextend(types::I64, from);
            let from = t.code.ins().ishl_imm_u(from, i64::from(WORD.trailing_zeros()));
            let from = t.code.ins().iadd(constants, from);
            let from = t.code.ins().iadd_imm_s(from, segment.at as i64);
            t.code.call_helper(Helper::WordsInit, &[to, from, count]);
        }
        Op::ElemDrop { elem_index } => {
            let none = t.code.i64(0);
            t.code.slot_store(none, region::HEADER, t.env.slots.elements[elem_index as usize].cell);
        }
        _ => return false,
    }
    true
}

/// What a reference to a function looks like: what an indirect call checks comes along.
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

    fn table_grow(&mut self, table: u32) {
        let (delta, value) = (self.pop(), self.pop());
        let place = self.env.slots.tables[table as usize];
        let wide = self.code.ins().uextend(types::I64, delta);
        let old = self.table_length(table);
        let wanted = self.code.ins().iadd(old, wide);
        let limit = self.code.i64(place.capacity as i64);
        let (new, result) = self.grow(old, wanted, limit);
        self.code.slot_store(new, region::HEADER, place.length);
        let (from, to) = (self.code.ins().ireduce(types::I32, old), self.code.ins().ireduce(types::I32, new));
        let added = self.code.ins().isub(to, from);
        let at = self.unchecked_element(table, from);
        self.code.call_helper(Helper::WordsFill, &[at, value, added]);
        let result = self.code.ins().ireduce(types::I32, result);
        self.push(result);
    }
}
