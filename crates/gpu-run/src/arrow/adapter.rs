//! The program that calls one of a module's functions for a group of rows.
//!
//! ```text
//! stdin   number of the function, count of bytes, the rows as an Arrow IPC file
//! stdout  what the function printed; then, from the last to the first, each answer and its count of bytes; the trailer
//! trailer count of answers, status, MAGIC
//! ```
//!
//! Numbers have 32 bits. The host reads the answers from the end on, so that it does not matter what functions print. An answer is an
//! Arrow IPC file; if the status is not 0, there is one answer, a message.

use crate::error::{Error, Result};
use crate::module::Module;
use gpu_run_compiler::{ADAPTED, Adapter, FunctionType, Memories, ValueType};
use gpu_run_map::adapter::{MOVE, STREAMS, import, initialize};

pub(super) const MAGIC: [u8; 4] = *b"GRaf";

/// Returns the adapter for these functions, each with whether it is a table function.
pub(super) fn adapter<'a>(module: &Module, functions: impl IntoIterator<Item = (&'a str, bool)>) -> Result<Adapter> {
    if module.memories() != Memories::First {
        let name = module.name();
        return Err(Error::Limit(format!("{name} has no memory with 32-bit addresses of its own, as arrow-udf needs")));
    }
    let (mut imports, mut calls) = (String::new(), String::new());
    let mut has_tables = false;
    for (number, (export, is_table)) in functions.into_iter().enumerate() {
        imports.push_str(&checked(module, export, &format!("f{number}"), 3, 1)?);
        calls.push_str(&format!(
            "(if (i32.eq (local.get $function) (i32.const {number})) (then
                (local.set $is_table (i32.const {is_table}))
                (local.set $status (call $f{number} (local.get $input) (local.get $count) (local.get $slice)))))
            ",
            is_table = u32::from(is_table),
        ));
        has_tables |= is_table;
    }
    imports.push_str(&checked(module, "alloc", "alloc", 2, 1)?);
    let mut tables = "";
    if has_tables {
        imports.push_str(&checked(module, "record_batch_iterator_next", "next", 2, 0)?);
        tables = TABLES;
    }
    let (initialize, call) = initialize(module.interface());
    let magic = u32::from_le_bytes(MAGIC);
    let text = format!(
        r#"(module
    {imports}{STREAMS}
    {initialize}
    (import {ADAPTED:?} "memory" (memory 0))
    {MOVE}
    (func $take (param $count i32) (result i32)
        (local $at i32)
        (local.set $at (call $alloc (local.get $count) (i32.const 16)))
        (if (i32.eqz (local.get $at)) (then unreachable))
        (local.get $at))
    (func $all (param $base i32) (param $at i32) (param $count i32) (param $writes i32)
        (if (i32.ne (call $move (local.get $base) (local.get $at) (local.get $count) (local.get $writes)) (local.get $count))
            (then unreachable)))
    (func (export "_start")
        ;; `base` is for $move; `slice`, behind it, is where functions leave a pointer and a count.
        (local $base i32) (local $slice i32) (local $function i32) (local $input i32) (local $count i32)
        (local $is_table i32) (local $status i32)
        ;; Answers are a list: a pointer, a count, the answer before it.
        (local $iterator i32) (local $answer i32) (local $answers i32) (local $last i32)
        {call}
        (local.set $base (call $take (i32.const 32)))
        (local.set $slice (i32.add (local.get $base) (i32.const 16)))
        (call $all (local.get $base) (local.get $slice) (i32.const 8) (i32.const 0))
        (local.set $function (i32.load (local.get $slice)))
        (local.set $count (i32.load offset=4 (local.get $slice)))
        (local.set $input (call $take (local.get $count)))
        (call $all (local.get $base) (local.get $input) (local.get $count) (i32.const 0))
        {calls}
        (block $done
            (if (i32.and (local.get $is_table) (i32.eqz (local.get $status)))
                (then (local.set $iterator (i32.load (local.get $slice)))))
            (loop $next
                {tables}
                (local.set $answer (call $take (i32.const 12)))
                (i32.store (local.get $answer) (i32.load (local.get $slice)))
                (i32.store offset=4 (local.get $answer) (i32.load offset=4 (local.get $slice)))
                (i32.store offset=8 (local.get $answer) (local.get $last))
                (local.set $last (local.get $answer))
                (local.set $answers (i32.add (local.get $answers) (i32.const 1)))
                (br_if $next (local.get $iterator))))
        (block $written
            (loop $next
                (br_if $written (i32.eqz (local.get $last)))
                (call $all (local.get $base) (i32.load (local.get $last)) (i32.load offset=4 (local.get $last)) (i32.const 1))
                (call $all (local.get $base) (i32.add (local.get $last) (i32.const 4)) (i32.const 4) (i32.const 1))
                (local.set $last (i32.load offset=8 (local.get $last)))
                (br $next)))
        (i32.store (local.get $slice) (local.get $answers))
        (i32.store offset=4 (local.get $slice) (local.get $status))
        (i32.store offset=8 (local.get $slice) (i32.const {magic}))
        (call $all (local.get $base) (local.get $slice) (i32.const 12) (i32.const 1))))
"#
    );
    let wasm = wat::parse_str(&text).map_err(|error| Error::Internal(format!("{error}, in\n{text}")))?;
    Ok(Adapter::new(wasm))
}

/// Returns the import of a function that takes and returns so many words, if the module exports it.
fn checked(module: &Module, name: &str, id: &str, params: usize, results: usize) -> Result<String> {
    let words = |count| vec![ValueType::I32; count];
    let wanted = FunctionType { params: words(params), results: words(results) };
    match module.function(name) {
        Some(function) if *function.ty == wanted => {
            Ok(import(name, id, &format!("(param{}) (result{})", " i32".repeat(params), " i32".repeat(results))))
        }
        Some(function) => {
            let (function, expected) = (name.into(), function.ty.to_string());
            Err(Error::Signature { function, expected, found: wanted.to_string() })
        }
        None => {
            let module = module.name();
            Err(Error::MissingExport(format!(
                "{module} exports no function `{name}`, as modules made with arrow-udf do"
            )))
        }
    }
}

/// Takes the next answer of a table function, if that is what was called.
const TABLES: &str = r"
                (if (local.get $iterator) (then
                    (call $next (local.get $iterator) (local.get $slice))
                    (br_if $done (i32.eqz (i32.load (local.get $slice))))))";
