//! A compiled module on a device, and what became of the instances that ran.

use crate::allowance::{Denied, Limits, Sizes};
use crate::batch::{Batch, Endings, LaunchBuffers};
use crate::compile::{Compiled, Sibling};
use crate::compiler::Build;
use crate::error::Error;
use crate::frame;
use crate::value::{Value, ValueType};
use crate::wave::{self, stillborn};
use gpu_run_abi::launch::Ending;
use gpu_run_abi::{Status, TrapCode, TrapRecord};
use gpu_run_cache::{Cache, InUse, Key};
use gpu_run_device::{Device, Module, cpu};
use gpu_run_ptx::Checks;
use gpu_run_wasi::Context;
use gpu_run_wasm::{printable, words};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A compiled module loaded on a device.
#[derive(Debug)]
pub struct Program {
    device: Arc<dyn Device>,
    module: Arc<dyn Module>,
    compiled: Arc<Compiled>,
    /// Where it came from, and others like it come from.
    cache: Arc<Cache>,
    _in_use: InUse,
    _growth: Option<Growth>,
    /// In the cache.
    name: String,
}

/// Where a program goes again when it is done with, if it has more machine code by then than it began with: a device may compile functions when they are called.
#[derive(Debug)]
struct Growth {
    cache: Arc<Cache>,
    key: Key,
    module: Arc<dyn Module>,
    compiled: Arc<Compiled>,
    /// What making it took.
    took: Duration,
}

