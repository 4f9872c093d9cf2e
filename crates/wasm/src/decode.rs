//! Reads a module: its declarations as plain data, its functions surveyed but not yet translated.
//!
//! Everything is validated here, function bodies in parallel. From here on, errors are limits, not malformed input.
//! Imports are left unresolved ([`Unlinked`]); [`crate::link`] makes a program of one module or several.

use crate::callgraph::{self, Survey};
use crate::constant::{Constant, constant};
use crate::cost;
use crate::declared::{element_segment, func_type, global_type, memory_type, table_type};
use crate::embedder::EmbedderFunctions;
use crate::error::Error;
use crate::link;
use crate::provided::Imported;
use crate::types::{FuncType, ValType};
use crate::work::Work;
use gpu_run_abi::guest::GuestCall;
use rayon::prelude::*;
use std::collections::HashMap;
use std::ops::Range;
use wasmparser::{
    DataKind, FuncValidatorAllocations, FunctionBody, KnownCustom, Name, Parser, Payload, SubType, TypeRef,
    ValidPayload, Validator, WasmFeatures,
};

#[derive(Clone, Debug)]
pub struct Global {
    pub ty: ValType,
    /// The type as declared, with the module's own type indices.
    pub(crate) declared: wasmparser::ValType,
    pub mutable: bool,
    pub init: Constant,
}

#[derive(Clone, Debug)]
pub struct Table {
    pub element: ValType,
    /// The element type as declared, with the module's own type indices.
    pub(crate) declared: wasmparser::RefType,
    pub minimum: u64,
    pub maximum: Option<u64>,
    /// Whether its indices are i64.
    pub is_64: bool,
    pub init: Constant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Memory {
    /// In pages.
    pub minimum: u64,
    pub maximum: Option<u64>,
    /// Whether its addresses are i64.
    pub is_64: bool,
    /// Whether threads may share it.
    pub shared: bool,
    /// Whether a function grows it.
    pub grows: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Where an active segment goes: memory and address. `None` for a passive segment.
    pub place: Option<(u32, Constant)>,
    pub bytes: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportKind {
    Function(u32),
    Table(u32),
    Memory(u32),
    Global(u32),
    Tag(u32),
}

#[derive(Clone, Debug)]
pub struct Export<'a> {
    pub name: &'a str,
    pub kind: ExportKind,
    /// Which of the program's modules (its [`link::Part`]) exports this.
    pub part: u32,
}

/// The kind of an import. Imports are the first entries of the module's index spaces, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportKind {
    Function,
    Table,
    Memory,
    Global,
    Tag,
}

#[derive(Clone, Debug)]
pub struct Import<'a> {
    pub module: &'a str,
    pub name: &'a str,
    pub kind: ImportKind,
}

/// A validated module in its own index spaces. Imports come first in each space, with the types they are imported as.
#[derive(Debug, Default)]
pub struct Unlinked<'a> {
    pub imports: Vec<Import<'a>>,
    pub(crate) groups: Vec<Vec<SubType>>,
    pub(crate) types: Vec<FuncType>,
    pub(crate) functions: Vec<u32>,
    pub tables: Vec<Table>,
    pub memories: Vec<Memory>,
    pub(crate) globals: Vec<Global>,
    /// Each tag's type.
    pub(crate) tags: Vec<u32>,
    pub exports: Vec<Export<'a>>,
    pub(crate) start: Option<u32>,
    pub(crate) elements: Vec<ElementSegment>,
    pub(crate) data: Vec<DataSegment<'a>>,
    pub(crate) names: HashMap<u32, &'a str>,
    pub(crate) debug_sections: Vec<(&'a str, &'a [u8])>,
    pub(crate) code_start: usize,
    pub(crate) bodies: Vec<FunctionBody<'a>>,
    pub(crate) surveys: Vec<Survey>,
}

impl Unlinked<'_> {
    pub fn function_type(&self, function: u32) -> &FuncType {
        &self.types[self.functions[function as usize] as usize]
    }
}

