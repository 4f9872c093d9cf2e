//! Compiles wasm to PTX: the compiler's passes, in order.

use crate::adapter::{self, Adapter};
use crate::cached::TO_PTX;
use crate::error::Error;
use crate::image::{Initial, State};
use crate::limit;
use crate::symbols::Symbols;
use gpu_run_abi::{Build, Layout, Placement, threads};
use gpu_run_device::Properties;
use gpu_run_ptx as ptx;
use gpu_run_wasm::link::Part;
use gpu_run_wasm::slot::{MemoryHome, SlotLayout};
use gpu_run_wasm::{
    self as wasm, EmbedderFunctions, ExportKind, FuncType, FunctionKind, Memory, Module, ValType, WasmFeatures,
    printable,
};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Which functions of the module the host will call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A command: `_start`.
    Start,
    /// One exported function.
    Function(String),
    /// Every exported function.
    Exports,
}

#[derive(Clone, Debug)]
pub struct CompileOptions {
    pub build: Build,
    /// PTX target, as in `sm_75`: 75.
    pub sm: u32,
    pub entry: Entry,
    /// The most registers that a thread may have; `None` lets the device choose.
    pub registers: Option<u32>,
    /// Whether the program notes its calls, so that a trap can show which calls led to it.
    pub backtrace: bool,
    /// What the module may import beside what gpu-run itself provides.
    pub embedder: EmbedderFunctions,
    /// What the program begins with, if not with a function of the module itself.
    pub adapter: Option<Adapter>,
}

/// The PTX target if none is named: every GPU of sm_75 or newer runs it.
pub const DEFAULT_TARGET: u32 = 75;

impl CompileOptions {
    pub fn new(build: Build, entry: Entry) -> Self {
        let embedder = EmbedderFunctions::default();
        Self { build, sm: DEFAULT_TARGET, entry, registers: None, backtrace: false, embedder, adapter: None }
    }

    /// Returns the options for translating these entries and all functions they reach.
    pub(crate) fn translation(&self, entries: Vec<u32>) -> wasm::Options {
        wasm::Options { until: None, build: self.build, entries, backtrace: self.backtrace, optimize: true }
    }

    /// Returns the options that the device will really use, which may differ from those asked for: so one result has
    /// one key.
    pub fn settled(&self, device: &Properties) -> Self {
        let build = match self.build {
            // On `cpu`, speculation gains too little to justify a second build with linear slots.
            Build::Speculative(Placement::Linear) if device.overcommits => Build::Exact(Layout::Linear),
            build => build,
        };
        Self { build, ..self.clone() }
    }
}

/// Registers of a thread in [`Sibling::Apart`]: twice as many threads fit as usual.
pub const APART_REGISTERS: u32 = 64;
/// Lanes of a warp that run an instance in [`Sibling::Apart`].
pub const APART_LANES: u32 = 8;

/// Another build of the same program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sibling {
    /// Memory in slots, where it can grow: for instances whose local memory is too small.
    InSlots,
    /// For instances that a speculative build has stopped.
    Exact,
    /// Linear slots, and only [`APART_LANES`] lanes of each warp: faster where lanes diverge and stay apart.
    Apart,
    /// An exact build with linear slots: for instances that need more memory than many at once can have.
    Alone,
    /// The same on `cpu`: for instances that need a deeper stack than the device has memory for.
    OnHost,
}

