//! Value and function types.

use cranelift_codegen::ir::{self, types};
use gpu_run_abi::layout::WORD;
use gpu_run_abi::{hostcall, intrinsic};
use std::fmt;
use wasmparser::{AbstractHeapType as Abstract, HeapType};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum ValType {
    I32,
    I64,
    F32,
    F64,
    V128,
    FuncRef,
    ExternRef,
    ExnRef,
    /// Null is the only value of this type: no instruction that makes another value is translated.
    AnyRef,
}

impl ValType {
    /// Converts a type; the error is the name of a type that is not supported yet.
    pub(crate) fn from_wasm(ty: wasmparser::ValType) -> Result<Self, String> {
        Ok(match ty {
            wasmparser::ValType::I32 => Self::I32,
            wasmparser::ValType::I64 => Self::I64,
            wasmparser::ValType::F32 => Self::F32,
            wasmparser::ValType::F64 => Self::F64,
            wasmparser::ValType::V128 => Self::V128,
            wasmparser::ValType::Ref(r) => match r.heap_type() {
                HeapType::Abstract { ty: Abstract::Func | Abstract::NoFunc, .. } => Self::FuncRef,
                HeapType::Abstract { ty: Abstract::Extern | Abstract::NoExtern, .. } => Self::ExternRef,
                HeapType::Abstract { ty: Abstract::Exn | Abstract::NoExn, .. } => Self::ExnRef,
                HeapType::Abstract {
                    ty:
                        Abstract::Any | Abstract::Eq | Abstract::I31 | Abstract::Struct | Abstract::Array | Abstract::None,
                    ..
                } => Self::AnyRef,
                HeapType::Concrete(_) | HeapType::Exact(_) => Self::FuncRef,
                HeapType::Abstract { .. } => return Err(format!("reference type {r}")),
            },
        })
    }

    pub fn is_reference(self) -> bool {
        matches!(self, Self::FuncRef | Self::ExternRef | Self::ExnRef | Self::AnyRef)
    }

    /// Returns the type that holds such a value in CLIF. A reference is one word: 0 is null; a function is
    /// `signature << 32 | index + 1`, an external reference the host's number plus one, an exception its number, from 1.
    pub(crate) fn clif(self) -> ir::Type {
        match self {
            Self::I32 => types::I32,
            Self::I64 | Self::FuncRef | Self::ExternRef | Self::ExnRef | Self::AnyRef => types::I64,
            Self::F32 => types::F32,
            Self::F64 => types::F64,
            Self::V128 => types::I32X4,
        }
    }

    /// Returns how many words such a value takes in a slot.
    pub fn words(self) -> u64 {
        if self == Self::V128 { 2 } else { 1 }
    }
}

impl From<intrinsic::Type> for ValType {
    fn from(ty: intrinsic::Type) -> Self {
        match ty {
            intrinsic::Type::I32 => Self::I32,
            intrinsic::Type::I64 => Self::I64,
            intrinsic::Type::F32 => Self::F32,
            intrinsic::Type::F64 => Self::F64,
        }
    }
}

impl From<hostcall::ValType> for ValType {
    fn from(ty: hostcall::ValType) -> Self {
        match ty {
            hostcall::ValType::I32 => Self::I32,
            hostcall::ValType::I64 => Self::I64,
            hostcall::ValType::F32 => Self::F32,
            hostcall::ValType::F64 => Self::F64,
        }
    }
}

impl fmt::Display for ValType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::V128 => "v128",
            Self::FuncRef => "funcref",
            Self::ExternRef => "externref",
            Self::ExnRef => "exnref",
            Self::AnyRef => "anyref",
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
pub struct FuncType {
    pub params: Vec<ValType>,
    pub results: Vec<ValType>,
}

/// Returns how many words values of these types take in a slot, one behind the other.
pub fn words(types: &[ValType]) -> u64 {
    types.iter().map(|ty| ty.words()).sum()
}

/// Returns each type with the byte offset of its value's first word.
pub(crate) fn places(types: &[ValType]) -> impl Iterator<Item = (u64, ValType)> {
    types.iter().scan(0, |at, ty| {
        let place = *at;
        *at += WORD * ty.words();
        Some((place, *ty))
    })
}

impl fmt::Display for FuncType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |types: &[ValType]| types.iter().map(ValType::to_string).collect::<Vec<_>>().join(", ");
        write!(f, "({}) -> ({})", list(&self.params), list(&self.results))
    }
}
