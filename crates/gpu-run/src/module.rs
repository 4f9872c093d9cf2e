//! A validated module, and what it imports and exports.

use crate::engine::Engine;
use crate::error::{Error, Result};
use gpu_run_compiler::{Build, CompileOptions, Compiled, Entry, FunctionType, Interface, Item, Layout, Memories};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The function that a library module wants to be called once, before all others.
pub(crate) const INITIALIZE: &str = "_initialize";

/// A validated WebAssembly module. Clones are the same module.
///
/// A module is compiled when something is made of it: an instance, a command, a mapper. What was compiled once is in the engine's
/// cache.
#[derive(Clone)]
pub struct Module {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Engine,
    name: String,
    wasm: Arc<Vec<u8>>,
    interface: Interface,
}

impl Module {
    /// Takes a module's bytes, or WebAssembly text.
    ///
    /// ```
    /// # use gpu_run::{Config, Engine, Module};
    /// # let engine = Engine::new(&Config::new().device("cpu").no_cache())?;
    /// let module = Module::new(&engine, r#"(module (func (export "three") (result i32) i32.const 3))"#)?;
    /// assert_eq!(module.functions().map(|f| f.name).collect::<Vec<_>>(), ["three"]);
    /// # Ok::<(), gpu_run::Error>(())
    /// ```
    pub fn new(engine: &Engine, bytes: impl AsRef<[u8]>) -> Result<Self> {
        Self::named(engine, "the module", bytes.as_ref())
    }

    /// Reads a .wasm or .wat file.
    pub fn from_file(engine: &Engine, path: impl AsRef<Path>) -> Result<Self> {
        let (path, name) = (path.as_ref(), path.as_ref().display().to_string());
        let bytes = std::fs::read(path).map_err(|source| Error::Io { what: format!("cannot read {name}"), source })?;
        Self::named(engine, &name, &bytes)
    }

    /// Like [`Module::new`]; errors, and the list of what is in the cache, call the module `name`.
    pub fn named(engine: &Engine, name: &str, bytes: &[u8]) -> Result<Self> {
        let invalid = |message: String| Error::Module { name: name.into(), message };
        let wasm = wat::parse_bytes(bytes).map_err(|error| invalid(error.to_string()))?;
        let wasm = Arc::new(wasm.into_owned());
        let interface = Interface::read(&wasm).map_err(|error| Error::of_compiler(name, error))?;
        Ok(Self { inner: Arc::new(Inner { engine: engine.clone(), name: name.into(), wasm, interface }) })
    }

    pub fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The functions that the module exports.
    pub fn functions(&self) -> impl Iterator<Item = Function<'_>> {
        self.inner.interface.exports.iter().filter_map(Function::of)
    }

    /// The functions that the module imports, those of WASI among them.
    pub fn imports(&self) -> impl Iterator<Item = (&str, Function<'_>)> {
        let imports = self.inner.interface.imports.iter();
        imports.filter_map(|(module, item)| Some((&module[..], Function::of(item)?)))
    }

    /// The names of everything that the module exports.
    #[cfg(feature = "arrow")]
    pub(crate) fn export_names(&self) -> impl Iterator<Item = &str> {
        self.inner.interface.exports.iter().map(|item| &item.name[..])
    }

    /// Compiles the module to PTX, as text: what a [`Command`](crate::Command) with one instance runs, or if it is no program, all that it exports.
    ///
    /// ```
    /// # use gpu_run::{Config, Engine, Module};
    /// # let engine = Engine::new(&Config::new().device("cpu").no_cache())?;
    /// let module = Module::new(&engine, r#"(module (func (export "three") (result i32) i32.const 3))"#)?;
    /// assert!(module.ptx()?.contains(".target sm_"));
    /// # Ok::<(), gpu_run::Error>(())
    /// ```
    pub fn ptx(&self) -> Result<String> {
        let entry = if self.function("_start").is_some() { Entry::Start } else { Entry::Exports };
        let build = if self.has_threads() { Build::Threads } else { Build::Exact(Layout::Linear) };
        let (wasm, options) = (self.wasm().clone(), CompileOptions::new(build, entry));
        let compiled = Compiled::within(self.name(), wasm, &options, self.inner.engine.compile_timeout());
        Ok(compiled.map_err(|error| Error::of_compiler(self.name(), error))?.ptx().to_owned())
    }

    pub(crate) fn function(&self, name: &str) -> Option<Function<'_>> {
        self.functions().find(|function| function.name == name)
    }

    /// Whether it is a program that can start threads.
    pub(crate) fn has_threads(&self) -> bool {
        self.inner.interface.has_threads
    }

    pub(crate) fn interface(&self) -> &Interface {
        &self.inner.interface
    }

    pub(crate) fn has_initialize(&self) -> bool {
        self.function(INITIALIZE).is_some_and(|function| *function.ty == FunctionType::default())
    }

    pub(crate) fn memories(&self) -> Memories {
        self.inner.interface.memories
    }

    pub(crate) fn wasm(&self) -> &Arc<Vec<u8>> {
        &self.inner.wasm
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("name", &self.inner.name).finish_non_exhaustive()
    }
}

/// A function that a module imports or exports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Function<'m> {
    pub name: &'m str,
    pub ty: &'m FunctionType,
}

impl<'m> Function<'m> {
    fn of(item: &'m Item) -> Option<Self> {
        Some(Self { name: &item.name, ty: item.function.as_ref()? })
    }
}

/// As in `add (i32, i32) -> (i32)`.
impl fmt::Display for Function<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", gpu_run_compiler::printable::name(self.name), self.ty)
    }
}
