//! Maps of files: records of an input of any length, one output in their order, and a journal with which an interrupted map goes on.
//!
//! This is what the command `gpu-run map` does. [`MapperBuilder::files`] begins one.

use crate::command::Status;
use crate::error::{Error, Result};
use crate::linker::Failures;
use crate::mapper::MapperBuilder;
use crate::statistics::{DeviceShare, Statistics};
use gpu_run_compiler::Adapter;
use gpu_run_map::{
    Batches, Ended, FailedRecord, Finished, Function, Gangs, HandoverReason, Map, Observer, Options, RecordFailure,
    Stopped, differ, usual_batch, usual_batch_of_calls,
};
use gpu_run_run::{Common, End, Source};
use parking_lot::Mutex;
use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

pub use gpu_run_map::{
    Error as FilesError, Input, Location, LostDevice, Merge, Merged, Object, ObjectError, Output, Shard, ShardError,
    Split, StopReason, Summary, Unfinished,
};

/// Records of a program with threads that are read together.
const THREADS_BATCH: u32 = 256;

/// A map from an input to an output; [`MapperBuilder::files`] makes one.
///
/// ```
/// use gpu_run::files::{Input, Output, Shard, Unfinished, merge};
/// use gpu_run::{Config, Engine, Mapper, Module};
/// # let engine = Engine::new(&Config::new().device("cpu").no_cache())?;
/// let module = Module::new(&engine, r#"
///     (module (func (export "mean") (param f64 f64) (result f64)
///         (f64.div (f64.add (local.get 0) (local.get 1)) (f64.const 2))))
/// "#)?;
/// # let folder = std::env::temp_dir().join(format!("gpu-run-files-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// let (input, output) = (folder.join("in.txt"), folder.join("out.txt"));
/// std::fs::write(&input, "1 2\n10 twenty\n3 5\n")?;
/// let ended = Mapper::builder(&module)
///     .files(Input::at(&input)?, Output::at(&output)?)
///     .function("mean")
///     .unfinished(Unfinished::Resume)
///     .on_failure(|record| eprintln!("record {} {}", record.number, record.reason))
///     .run()?;
/// assert_eq!((ended.summary.records, ended.summary.failed), (3, 1));
/// assert_eq!(std::fs::read_to_string(&output)?, "1.5\n\n4\n");
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A record is a line, unless [`FileMap::split`] says otherwise. `{}` in the program's arguments stands for the record. The output is a
/// record for each, with a newline; that of a record that fails is empty, unless it exited.
///
/// If the last device is lost, or an instance cannot be stopped, the map ends with [`Error::Device`]: after that, this process can use the
/// device no more, but another one can go on with [`Unfinished::Resume`].
pub struct FileMap {
    builder: MapperBuilder,
    input: Input,
    output: Output,
    split: Option<Split>,
    function: Option<String>,
    arguments: Vec<OsString>,
    shard: Option<Shard>,
    unfinished: Unfinished,
    fail_fast: bool,
    follow_links: bool,
    threads: Option<u32>,
    events: Events,
}

/// Are called while the map runs.
#[derive(Default)]
struct Events {
    on_progress: Option<OnProgress>,
    on_failure: Option<OnFailure>,
    on_lost_device: Option<OnLostDevice>,
}

type OnProgress = Box<dyn FnMut(&Summary) + Send>;
type OnFailure = Box<dyn FnMut(Failure<'_>) + Send>;
type OnLostDevice = Box<dyn FnMut(&LostDevice) + Send>;

/// A record that failed.
#[derive(Debug)]
#[non_exhaustive]
pub struct Failure<'a> {
    /// From 0.
    pub number: u64,
    pub location: &'a Location,
    pub reason: Reason,
    /// The end of its stderr, if that is long.
    pub stderr: &'a [u8],
}

/// Why a record failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Reason {
    /// It is not what [`FileMap::split`] says, or has the wrong arguments for a function; this follows its name in a message.
    Unusable(String),
    /// Its output is longer than it may be.
    PrintedTooMuch,
    /// How its instance ended.
    Ended(Status),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unusable(flaw) => f.write_str(flaw),
            Self::PrintedTooMuch => f.write_str("printed too much"),
            Self::Ended(status) => status.fmt(f),
        }
    }
}

/// How a map of files ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Mapped {
    /// Records, those of earlier runs and failed ones among them.
    pub summary: Summary,
    /// Why the map stopped before the end of its input, if it did: [`FileMap::fail_fast`], or an interrupt.
    pub stopped: Option<StopReason>,
    /// The record at which [`Unfinished::Resume`] would continue a map that stopped, if it can be continued.
    pub resumes_at: Option<u64>,
    pub statistics: Statistics,
}

/// Puts the outputs of all shards together, and removes what is left of them: `output` is then what a map of the whole input writes, byte for
/// byte. [`Merge`] has more to choose from.
pub fn merge(output: impl AsRef<Path>) -> Result<Merged> {
    let merge = Merge { output: output.as_ref().to_owned(), force: false, remove_shards: true };
    merge.run().map_err(|error| Error::Files(Box::new(error)))
}

