//! A compiled module on a device.

use crate::backtrace::{Calls, Chain, NotedCalls};
use crate::cached::Build;
use crate::compile::{Compiled, Sibling};
use crate::error::Error;
use crate::stored;
use crate::value::{Value, ValueType};
use gpu_run_abi::{TrapCode, TrapRecord};
use gpu_run_cache::{Cache, InUse, Key};
use gpu_run_device::{Device, Module, cpu};
use gpu_run_wasm::printable;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A compiled module loaded on a device.
#[derive(Debug)]
pub struct Program {
    device: Arc<dyn Device>,
    module: Arc<dyn Module>,
    compiled: Arc<Compiled>,
    /// The cache that the program came from, and that its other builds come from.
    cache: Arc<Cache>,
    _in_use: InUse,
    _growth: Option<Growth>,
    /// Its name in the cache.
    name: String,
}

/// Writes a program to the cache again when it is dropped, if it has more machine code by then than it began with: a
/// device may compile functions when they are first called.
#[derive(Debug)]
struct Growth {
    cache: Arc<Cache>,
    key: Key,
    module: Arc<dyn Module>,
    compiled: Arc<Compiled>,
    /// How long compiling the program took.
    took: Duration,
}

impl Drop for Growth {
    fn drop(&mut self) {
        if let Some(code) = self.module.grown() {
            let began = Instant::now();
            let stored = stored::write(&self.compiled, &code);
            let kept = stored.is_ok_and(|bytes| self.cache.put(&self.key, &bytes, self.took));
            tracing::debug!(bytes = code.len(), kept, time = ?began.elapsed(), "kept the code compiled meanwhile");
        }
    }
}

/// A trap, with what is known about its location.
#[derive(Clone, Debug, PartialEq)]
pub struct Trap {
    pub code: TrapCode,
    /// The thread that trapped, in words, if the program has threads.
    pub thread: Option<String>,
    /// Index in the module's function space.
    pub function: Option<u32>,
    /// The function's name, demangled.
    pub name: Option<String>,
    /// Offset in the .wasm file.
    pub offset: u32,
    /// File and line, from DWARF.
    pub source: Option<(String, u32)>,
    pub calls: Calls,
}

impl Trap {
    /// A trap without a place in the code.
    pub fn nowhere(code: TrapCode) -> Self {
        Self { code, thread: None, function: None, name: None, offset: 0, source: None, calls: Calls::None }
    }
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code.message())?;
        if let Some(thread) = &self.thread {
            write!(f, "\n  in {thread}")?;
        }
        if let Some(index) = self.function {
            match &self.name {
                Some(name) => {
                    let name = printable::name(name);
                    write!(f, "\n  in {name} (function {index}), at offset {:#x}", self.offset)?;
                }
                None => write!(f, "\n  in function {index}, at offset {:#x}", self.offset)?,
            }
        }
        if let Some((file, line)) = &self.source {
            write!(f, "\n  at {}:{line}", printable::name(file))?;
        }
        Ok(())
    }
}

impl Program {
    /// Compiles the PTX for a device, and loads it.
    pub fn load(device: Arc<dyn Device>, compiled: Arc<Compiled>) -> Result<Self, Error> {
        let module = device.load(compiled.ptx())?;
        Ok(Self::new(device, module, compiled))
    }

    pub(crate) fn new(device: Arc<dyn Device>, module: Arc<dyn Module>, compiled: Arc<Compiled>) -> Self {
        let cache = Arc::new(Cache::off("the program was not asked of one"));
        Self { device, module, compiled, cache, _in_use: InUse::default(), _growth: None, name: String::new() }
    }

    /// Returns the program as one of a cache: its entry is not evicted while the program exists.
    pub(crate) fn kept(self, cache: Arc<Cache>, key: Key, in_use: InUse, name: String, took: Duration) -> Self {
        let (module, compiled) = (self.module.clone(), self.compiled.clone());
        let growth = Growth { cache: cache.clone(), key, module, compiled, took };
        Self { cache, _in_use: in_use, _growth: Some(growth), name, ..self }
    }

