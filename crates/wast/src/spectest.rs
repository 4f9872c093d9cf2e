//! The memories and tables of `spectest`, the module that scripts import from.
//!
//! The functions and constants of `spectest` are the same for everyone (`wasm/src/provided.rs`). Its memories and
//! tables exist once per script, as in the reference interpreter: what one module writes to them, the next one reads.
//! Each is an instance of its own, made when the first module imports it, so that only modules that import the same
//! memory or table become one program (`linker`).

use super::Problem;
use gpu_run_run::Linker;
use std::collections::BTreeSet;
use std::sync::Arc;

const MODULE: &str = "spectest";

/// Returns the text of the module that exports this name.
fn text(name: &str) -> Option<&'static str> {
    Some(match name {
        "memory" => r#"(module (memory (export "memory") 1 2))"#,
        "shared_memory" => r#"(module (memory (export "shared_memory") 1 2 shared))"#,
        "table" => r#"(module (table (export "table") 10 20 funcref))"#,
        "table64" => r#"(module (table (export "table64") i64 10 20 funcref))"#,
        _ => return None,
    })
}

/// Whether one of these imports is a memory or table of `spectest`, whose contents depend on what ran before.
pub(super) fn is_among(imports: &BTreeSet<(String, String)>) -> bool {
    imports.iter().any(|(module, name)| module == MODULE && text(name).is_some())
}

/// Makes the memories and tables of `spectest` that these imports name, if they do not exist yet.
pub(super) fn provide(linker: &mut Linker, imports: &BTreeSet<(String, String)>) -> Result<(), Problem> {
    for (module, name) in imports {
        let Some(text) = text(name).filter(|_| module == MODULE && !linker.provides(module, name)) else { continue };
        let wasm = wat::parse_str(text).map_err(|error| error.to_string())?;
        // A script without shared memories, or without 64-bit tables, cannot import one: linking reports the error.
        if linker.check(Arc::new(wasm.clone())).is_err() {
            continue;
        }
        let instance = linker.instantiate(Arc::new(wasm))?.map_err(|trap| format!("`{MODULE}` trapped: {trap}"))?;
        linker.provide(module, name, instance);
    }
    Ok(())
}
