//! What a module can import that no module exports: host calls, a gang's device operations, the embedder's functions, and the
//! official test suite's module `spectest`.

use crate::embedder::EmbedderFunction;
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
    /// The embedder's function of this number.
    Embedder(u32),
}

impl Imported {
    pub(crate) fn find(module: &str, name: &str, embedder: &[EmbedderFunction]) -> Option<Self> {
        if let Some(number) = EmbedderFunction::find(embedder, module, name) {
            return Some(Self::Embedder(number));
        }
        let device = || DeviceCall::find(module, name).map(Self::Device);
        let spawn = || threads::is_spawn(module, name).then_some(Self::Spawn);
        Call::find(module, name).map(Self::Host).or_else(device).or_else(spawn)
    }

    pub fn module(self, embedder: &[EmbedderFunction]) -> &str {
        match self {
            Self::Host(call) => call.function().module,
            Self::Device(_) => gpu_run_abi::gang::MODULE,
            Self::Spawn => threads::MODULE,
            Self::Embedder(number) => &embedder[number as usize].module,
        }
    }

    pub fn name(self, embedder: &[EmbedderFunction]) -> &str {
        match self {
            Self::Host(call) => call.function().name,
            Self::Device(call) => call.name(),
            Self::Spawn => threads::SPAWN,
            Self::Embedder(number) => &embedder[number as usize].name,
        }
    }

    /// Returns the function's wasm type.
    pub(crate) fn ty(self, embedder: &[EmbedderFunction]) -> FuncType {
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
            Self::Embedder(number) => embedder[number as usize].ty(),
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
        (Imported::find(module, name, &[]).is_some(), "a function"),
        (global(module, name).is_some(), "a global"),
        (memory(module, name).is_some(), "a memory"),
        (table(module, name).is_some(), "a table"),
    ];
    kinds.into_iter().find_map(|(is, kind)| is.then_some(kind))
}
