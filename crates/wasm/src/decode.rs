//! Reads a module: its declarations as plain data, its functions surveyed but not yet translated.
//!
//! Everything is validated here, function bodies in parallel. From here on errors are limits, not malformed input.

use crate::callgraph::{self, Survey};
use crate::error::Error;
use crate::provided;
use crate::types::{FuncType, ValType};
use gpu_run_abi::hostcall::Call;
use gpu_run_abi::layout::MAX_PAGES;
use rayon::prelude::*;
use std::collections::HashMap;
use wasmparser::{
    ConstExpr, DataKind, ElementItems, FuncValidatorAllocations, FunctionBody, KnownCustom, Name, Operator, Parser,
    Payload, TypeRef, ValidPayload, Validator, WasmFeatures,
};

/// A value known before the module runs, or where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constant {
    /// A number's bits.
    Bits(u64),
    /// A v128's bits.
    Vector(u128),
    Null,
    /// A function's index.
    Function(u32),
    /// Another global's value.
    Global(u32),
}

#[derive(Clone, Copy, Debug)]
pub struct Global {
    pub ty: ValType,
    pub mutable: bool,
    pub init: Constant,
}

#[derive(Clone, Copy, Debug)]
pub struct Table {
    pub element: ValType,
    pub minimum: u64,
    pub maximum: Option<u64>,
    pub init: Constant,
}

#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// In pages.
    pub minimum: u64,
    pub maximum: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementKind {
    Passive,
    Active { table: u32, offset: Constant },
    Declared,
}

#[derive(Clone, Debug)]
pub struct ElementSegment {
    pub kind: ElementKind,
    pub items: Vec<Constant>,
}

#[derive(Clone, Debug)]
pub struct DataSegment<'a> {
    /// Where an active segment goes; `None` for a passive one.
    pub offset: Option<Constant>,
    pub bytes: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportKind {
    Function(u32),
    Table(u32),
    Memory(u32),
    Global(u32),
}

#[derive(Clone, Debug)]
pub struct Export<'a> {
    pub name: &'a str,
    pub kind: ExportKind,
}

/// A validated module.
#[derive(Debug, Default)]
pub struct Module<'a> {
    pub types: Vec<FuncType>,
    /// For each type, the number of the first type that is equal to it: what indirect calls compare.
    pub signatures: Vec<u32>,
    /// Each function's type, imports first.
    pub functions: Vec<u32>,
    /// The host call behind each imported function.
    pub imports: Vec<Call>,
    pub tables: Vec<Table>,
    pub memory: Option<Memory>,
    /// Whether threads may share the memory.
    pub shares_memory: bool,
    pub globals: Vec<Global>,
    pub exports: Vec<Export<'a>>,
    pub start: Option<u32>,
    pub elements: Vec<ElementSegment>,
    pub data: Vec<DataSegment<'a>>,
    /// From the name section.
    pub names: HashMap<u32, &'a str>,
    /// DWARF: sections whose name begins with `.debug_`.
    pub debug_sections: Vec<(&'a str, &'a [u8])>,
    /// Where the code section's contents begin: DWARF counts from there.
    pub code_start: usize,
    /// Functions that may be called through a reference.
    pub address_taken: Vec<bool>,
    pub(crate) bodies: Vec<FunctionBody<'a>>,
    pub(crate) surveys: Vec<Survey>,
    /// Functions that may reach themselves again.
    pub(crate) recursive: Vec<bool>,
    /// The first import that nothing provides.
    import_error: Option<Error>,
}

impl<'a> Module<'a> {
    pub fn function_type(&self, function: u32) -> &FuncType {
        &self.types[self.functions[function as usize] as usize]
    }
    pub fn signature_of(&self, function: u32) -> u32 {
        self.signatures[self.functions[function as usize] as usize]
    }
    pub fn export(&self, name: &str) -> Option<ExportKind> {
        self.exports.iter().find(|e| e.name == name).map(|e| e.kind)
    }
    /// A function's name: its own, else the name it is exported or imported under.
    pub fn function_name(&self, function: u32) -> Option<&str> {
        let exported = || self.exports.iter().find(|e| e.kind == ExportKind::Function(function)).map(|e| e.name);
        let imported = || self.imports.get(function as usize).map(|c| c.function().name);
        self.names.get(&function).copied().or_else(imported).or_else(exported)
    }
    /// Whether any function grows the memory: if none does, its length is a constant.
    pub fn grows_memory(&self) -> bool {
        self.surveys.iter().any(|s| s.grows_memory)
    }
    pub fn grows_tables(&self) -> bool {
        self.surveys.iter().any(|s| s.grows_tables)
    }
    /// A function body's operators with their offsets, for people to read.
    pub fn operators(&self, function: u32) -> Vec<(usize, Operator<'a>)> {
        let Some(index) = (function as usize).checked_sub(self.imports.len()) else { return Vec::new() };
        let reader = self.bodies[index].get_operators_reader();
        reader
            .map(|r| r.into_iter_with_offsets().filter_map(|op| op.ok().map(|(op, at)| (at, op))).collect())
            .unwrap_or_default()
    }
}

