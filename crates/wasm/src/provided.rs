//! What gpu-run itself provides for import, besides the host calls of `abi::hostcall`: the official test suite's module `spectest`.

use crate::types::ValType;
use gpu_run_abi::hostcall::Call;

pub(crate) const MODULE: &str = "spectest";

/// An immutable global's type and bits.
pub(crate) fn global(module: &str, name: &str) -> Option<(ValType, u64)> {
    Some(match (module, name) {
        (MODULE, "global_i32") => (ValType::I32, 666),
        (MODULE, "global_i64") => (ValType::I64, 666),
        (MODULE, "global_f32") => (ValType::F32, 666.6f32.to_bits().into()),
        (MODULE, "global_f64") => (ValType::F64, 666.6f64.to_bits()),
        _ => return None,
    })
}

/// A memory's pages: minimum, maximum; and whether it is shared.
pub(crate) fn memory(module: &str, name: &str) -> Option<(u64, u64, bool)> {
    match (module, name) {
        (MODULE, "memory") => Some((1, 2, false)),
        (MODULE, "shared_memory") => Some((1, 2, true)),
        _ => None,
    }
}

/// A table of functions: minimum, maximum, whether its indices are i64.
pub(crate) fn table(module: &str, name: &str) -> Option<(u64, u64, bool)> {
    match (module, name) {
        (MODULE, "table") => Some((10, 20, false)),
        (MODULE, "table64") => Some((10, 20, true)),
        _ => None,
    }
}

/// What it is that is provided under this name.
pub(crate) fn kind(module: &str, name: &str) -> Option<&'static str> {
    let kinds = [
        (Call::find(module, name).is_some(), "a function"),
        (global(module, name).is_some(), "a global"),
        (memory(module, name).is_some(), "a memory"),
        (table(module, name).is_some(), "a table"),
    ];
    kinds.into_iter().find_map(|(is, kind)| is.then_some(kind))
}
