//! A compiled module on a device, and what became of the instances that ran.

use crate::batch::Batch;
use crate::bus::Guests;
use crate::compile::Compiled;
use crate::compiler::Build;
use crate::error::Error;
use crate::value::{Value, ValueType};
use crate::wave::{Waves, stillborn};
use gpu_run_abi::launch::Ending;
use gpu_run_abi::layout::WORD;
use gpu_run_abi::{Launch, Status, TrapCode, TrapRecord};
use gpu_run_cache::{Cache, InUse};
use gpu_run_device::{Device, Module};
use gpu_run_wasi::Context;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Instances in one launch at most; more go one launch after the other through the same slots.
const WAVE: usize = 4096;

/// A compiled module loaded on a device.
#[derive(Debug)]
pub struct Program {
    device: Arc<dyn Device>,
    module: Arc<dyn Module>,
    compiled: Arc<Compiled>,
    /// Where it came from, and others like it come from.
    cache: Arc<Cache>,
    _in_use: InUse,
    /// In the cache.
    name: String,
}

#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// When the run as a whole is to be ended.
    pub deadline: Option<Instant>,
    /// Bytes of linear memory an instance may have at most.
    pub max_memory: Option<u64>,
}

/// What became of one instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub end: End,
    /// Results of the entry function, if it returned.
    pub results: Vec<Value>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum End {
    Returned,
    Exited(u32),
    Trapped(Trap),
}

/// A trap, with what is known of its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Trap {
    pub code: TrapCode,
    /// Index in the module's function space.
    pub function: Option<u32>,
    /// Demangled.
    pub name: Option<String>,
    /// Offset in the .wasm file.
    pub offset: u32,
    /// From DWARF: file, line.
    pub source: Option<(String, u32)>,
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code.message())?;
        if let Some(index) = self.function {
            match &self.name {
                Some(name) => write!(f, "\n  in {name} (function {index}), at offset {:#x}", self.offset)?,
                None => write!(f, "\n  in function {index}, at offset {:#x}", self.offset)?,
            }
        }
        if let Some((file, line)) = &self.source {
            write!(f, "\n  at {file}:{line}")?;
        }
        Ok(())
    }
}

/// What a run did, for `--stats`.
#[derive(Clone, Debug, Default)]
pub struct RunStats {
    pub instances: u64,
    pub launches: u64,
    pub hostcalls: u64,
    /// Instances that ran a second time, with exact checks.
    pub again: u64,
    /// Bytes of device memory set aside for instances.
    pub device_bytes: u64,
    /// Reading what became of instances.
    pub setup: Duration,
    /// The kernel.
    pub run: Duration,
}

impl RunStats {
    /// Counts another run in.
    pub fn add(&mut self, other: &RunStats) {
        self.instances += other.instances;
        self.launches += other.launches;
        self.hostcalls += other.hostcalls;
        self.again += other.again;
        self.device_bytes = self.device_bytes.max(other.device_bytes);
        self.setup += other.setup;
        self.run += other.run;
    }
}

impl Program {
    /// Compiles the PTX for a device.
    pub fn load(device: Arc<dyn Device>, compiled: Arc<Compiled>) -> Result<Self, Error> {
        let module = device.load(compiled.ptx())?;
        Ok(Self::new(device, module, compiled))
    }

    pub(crate) fn new(device: Arc<dyn Device>, module: Arc<dyn Module>, compiled: Arc<Compiled>) -> Self {
        let cache = Arc::new(Cache::off("the program was not asked of one"));
        Self { device, module, compiled, cache, _in_use: InUse::default(), name: String::new() }
    }

    /// The same, of a cache: its entry stays while the program does.
    pub(crate) fn kept(self, cache: Arc<Cache>, in_use: InUse, name: String) -> Self {
        Self { cache, _in_use: in_use, name, ..self }
    }

    /// The same program on the same device, with exact checks.
    pub(crate) fn exact(&self) -> Result<Self, Error> {
        let (device, compiled) = (self.device.clone(), &self.compiled);
        let (wasm, options, features) = (compiled.wasm.clone(), compiled.exact_options(), compiled.features);
        let build = Build { device, wasm, options, features, name: self.name.clone() };
        Ok(build.load(&self.cache, &build.key()?)?.0)
    }

    /// Parameters and results of an exported function.
    pub fn signature(&self, function: &str) -> Option<(Vec<ValueType>, Vec<ValueType>)> {
        self.compiled.entry(function).map(|(_, ty)| (ty.params.clone(), ty.results.clone()))
    }

