//! Exceptions: thrown, caught, passed on.
//!
//! The pending exception is in the slot: its tag and its values. A function that an exception passes through returns
//! normally, with meaningless results, and after every call that may return this way the caller checks the tag's word.
//! [`crate::callgraph::Traits`] knows which calls may: where nothing throws, nothing is checked.
//!
//! `catch` takes the values from the slot. A reference to an exception is the number of a kept copy, see
//! [`crate::runtime::exception`].

use super::Translator;
use crate::code::block_args;
use crate::error::Error;
use crate::runtime::Helper;
use crate::types::{FuncType, ValType, places};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};
use gpu_run_abi::TrapCode;
use gpu_run_abi::intrinsic::region;
use wasmparser::{Catch, Operator};

impl Translator<'_, '_> {
    pub(super) fn exceptions(&mut self, op: &Operator<'_>) -> Result<bool, Error> {
        match *op {
            Operator::Throw { tag_index } => {
                let (tag, place) = (self.part.tags[tag_index as usize], self.env.slots.exception);
                let params = self.tag_type(tag).params.clone();
                for (value, (at, _)) in self.pop_many(params.len()).into_iter().zip(places(&params)) {
                    self.code.slot_store(value, region::HEADER, place.values + at);
                }
                let (none, tag) = (self.code.i64(0), self.code.i64(i64::from(tag) + 1));
                self.code.slot_store(none, region::HEADER, place.number);
                self.code.slot_store(tag, region::HEADER, place.tag);
                self.raise();
            }
            Operator::ThrowRef => {
                let reference = self.pop();
                self.code.trap_unless(reference, TrapCode::NullException);
                if self.env.slots.exception.kept > 0 {
                    self.code.call_helper(Helper::TakeException, &[reference]);
                }
                self.raise();
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn tag_type(&self, tag: u32) -> &'_ FuncType {
        let module = self.env.module;
        &module.types[module.tags[tag as usize] as usize]
    }

    fn raise(&mut self) {
        let landing = self.landing();
        self.code.ins().jump(landing, &[]);
        self.dead();
    }

    /// After a call: if an exception is pending, passes it on.
    pub(super) fn after_call(&mut self, may_throw: bool) {
        if !may_throw {
            return;
        }
        let tag = self.code.header(types::I32, self.env.slots.exception.tag);
        let (landing, next) = (self.landing(), self.code.b.create_block());
        self.code.ins().brif(tag, landing, &[], next, &[]);
        self.code.open(next);
    }

    /// Emits a block's catch clauses at its landing: the first clause that matches the exception catches it; otherwise
    /// the exception continues outside.
    pub(super) fn catch(&mut self, catches: &[Catch], landing: Block) {
        self.code.open(landing);
        let place = self.env.slots.exception;
        let under_way = self.code.header(types::I32, place.tag);
        for catch in catches {
            let (tag, label, by_reference) = match *catch {
                Catch::One { tag, label } => (Some(tag), label, false),
                Catch::OneRef { tag, label } => (Some(tag), label, true),
                Catch::All { label } => (None, label, false),
                Catch::AllRef { label } => (None, label, true),
            };
            let tag = tag.map(|tag| self.part.tags[tag as usize]);
            let other = tag.map(|tag| {
                let (mine, other) = (self.code.b.create_block(), self.code.b.create_block());
                let same = self.code.ins().icmp_imm_s(IntCC::Equal, under_way, i64::from(tag) + 1);
                self.code.ins().brif(same, mine, &[], other, &[]);
                self.code.open(mine);
                other
            });
            let values = self.caught(tag, by_reference);
            let (target, _) = self.aim(label);
            self.code.ins().jump(target, &block_args(&values));
            match other {
                Some(other) => self.code.open(other),
                // Clauses after a catch-all are never reached.
                None => return,
            }
        }
        let outside = self.landing();
        self.code.ins().jump(outside, &[]);
    }

    /// Returns the values that a clause passes to its label, and clears the pending exception.
    fn caught(&mut self, tag: Option<u32>, by_reference: bool) -> Vec<Value> {
        let place = self.env.slots.exception;
        let params = tag.map_or_else(Vec::new, |tag| self.tag_type(tag).params.clone());
        let load = |(at, ty): (u64, ValType)| self.code.slot_load(ty.clif(), region::HEADER, place.values + at);
        let mut values: Vec<_> = places(&params).map(load).collect();
        if by_reference {
            values.extend(self.code.call_helper(Helper::KeepException, &[]));
        }
        let none = self.code.i64(0);
        self.code.slot_store(none, region::HEADER, place.tag);
        values
    }

    /// Emits the end of a function that is left by an exception or by a tail call: its results are meaningless.
    pub(super) fn unwinding(&mut self, ty: &FuncType) {
        let Some(block) = self.unwind else { return };
        self.code.open(block);
        let results: Vec<_> = ty.results.iter().map(|ty| self.zero(*ty)).collect();
        self.code.ins().return_(&results);
    }
}