impl MapperBuilder {
    /// Maps an input, such as a file, to an output: see [`FileMap`].
    pub fn files(self, input: Input, output: Output) -> FileMap {
        FileMap {
            builder: self,
            input,
            output,
            split: None,
            function: None,
            arguments: Vec::new(),
            shard: None,
            unfinished: Unfinished::Refuse,
            fail_fast: false,
            follow_links: false,
            threads: None,
            events: Events::default(),
        }
    }
}

impl FileMap {
    /// What a record is. Without this: each file of a folder, each line of anything else.
    pub fn split(mut self, split: Split) -> Self {
        self.split = Some(split);
        self
    }

    /// Calls an exported function of numbers for each record, instead of running the program. The arguments are a record's words, or its
    /// fields or elements for [`Split::Csv`] and [`Split::Jsonl`].
    ///
    /// An instance serves many calls, one after the other, and a call is made again if one beside it fails: a function must not rely on what
    /// it kept from earlier calls. Functions of yours that it calls see the number of the first record that the instance serves.
    pub fn function(mut self, name: &str) -> Self {
        self.function = Some(name.to_owned());
        self
    }

    /// The function's arguments, in which `{}` stands for those of the record.
    pub fn arguments<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments = arguments.into_iter().map(Into::into).collect();
        self
    }

    /// Maps only this part of the input. [`merge`] puts the parts together.
    pub fn shard(mut self, shard: Shard) -> Self {
        self.shard = Some(shard);
        self
    }

    /// What happens to an output that an earlier run left unfinished: without this, it is refused.
    pub fn unfinished(mut self, unfinished: Unfinished) -> Self {
        self.unfinished = unfinished;
        self
    }

    /// Stops before the first record that fails.
    pub fn fail_fast(mut self) -> Self {
        self.fail_fast = true;
        self
    }

    /// Follows links that lead out of an input folder, and links on the way to input and output that a guest may have made.
    pub fn follow_links(mut self) -> Self {
        self.follow_links = true;
        self
    }

    /// The most threads that a record of a program with threads can have.
    pub fn threads(mut self, threads: u32) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Is called after each batch that was written.
    pub fn on_progress(mut self, call: impl FnMut(&Summary) + Send + 'static) -> Self {
        self.events.on_progress = Some(Box::new(call));
        self
    }

    /// Is called for each record that fails, in their order.
    pub fn on_failure(mut self, call: impl FnMut(Failure<'_>) + Send + 'static) -> Self {
        self.events.on_failure = Some(Box::new(call));
        self
    }

    /// Is called for a device that is lost while others go on.
    pub fn on_lost_device(mut self, call: impl FnMut(&LostDevice) + Send + 'static) -> Self {
        self.events.on_lost_device = Some(Box::new(call));
        self
    }

    /// Maps all records. An `Err` is a failure of the device, of a file or of gpu-run; records that fail are counted.
    pub fn run(self) -> Result<Mapped> {
        let module = self.builder.module.clone();
        let (engine, name) = (module.engine(), module.name().to_owned());
        let (split, failed) = (self.split_or_usual(), |error| of_map(&name, error));
        let function = self.function.as_deref().map(|function| {
            Function::find(module.interface(), function).map_err(|error| Error::of_function(&name, error))
        });
        let function = function.transpose()?;
        let gangs = module.has_threads().then_some(Gangs { threads: self.threads, ..Gangs::default() });
        if function.is_some() && gangs.is_some() {
            return Err(Error::Limit(format!("{name} has threads: its functions cannot be called for records")));
        }

        let Self { builder, input, output, arguments, shard, unfinished, fail_fast, follow_links, events, .. } = self;
        let (functions, failures) = builder.provided.listed();
        let own_args = builder.wasi.args.get(1..).unwrap_or_default().to_vec();
        let is_each_own = function.is_none() && differ(&own_args);
        let options = Options {
            split,
            context: builder.wasi.builder_with(if is_each_own { 1 } else { usize::MAX }, functions)?,
            args: if function.is_some() { arguments } else { own_args },
            function: function.clone(),
            env: builder.wasi.env.clone(),
            folders: builder.wasi.folders.clone(),
            follow_links,
            shard,
            unfinished,
            fail_fast,
            timeout: builder.timeout,
            max_memory: builder.max_memory,
            interrupt: builder.interrupt.as_ref().map(|interrupt| interrupt.0.clone()),
        };
        let argv0 = builder.wasi.args.first().map_or_else(|| name.clone(), |arg| arg.to_string_lossy().into_owned());
        let source = Source { name: name.clone(), argv0, wasm: module.wasm().clone() };
        let map = Map::open(input, output, options, source, None).map_err(failed)?;
        if let Some(summary) = map.finished() {
            return Ok(Mapped { summary, stopped: None, resumes_at: None, statistics: Statistics::default() });
        }
        let device = &**engine.raw_device();
        let usual = match (&gangs, &function) {
            (Some(_), _) => THREADS_BATCH,
            (None, Some(_)) => usual_batch_of_calls(device),
            (None, None) => usual_batch(device),
        };
        let max_records = builder.batch.unwrap_or(usual);
        let adapter: Option<Adapter> = function.as_ref().map(|function| function.adapter().clone());
        let batches = Batches { max_records, lanes: None, learned: None, slow: None, gangs, common: Common::default() };
        let programs = builder.programs(max_records, adapter)?;
        let devices = programs.into_iter().map(|program| (program, batches)).collect();

        let last = Arc::new(Mutex::new(None));
        let terms = Terms { has_deadline: builder.timeout.is_some(), failures };
        let watcher = Watcher { events, terms, last: last.clone() };
        let ended = map.begin(Box::new(watcher)).map_err(failed)?.run(devices).map_err(failed)?;
        let statistics = match ended {
            Ended::Finished(finished) => {
                let Finished { stats, shares, .. } = *finished;
                Statistics { devices: shares.iter().map(DeviceShare::from).collect(), ..Statistics::from(&stats) }
            }
            Ended::Stopped => Statistics::default(),
            Ended::HandOver(handover) => return Err(Error::Device(format!("{name}: {}", lost(handover.reason())))),
        };
        let last = last.lock().take();
        let (summary, stopped, resumes_at) = last.ok_or_else(|| Error::Internal("a map without an end".into()))?;
        Ok(Mapped { summary, stopped, resumes_at, statistics })
    }

    fn split_or_usual(&self) -> Split {
        let usual = match &self.input {
            Input::Path(path) if path.is_dir() => Split::Files,
            Input::Objects(_) => Split::Files,
            _ => Split::Lines,
        };
        self.split.unwrap_or(usual)
    }
}