/// A program: one validated module, or several that are linked, in common index spaces.
#[derive(Debug, Default)]
pub struct Module<'a> {
    pub types: Vec<FuncType>,
    /// The number of each type: equal types have the same number, and indirect calls compare numbers.
    pub signatures: Vec<u32>,
    /// By type number: the type that this one is declared a subtype of.
    pub(crate) supertypes: Vec<Option<u32>>,
    /// The type index of each function, imports first.
    pub functions: Vec<u32>,
    /// The host call, device operation or embedder's function behind each imported function.
    pub imports: Vec<Imported>,
    /// The functions that the embedder provides.
    pub embedder: EmbedderFunctions,
    pub tables: Vec<Table>,
    pub memories: Vec<Memory>,
    pub globals: Vec<Global>,
    /// The type index of each tag.
    pub tags: Vec<u32>,
    pub exports: Vec<Export<'a>>,
    /// The start function of the last part.
    pub start: Option<u32>,
    pub elements: Vec<ElementSegment>,
    pub data: Vec<DataSegment<'a>>,
    /// Function names from the name section.
    pub names: HashMap<u32, &'a str>,
    /// The first name that each function is exported under.
    pub(crate) exported_names: HashMap<u32, &'a str>,
    /// The functions that stand for an operation of the device.
    pub(crate) guest_calls: HashMap<u32, GuestCall>,
    /// DWARF: sections whose name begins with `.debug_`.
    pub debug_sections: Vec<(&'a str, &'a [u8])>,
    /// Where the code section's contents begin in the file: DWARF counts offsets from there.
    pub code_start: usize,
    /// Whether each function may be called through a reference.
    pub address_taken: Vec<bool>,
    /// Whether the last part is an adapter, which has no place in the module's file.
    pub is_adapted: bool,
    /// Where the index spaces of each module lie in those of the program.
    pub parts: Vec<link::Part>,
    /// Function bodies, each with the index of its part.
    pub(crate) bodies: Vec<(u32, FunctionBody<'a>)>,
    pub(crate) surveys: Vec<Survey>,
    /// How much work each call may do, and which functions may reach themselves again.
    pub(crate) work: Work,
    /// Functions that reach themselves through direct calls have a number here; functions that reach each other have
    /// the same number.
    pub(crate) cycles: Vec<Option<u32>>,
    /// Which functions may return with a pending exception, and which make tail calls.
    pub(crate) traits: callgraph::Traits,
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
    /// Returns a function's name: the one in the name section, else the name it is imported or exported under.
    pub fn function_name(&self, function: u32) -> Option<&str> {
        let imported = || self.imports.get(function as usize).map(|i| i.name(&self.embedder));
        let exported = || self.exported_names.get(&function).copied();
        self.names.get(&function).copied().or_else(imported).or_else(exported)
    }
    /// Returns whether the module asks for what only a device knows, see [`gpu_run_abi::guest`].
    pub fn asks_device(&self) -> bool {
        !self.guest_calls.is_empty()
    }
    pub fn grows_tables(&self) -> bool {
        self.surveys.iter().any(|s| s.grows_tables)
    }
    /// Returns the most bytes of LLVM's shadow stack that one function takes.
    pub(crate) fn largest_frame(&self) -> u64 {
        u64::from(self.surveys.iter().map(|survey| survey.frame).max().unwrap_or(0))
    }
    /// Returns where a function's body lies in the file; an empty range for an imported function. An adapter's functions lie behind all
    /// others.
    pub fn body_range(&self, function: u32) -> Range<usize> {
        let index = (function as usize).checked_sub(self.imports.len());
        match index.and_then(|index| self.bodies.get(index)) {
            None => 0..0,
            Some((part, _)) if self.is_adapted && *part > 0 => usize::MAX..usize::MAX,
            Some((_, body)) => body.range(),
        }
    }
}

/// Decodes and validates a module that imports only what the host or the embedder provides. `features` are the features that the module
/// may use. A feature that is allowed but not supported yet is reported by name.
pub fn decode<'a>(bytes: &'a [u8], features: WasmFeatures, embedder: &EmbedderFunctions) -> Result<Module<'a>, Error> {
    let module = decode_unlinked(bytes, features)?;
    let targets = vec![None; module.imports.len()];
    link::link(vec![(module, targets)], embedder)
}

