//! The kernel of a gang: every thread runs the same entry, on one memory.

use super::ENTRY;
use super::kernel::{set_limits, thread_number};
use crate::code::{self, Code};
use crate::constant::Constant;
use crate::slot::{GangPlace, hot, is_hot};
use crate::translate::Env;
use crate::types::ValType;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Signature, Value, types};
use gpu_run_abi::gang::WORKGROUP_BYTES;
use gpu_run_abi::intrinsic::{Intrinsic, namespace, region};

/// The kernel of a gang. Its parameters: address of the region, selector of the entry function, bytes of stack that a
/// thread may use.
pub const GANG: &str = "gang";

/// The global that LLVM uses as a program's shadow stack pointer: the first.
const STACK_POINTER: usize = 0;

pub(super) fn signature() -> Signature {
    code::signature([types::I64, types::I32, types::I32], [])
}

pub(super) fn kernel(code: &mut Code<'_>, env: &Env<'_>, place: &GangPlace) {
    let (slots, selector, stack) = (code.param(0), code.param(1), code.param(2));
    let thread = thread_number(code);
    let index = code.ins().uextend(types::I64, thread);
    let offset = code.ins().imul_imm_u(index, place.slot_bytes as i64);
    let slot = code.ins().iadd(slots, offset);
    code.instance = code.ins().iadd_imm_s(slot, place.slot(0) as i64);
    set_limits(code, stack);
    reset_globals(code, env, place);
    set_stack_pointer(code, env, place, thread);
    clear_workgroup(code);
    code.intrinsic(Intrinsic::Barrier, &[]);
    let entry = code.function(namespace::RUNTIME, ENTRY, || code::signature([types::I64, types::I32, types::I32], []));
    let (instance, no_start) = (code.instance, code.i32(0));
    code.ins().call(entry, &[instance, selector, no_start]);
    code.ins().return_(&[]);
}

/// Resets the globals that a thread may have changed in the last launch: only the image persists.
fn reset_globals(code: &mut Code<'_>, env: &Env<'_>, place: &GangPlace) {
    for ((index, global), at) in (0..).zip(&env.module.globals).zip(&env.slots.globals) {
        let Constant::Bits(bits) = global.init else { continue };
        if !global.mutable || global.ty == ValType::V128 {
            continue;
        }
        if is_hot(global) {
            let word = code.i32(bits as i64);
            code.hot_store(place, word, region::GLOBALS + index, hot::GLOBALS + u64::from(index));
            continue;
        }
        let word = code.i64(bits as i64);
        code.slot_store(word, region::GLOBALS + index, *at);
    }
}

/// Sets the shadow stack pointer. Stacks grow down: a thread's stack begins where the next thread's ends.
fn set_stack_pointer(code: &mut Code<'_>, env: &Env<'_>, place: &GangPlace, thread: Value) {
    let Some(global) = env.module.globals.get(STACK_POINTER) else { return };
    if !is_hot(global) {
        return;
    }
    let next = code.ins().iadd_imm_s(thread, 1);
    let offset = code.ins().imul_imm_u(next, place.sizes.stack_bytes as i64);
    let top = code.ins().iadd_imm_s(offset, place.sizes.image_bytes as i64);
    code.hot_store(place, top, region::GLOBALS + STACK_POINTER as u32, hot::GLOBALS + STACK_POINTER as u64);
}

/// Clears the workgroup's own memory: all its threads write side by side.
fn clear_workgroup(code: &mut Code<'_>) {
    let thread = code.intrinsic(Intrinsic::ThreadInWorkgroup, &[]).expect("it has a result");
    let threads = code.intrinsic(Intrinsic::WorkgroupThreads, &[]).expect("it has a result");
    code.intrinsic(Intrinsic::LocalReset, &[]);
    let (first, step) = (code.ins().imul_imm_u(thread, 4), code.ins().imul_imm_u(threads, 4));
    let at = code.variable(types::I32, first);
    code.while_loop(
        |code| {
            let at = code.b.use_var(at);
            code.ins().icmp_imm_u(IntCC::UnsignedLessThan, at, WORKGROUP_BYTES as i64)
        },
        |code| {
            let (here, zero) = (code.b.use_var(at), code.i32(0));
            code.intrinsic(Intrinsic::LocalStore, &[here, zero]);
            let next = code.ins().iadd(here, step);
            code.b.def_var(at, next);
        },
    );
}
