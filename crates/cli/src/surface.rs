//! What a module needs and offers: imports, exports, memory, names.
//!
//! This is read before anything is compiled, so that a missing import or a misspelt function is reported at once.
//! Function bodies are not looked at; the compiler validates the module.

use anyhow::Result;
use gpu_run_abi::guest::{EXPORT, GuestCall};
use gpu_run_abi::hostcall::{self, Call};
use gpu_run_abi::layout::PAGE;
use gpu_run_abi::threads;
use gpu_run_compiler::{Build, CompileOptions, ValueType, printable};
use gpu_run_console::failure::Failure;
use gpu_run_console::units::show_size;
use std::collections::BTreeMap;
use wasmparser::{CompositeInnerType, ExternalKind, FuncType, KnownCustom, Name, Parser, Payload, TypeRef, ValType};

/// The function that a program for wasm32-unknown-unknown begins with.
pub(crate) const MAIN: &str = "main";

#[derive(Debug, Default)]
pub(crate) struct Surface {
    /// The module's types by index; `None` for a type that is no function type.
    types: Vec<Option<FuncType>>,
    /// The type of each function, imported functions first.
    functions: Vec<u32>,
    imports: Vec<Import>,
    exports: Vec<Export>,
    /// Function names from the name section.
    names: BTreeMap<u32, String>,
    /// Bytes of memory that the module starts with.
    memory_bytes: u64,
}

#[derive(Debug)]
struct Import {
    module: String,
    name: String,
    ty: TypeRef,
}

#[derive(Debug)]
struct Export {
    name: String,
    kind: ExternalKind,
    index: u32,
}

impl Surface {
    /// Reads the sections of `wasm`; messages call it `file`.
    pub(crate) fn read(wasm: &[u8], file: &str) -> Result<Self> {
        check_preamble(wasm, file)?;
        let mut surface = Self::default();
        surface.sections(wasm).map_err(|error| {
            let at = error.offset();
            let cut = if at >= wasm.len() { ": the file is cut short" } else { "" };
            Failure::usage(format!(
                "{file} is not a valid module: {} at offset {at:#x}{cut}",
                printable::name(error.message())
            ))
            .hint("copy or build the file again, and check it with `wasm-tools validate`")
        })?;
        Ok(surface)
    }