/// Decodes and validates a module, and leaves its imports unresolved.
pub fn decode_unlinked(bytes: &[u8], features: WasmFeatures) -> Result<Unlinked<'_>, Error> {
    if bytes.is_empty() {
        return Err(Error::Invalid { message: "the file is empty".into(), offset: 0 });
    }
    if bytes.starts_with(b"\0asm\x0d\0\x01\0") {
        return Err(Error::Component);
    }
    let mut module = Unlinked::default();
    let mut validator = Validator::new_with_features(features);
    let mut to_validate = Vec::new();
    let mut parser = Parser::new(0);
    parser.set_features(features);
    // An unsupported feature is only reported if the module is valid.
    let mut unsupported = None;
    for payload in parser.parse_all(bytes) {
        let payload = payload?;
        if let ValidPayload::Func(func, body) = validator.payload(&payload)? {
            to_validate.push((func, body));
            continue;
        }
        if unsupported.is_none() {
            unsupported = module.section(payload).err();
        }
    }
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
    let imported = module.functions.len() - module.bodies.len();
    cost::check(module.surveys.iter().map(|survey| &survey.cost), imported as u32)?;
    unsupported.map_or(Ok(module), Err)
}

impl<'a> Unlinked<'a> {
    /// Returns whether the module has state: without any, two instances cannot be told from one.
    pub fn has_state(&self) -> bool {
        let mutable = self.globals.iter().any(|global| global.mutable);
        mutable || !self.memories.is_empty() || !self.tables.is_empty() || !self.tags.is_empty()
    }

    fn section(&mut self, payload: Payload<'a>) -> Result<(), Error> {
        match payload {
            Payload::TypeSection(types) => {
                for group in types.into_iter_with_offsets() {
                    let (at, group) = group?;
                    let group: Vec<_> = group.into_types().collect();
                    for ty in &group {
                        self.types.push(func_type(ty, at)?);
                    }
                    self.groups.push(group);
                }
            }
            Payload::ImportSection(imports) => {
                for import in imports.into_imports_with_offsets() {
                    let (at, import) = import?;
                    let kind = self.import(import.ty, at)?;
                    self.imports.push(Import { module: import.module, name: import.name, kind });
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
                    self.memories.push(memory_type(&memory, at)?);
                }
            }
            Payload::TagSection(tags) => {
                for tag in tags {
                    self.tags.push(tag?.func_type_idx);
                }
            }
            Payload::GlobalSection(globals) => {
                for global in globals.into_iter_with_offsets() {
                    let (at, global) = global?;
                    let init = constant(&global.init_expr)?;
                    self.globals.push(Global { init, ..global_type(&global.ty, at)? });
                }
            }
            Payload::ExportSection(exports) => {
                for export in exports {
                    let export = export?;
                    let kind = match export.kind {
                        wasmparser::ExternalKind::Func | wasmparser::ExternalKind::FuncExact => {
                            ExportKind::Function(export.index)
                        }
                        wasmparser::ExternalKind::Table => ExportKind::Table(export.index),
                        wasmparser::ExternalKind::Memory => ExportKind::Memory(export.index),
                        wasmparser::ExternalKind::Global => ExportKind::Global(export.index),
                        wasmparser::ExternalKind::Tag => ExportKind::Tag(export.index),
                    };
                    self.exports.push(Export { name: export.name, kind, part: 0 });
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
                    let place = match segment.kind {
                        DataKind::Passive => None,
                        DataKind::Active { memory_index, offset_expr } => Some((memory_index, constant(&offset_expr)?)),
                    };
                    self.data.push(DataSegment { place, bytes: segment.data });
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

    /// Adds an import to the index space of its kind.
    fn import(&mut self, ty: TypeRef, at: usize) -> Result<ImportKind, Error> {
        Ok(match ty {
            TypeRef::Func(index) | TypeRef::FuncExact(index) => {
                self.functions.push(index);
                ImportKind::Function
            }
            TypeRef::Global(global) => {
                self.globals.push(global_type(&global, at)?);
                ImportKind::Global
            }
            TypeRef::Memory(memory) => {
                self.memories.push(memory_type(&memory, at)?);
                ImportKind::Memory
            }
            TypeRef::Table(table) => {
                self.tables.push(table_type(&table, at)?);
                ImportKind::Table
            }
            TypeRef::Tag(tag) => {
                self.tags.push(tag.func_type_idx);
                ImportKind::Tag
            }
        })
    }
}
