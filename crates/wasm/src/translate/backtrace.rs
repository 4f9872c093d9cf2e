//! Notes of calls, for backtraces: a device has no unwinder.
//!
//! In a program that is compiled with `Options::backtrace`, the slot holds how many calls led to the function that runs,
//! and where the last of them are in the module ([`crate::slot::CallsPlace`]). A function that calls others loads the
//! number when it is entered and keeps it in a register. Before each call it stores the call's place and the number plus
//! one, and after the call its own number again: so the number is right when an exception arrives, too, because a
//! function that an exception passes through returns. A tail call stores nothing: the callee takes the caller's place.

use super::Translator;
use crate::slot::{CallsPlace, KEPT_CALLS};
use cranelift_codegen::ir::{InstBuilder, types};
use gpu_run_abi::intrinsic::region;

impl Translator<'_, '_> {
    /// At the function's entry: loads how many calls led to it, if calls are noted.
    pub(super) fn begin_noting(&mut self) {
        let place = self.env.slots.calls;
        self.depth = place.is_noted().then(|| self.code.slot_load(types::I32, region::HEADER, place.depth));
    }

    /// Before a call: notes its place.
    pub(super) fn note_call(&mut self) {
        let (Some(depth), place) = (self.depth, self.env.slots.calls) else { return };
        let index = self.code.ins().band_imm_u(depth, KEPT_CALLS as i64 - 1);
        let index = self.code.ins().uextend(types::I64, index);
        let stride = CallsPlace::BYTES * self.code.layout.spread();
        let offset = self.code.ins().imul_imm_u(index, stride as i64);
        let first = self.code.slot_address(place.places);
        let (at, flags) = (self.code.ins().iadd(first, offset), self.code.trusted(region::HEADER));
        let here = self.code.i32(self.offset as i64);
        self.code.ins().store(flags, here, at, 0);
        let deeper = self.code.ins().iadd_imm_s(depth, 1);
        self.code.slot_store(deeper, region::HEADER, place.depth);
    }

    /// After a call: the function that runs is this one again.
    pub(super) fn note_return(&mut self) {
        if let Some(depth) = self.depth {
            self.code.slot_store(depth, region::HEADER, self.env.slots.calls.depth);
        }
    }
}