/// A module compiled to PTX, not yet loaded on a device.
#[derive(Debug)]
pub struct Compiled {
    /// The wasm module, kept to compile other builds of it.
    pub wasm: Arc<Vec<u8>>,
    pub options: CompileOptions,
    pub features: WasmFeatures,
    /// Empty in a program that came from the cache.
    pub ptx: String,
    pub slots: SlotLayout,
    pub initial: Initial,
    pub memories: Vec<Memory>,
    pub has_start: bool,
    /// Whether it asks for what only a device knows, see [`gpu_run_abi::guest`].
    pub asks_device: bool,
    /// Functions that the kernel can call, in the order of its selectors.
    pub entries: Vec<EntryFunction>,
    pub globals: Vec<ExportedGlobal>,
    /// See [`Compiled::types_of_globals`]. Not stored in the cache.
    pub(crate) global_types: OnceLock<Vec<ValType>>,
    /// Where the index spaces of the linked modules lie in the program's. Not stored in the cache: only a freshly
    /// linked program is linked further.
    pub parts: Vec<Part>,
    /// Names and source lines, read when the first trap is reported.
    pub(crate) symbols: OnceLock<Arc<Symbols>>,
    pub timings: Vec<(&'static str, Duration)>,
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct ExportedGlobal {
    /// The module that exports it.
    pub part: u32,
    pub name: String,
    pub index: u32,
    pub ty: ValType,
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct EntryFunction {
    /// The module that exports it.
    pub part: u32,
    pub name: String,
    pub ty: FuncType,
}

/// Returns the features that a module may use by default: every standard feature, so that an unsupported one is refused
/// by name and not as malformed.
pub(crate) fn default_features() -> WasmFeatures {
    WasmFeatures::WASM3 | WasmFeatures::THREADS
}

impl Compiled {
    /// Decodes, validates and compiles a module.
    pub fn new(wasm: &[u8], options: &CompileOptions) -> Result<Self, Error> {
        Self::with_features(wasm, options, default_features(), None)
    }

    /// Like [`Compiled::new`], within this time. `name` is the module's name in errors.
    pub fn within(name: &str, wasm: Arc<Vec<u8>>, options: &CompileOptions, limit: Duration) -> Result<Self, Error> {
        let options = options.clone();
        limit::within(name, Some(limit), move |until| Self::with_features(&wasm, &options, default_features(), until))
    }

    /// Like [`Compiled::new`], for a module that may use only these features. Compiling has to finish by `until`.
    pub fn with_features(
        bytes: &[u8],
        options: &CompileOptions,
        features: WasmFeatures,
        until: Option<Instant>,
    ) -> Result<Self, Error> {
        TO_PTX.fetch_add(1, Ordering::Relaxed);
        let mut timings = Vec::new();
        let mut timed = Stopwatch { timings: &mut timings, since: Instant::now() };
        let module = adapter::decode(bytes, features, options.adapter.as_ref(), &options.embedder)?;
        timed.lap("decode");
        let bytes = Arc::new(bytes.to_vec());
        Self::of_module(module, bytes, options, features, &State::default(), timings, until)
    }

    /// Compiles a program of linked modules, with the state that some of them have already. `bytes` is the last module.
    pub fn linked(
        module: Module<'_>,
        bytes: Arc<Vec<u8>>,
        options: &CompileOptions,
        features: WasmFeatures,
        state: &State,
    ) -> Result<Self, Error> {
        TO_PTX.fetch_add(1, Ordering::Relaxed);
        let symbols = OnceLock::from(Arc::new(Symbols::new(&module)));
        Ok(Self { symbols, ..Self::of_module(module, bytes, options, features, state, Vec::new(), None)? })
    }

    fn of_module(
        mut module: Module<'_>,
        bytes: Arc<Vec<u8>>,
        options: &CompileOptions,
        features: WasmFeatures,
        state: &State,
        mut timings: Vec<(&'static str, Duration)>,
        until: Option<Instant>,
    ) -> Result<Self, Error> {
        let mut timed = Stopwatch { timings: &mut timings, since: Instant::now() };
        let entries = chosen_entries(&mut module, options)?;
        let functions: Vec<u32> = entries.iter().map(|(index, _)| *index).collect();
        let clif = wasm::translate(&module, &wasm::Options { until, ..options.translation(functions) })?;
        timed.lap("translate");
        let slots = clif.slots.clone();
        let ptx = ptx::emit_until(&ptx_program(clif, options), &ptx::Target::for_sm(options.sm), until)?;
        timed.lap("emit");
        let globals = module.exports.iter().filter_map(|e| match e.kind {
            ExportKind::Global(index) => {
                let (name, ty) = (e.name.to_owned(), module.globals[index as usize].ty);
                Some(ExportedGlobal { part: e.part, name, index, ty })
            }
            _ => None,
        });
        Ok(Self {
            wasm: bytes,
            options: options.clone(),
            features,
            ptx,
            initial: Initial::new(&module, &slots, state)?,
            slots,
            has_start: module.start.is_some(),
            asks_device: module.asks_device(),
            entries: entries.into_iter().map(|(_, entry)| entry).collect(),
            globals: globals.collect(),
            global_types: OnceLock::from(module.globals.iter().map(|global| global.ty).collect::<Vec<_>>()),
            memories: module.memories,
            parts: module.parts,
            symbols: OnceLock::new(),
            timings,
        })
    }

    /// Returns the options for compiling another build of the program.
    pub(crate) fn sibling_options(&self, sibling: Sibling) -> CompileOptions {
        let CompileOptions { build, registers, .. } = self.options;
        let (build, registers) = match sibling {
            Sibling::InSlots => (build.in_slots(), registers),
            Sibling::Exact => (build.exact(), registers),
            Sibling::Apart => (build.linear(), Some(APART_REGISTERS)),
            Sibling::Alone | Sibling::OnHost => (Build::Exact(Layout::Linear), registers),
        };
        CompileOptions { build, registers, ..self.options.clone() }
    }

    /// Returns how slots lie.
    pub fn layout(&self) -> Layout {
        self.options.build.layout()
    }

    /// Returns names and source lines.
    pub(crate) fn symbols(&self) -> &Arc<Symbols> {
        self.symbols.get_or_init(|| match self.decoded() {
            Ok(module) => Arc::new(Symbols::new(&module)),
            Err(_) => Arc::default(),
        })
    }

    pub(crate) fn decoded(&self) -> Result<Module<'_>, Error> {
        adapter::decode(&self.wasm, self.features, self.options.adapter.as_ref(), &self.options.embedder)
    }

    pub fn ptx(&self) -> &str {
        &self.ptx
    }

    /// Returns how long each step took, in order.
    pub fn timings(&self) -> &[(&'static str, Duration)] {
        &self.timings
    }

    /// Returns the kernel's selector for a function that the module `part` exports, and the function's type.
    pub fn entry(&self, part: u32, name: &str) -> Option<(u32, &FuncType)> {
        let found = self.entries.iter().position(|e| e.part == part && e.name == name);
        found.map(|i| (i as u32, &self.entries[i].ty))
    }
}

struct Stopwatch<'a> {
    timings: &'a mut Vec<(&'static str, Duration)>,
    since: Instant,
}

impl Stopwatch<'_> {
    fn lap(&mut self, what: &'static str) {
        self.timings.push((what, self.since.elapsed()));
        self.since = Instant::now();
    }
}

/// The function that a reactor wants called before any other.
const INITIALIZE: &str = "_initialize";

/// Returns the function that threads run, if the module can start any.
fn thread_start(module: &Module<'_>) -> Result<Option<(u32, EntryFunction)>, Error> {
    let Some(export) = module.exports.iter().find(|export| export.name == threads::START) else { return Ok(None) };
    let expected = FuncType { params: vec![ValType::I32; 2], results: Vec::new() };
    match export.kind {
        ExportKind::Function(index) if *module.function_type(index) == expected => {
            let (part, name) = (export.part, export.name.to_owned());
            Ok(Some((index, EntryFunction { part, name, ty: expected })))
        }
        _ => Err(Error::Usage(format!("it exports `{}`, but not as a function of type {expected}", threads::START))),
    }
}

/// Returns the functions that can be called from outside, and prepares the module for that.
pub(crate) fn chosen_entries(
    module: &mut Module<'_>,
    options: &CompileOptions,
) -> Result<Vec<(u32, EntryFunction)>, Error> {
    if let Entry::Function(name) = &options.entry {
        initialize_first(module, name)?;
    }
    let mut entries = entries(module, &options.entry)?;
    if options.build.is_threads() {
        entries.extend(thread_start(module)?);
    }
    if options.build.is_gang() {
        entries.retain(|(_, entry)| entry.ty == FuncType::default());
    }
    Ok(entries)
}

/// Makes a reactor's `_initialize` its start function: both run once, before anything else in the instance.
fn initialize_first(module: &mut Module<'_>, called: &str) -> Result<(), Error> {
    let function = module.exports.iter().find_map(|export| match export.kind {
        ExportKind::Function(index) if export.name == INITIALIZE && called != INITIALIZE => Some(index),
        _ => None,
    });
    let Some(function) = function else { return Ok(()) };
    let ty = module.function_type(function);
    if *ty != FuncType::default() {
        return Err(Error::Usage(format!("its `{INITIALIZE}` has type {ty}; it must take and return nothing")));
    }
    if module.start.is_some() {
        return Err(Error::Usage(format!(
            "it has a start function and an `{INITIALIZE}`; gpu-run supports only one of the two"
        )));
    }
    module.start = Some(function);
    Ok(())
}

/// Returns the functions that an [`Entry`] names, with their indices.
fn entries(module: &Module<'_>, entry: &Entry) -> Result<Vec<(u32, EntryFunction)>, Error> {
    let functions = module.exports.iter().filter_map(|e| match e.kind {
        ExportKind::Function(index) => {
            // Whoever calls an adapter's function does not know that there are two modules.
            let part = if module.is_adapted { 0 } else { e.part };
            Some((index, EntryFunction { part, name: e.name.to_owned(), ty: module.function_type(index).clone() }))
        }
        _ => None,
    });
    let wanted = match entry {
        Entry::Exports => return Ok(functions.collect()),
        Entry::Start => "_start",
        Entry::Function(name) => name,
    };
    let all: Vec<_> = functions.collect();
    // An adapter comes last.
    match all.iter().rfind(|(_, f)| f.name == wanted) {
        Some(found) => Ok(vec![found.clone()]),
        None => Err(missing(wanted, &all)),
    }
}

/// The most exports that an error message lists.
const MAX_NAMED_EXPORTS: usize = 20;

fn missing(wanted: &str, exported: &[(u32, EntryFunction)]) -> Error {
    let named = exported.iter().take(MAX_NAMED_EXPORTS);
    Error::MissingExport {
        wanted: printable::name(wanted).into_owned(),
        exported: named.map(|(_, f)| format!("{} {}", printable::name(&f.name), f.ty)).collect(),
    }
}

/// Converts the CLIF program to the form that the back end takes.
pub(crate) fn ptx_program(program: wasm::Program, options: &CompileOptions) -> ptx::Program {
    let function_table = program.address_taken.iter().enumerate().map(|(i, taken)| taken.then_some(i as u32)).collect();
    let slots = &program.slots;
    let memory = ptx::Memory { at: slots.memory, least: program.least_memory, low: slots.low };
    let read_only = ptx::ReadOnly { at: slots.read_only.start, bytes: program.read_only };
    let build = match slots.home {
        MemoryHome::Gang(place) => {
            let relaxed = matches!(options.build, Build::Gang { relaxed: true, .. });
            ptx::Build::Gang { region: place.region, relaxed }
        }
        MemoryHome::Shared => ptx::Build::Threads { hot_words: slots.hot_words.clone() },
        MemoryHome::Local { .. } => ptx::Build::Speculative { home: ptx::Home::Local, read_only },
        MemoryHome::Slot if options.build.is_speculative() => {
            ptx::Build::Speculative { home: ptx::Home::Slots(options.build.layout()), read_only }
        }
        MemoryHome::Slot => ptx::Build::Exact(options.build.layout()),
    };
    let functions = program.functions.into_iter().map(ptx_function).collect();
    ptx::Program { functions, function_table, memory, build }
}

fn ptx_function(function: wasm::Function) -> ptx::Function {
    let symbol = match function.kind {
        FunctionKind::Kernel => function.name.clone(),
        FunctionKind::Runtime => format!("rt_{}", identifier(&function.name)),
        FunctionKind::Wasm | FunctionKind::Stub => format!("f{}_{}", function.index, identifier(&function.name)),
    };
    let kind = if function.kind == FunctionKind::Kernel { ptx::Kind::Kernel } else { ptx::Kind::Device };
    ptx::Function {
        symbol,
        trap_id: function.trap_id(),
        cycle: function.cycle,
        kind,
        comment: printable(&demangle(&function.name)),
        clif: function.clif,
    }
}

/// Turns a name into a PTX identifier, short enough to read.
fn identifier(name: &str) -> String {
    let name = demangle(name);
    name.chars()
        .filter(|c| !c.is_whitespace())
        .take(40)
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect()
}

/// Replaces characters that a PTX comment may not hold: names come from the module and may hold anything.
fn printable(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' }).collect()
}

pub(crate) fn demangle(name: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(name))
}
