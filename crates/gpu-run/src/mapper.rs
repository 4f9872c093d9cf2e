//! Many records through one program.

use crate::columns::{FunctionMapper, Words};
use crate::command::{Output, Provided, Status};
use crate::error::{Error, Result};
use crate::given::given;
use crate::interrupt::Interrupt;
use crate::linker::Failures;
use crate::module::Module;
use crate::statistics::Statistics;
use crate::value::{Parameters, Results as FunctionResults};
use crate::wasi::Wasi;
use bytes::Bytes;
use gpu_run_abi::Layout;
use gpu_run_compiler::{Adapter, Build, CompileOptions, Entry, Program};
use gpu_run_device::Device;
use gpu_run_map::{Done, Mappers, PendingOn, Results, usual_batch};
use gpu_run_run::{Extent, Job, RunStats};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How a [`Mapper`] is made.
#[derive(Clone)]
pub struct MapperBuilder {
    pub(crate) module: Module,
    pub(crate) wasi: Wasi,
    pub(crate) provided: Provided,
    pub(crate) batch: Option<u32>,
    pub(crate) max_memory: Option<u64>,
    pub(crate) interrupt: Option<Interrupt>,
    pub(crate) timeout: Option<Duration>,
    backtrace: bool,
}

impl MapperBuilder {
    given!();

    /// How many records run at once: 131,072 on a GPU and 1,024 on `cpu`, unless this is called.
    pub fn batch(mut self, records: u32) -> Self {
        self.batch = Some(records.max(1));
        self
    }

    /// How long the instances of one launch may take together.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Compiles the program, or loads it from the cache.
    pub fn build(self) -> Result<Mapper> {
        self.adapted(None)
    }

    /// Like [`MapperBuilder::build`], but calls an exported function for each of many rows instead of running the program for each record.
    ///
    /// ```
    /// # use gpu_run::{Config, Engine, Mapper, Module};
    /// # let engine = Engine::new(&Config::new().device("cpu").no_cache())?;
    /// let module = Module::new(&engine, r#"
    ///     (module (func (export "mean") (param f64 f64) (result f64)
    ///         (f64.div (f64.add (local.get 0) (local.get 1)) (f64.const 2))))
    /// "#)?;
    /// let mut mean = Mapper::builder(&module).function::<(f64, f64), f64>("mean")?;
    /// let means: Vec<f64> = mean.map([(1.0, 2.0), (10.0, 20.0)]).map(|row| row.unwrap().unwrap()).collect();
    /// assert_eq!(means, [1.5, 15.0]);
    /// # Ok::<(), gpu_run::Error>(())
    /// ```
    pub fn function<P: Parameters, R: FunctionResults>(self, name: &str) -> Result<FunctionMapper<P, R>> {
        FunctionMapper::new(self, name)
    }

    /// Like [`MapperBuilder::function`], for functions whose types are known only at run time: rows and results are words.
    ///
    /// ```
    /// # use gpu_run::{Config, Engine, Mapper, Module, Words};
    /// # let engine = Engine::new(&Config::new().device("cpu").no_cache())?;
    /// let module = Module::new(&engine, r#"
    ///     (module (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))
    /// "#)?;
    /// let mut add = Mapper::builder(&module).function_of_words("add")?;
    /// let sums: Vec<Words> = add.map([Words::from([1, 2]), Words::from([3, 4])]).map(|row| row.unwrap().unwrap()).collect();
    /// assert_eq!([&*sums[0], &*sums[1]], [[3], [7]]);
    /// # Ok::<(), gpu_run::Error>(())
    /// ```
    pub fn function_of_words(self, name: &str) -> Result<FunctionMapper<Words, Words>> {
        FunctionMapper::of_words(self, name)
    }