    fn sections(&mut self, wasm: &[u8]) -> wasmparser::Result<()> {
        for payload in Parser::new(0).parse_all(wasm) {
            match payload? {
                Payload::TypeSection(types) => {
                    for group in types {
                        self.types.extend(group?.into_types().map(|ty| match ty.composite_type.inner {
                            CompositeInnerType::Func(ty) => Some(ty),
                            _ => None,
                        }));
                    }
                }
                Payload::ImportSection(imports) => {
                    for import in imports.into_imports() {
                        let import = import?;
                        match import.ty {
                            TypeRef::Func(ty) | TypeRef::FuncExact(ty) => self.functions.push(ty),
                            TypeRef::Memory(memory) => self.add_memory(memory),
                            _ => {}
                        }
                        let (module, name) = (import.module.to_owned(), import.name.to_owned());
                        self.imports.push(Import { module, name, ty: import.ty });
                    }
                }
                Payload::FunctionSection(functions) => {
                    for ty in functions {
                        self.functions.push(ty?);
                    }
                }
                Payload::MemorySection(memories) => {
                    for memory in memories {
                        self.add_memory(memory?);
                    }
                }
                Payload::ExportSection(exports) => {
                    for export in exports {
                        let export = export?;
                        self.exports.push(Export {
                            name: export.name.to_owned(),
                            kind: export.kind,
                            index: export.index,
                        });
                    }
                }
                Payload::CustomSection(section) => {
                    if let KnownCustom::Name(names) = section.as_known() {
                        // A damaged name section costs only the names, not the run.
                        let _ = self.function_names(names);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn add_memory(&mut self, memory: wasmparser::MemoryType) {
        self.memory_bytes = self.memory_bytes.saturating_add(memory.initial.saturating_mul(PAGE));
    }

    fn function_names(&mut self, names: wasmparser::NameSectionReader<'_>) -> wasmparser::Result<()> {
        for subsection in names {
            if let Name::Function(map) = subsection? {
                for naming in map {
                    let naming = naming?;
                    self.names.insert(naming.index, format!("{:#}", rustc_demangle::demangle(naming.name)));
                }
            }
        }
        Ok(())
    }

    /// Checks that gpu-run provides every import.
    pub(crate) fn check_imports(&self, file: &str) -> Result<()> {
        for import in &self.imports {
            let (module, name) = (&import.module, &import.name);
            if is_of_threads(import) {
                continue;
            }
            let ty = match import.ty {
                TypeRef::Func(ty) | TypeRef::FuncExact(ty) => self.show_type(ty),
                // Only the compiler knows which of `spectest`'s memories, tables and globals it can provide: it refuses
                // the others.
                _ if module == "spectest" => continue,
                other => return Err(unprovided(file, module, name, kind_of(other)).into()),
            };
            match Call::find(module, name).map(expected) {
                None => return Err(unprovided(file, module, name, &format!("function, type {ty}")).into()),
                Some(expected) if expected != ty => {
                    let (module, name) = (printable::name(module), printable::name(name));
                    let message =
                        format!("{file} imports `{module}.{name}` with type {ty}, but its type is {expected}");
                    return Err(Failure::usage(message)
                        .hint("build it again with a current wasm32-wasip1 toolchain")
                        .into());
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Returns whether the program is one with threads, even if it starts none: then its memory is a shared one.
    pub(crate) fn has_threads(&self) -> bool {
        self.imports.iter().any(is_of_threads)
    }

    /// Returns the bytes that the memory of a program with threads can have, as far as the module says.
    pub(crate) fn most_memory(&self) -> u64 {
        let maximum = |import: &Import| match import.ty {
            TypeRef::Memory(memory) => memory.maximum,
            _ => None,
        };
        self.imports.iter().find_map(maximum).map_or(u64::MAX, |pages| pages.saturating_mul(PAGE))
    }

    /// Returns the options for a program that these options may not suit: one with threads.
    pub(crate) fn settle(&self, options: CompileOptions) -> CompileOptions {
        match self.has_threads() {
            true => CompileOptions { build: Build::Threads, ..options },
            false => options,
        }
    }

    /// Checks that the module's initial memory is within `--max-memory`.
    pub(crate) fn check_memory(&self, file: &str, limit: Option<u64>) -> Result<()> {
        match limit {
            Some(limit) if self.memory_bytes > limit => {
                let (bytes, limit) = (show_size(self.memory_bytes), show_size(limit));
                Err(Failure::usage(format!("{file} starts with {bytes} of memory, more than --max-memory {limit}"))
                    .hint("raise the limit, or link with a smaller `-zstack-size` and `--initial-memory`")
                    .into())
            }
            _ => Ok(()),
        }
    }

    /// Whether the module is a command: it exports `_start`.
    pub(crate) fn is_command(&self) -> bool {
        self.function("_start").is_some()
    }

    /// Returns how many parameters the module's `main` has, if the module is no command but has a `main` as C knows it:
    /// without parameters, or with `argc` and `argv`. Programs for wasm32-unknown-unknown are such modules.
    pub(crate) fn main_parameters(&self) -> Option<usize> {
        let ty = self.function(MAIN).filter(|_| !self.is_command())?;
        let is_of_c = matches!(ty.params(), [] | [ValType::I32, ValType::I32]) && ty.results() == [ValType::I32];
        is_of_c.then_some(ty.params().len())
    }

    /// Returns a line about exports by which the program means operations of the device ([`gpu_run_abi::guest`]) that gpu-run does
    /// not take for any: none has that name, or it has another type.
    pub(crate) fn unknown_operations(&self, file: &str) -> String {
        let is_unknown = |export: &&Export| match (GuestCall::find(&export.name), self.function(&export.name)) {
            (Some(call), Some(ty)) => expected_of(call) != show_func(ty),
            _ => export.name.starts_with(EXPORT),
        };
        let unknown: Vec<_> = self.exports.iter().filter(is_unknown).map(|e| printable::name(&e.name)).collect();
        let shown = match &unknown[..] {
            [] => return String::new(),
            [one] => format!("`{one}`"),
            [first, rest @ ..] => format!("`{first}` and {} more", rest.len()),
        };
        format!(
            "gpu-run: {file} asks for {shown}, which this gpu-run does not know in that form: each instance does what it would do alone\n"
        )
    }

    /// Whether the module can ask the host for anything, such as to print.
    pub(crate) fn calls_host(&self) -> bool {
        self.imports.iter().any(|import| matches!(import.ty, TypeRef::Func(_) | TypeRef::FuncExact(_)))
    }

    /// Checks that the module is a command.
    pub(crate) fn check_command(&self, file: &str) -> Result<()> {
        if self.is_command() {
            return Ok(());
        }
        let failure = Failure::usage(format!("{file} exports no function `_start`; {}", self.show_exports()));
        let hint = match self.exported_functions().next() {
            _ if self.main_parameters().is_some() => {
                format!(
                    "only `gpu-run {file}` calls its `main`: it neither reads nor prints; build it for wasm32-wasip1"
                )
            }
            Some(first) => {
                let name = printable::name(first);
                let arguments = self.function(first).map_or_else(String::new, |ty| zeros(ty.params()));
                format!("call one with --invoke, as in `gpu-run --invoke {name} {file}{arguments}`")
            }
            None => "a program has one: build a binary for wasm32-wasip1, not a library".into(),
        };
        Err(failure.hint(hint).into())
    }

    /// Returns the parameters and results of an exported function, for `--invoke`.
    pub(crate) fn signature(&self, file: &str, function: &str) -> Result<(Vec<ValueType>, Vec<ValueType>)> {
        let Some(ty) = self.function(function) else {
            let message =
                format!("{file} exports no function `{}`; {}", printable::name(function), self.show_exports());
            let near = nearest(function, self.exported_functions());
            let failure = Failure::usage(message);
            return Err(match near.first() {
                Some(near) => failure.hint(format!("did you mean `{}`?", printable::name(near))).into(),
                None => failure.into(),
            });
        };
        let types = |list: &[ValType]| list.iter().map(|ty| value_type(*ty)).collect::<Option<Vec<_>>>();
        match (types(ty.params()), types(ty.results())) {
            (Some(params), Some(results)) => Ok((params, results)),
            _ => {
                let function = printable::name(function);
                let message = format!("`{function}` has type {}, which --invoke cannot pass", show_func(ty));
                Err(Failure::usage(message)
                    .hint("i32, i64, f32, f64, v128, funcref and externref can be passed")
                    .into())
            }
        }
    }

    /// Returns the index and the name of every function that has a name, by index.
    pub(crate) fn function_list(&self) -> impl Iterator<Item = (u32, &str)> {
        self.names.iter().map(|(index, name)| (*index, name.as_str()))
    }

    pub(crate) fn function_count(&self) -> u32 {
        self.functions.len() as u32
    }

    pub(crate) fn exported_functions(&self) -> impl Iterator<Item = &str> {
        self.exports.iter().filter(|e| e.kind == ExternalKind::Func).map(|e| e.name.as_str())
    }

    fn function(&self, name: &str) -> Option<&FuncType> {
        let export = self.exports.iter().find(|e| e.kind == ExternalKind::Func && e.name == name)?;
        self.types.get(*self.functions.get(export.index as usize)? as usize)?.as_ref()
    }

    fn show_type(&self, index: u32) -> String {
        self.types.get(index as usize).and_then(Option::as_ref).map_or("unknown".into(), show_func)
    }

    /// Lists the exports, as in `it exports memory, add (i32, i32) -> i32`, cut off after a few lines.
    fn show_exports(&self) -> String {
        const SHOWN: usize = 12;
        if self.exports.is_empty() {
            return "it exports nothing".into();
        }
        let show = |e: &Export| match (printable::name(&e.name), self.function(&e.name)) {
            (name, Some(ty)) if e.kind == ExternalKind::Func => format!("{name} {}", show_func(ty)),
            (name, _) => format!("{name} ({})", format!("{:?}", e.kind).to_lowercase()),
        };
        let mut shown: Vec<_> = self.exports.iter().take(SHOWN).map(show).collect();
        if self.exports.len() > SHOWN {
            shown.push(format!("and {} more", self.exports.len() - SHOWN));
        }
        format!("it exports {}", shown.join(", "))
    }
}

/// Returns the names that are most similar to `wanted`, best first. The last part of a path counts as much as the
/// whole.
pub(crate) fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    const ALIKE: f64 = 0.75;
    const SHOWN: usize = 5;
    let last = |name: &'a str| name.rsplit("::").next().unwrap_or(name);
    let score = |name: &'a str| strsim::jaro_winkler(wanted, name).max(strsim::jaro_winkler(wanted, last(name)));
    let mut scored: Vec<_> = names.map(|name| (score(name), name)).filter(|(score, _)| *score >= ALIKE).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored.dedup_by_key(|(_, name)| *name);
    scored.into_iter().take(SHOWN).map(|(_, name)| name).collect()
}

/// Checks the first eight bytes, which must be those of a core module.
fn check_preamble(wasm: &[u8], file: &str) -> Result<()> {
    let Some(version) = wasm.get(4..8) else {
        return Err(Failure::usage(format!(
            "{file} is cut short: a module has at least 8 bytes, this file has {}",
            wasm.len()
        ))
        .into());
    };
    match version {
        [1, 0, 0, 0] => Ok(()),
        [_, _, 1, 0] => Err(component(file).into()),
        other => {
            let version = u32::from_le_bytes([other[0], other[1], other[2], other[3]]);
            Err(Failure::usage(format!(
                "{file} has WebAssembly binary version {version:#x} at offset 0x4; gpu-run reads version 1"
            ))
            .into())
        }
    }
}

pub(crate) fn component(file: &str) -> Failure {
    Failure::usage(format!("{file} is a WebAssembly component; gpu-run runs core modules")).hint("build for wasm32-wasip1 instead of wasm32-wasip2, or extract the module with\n`wasm-tools component unbundle --module-dir DIR FILE`")
}

/// Returns whether an import is one that only programs with threads have: the function that starts a thread, and the memory
/// that threads share.
fn is_of_threads(import: &Import) -> bool {
    match import.ty {
        TypeRef::Memory(memory) => memory.shared && threads::is_memory(&import.module, &import.name),
        _ => threads::is_spawn(&import.module, &import.name),
    }
}

/// Whether wasm-bindgen gives such names to modules or functions that are imported.
fn is_of_bindgen(name: &str) -> bool {
    name == "wbg" || name.starts_with("__wbindgen") || name.starts_with("__wbg_")
}

fn unprovided(file: &str, module: &str, import: &str, what: &str) -> Failure {
    let name = printable::name(import);
    let shown = printable::name(module);
    let failure = Failure::usage(format!("{file} imports `{shown}.{name}` ({what}), which nothing provides"));
    failure.hint(match module {
        "wasi_unstable" => "that is WASI's preview 0: build it again with a current wasm32-wasip1 toolchain".into(),
        _ if is_of_bindgen(module) || is_of_bindgen(import) => {
            "it was built for a browser with wasm-bindgen; build for wasm32-wasip1".into()
        }
        hostcall::WASI => format!("{} has no such function", hostcall::WASI),
        _ => format!("gpu-run provides {}; build for wasm32-wasip1", hostcall::WASI),
    })
}

fn kind_of(ty: TypeRef) -> &'static str {
    match ty {
        TypeRef::Func(_) | TypeRef::FuncExact(_) => "function",
        TypeRef::Table(_) => "table",
        TypeRef::Memory(_) => "memory",
        TypeRef::Global(_) => "global",
        TypeRef::Tag(_) => "tag",
    }
}

/// Returns a host function's type, written as [`show_func`] writes a module's.
fn expected(call: Call) -> String {
    let function = call.function();
    let params: Vec<_> = function.params.iter().map(|(_, ty)| format!("{ty:?}").to_lowercase()).collect();
    format!("({}) -> {}", params.join(", "), if function.returns_errno { "i32" } else { "()" })
}

/// Returns an operation's type, written as [`show_func`] writes a module's.
fn expected_of(call: GuestCall) -> String {
    let list = |types: &[gpu_run_abi::intrinsic::Type]| {
        types.iter().map(|ty| format!("{ty:?}").to_lowercase()).collect::<Vec<_>>().join(", ")
    };
    match call.signature() {
        (params, [one]) => format!("({}) -> {}", list(params), list(&[*one])),
        (params, results) => format!("({}) -> ({})", list(params), list(results)),
    }
}

/// Writes arguments of these types as `--invoke` takes them.
fn zeros(types: &[ValType]) -> String {
    let zero = |ty: &ValType| match ty {
        ValType::V128 => " i32x4:0,0,0,0",
        ValType::Ref(_) => " null",
        _ => " 0",
    };
    types.iter().map(zero).collect()
}

/// Writes a type as `(f64) -> f64` or `(i32, i32) -> ()`.
fn show_func(ty: &FuncType) -> String {
    let list = |types: &[ValType]| types.iter().map(ValType::to_string).collect::<Vec<_>>().join(", ");
    match ty.results() {
        [one] => format!("({}) -> {one}", list(ty.params())),
        results => format!("({}) -> ({})", list(ty.params()), list(results)),
    }
}

fn value_type(ty: ValType) -> Option<ValueType> {
    Some(match ty {
        ValType::I32 => ValueType::I32,
        ValType::I64 => ValueType::I64,
        ValType::F32 => ValueType::F32,
        ValType::F64 => ValueType::F64,
        ValType::V128 => ValueType::V128,
        ValType::FUNCREF => ValueType::FuncRef,
        ValType::EXTERNREF => ValueType::ExternRef,
        _ => return None,
    })
}

#[cfg(test)]
#[path = "surface_tests.rs"]
mod tests;