/// Decodes and validates. `features` is what the module may use; what of it is not supported yet is reported by name.
pub fn decode(bytes: &[u8], features: WasmFeatures) -> Result<Module<'_>, Error> {
    if bytes.is_empty() {
        return Err(Error::Invalid { message: "the file is empty".into(), offset: 0 });
    }
    if bytes.starts_with(b"\0asm\x0d\0\x01\0") {
        return Err(Error::Component);
    }
    let mut module = Module::default();
    let mut validator = Validator::new_with_features(features);
    let mut to_validate = Vec::new();
    let mut parser = Parser::new(0);
    parser.set_features(features);
    for payload in parser.parse_all(bytes) {
        let payload = payload?;
        if let ValidPayload::Func(func, body) = validator.payload(&payload)? {
            to_validate.push((func, body));
            continue;
        }
        module.section(payload)?;
    }
    let import_count = module.imports.len();
    let surveyed: Vec<_> = to_validate
        .into_par_iter()
        .map_init(FuncValidatorAllocations::default, |allocations, (func, body)| {
            let mut checker = func.into_validator(std::mem::take(allocations));
            let survey = callgraph::survey(&body, &mut checker);
            *allocations = checker.into_allocations();
            survey.map(|s| (body, s))
        })
        .collect::<Result<_, _>>()?;
    (module.bodies, module.surveys) = surveyed.into_iter().unzip();
    // Only a valid module is told what it cannot import.
    if let Some(error) = module.import_error.take() {
        return Err(error);
    }
    module.signatures = canonical(&module.types);
    module.address_taken = module.find_address_taken();
    module.recursive = callgraph::recursive(&module, import_count);
    Ok(module)
}