    /// Compiles the program with what it begins with, if that is not its own `_start`.
    pub(crate) fn adapted(self, adapter: Option<Adapter>) -> Result<Mapper> {
        let (engine, name) = (self.module.engine(), self.module.name());
        if self.module.has_threads() {
            return Err(Error::Limit(format!("{name} has threads: a mapper cannot run it")));
        }
        let batch = self.batch.unwrap_or(usual_batch(&**engine.raw_device()));
        let programs = self.programs(batch, adapter)?;
        let Self { module, wasi, provided, max_memory, interrupt, timeout, .. } = self;
        let mut mappers = Vec::new();
        for program in programs {
            let extent = Extent { capacity: batch as usize, max_memory, ..Extent::default() };
            let failed = |error| Error::of_compiler(module.name(), error);
            let mapper = gpu_run_map::Mapper::new(program, extent, None).map_err(failed)?;
            interrupt.iter().for_each(|interrupt| mapper.stop_when(interrupt.0.clone()));
            mappers.push(mapper);
        }
        let (functions, failures) = provided.listed();
        let context = Arc::new(wasi.builder(functions)?);
        let (mappers, batch, spent) = (Mappers::new(mappers), batch as usize, Mutex::default());
        Ok(Mapper { mappers, module, context, failures, batch, interrupt, timeout, spent })
    }

    /// Compiles the program for each of the engine's devices, for so many records at once.
    pub(crate) fn programs(&self, batch: u32, adapter: Option<Adapter>) -> Result<Vec<Arc<Program>>> {
        let (engine, name) = (self.module.engine(), self.module.name());
        let layout = Layout::suited(engine.is_gpu(), batch);
        let program = |device: &Arc<dyn Device>| {
            let build = match self.module.has_threads() {
                true => Build::Threads,
                false => Build::speculative(layout, device.properties().local_bytes),
            };
            let (embedder, adapter, backtrace) = (self.provided.signatures.clone(), adapter.clone(), self.backtrace);
            let options = CompileOptions { embedder, adapter, backtrace, ..CompileOptions::new(build, Entry::Start) };
            engine.program_on(device, name, self.module.wasm(), &options)
        };
        engine.raw_devices().iter().map(program).collect()
    }
}

impl fmt::Debug for MapperBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MapperBuilder")
            .field("module", &self.module)
            .field("batch", &self.batch)
            .finish_non_exhaustive()
    }
}

/// Runs one instance of a program for each record: the record is the instance's standard input.
///
/// The program stays on the device between two calls. If the [`Engine`](crate::Engine) has several devices, each batch goes to the one with
/// the fewest; if one is lost, the others run the rest of its batches, and functions of yours may be called again for records that it was
/// lost with.
///
/// ```
/// use gpu_run::{Config, Engine, Mapper, Module};
/// # let engine = Engine::new(&Config::new().device("cpu").no_cache())?;
/// # let module = Module::new(&engine, r#"
/// #     (module
/// #         (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
/// #         (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
/// #         (memory (export "memory") 1)
/// #         (data (i32.const 0) "\40\00\00\00\00\04\00\00")
/// #         (func (export "_start")
/// #             (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 4)))
/// #             (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))))
/// # "#)?;
/// let mut mapper = Mapper::builder(&module).build()?;
/// for output in mapper.map(["one", "two", "three"]) {
///     println!("{}", String::from_utf8_lossy(&output?.stdout));
/// }
/// # Ok::<(), gpu_run::Error>(())
/// ```
pub struct Mapper {
    mappers: Mappers,
    module: Module,
    context: Arc<gpu_run_wasi::Builder>,
    failures: Failures,
    batch: usize,
    interrupt: Option<Interrupt>,
    timeout: Option<Duration>,
    spent: Mutex<RunStats>,
}

impl Mapper {
    pub fn builder(module: &Module) -> MapperBuilder {
        let (wasi, provided) = (Wasi::new(), Provided::default());
        let (module, interrupt) = (module.clone(), None);
        let backtrace = false;
        MapperBuilder { module, wasi, provided, batch: None, max_memory: None, interrupt, timeout: None, backtrace }
    }

    /// Runs the program for each record, and returns the outputs in the records' order.
    ///
    /// Records are taken batch by batch, up to two batches for each device before the outputs that were returned. An `Err` is a failure of the device or
    /// of gpu-run, and the last item; how an instance ended is in its [`Output`].
    pub fn map<R>(&mut self, records: R) -> Outputs<'_, R::IntoIter>
    where
        R: IntoIterator,
        R::Item: Into<Bytes>,
    {
        // Those of records whose outputs nobody has waited for.
        self.failures.lock().clear();
        let (records, under_way) = (records.into_iter(), VecDeque::new());
        Outputs { mapper: self, records, next: 0, under_way, ready: None, is_over: false }
    }