impl fmt::Debug for FileMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { input, output, .. } = self;
        f.debug_struct("FileMap").field("input", input).field("output", output).finish_non_exhaustive()
    }
}

/// Says why this process cannot continue, and that another one can.
fn lost(reason: &HandoverReason) -> String {
    match reason {
        HandoverReason::DeviceLost { error, record } => {
            format!("{error}; another process can resume the map at record {record}")
        }
        HandoverReason::SomeRecordHangs { first } => {
            format!(
                "a record from {first} on does not finish and cannot be stopped; find it with a smaller batch in another process"
            )
        }
        HandoverReason::RecordHangs { record } => {
            format!("record {record} does not finish and cannot be stopped; another process can resume the map there")
        }
    }
}

fn of_map(name: &str, error: FilesError) -> Error {
    match error {
        FilesError::Engine(error) => Error::of_compiler(name, error),
        FilesError::DeviceLost(_) | FilesError::DeviceLostAgain { .. } | FilesError::Hung { .. } => {
            Error::Device(format!("{name}: {error}"))
        }
        error => Error::Files(Box::new(error)),
    }
}

struct Terms {
    has_deadline: bool,
    failures: Failures,
}

/// How a map ended: how far it came, why it stopped, and where it can continue.
type Last = (Summary, Option<StopReason>, Option<u64>);

struct Watcher {
    events: Events,
    terms: Terms,
    last: Arc<Mutex<Option<Last>>>,
}

impl Terms {
    fn reason(&self, record: &FailedRecord<'_>) -> Reason {
        let end = match &record.failure {
            RecordFailure::Flawed(flaw) => return Reason::Unusable(flaw.to_string()),
            RecordFailure::PrintedTooMuch => return Reason::PrintedTooMuch,
            RecordFailure::Exited(code) => End::Exited(*code),
            RecordFailure::TimedOut(trap) | RecordFailure::Trapped(trap) => End::Trapped(Box::new((*trap).clone())),
        };
        let failure = self.failures.lock().remove(&record.number);
        Reason::Ended(Status::new(end, self.has_deadline, None, failure))
    }
}

impl Observer for Watcher {
    fn written(&mut self, summary: &Summary) {
        self.events.on_progress.iter_mut().for_each(|call| call(summary));
    }

    fn record_failed(&mut self, record: &FailedRecord<'_>) {
        let Some(call) = &mut self.events.on_failure else { return };
        let reason = self.terms.reason(record);
        call(Failure { number: record.number, location: record.location, reason, stderr: record.stderr });
    }

    fn device_lost(&mut self, lost: &LostDevice) {
        self.events.on_lost_device.iter_mut().for_each(|call| call(lost));
    }

    fn finished(&mut self, summary: &Summary) {
        *self.last.lock() = Some((summary.clone(), None, None));
    }

    fn stopped(&mut self, stopped: Stopped) {
        let Stopped { reason, summary, resumes_at, .. } = stopped;
        *self.last.lock() = Some((summary, Some(reason), resumes_at));
    }
}