    pub(crate) fn device(&self) -> &dyn Device {
        &*self.device
    }

    pub(crate) fn compiled(&self) -> &Arc<Compiled> {
        &self.compiled
    }

    pub(crate) fn batch(&self, capacity: u64, max_memory: Option<u64>) -> Result<Batch, Error> {
        Batch::new(&*self.device, self.module.clone(), self.compiled.clone(), capacity, max_memory)
    }

    /// Runs one instance for each context (arguments, environment, descriptors): instantiates, calls `function` with
    /// `args` (the start function before it), and says what became of each, in order.
    pub fn run(
        &self,
        function: &str,
        args: &[Value],
        contexts: Vec<Context>,
        options: &RunOptions,
    ) -> Result<(Vec<Outcome>, RunStats), Error> {
        if let Some(code) = self.compiled.initial.trap {
            self.compiled.arguments(function, args)?;
            let stats = RunStats { instances: contexts.len() as u64, ..RunStats::default() };
            return Ok((vec![stillborn(code); contexts.len()], stats));
        }
        let mut stats = RunStats::default();
        let mut outcomes = Vec::with_capacity(contexts.len());
        let mut waves = Waves::new(self, contexts.len().min(WAVE), options.max_memory, function, args)?;
        let mut contexts = contexts.into_iter().peekable();
        while contexts.peek().is_some() {
            let wave = contexts.by_ref().take(WAVE).collect();
            let wave = Guests::Contexts(wave);
            outcomes.extend(waves.run(self, wave, Launch::default(), options.deadline, &mut stats)?);
        }
        Ok((outcomes, stats))
    }
}

impl Compiled {
    /// The selector of an exported function and the words of its arguments.
    pub(crate) fn arguments(&self, function: &str, args: &[Value]) -> Result<(u32, Vec<u64>), Error> {
        let (selector, ty) = self
            .entry(function)
            .ok_or_else(|| Error::Usage(format!("no exported function `{function}` was compiled")))?;
        if !args.iter().map(|a| a.ty()).eq(ty.params.iter().copied()) {
            let given: Vec<_> = args.iter().map(|a| a.ty().to_string()).collect();
            return Err(Error::Usage(format!("`{function}` has type {ty}, and was given ({})", given.join(", "))));
        }
        let references = &self.initial.references;
        let unknown = |index: &u32| *index as usize >= references.len();
        if let Some(index) = args.iter().find_map(|a| a.function().filter(unknown)) {
            return Err(Error::Usage(format!("there is no function {index} to refer to")));
        }
        Ok((selector, args.iter().map(|a| a.word(|index| references[index as usize])).collect()))
    }

    /// How the instances of the first slots ended.
    pub(crate) fn outcomes(&self, batch: &Batch, count: u64, selector: u32) -> Result<Vec<Outcome>, Error> {
        let types = self.entries.get(selector as usize).map_or(&[][..], |e| &e.ty.results);
        let words = batch.endings(count, types.len())?;
        let ending = size_of::<Ending>() / WORD as usize;
        let records = words.chunks(ending + types.len()).enumerate();
        records.map(|(slot, record)| self.outcome(slot, &record[..ending], types, &record[ending..])).collect()
    }

    fn outcome(&self, slot: usize, ending: &[u64], types: &[ValueType], words: &[u64]) -> Result<Outcome, Error> {
        let ending: &Ending = bytemuck::from_bytes(bytemuck::cast_slice(ending));
        if let Some(record) = TrapRecord::unpack(ending.trap) {
            return Ok(Outcome { end: End::Trapped(self.trap(record)), results: Vec::new() });
        }
        if ending.status == Status::Exited as u64 {
            return Ok(Outcome { end: End::Exited(ending.exit_code as u32), results: Vec::new() });
        }
        if ending.status == Status::Inexact as u64 {
            return Ok(stillborn(TrapCode::Inexact));
        }
        if ending.status != Status::Returned as u64 {
            return Err(Error::Internal(format!("instance {slot} ended without saying how")));
        }
        let results = types.iter().zip(words).map(|(ty, word)| Value::from_word(*ty, *word)).collect();
        Ok(Outcome { end: End::Returned, results })
    }

    fn trap(&self, record: TrapRecord) -> Trap {
        let function = (record.function != TrapRecord::NO_FUNCTION).then_some(record.function);
        let name = function.and_then(|f| self.symbols().name(f));
        Trap { code: record.code, function, name, offset: record.offset, source: self.symbols().source(record.offset) }
    }
}
