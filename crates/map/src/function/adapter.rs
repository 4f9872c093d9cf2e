//! The program that calls a function for each call of a group.
//!
//! ```text
//! stdin   a word for each argument, call by call: an i32 or f32 takes the lower half
//! stdout  what the function printed; then a word for each result, call by call
//! ```
//!
//! Results are written after the last call. So what a function prints lies in front of them, and how much that is
//! follows from the length: [`Function::results`](super::Function::results).

use super::{MAX_GROUP, WORD};
use crate::adapter::{MOVE, STREAMS, import, initialize};
use gpu_run_compiler::{ADAPTED, FunctionType, Interface, Memories, ValueType};

/// Bytes of a page of memory.
const PAGE: usize = 64 << 10;

/// Returns the adapter, as WebAssembly text. It puts words behind the end of the guest's memory, which nobody else uses.
pub(super) fn text(module: &Interface, name: &str, ty: &FunctionType) -> String {
    let types = |word: &str, types: &[ValueType]| match types {
        [] => String::new(),
        types => format!(" ({word} {})", types.iter().map(ValueType::to_string).collect::<Vec<_>>().join(" ")),
    };
    let memory = match module.memories {
        Memories::None => "(memory 0)".to_owned(),
        Memories::First | Memories::Other => format!("(import {ADAPTED:?} \"memory\" (memory 0))"),
    };
    let (from_bytes, to_bytes) = (ty.params.len().max(1) * WORD, ty.results.len() * WORD);
    let (calls, head) = (MAX_GROUP, 2 * WORD);
    let input = calls * from_bytes;
    let pages = (head + input + calls * to_bytes).div_ceil(PAGE);
    let place = |local: &str, i: usize| format!("offset={} (local.get ${local})", i * WORD);
    let params: String = (0..).zip(&ty.params).map(|(i, ty)| format!(" ({ty}.load {})", place("call", i))).collect();
    // The last result is on top. An i32 or f32 takes half of its word; the other half stays zero.
    let stores: String = ty
        .results
        .iter()
        .enumerate()
        .rev()
        .map(|(i, ty)| {
            format!(
                "(local.set ${ty})\n                ({ty}.store {} (local.get ${ty}))\n                ",
                place("result", i)
            )
        })
        .collect();
    let (initialize, call) = initialize(module);
    let function = import(name, "function", &(types("param", &ty.params) + &types("result", &ty.results)));
    let no_room = format!("the words of calls need {pages} more page(s) of memory, which the memory cannot have\\n");
    let no_room_bytes = no_room.len() - 1;
    format!(
        r#"(module
    {function}{STREAMS}
    {initialize}
    {memory}
    (data $no_room "{no_room}"){MOVE}
    (func $refuse
        ;; The instance ends here, so that nothing in its memory matters any more.
        (i32.store (i32.const 0) (i32.const 16))
        (i32.store (i32.const 4) (i32.const {no_room_bytes}))
        (memory.init $no_room (i32.const 16) (i32.const 0) (i32.const {no_room_bytes}))
        (drop (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8)))
        unreachable)
    (func (export "_start")
        (local $base i32) (local $call i32) (local $end i32) (local $result i32)
        (local $i32 i32) (local $i64 i64) (local $f32 f32) (local $f64 f64)
        (local.set $base (memory.grow (i32.const {pages})))
        (if (i32.eq (local.get $base) (i32.const -1)) (then (call $refuse)))
        (local.set $base (i32.shl (local.get $base) (i32.const 16)))
        {call}
        (local.set $call (i32.add (local.get $base) (i32.const {head})))
        (local.set $result (i32.add (local.get $call) (i32.const {input})))
        (local.set $end (i32.add (local.get $call)
            (call $move (local.get $base) (local.get $call) (i32.const {input}) (i32.const 0))))
        (block $done
            (loop $next
                (br_if $done (i32.ge_u (local.get $call) (local.get $end)))
                (call $function{params})
                {stores}(local.set $call (i32.add (local.get $call) (i32.const {from_bytes})))
                (local.set $result (i32.add (local.get $result) (i32.const {to_bytes})))
                (br $next)))
        (local.set $call (i32.add (local.get $base) (i32.const {first_result})))
        (drop (call $move (local.get $base) (local.get $call)
            (i32.sub (local.get $result) (local.get $call)) (i32.const 1)))))
"#,
        first_result = head + input,
    )
}
