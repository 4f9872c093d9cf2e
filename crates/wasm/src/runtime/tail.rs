//! Tail calls, which PTX does not have.
//!
//! A function that makes a tail call writes the callee's index and arguments to the slot and returns. Nobody calls the
//! body of such a function directly, except the code here: all callers call its *stand-in*, which calls the body and
//! then, while there is an index in the slot, the function with that index.

use super::{Helper, body_name};
use crate::code::Code;
use crate::translate::{Env, clif_signature};
use crate::types::places;
use cranelift_codegen::ir::{BlockCall, InstBuilder, JumpTableData, Value, types};
use gpu_run_abi::TrapCode;
use gpu_run_abi::intrinsic::{namespace, region};

/// Builds the stand-in: the function that is called in the place of one that makes tail calls.
pub(super) fn stand_in(code: &mut Code<'_>, env: &Env<'_>, function: u32) {
    let (ty, tail) = (env.module.function_type(function), env.slots.tail);
    let mut args = vec![code.instance];
    args.extend((1..=ty.params.len()).map(|i| code.param(i)));
    let results = call(code, env, function, &args);
    if tail.next == 0 {
        // Its tail calls go only to functions that make none, so no chain can follow.
        code.ins().return_(&results);
        return;
    }
    let next = code.header(types::I32, tail.next);
    let (more, done) = (code.b.create_block(), code.b.create_block());
    code.ins().brif(next, more, &[], done, &[]);
    code.open(done);
    code.ins().return_(&results);
    code.open(more);
    code.call_helper(Helper::TailCalls, &[]);
    let results: Vec<_> = places(&ty.results).map(|(at, ty)| code.header(ty.clif(), tail.results + at)).collect();
    code.ins().return_(&results);
}

/// Calls a function's body. If the body makes a tail call, the callee is in the slot afterwards.
fn call(code: &mut Code<'_>, env: &Env<'_>, function: u32, args: &[Value]) -> Vec<Value> {
    let ty = env.module.function_type(function);
    let (space, index) = match env.module.traits.tails[function as usize] {
        true => (namespace::RUNTIME, body_name(function).index),
        false => (namespace::WASM, function),
    };
    let callee = code.function(space, index, || clif_signature(ty));
    let call = code.ins().call(callee, args);
    code.b.inst_results(call).to_vec()
}

/// While the slot names a function to call, calls it. The results of the last one are in the slot then.
pub(super) fn tail_calls(code: &mut Code<'_>, env: &Env<'_>) {
    let (tail, targets) = (env.slots.tail, &env.module.traits.tail_targets);
    if targets.is_empty() {
        code.ins().return_(&[]);
        return;
    }
    let (head, chosen, done) = (code.b.create_block(), code.b.create_block(), code.b.create_block());
    code.ins().jump(head, &[]);
    code.b.switch_to_block(head);
    let next = code.header(types::I32, tail.next);
    code.ins().brif(next, chosen, &[], done, &[]);
    code.open(chosen);
    let none = code.i64(0);
    code.slot_store(none, region::HEADER, tail.next);
    let index = code.ins().iadd_imm_s(next, -1);
    let other = code.b.create_block();
    let blocks: Vec<_> = targets.iter().map(|_| code.b.create_block()).collect();
    let last = targets.last().copied().unwrap_or(0);
    let table: Vec<_> = (0..=last)
        .map(|f| {
            let block = targets.binary_search(&f).map_or(other, |at| blocks[at]);
            BlockCall::new(block, [], &mut code.b.func.dfg.value_lists)
        })
        .collect();
    let default = BlockCall::new(other, [], &mut code.b.func.dfg.value_lists);
    let table = code.b.create_jump_table(JumpTableData::new(default, &table));
    code.ins().br_table(index, table);
    for (block, function) in blocks.into_iter().zip(targets) {
        code.open(block);
        let ty = env.module.function_type(*function);
        let mut args = vec![code.instance];
        for (at, param) in places(&ty.params) {
            args.push(code.header(param.clif(), tail.arguments + at));
        }
        for (result, (at, _)) in call(code, env, *function, &args).into_iter().zip(places(&ty.results)) {
            code.set_header(result, tail.results + at);
        }
        code.ins().jump(head, &[]);
    }
    code.b.seal_block(head);
    code.open(other);
    code.trap(TrapCode::Unreachable);
    code.open(done);
    code.ins().return_(&[]);
}