impl Drop for Growth {
    fn drop(&mut self) {
        if let Some(code) = self.module.grown() {
            let began = Instant::now();
            let kept = self.cache.put(&self.key, &frame::write(&self.compiled, &code), self.took);
            tracing::debug!(bytes = code.len(), kept, time = ?began.elapsed(), "what was compiled meanwhile is kept");
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// When the run as a whole is to be ended.
    pub deadline: Option<Instant>,
    /// Bytes that an instance's memories and tables may have together.
    pub max_memory: Option<u64>,
    pub limits: Limits,
}

/// What became of one instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub end: End,
    /// Results of the entry function, if it returned.
    pub results: Vec<Value>,
    /// What it was refused.
    pub denied: Option<Denied>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum End {
    Returned,
    Exited(u32),
    Trapped(Box<Trap>),
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

/// What a run did, for `--stats`.
#[derive(Clone, Debug, Default)]
pub struct RunStats {
    pub instances: u64,
    pub launches: u64,
    pub hostcalls: u64,
    /// Instances that ran a second time, with exact checks.
    pub again: u64,
    /// Of these, those that ran on `cpu`: the device has no memory for a stack as deep as theirs.
    pub on_host: u64,
    /// Bytes of device memory set aside for instances.
    pub device_bytes: u64,
    /// On the host, before launches: what instances are given goes to the device.
    pub prepare: Duration,
    /// From launch to end, one launch after the other.
    pub run: Duration,
    /// Of mapped batches: what of a processor the thread had that launches and answers calls, while they ran. On `cpu` it also computes.
    pub service: Duration,
    /// On the host, after launches: how instances ended, and what they wrote.
    pub collect: Duration,
}

impl RunStats {
    /// Counts another run in.
    pub fn add(&mut self, other: &RunStats) {
        self.instances += other.instances;
        self.launches += other.launches;
        self.hostcalls += other.hostcalls;
        self.again += other.again;
        self.on_host += other.on_host;
        self.device_bytes = self.device_bytes.max(other.device_bytes);
        self.prepare += other.prepare;
        self.run += other.run;
        self.service += other.service;
        self.collect += other.collect;
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
        Self { device, module, compiled, cache, _in_use: InUse::default(), _growth: None, name: String::new() }
    }

    /// The same, of a cache: its entry stays while the program does.
    pub(crate) fn kept(self, cache: Arc<Cache>, key: Key, in_use: InUse, name: String, took: Duration) -> Self {
        let (module, compiled) = (self.module.clone(), self.compiled.clone());
        let growth = Growth { cache: cache.clone(), key, module, compiled, took };
        Self { cache, _in_use: in_use, _growth: Some(growth), name, ..self }
    }

    /// The same program on the same device in another build.
    pub(crate) fn rebuilt(&self, sibling: Sibling) -> Result<Self, Error> {
        let device = if sibling == Sibling::OnHost { cpu::open() } else { self.device.clone() };
        let compiled = &self.compiled;
        let (wasm, options, features) = (compiled.wasm.clone(), compiled.sibling_options(sibling), compiled.features);
        let limit = Some(crate::limit::DEFAULT);
        let build = Build { device, wasm, options, features, name: self.name.clone(), limit };
        Ok(build.load(&self.cache, &build.key()?)?.0)
    }

    /// Parameters and results of an exported function.
    pub fn signature(&self, function: &str) -> Option<(Vec<ValueType>, Vec<ValueType>)> {
        self.compiled.entry(0, function).map(|(_, ty)| (ty.params.clone(), ty.results.clone()))
    }

    pub(crate) fn device(&self) -> &dyn Device {
        &*self.device
    }

    pub(crate) fn module(&self) -> &Arc<dyn Module> {
        &self.module
    }

    pub(crate) fn compiled(&self) -> &Arc<Compiled> {
        &self.compiled
    }

    /// Slots for so many instances.
    pub(crate) fn batch(&self, capacity: u64, sizes: Sizes, stack_bytes: u32) -> Result<Batch, Error> {
        Batch::new(&*self.device, self.module.clone(), self.compiled.clone(), capacity, sizes, stack_bytes)
    }

    /// Runs one instance for each context (arguments, environment, descriptors): instantiates, calls `function` with
    /// `args` (the start function before it), and says what became of each, in order.
    pub fn run(
        self: &Arc<Self>,
        function: &str,
        args: &[Value],
        contexts: Vec<Context>,
        options: &RunOptions,
    ) -> Result<(Vec<Outcome>, RunStats), Error> {
        if let Some(code) = self.compiled.initial.trap {
            self.compiled.arguments(function, args)?;
            let stats = RunStats { instances: contexts.len() as u64, ..RunStats::default() };
            let outcome = Outcome { end: stillborn(code), results: Vec::new(), denied: None };
            return Ok((vec![outcome; contexts.len()], stats));
        }
        wave::run(self, function, args, contexts, options)
    }
}

impl Compiled {
    /// The selector of an exported function and the words of its arguments.
    pub(crate) fn arguments(&self, function: &str, args: &[Value]) -> Result<(u32, Vec<u64>), Error> {
        self.arguments_of(0, function, args)
    }

    /// The same of a function that one of its modules exports.
    pub(crate) fn arguments_of(&self, part: u32, function: &str, args: &[Value]) -> Result<(u32, Vec<u64>), Error> {
        let (selector, ty) = self
            .entry(part, function)
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
        Ok((selector, args.iter().flat_map(|a| a.words(|index| references[index as usize])).collect()))
    }

    /// What an entry returns; nothing, where there is none.
    pub(crate) fn results(&self, selector: u32) -> &[ValueType] {
        self.entries.get(selector as usize).map_or(&[], |e| &e.ty.results)
    }

    /// What became of the instance in slot 0, once its launch has ended.
    pub(crate) fn first_outcome(&self, buffers: &LaunchBuffers, selector: u32) -> Result<Outcome, Error> {
        let types = self.results(selector);
        self.outcome(0, &buffers.endings(1, words(types) as usize)?, types)
    }

    /// What became of an instance that returns values of such types.
    pub(crate) fn outcome(&self, slot: usize, endings: &Endings<'_>, types: &[ValueType]) -> Result<Outcome, Error> {
        let end = self.end(slot, &endings.get(slot))?;
        let returned = if end == End::Returned { types } else { &[] };
        let mut first = 0;
        let value = |ty: &ValueType| {
            let at = first;
            first += ty.words();
            Value::from_words(*ty, |i| Ok(endings.result(slot, (at + i) as usize)))
        };
        Ok(Outcome { end, results: returned.iter().map(value).collect::<Result<_, Error>>()?, denied: None })
    }

    pub(crate) fn end(&self, slot: usize, ending: &Ending) -> Result<End, Error> {
        if let Some(record) = TrapRecord::unpack(ending.trap) {
            return Ok(End::Trapped(Box::new(self.trap(record))));
        }
        match ending.status {
            status if status == Status::Returned as u64 => Ok(End::Returned),
            status if status == Status::Exited as u64 => Ok(End::Exited(ending.exit_code as u32)),
            status if status == Status::Outgrown as u64 => Ok(stillborn(TrapCode::Inexact)),
            0 if self.options.checks == Checks::Fast => Ok(stillborn(TrapCode::Inexact)),
            _ => Err(Error::Internal(format!("instance {slot} ended without saying how"))),
        }
    }

    pub(crate) fn trap(&self, record: TrapRecord) -> Trap {
        let function = (record.function != TrapRecord::NO_FUNCTION).then_some(record.function);
        let name = function.and_then(|f| self.symbols().name(f));
        Trap { code: record.code, function, name, offset: record.offset, source: self.symbols().source(record.offset) }
    }
}
