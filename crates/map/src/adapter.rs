//! Text that adapters have in common: modules that are linked with the guest's and call its functions.

use gpu_run_compiler::{ADAPTED, FunctionType, Interface};

/// The function that a library module wants to be called once, before all others.
const INITIALIZE: &str = "_initialize";

/// The streams, for adapters that put this in front of their own functions. [`MOVE`] uses them.
pub const STREAMS: &str = r#"
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))"#;
/// `$move` reads from stdin or writes to stdout `count` bytes at `at`, and returns how many; it uses the 12 bytes at `base`.
pub const MOVE: &str = r"
    (func $move (param $base i32) (param $at i32) (param $count i32) (param $writes i32) (result i32)
        (local $done i32)
        (loop $again
            (i32.store (local.get $base) (i32.add (local.get $at) (local.get $done)))
            (i32.store offset=4 (local.get $base) (i32.sub (local.get $count) (local.get $done)))
            (if (local.get $writes)
                (then (if (call $write (i32.const 1) (local.get $base) (i32.const 1) (i32.add (local.get $base) (i32.const 8)))
                    (then unreachable)))
                (else (if (call $read (i32.const 0) (local.get $base) (i32.const 1) (i32.add (local.get $base) (i32.const 8)))
                    (then unreachable))))
            (local.set $done (i32.add (local.get $done) (i32.load offset=8 (local.get $base))))
            (br_if $again (i32.and
                (i32.lt_u (local.get $done) (local.get $count))
                (i32.ne (i32.load offset=8 (local.get $base)) (i32.const 0)))))
        (local.get $done))";

/// Returns the type of an exported function.
pub fn exported<'m>(module: &'m Interface, name: &str) -> Option<&'m FunctionType> {
    module.exports.iter().find(|export| export.name == name).and_then(|export| export.function.as_ref())
}

/// Returns the import of a function, as WebAssembly text, with a type such as `(param i32)`.
pub fn import(name: &str, id: &str, ty: &str) -> String {
    let name: String = name.bytes().map(|byte| format!("\\{byte:02x}")).collect();
    format!("(import {ADAPTED:?} \"{name}\" (func ${id} {ty}))")
}

/// Returns the import of the module's `_initialize` and a call of it, if it has one.
pub fn initialize(module: &Interface) -> (String, &'static str) {
    let is_there = exported(module, INITIALIZE).is_some_and(|ty| *ty == FunctionType::default());
    match is_there {
        true => (import(INITIALIZE, "initialize", ""), "(call $initialize)"),
        false => (String::new(), ""),
    }
}
