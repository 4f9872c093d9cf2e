//! Calls an exported function of numbers, instead of running a program.
//!
//! An instance that is set up once serves many calls, a *group*: its stdin has a word of 64 bits for each argument, its
//! stdout a word for each result. What reads and writes them is an adapter, a few instructions that are linked with the
//! module ([`adapter`]). In a map, [`arguments`] makes words of a record's text and text of its results, and [`grouped`]
//! puts the calls of a batch into groups. If an instance with a group fails, each of its calls runs again alone, so that
//! only those calls fail that are at fault.

mod adapter;
pub(crate) mod arguments;
pub(crate) mod grouped;

use crate::adapter::exported;
use gpu_run_compiler::{Adapter, FunctionType, Interface, Memories, ValueType};

/// Bytes of an argument, and of a result.
const WORD: usize = 8;
/// Calls of a group, at most. An instance takes some microseconds to begin and to end.
pub const MAX_GROUP: usize = 64;
/// Calls that run alone at once, when their groups have failed.
pub const ALONE: u32 = 256;

/// An exported function of numbers, and the adapter that calls it.
#[derive(Clone, Debug)]
pub struct Function {
    name: String,
    ty: FunctionType,
    adapter: Adapter,
}

/// Why a function cannot be called. The text begins with the function's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FunctionError {
    #[error("`{0}` is not exported")]
    Missing(String),
    #[error("`{name}` has type {ty}: {other} is no number")]
    NoNumber { name: String, ty: FunctionType, other: ValueType },
    #[error("`{0}` is in a module that has a memory with 64-bit addresses, or one that threads share")]
    Memory(String),
    #[error("`{name}` cannot be called: {error}")]
    Adapter { name: String, error: String },
}

impl Function {
    /// Finds a function of numbers among a module's exports.
    pub fn find(module: &Interface, name: &str) -> Result<Self, FunctionError> {
        let ty = exported(module, name).ok_or_else(|| FunctionError::Missing(name.to_owned()))?.clone();
        if let Some(other) = ty.params.iter().chain(&ty.results).copied().find(|ty| !is_number(*ty)) {
            return Err(FunctionError::NoNumber { name: name.to_owned(), ty, other });
        }
        if module.memories == Memories::Other {
            return Err(FunctionError::Memory(name.to_owned()));
        }
        let text = adapter::text(module, name, &ty);
        let wasm = wat::parse_str(&text)
            .map_err(|error| FunctionError::Adapter { name: name.to_owned(), error: error.to_string() })?;
        Ok(Self { name: name.to_owned(), ty, adapter: Adapter::new(wasm) })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn ty(&self) -> &FunctionType {
        &self.ty
    }

    /// Returns the module that calls the function, to be compiled with the function's own.
    pub fn adapter(&self) -> &Adapter {
        &self.adapter
    }

    /// Returns the bytes of a call's arguments. A call has a word even if the function has no parameters.
    pub fn argument_bytes(&self) -> usize {
        self.ty.params.len().max(1) * WORD
    }

    /// Divides what an instance with `calls` calls has written into what the function itself has printed, and the words
    /// of the results, call by call. Returns `None` if the instance has not written that many.
    pub fn results<'a>(&self, stdout: &'a [u8], calls: usize) -> Option<(&'a [u8], &'a [[u8; WORD]])> {
        let printed = stdout.len().checked_sub(calls * self.ty.results.len() * WORD)?;
        let (printed, results) = stdout.split_at(printed);
        Some((printed, results.as_chunks().0))
    }
}

fn is_number(ty: ValueType) -> bool {
    matches!(ty, ValueType::I32 | ValueType::I64 | ValueType::F32 | ValueType::F64)
}
