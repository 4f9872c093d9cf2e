//! Converts declarations from wasmparser's types to ours, or reports what is not supported.

use crate::constant::{Constant, constant};
use crate::decode::{ElementKind, ElementSegment, Global, Memory, Table};
use crate::error::Error;
use crate::types::{FuncType, ValType};
use wasmparser::ElementItems;

pub(crate) fn unsupported(feature: &str, place: &str, offset: usize) -> Error {
    Error::Unsupported { feature: feature.into(), place: place.into(), offset }
}

pub(crate) fn value_type(ty: wasmparser::ValType, place: &str, at: usize) -> Result<ValType, Error> {
    ValType::from_wasm(ty).map_err(|feature| unsupported(&feature, place, at))
}

/// Converts a function type. Other types, which have no values here, become an empty function type: only their place in
/// the index space counts.
pub(crate) fn func_type(ty: &wasmparser::SubType, at: usize) -> Result<FuncType, Error> {
    let wasmparser::CompositeInnerType::Func(func) = &ty.composite_type.inner else { return Ok(FuncType::default()) };
    let list = |types: &[wasmparser::ValType]| {
        types.iter().map(|t| value_type(*t, "the type section", at)).collect::<Result<_, _>>()
    };
    Ok(FuncType { params: list(func.params())?, results: list(func.results())? })
}

pub(crate) fn global_type(global: &wasmparser::GlobalType, at: usize) -> Result<Global, Error> {
    if global.shared {
        return Err(unsupported("shared globals", "a global", at));
    }
    let ty = value_type(global.content_type, "a global", at)?;
    Ok(Global { ty, declared: global.content_type, mutable: global.mutable, init: Constant::Bits(0) })
}

pub(crate) fn memory_type(memory: &wasmparser::MemoryType, at: usize) -> Result<Memory, Error> {
    if memory.page_size_log2.is_some_and(|p| p != 16) {
        return Err(unsupported("custom page sizes", "the memory section", at));
    }
    Ok(Memory {
        minimum: memory.initial,
        maximum: memory.maximum,
        is_64: memory.memory64,
        shared: memory.shared,
        grows: false,
    })
}

pub(crate) fn table_type(ty: &wasmparser::TableType, at: usize) -> Result<Table, Error> {
    let element = value_type(wasmparser::ValType::Ref(ty.element_type), "a table", at)?;
    Ok(Table {
        element,
        declared: ty.element_type,
        minimum: ty.initial,
        maximum: ty.maximum,
        is_64: ty.table64,
        init: Constant::Null,
    })
}

pub(crate) fn element_segment(element: wasmparser::Element<'_>) -> Result<ElementSegment, Error> {
    let kind = match &element.kind {
        wasmparser::ElementKind::Passive => ElementKind::Passive,
        wasmparser::ElementKind::Declared => ElementKind::Declared,
        wasmparser::ElementKind::Active { table_index, offset_expr } => {
            ElementKind::Active { table: table_index.unwrap_or(0), offset: constant(offset_expr)? }
        }
    };
    let items = match element.items {
        ElementItems::Functions(functions) => {
            functions.into_iter().map(|f| Ok(Constant::Function(f?))).collect::<Result<_, Error>>()?
        }
        ElementItems::Expressions(_, expressions) => {
            expressions.into_iter().map(|e| constant(&e?)).collect::<Result<_, Error>>()?
        }
    };
    Ok(ElementSegment { kind, items })
}