    /// How many records run at once.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// What all batches have cost so far whose outputs were returned.
    pub fn statistics(&self) -> Statistics {
        Statistics::from(&*self.spent.lock())
    }

    #[cfg(feature = "arrow")]
    pub(crate) fn is_gpu(&self) -> bool {
        self.module.engine().is_gpu()
    }

    pub(crate) fn job(&self, number: u64, record: Bytes) -> Job {
        Job { context: self.context.clone(), number, stdin: record }
    }

    /// How many batches are to be begun before the first one is finished.
    pub(crate) fn batches_at_once(&self) -> usize {
        self.mappers.at_once()
    }

    pub(crate) fn begin(&self, jobs: Vec<Job>) -> Result<PendingOn> {
        self.mappers.begin(jobs, self.timeout).map_err(|error| self.failed(error))
    }

    /// Waits for the next part of a batch.
    pub(crate) fn next_part(&self, pending: &mut PendingOn) -> Result<Option<Results>> {
        let part = self.mappers.next_part(pending).map_err(|error| self.failed(error))?;
        self.spent.lock().add(&self.mappers.take_stats(pending));
        Ok(part)
    }

    /// Returns the output of the record with this number.
    pub(crate) fn output(&self, number: u64, done: Done<'_>) -> Output {
        let failure = self.failures.lock().remove(&number);
        let status = Status::new(done.end.clone(), self.timeout.is_some(), self.interrupt.as_ref(), failure);
        Output { status, stdout: done.stdout.to_vec(), stderr: done.stderr.to_vec() }
    }

    fn failed(&self, error: gpu_run_compiler::Error) -> Error {
        Error::of_compiler(self.module.name(), error)
    }
}

impl fmt::Debug for Mapper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mapper").field("module", &self.module).field("batch", &self.batch).finish_non_exhaustive()
    }
}

/// The outputs of a mapper's records, in their order.
pub struct Outputs<'m, R> {
    mapper: &'m Mapper,
    records: R,
    /// The number of the next record.
    next: u64,
    /// Each with the number of its first record.
    under_way: VecDeque<(u64, PendingOn)>,
    /// The present part, the number of its first record, and how many of its outputs were returned.
    ready: Option<(Results, u64, usize)>,
    /// After an error.
    is_over: bool,
}

impl<R> Outputs<'_, R>
where
    R: Iterator,
    R::Item: Into<Bytes>,
{
    /// Begins another batch. Returns whether there was one.
    fn begin(&mut self) -> Result<bool> {
        let (mapper, first) = (self.mapper, self.next);
        let records = self.records.by_ref().take(mapper.batch);
        let jobs: Vec<Job> = (first..).zip(records).map(|(number, record)| mapper.job(number, record.into())).collect();
        if jobs.is_empty() {
            return Ok(false);
        }
        self.next += jobs.len() as u64;
        self.under_way.push_back((first, mapper.begin(jobs)?));
        Ok(true)
    }

    fn next_output(&mut self) -> Result<Option<Output>> {
        loop {
            if let Some((results, first, returned)) = &mut self.ready {
                let number = *first + *returned as u64;
                if let Some(done) = results.get(*returned) {
                    *returned += 1;
                    return Ok(Some(self.mapper.output(number, done)));
                }
                if let Some((next, _)) = self.under_way.front_mut() {
                    *next = number;
                }
                self.ready = None;
            }
            while self.under_way.len() < self.mapper.batches_at_once() && self.begin()? {}
            let Some((first, pending)) = self.under_way.front_mut() else { return Ok(None) };
            match self.mapper.next_part(pending)? {
                Some(part) => self.ready = Some((part, *first, 0)),
                None => drop(self.under_way.pop_front()),
            }
        }
    }
}

impl<R> Iterator for Outputs<'_, R>
where
    R: Iterator,
    R::Item: Into<Bytes>,
{
    type Item = Result<Output>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let output = self.next_output();
        if output.is_err() {
            self.is_over = true;
            self.under_way.clear();
        }
        output.transpose()
    }
}

impl<R> fmt::Debug for Outputs<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outputs").field("next", &self.next).finish_non_exhaustive()
    }
}
