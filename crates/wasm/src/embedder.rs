//! Functions that an embedder, a program that uses gpu-run as a library, provides for import.

use crate::types::{FuncType, ValType};
use std::sync::Arc;

/// A function of an embedder: under which names it is imported, and what its parameters mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbedderFunction {
    pub module: String,
    pub name: String,
    pub parameters: Vec<Parameter>,
    pub result: Option<ValType>,
}

/// What one parameter, or a pointer with its length, means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    I32,
    I64,
    F32,
    F64,
    /// Pointer and length, both i32: bytes that the function gets.
    Bytes,
    /// Pointer and length, both i32: room for bytes that the function returns. A function has at most one.
    Room,
}

/// All functions of an embedder that a program may import.
pub type EmbedderFunctions = Arc<[EmbedderFunction]>;

impl EmbedderFunction {
    /// The most parameters: their words fit the smallest port.
    pub const MAX_PARAMETERS: usize = 32;

    /// Returns the function's wasm type.
    pub fn ty(&self) -> FuncType {
        let types = |parameter: &Parameter| match parameter {
            Parameter::I32 => vec![ValType::I32],
            Parameter::I64 => vec![ValType::I64],
            Parameter::F32 => vec![ValType::F32],
            Parameter::F64 => vec![ValType::F64],
            Parameter::Bytes | Parameter::Room => vec![ValType::I32; 2],
        };
        FuncType {
            params: self.parameters.iter().flat_map(types).collect(),
            results: self.result.into_iter().collect(),
        }
    }

    pub(crate) fn find(functions: &[Self], module: &str, name: &str) -> Option<u32> {
        functions.iter().position(|function| function.module == module && function.name == name).map(|at| at as u32)
    }
}