    /// Loads another build of the program, on the same device unless the build is [`Sibling::OnHost`].
    pub fn rebuilt(&self, sibling: Sibling) -> Result<Self, Error> {
        let device = if sibling == Sibling::OnHost { cpu::open() } else { self.device.clone() };
        let compiled = &self.compiled;
        let (wasm, options, features) = (compiled.wasm.clone(), compiled.sibling_options(sibling), compiled.features);
        let limit = Some(crate::limit::DEFAULT_TIMEOUT);
        let build = Build { device, wasm, options, features, name: self.name.clone(), limit };
        Ok(build.load(&self.cache, &build.key()?)?.0)
    }

    /// Returns the parameters and results of an exported function.
    pub fn signature(&self, function: &str) -> Option<(Vec<ValueType>, Vec<ValueType>)> {
        self.compiled.entry(0, function).map(|(_, ty)| (ty.params.clone(), ty.results.clone()))
    }

    pub fn device(&self) -> &dyn Device {
        &*self.device
    }

    pub fn module(&self) -> &Arc<dyn Module> {
        &self.module
    }

    pub fn compiled(&self) -> &Arc<Compiled> {
        &self.compiled
    }
}

impl Compiled {
    /// Returns the selector of an exported function, and the words of its arguments.
    pub fn arguments(&self, function: &str, args: &[Value]) -> Result<(u32, Vec<u64>), Error> {
        self.arguments_of(0, function, args)
    }

    /// Like [`Compiled::arguments`], for a function that the module `part` exports.
    pub fn arguments_of(&self, part: u32, function: &str, args: &[Value]) -> Result<(u32, Vec<u64>), Error> {
        let (selector, ty) = self
            .entry(part, function)
            .ok_or_else(|| Error::Usage(format!("no exported function `{function}` was compiled")))?;
        if !args.iter().map(|a| a.ty()).eq(ty.params.iter().copied()) {
            let given: Vec<_> = args.iter().map(|a| a.ty().to_string()).collect();
            return Err(Error::Usage(format!("`{function}` has type {ty}, but was given ({})", given.join(", "))));
        }
        let references = &self.initial.references;
        let unknown = |index: &u32| *index as usize >= references.len();
        if let Some(index) = args.iter().find_map(|a| a.function().filter(unknown)) {
            return Err(Error::Usage(format!("there is no function {index} to refer to")));
        }
        Ok((selector, args.iter().flat_map(|a| a.words(|index| references[index as usize])).collect()))
    }

    /// Returns the result types of an entry; none if there is no such entry.
    pub fn results(&self, selector: u32) -> &[ValueType] {
        self.entries.get(selector as usize).map_or(&[], |e| &e.ty.results)
    }

    /// Returns the trap of a record, with the function's name and source line looked up in the module. `noted` are the
    /// calls that led there, if the program notes calls.
    pub fn trap(&self, record: TrapRecord, noted: Option<NotedCalls>) -> Trap {
        let (symbols, TrapRecord { code, offset, .. }) = (self.symbols(), record);
        let function = (record.function != TrapRecord::NO_FUNCTION).then_some(record.function);
        let is_entry = |f: u32| self.entries.iter().any(|entry| symbols.export(&entry.name) == Some(f));
        let calls = match noted {
            Some(noted) => {
                let chain = Chain::new(function.map(|function| (offset, function)), noted, symbols);
                chain.map_or(Calls::None, |chain| Calls::Noted(Arc::new(chain)))
            }
            None if function.is_some_and(|f| !is_entry(f)) => Calls::NotNoted,
            None => Calls::None,
        };
        let name = function.and_then(|f| symbols.name(f));
        Trap { code, thread: None, function, name, offset, source: symbols.source(offset), calls }
    }
}

/// 1/16 of a thread's stack is kept for frames that do not check how much stack is left.
const STACK_RESERVE: u32 = 16;

/// Returns how much of a thread's stack functions may use that check it: an argument of a program's kernels.
pub fn stack_limit(stack_bytes: u32) -> u32 {
    stack_bytes - stack_bytes / STACK_RESERVE
}
