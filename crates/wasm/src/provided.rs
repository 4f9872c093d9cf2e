//! What gpu-run itself provides for import: host calls, a gang's device operations, and the official test suite's
//! module `spectest`.

use crate::types::{FuncType, ValType};
use gpu_run_abi::gang::DeviceCall;
use gpu_run_abi::hostcall::Call;
use gpu_run_abi::intrinsic::Type;
use gpu_run_abi::threads;

/// The implementation of an imported function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Imported {
    Host(Call),
    Device(DeviceCall),
    /// Starts a thread, see [`gpu_run_abi::threads`].
    Spawn,
}

impl Imported {
    pub(crate) fn find(module: &str, name: &str) -> Option<Self> {
        let device = || DeviceCall::find(module, name).map(Self::Device);
        let spawn = || threads::is_spawn(module, name).then_some(Self::Spawn);
        Call::find(module, name).map(Self::Host).or_else(device).or_else(spawn)
    }

    pub fn module(self) -> &'static str {
        match self {
            Self::Host(call) => call.function().module,
            Self::Device(_) => gpu_run_abi::gang::MODULE,
            Self::Spawn => threads::MODULE,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Host(call) => call.function().name,
            Self::Device(call) => call.name(),
            Self::Spawn => threads::SPAWN,
        }
    }

    /// Returns the function's wasm type.
    pub(crate) fn ty(self) -> FuncType {
        match self {
            Self::Host(call) => {
                let row = call.function();
                let results = if row.returns_errno { vec![ValType::I32] } else { Vec::new() };
                FuncType { params: row.params.iter().map(|(_, ty)| (*ty).into()).collect(), results }
            }
            Self::Device(call) => {
                let list = |types: &[Type]| types.iter().map(|ty| (*ty).into()).collect();
                let (params, results) = call.signature();
                FuncType { params: list(params), results: list(results) }
            }
            Self::Spawn => FuncType { params: vec![ValType::I32], results: vec![ValType::I32] },
        }
    }
}

pub(crate) const MODULE: &str = "spectest";

/// Returns the type and bits of a provided global, which is immutable.
pub(crate) fn global(module: &str, name: &str) -> Option<(ValType, u64)> {
    Some(match (module, name) {
        (MODULE, "global_i32") => (ValType::I32, 666),
        (MODULE, "global_i64") => (ValType::I64, 666),
        (MODULE, "global_f32") => (ValType::F32, 666.6f32.to_bits().into()),
        (MODULE, "global_f64") => (ValType::F64, 666.6f64.to_bits()),
        _ => return None,
    })
}

/// Returns a provided memory: minimum and maximum in pages, and whether it is shared.
pub(crate) fn memory(module: &str, name: &str) -> Option<(u64, u64, bool)> {
    match (module, name) {
        (MODULE, "memory") => Some((1, 2, false)),
        (MODULE, "shared_memory") => Some((1, 2, true)),
        _ => None,
    }
}

/// Returns a provided table of functions: minimum, maximum, and whether its indices are i64.
pub(crate) fn table(module: &str, name: &str) -> Option<(u64, u64, bool)> {
    match (module, name) {
        (MODULE, "table") => Some((10, 20, false)),
        (MODULE, "table64") => Some((10, 20, true)),
        _ => None,
    }
}

/// Returns which kind of item is provided under this name.
pub(crate) fn kind(module: &str, name: &str) -> Option<&'static str> {
    let kinds = [
        (Imported::find(module, name).is_some(), "a function"),
        (global(module, name).is_some(), "a global"),
        (memory(module, name).is_some(), "a memory"),
        (table(module, name).is_some(), "a table"),
    ];
    kinds.into_iter().find_map(|(is, kind)| is.then_some(kind))
}
