//! What gpu-run itself provides for import, besides the host calls of `abi::hostcall`: the official test suite's module `spectest`.

use crate::types::ValType;

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

/// A table of functions: minimum, maximum.
pub(crate) fn table(module: &str, name: &str) -> Option<(u64, u64)> {
    ((module, name) == (MODULE, "table")).then_some((10, 20))
}