impl<'a> Module<'a> {
    fn section(&mut self, payload: Payload<'a>) -> Result<(), Error> {
        match payload {
            Payload::TypeSection(types) => {
                for group in types.into_iter_with_offsets() {
                    let (at, group) = group?;
                    for ty in group.into_types() {
                        self.types.push(func_type(&ty, at)?);
                    }
                }
            }
            Payload::ImportSection(imports) => {
                for import in imports.into_imports_with_offsets() {
                    let (at, import) = import?;
                    self.import(import.module, import.name, import.ty, at)?;
                }
            }
            Payload::FunctionSection(functions) => {
                for ty in functions {
                    self.functions.push(ty?);
                }
            }
            Payload::TableSection(tables) => {
                for table in tables.into_iter_with_offsets() {
                    let (at, table) = table?;
                    let mut declared = table_type(&table.ty, at)?;
                    if let wasmparser::TableInit::Expr(expr) = table.init {
                        declared.init = constant(&expr)?;
                    }
                    self.tables.push(declared);
                }
            }
            Payload::MemorySection(memories) => {
                for memory in memories.into_iter_with_offsets() {
                    let (at, memory) = memory?;
                    self.add_memory(&memory, at)?;
                }
            }
            Payload::TagSection(tags) => {
                return Err(unsupported("exception handling (tags)", "the tag section", tags.range().start));
            }
            Payload::GlobalSection(globals) => {
                for global in globals.into_iter_with_offsets() {
                    let (at, global) = global?;
                    let ty = value_type(global.ty.content_type, "a global", at)?;
                    if global.ty.shared {
                        return Err(unsupported("shared globals", "the global section", at));
                    }
                    self.globals.push(Global { ty, mutable: global.ty.mutable, init: constant(&global.init_expr)? });
                }
            }
            Payload::ExportSection(exports) => {
                for export in exports.into_iter_with_offsets() {
                    let (at, export) = export?;
                    let kind = match export.kind {
                        wasmparser::ExternalKind::Func => ExportKind::Function(export.index),
                        wasmparser::ExternalKind::Table => ExportKind::Table(export.index),
                        wasmparser::ExternalKind::Memory => ExportKind::Memory(export.index),
                        wasmparser::ExternalKind::Global => ExportKind::Global(export.index),
                        other => return Err(unsupported(&format!("export of a {other:?}"), export.name, at)),
                    };
                    self.exports.push(Export { name: export.name, kind });
                }
            }
            Payload::StartSection { func, .. } => self.start = Some(func),
            Payload::ElementSection(elements) => {
                for element in elements {
                    let element = element?;
                    self.elements.push(element_segment(element)?);
                }
            }
            Payload::DataSection(segments) => {
                for segment in segments {
                    let segment = segment?;
                    let offset = match segment.kind {
                        DataKind::Passive => None,
                        DataKind::Active { offset_expr, .. } => Some(constant(&offset_expr)?),
                    };
                    self.data.push(DataSegment { offset, bytes: segment.data });
                }
            }
            Payload::CodeSectionStart { range, .. } => self.code_start = range.start,
            Payload::CustomSection(section) => {
                if section.name().starts_with(".debug_") {
                    self.debug_sections.push((section.name(), section.data()));
                } else if let KnownCustom::Name(names) = section.as_known() {
                    // Names are for people: a damaged name section is no reason to refuse a program.
                    for part in names.into_iter().flatten() {
                        if let Name::Function(map) = part {
                            self.names.extend(map.into_iter().flatten().map(|n| (n.index, n.name)));
                        }
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds what an import stands for. If nothing provides it, the error is kept for later, and what the module declares takes its place
    /// so that indices stay right.
    fn import(&mut self, module: &str, name: &str, ty: TypeRef, at: usize) -> Result<(), Error> {
        let unknown = |kind: &str| Error::UnknownImport { module: module.into(), name: name.into(), kind: kind.into() };
        let mismatch = |found: String, expected: String| Error::ImportType {
            module: module.into(),
            name: name.into(),
            found,
            expected,
        };
        let error = match ty {
            TypeRef::Func(index) | TypeRef::FuncExact(index) => {
                let found = &self.types[index as usize];
                let call = Call::find(module, name);
                self.imports.push(call.unwrap_or(Call::sched_yield));
                self.functions.push(index);
                match call.map(host_type) {
                    None => Some(Error::unknown_function(module, name, found)),
                    Some(expected) if *found != expected => Some(mismatch(found.to_string(), expected.to_string())),
                    Some(_) => None,
                }
            }
            TypeRef::Global(global) => {
                let ty = value_type(global.content_type, "an import", at)?;
                let provided = provided::global(module, name);
                self.globals.push(Global {
                    ty,
                    mutable: global.mutable,
                    init: Constant::Bits(provided.map_or(0, |p| p.1)),
                });
                let mutable = if global.mutable { "mutable " } else { "" };
                match provided {
                    None => Some(unknown(&format!("global, type {mutable}{ty}"))),
                    Some((provided, _)) if provided != ty || global.mutable => {
                        Some(mismatch(format!("{mutable}{ty}"), provided.to_string()))
                    }
                    Some(_) => None,
                }
            }
            TypeRef::Memory(memory) => {
                let provided = provided::memory(module, name);
                let (minimum, maximum, shared) =
                    provided.unwrap_or((memory.initial, memory.maximum.unwrap_or(MAX_PAGES), memory.shared));
                self.shares_memory = shared;
                self.set_memory(Memory { minimum, maximum: Some(maximum) }, at)?;
                let found = format!("a memory of {} to {:?} pages", memory.initial, memory.maximum);
                let fits = memory.initial <= minimum
                    && memory.maximum.is_none_or(|m| m >= maximum)
                    && memory.shared == shared
                    && !memory.memory64;
                match provided {
                    None => Some(unknown("memory")),
                    Some(_) if !fits => Some(mismatch(found, format!("one of {minimum} to {maximum}"))),
                    Some(_) => None,
                }
            }
            TypeRef::Table(table) => {
                let provided = provided::table(module, name);
                let declared = table_type(&table, at)?;
                let (minimum, maximum) =
                    provided.unwrap_or((declared.minimum, declared.maximum.unwrap_or(declared.minimum)));
                self.tables.push(Table { minimum, maximum: Some(maximum), ..declared });
                let found = format!("a table of {} to {:?} {}", declared.minimum, declared.maximum, declared.element);
                let fits = declared.element == ValType::FuncRef
                    && declared.minimum <= minimum
                    && declared.maximum.is_none_or(|m| m >= maximum);
                match provided {
                    None => Some(unknown(&found)),
                    Some(_) if !fits => Some(mismatch(found, format!("one of {minimum} to {maximum} funcref"))),
                    Some(_) => None,
                }
            }
            TypeRef::Tag(_) => return Err(unsupported("exception handling (tags)", name, at)),
        };
        self.import_error = self.import_error.take().or(error);
        Ok(())
    }

    fn add_memory(&mut self, memory: &wasmparser::MemoryType, at: usize) -> Result<(), Error> {
        if memory.memory64 {
            return Err(unsupported("memory64", "the memory section", at));
        }
        if memory.page_size_log2.is_some_and(|p| p != 16) {
            return Err(unsupported("custom page sizes", "the memory section", at));
        }
        self.shares_memory = memory.shared;
        self.set_memory(Memory { minimum: memory.initial, maximum: memory.maximum }, at)
    }

    fn set_memory(&mut self, memory: Memory, at: usize) -> Result<(), Error> {
        if memory.minimum > MAX_PAGES {
            return Err(Error::Limit(format!(
                "its memory begins with {} pages (at offset {at:#x}); at most {MAX_PAGES} are possible",
                memory.minimum
            )));
        }
        if self.memory.replace(memory).is_some() {
            return Err(unsupported("multiple memories", "the memory section", at));
        }
        Ok(())
    }

    /// Functions that a table, a global or `ref.func` may hold.
    fn find_address_taken(&self) -> Vec<bool> {
        let mut taken = vec![false; self.functions.len()];
        let constants = self.elements.iter().flat_map(|e| &e.items).chain(self.globals.iter().map(|g| &g.init));
        for constant in constants.chain(self.tables.iter().map(|t| &t.init)) {
            if let Constant::Function(index) = constant {
                taken[*index as usize] = true;
            }
        }
        for index in self.surveys.iter().flat_map(|s| &s.references) {
            taken[*index as usize] = true;
        }
        taken
    }
}

pub(crate) fn unsupported(feature: &str, place: &str, offset: usize) -> Error {
    Error::Unsupported { feature: feature.into(), place: place.into(), offset }
}

fn value_type(ty: wasmparser::ValType, place: &str, at: usize) -> Result<ValType, Error> {
    ValType::from_wasm(ty).map_err(|feature| unsupported(&feature, place, at))
}

fn func_type(ty: &wasmparser::SubType, at: usize) -> Result<FuncType, Error> {
    let wasmparser::CompositeInnerType::Func(func) = &ty.composite_type.inner else {
        return Err(unsupported("garbage collection types", "the type section", at));
    };
    let list = |types: &[wasmparser::ValType]| {
        types.iter().map(|t| value_type(*t, "the type section", at)).collect::<Result<_, _>>()
    };
    Ok(FuncType { params: list(func.params())?, results: list(func.results())? })
}

/// The type a host call has as a wasm function.
pub(crate) fn host_type(call: Call) -> FuncType {
    let row = call.function();
    let results = if row.returns_errno { vec![ValType::I32] } else { Vec::new() };
    FuncType { params: row.params.iter().map(|(_, ty)| (*ty).into()).collect(), results }
}

fn table_type(ty: &wasmparser::TableType, at: usize) -> Result<Table, Error> {
    if ty.table64 {
        return Err(unsupported("64-bit tables", "a table", at));
    }
    let element = value_type(wasmparser::ValType::Ref(ty.element_type), "a table", at)?;
    Ok(Table { element, minimum: ty.initial, maximum: ty.maximum, init: Constant::Null })
}

fn element_segment(element: wasmparser::Element<'_>) -> Result<ElementSegment, Error> {
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

/// Evaluates a constant expression of one instruction.
fn constant(expr: &ConstExpr<'_>) -> Result<Constant, Error> {
    let mut reader = expr.get_operators_reader();
    let at = reader.original_position();
    let value = match reader.read()? {
        Operator::I32Const { value } => Constant::Bits(value as u32 as u64),
        Operator::I64Const { value } => Constant::Bits(value as u64),
        Operator::F32Const { value } => Constant::Bits(value.bits().into()),
        Operator::F64Const { value } => Constant::Bits(value.bits()),
        Operator::V128Const { value } => Constant::Vector(u128::from_le_bytes(*value.bytes())),
        Operator::RefNull { .. } => Constant::Null,
        Operator::RefFunc { function_index } => Constant::Function(function_index),
        Operator::GlobalGet { global_index } => Constant::Global(global_index),
        other => return Err(unsupported(&format!("constant expression {other:?}"), "an initial value", at)),
    };
    match reader.read()? {
        Operator::End => Ok(value),
        other => Err(unsupported(&format!("extended constant expressions ({other:?})"), "an initial value", at)),
    }
}

/// For each type the index of the first one equal to it.
fn canonical(types: &[FuncType]) -> Vec<u32> {
    let mut first = HashMap::new();
    types.iter().enumerate().map(|(i, ty)| *first.entry(ty).or_insert(i as u32)).collect()
}
