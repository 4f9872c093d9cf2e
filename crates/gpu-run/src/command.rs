//! Programs that run from `main` to their end.

use crate::error::{AnyError, Error, Result};
use crate::given::given;
use crate::interrupt::Interrupt;
use crate::linker::{Failure, Failures, Linker, Shared};
use crate::module::Module;
use crate::wasi::{OutputBuffer, Wasi};
use gpu_run_abi::{Layout, TrapCode};
use gpu_run_compiler::{Build, CompileOptions, EmbedderFunctions, Entry, Program, Trap};
use gpu_run_run::{End, INSTANCE, RunOptions, ThreadPlacement, run_threads};
use gpu_run_wasi::{Context, Functions};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The function that a program begins with.
const START: &str = "_start";

/// A program to run, and how: as [`std::process::Command`] is for native programs.
///
/// ```
/// use gpu_run::{Command, Config, Engine, Module};
/// # let engine = Engine::new(&Config::new().device("cpu").no_cache())?;
/// # let module = Module::new(&engine, r#"
/// #     (module
/// #         (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
/// #         (memory (export "memory") 1)
/// #         (data (i32.const 0) "\08\00\00\00\06\00\00\00hello\n")
/// #         (func (export "_start") (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))))
/// # "#)?;
/// let output = Command::new(&module).arg("app").output()?;
/// assert!(output.status.success());
/// assert_eq!(output.stdout, b"hello\n");
/// # Ok::<(), gpu_run::Error>(())
/// ```
#[derive(Clone)]
pub struct Command {
    module: Module,
    wasi: Wasi,
    provided: Provided,
    max_memory: Option<u64>,
    interrupt: Option<Interrupt>,
    timeout: Option<Duration>,
    threads: Option<u32>,
}

/// The functions of a linker that a module imports, whatever the data is that they see.
#[derive(Clone, Default)]
pub(crate) struct Provided {
    pub(crate) signatures: EmbedderFunctions,
    pub(crate) functions: Option<Arc<dyn Functions>>,
    pub(crate) failures: Failures,
}

impl Provided {
    pub(crate) fn new<T: Send + 'static>(
        module: &Module,
        linker: &Linker<T>,
        data: impl Fn(u64) -> T + Send + Sync + 'static,
    ) -> Self {
        let (imported, failures) = (linker.imported(module), Failures::default());
        let (signatures, kept) = (imported.signatures(), failures.clone());
        let functions = imported.functions(move |number| Shared::new(Some(data(number)), kept.clone()));
        Self { signatures, functions: Some(functions), failures }
    }
}

impl Command {
    given!();

    pub fn new(module: &Module) -> Self {
        let (wasi, provided) = (Wasi::new(), Provided::default());
        let (module, interrupt) = (module.clone(), None);
        Self { module, wasi, provided, max_memory: None, interrupt, timeout: None, threads: None }
    }

    /// Sets what the program reads as its standard input; all instances read the same.
    pub fn stdin(mut self, bytes: impl Into<Arc<[u8]>>) -> Self {
        self.wasi = self.wasi.stdin(bytes);
        self
    }

    /// How long the program may run. Without this, it may run for ever.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The most threads that a program with threads can have.
    pub fn threads(mut self, threads: u32) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Runs the program and returns what it printed.
    pub fn output(&self) -> Result<Output> {
        let mut outputs = self.outputs(1)?;
        outputs.pop().ok_or_else(|| Error::Internal("an instance without an output".into()))
    }

    /// Runs several instances at once. Each finds its number, from 0, in the variable `GPU_RUN_INSTANCE`.
    pub fn outputs(&self, instances: u32) -> Result<Vec<Output>> {
        let buffers: Vec<_> = (0..instances).map(|_| (OutputBuffer::new(), OutputBuffer::new())).collect();
        let contexts = (0u64..)
            .zip(&buffers)
            .map(|(number, (stdout, stderr))| self.context(number, self.wasi.clone().stdout(stdout).stderr(stderr)))
            .collect::<Result<_>>()?;
        let statuses = self.run(contexts)?;
        let output = |(status, (stdout, stderr)): (Status, (OutputBuffer, OutputBuffer))| Output {
            status,
            stdout: stdout.take(),
            stderr: stderr.take(),
        };
        Ok(statuses.into_iter().zip(buffers).map(output).collect())
    }

    /// Runs the program with the streams that its [`Wasi`] has; those of this process, if it has none.
    pub fn status(&self) -> Result<Status> {
        let wasi = if self.wasi.has_streams() { self.wasi.clone() } else { self.wasi.clone().inherit_stdio() };
        let mut statuses = self.run(vec![self.context(0, wasi)?])?;
        statuses.pop().ok_or_else(|| Error::Internal("an instance without an ending".into()))
    }

    fn context(&self, number: u64, wasi: Wasi) -> Result<Context> {
        wasi.env(INSTANCE, number.to_string()).context(number, self.provided.functions.clone())
    }

    fn run(&self, mut contexts: Vec<Context>) -> Result<Vec<Status>> {
        let (engine, name) = (self.module.engine(), self.module.name());
        let layout = Layout::suited(engine.is_gpu(), contexts.len() as u32);
        let has_threads = self.module.has_threads();
        let build = if has_threads { Build::Threads } else { Build::Exact(layout) };
        let options =
            CompileOptions { embedder: self.provided.signatures.clone(), ..CompileOptions::new(build, Entry::Start) };
        let program = engine.program(name, self.module.wasm(), &options)?;
        let deadline = self.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let interrupt = self.interrupt.as_ref().map(|interrupt| interrupt.0.clone());
        let options = RunOptions { deadline, interrupt, max_memory: self.max_memory, ..RunOptions::default() };
        let ran = match has_threads {
            false => gpu_run_run::run(&program, START, &[], contexts, &options).map(|(outcomes, _)| outcomes),
            true if contexts.len() != 1 => {
                return Err(Error::Limit(format!("{name} has threads: it cannot run as several instances")));
            }
            true => self.run_threads(&program, contexts.remove(0), &options),
        };
        let outcomes = ran.map_err(|error| Error::of_compiler(name, error))?;
        let mut failures = std::mem::take(&mut *self.provided.failures.lock());
        let statuses =
            (0..).zip(outcomes).map(|(number, outcome)| self.status_of(outcome.end, failures.remove(&number)));
        Ok(statuses.collect())
    }

    fn status_of(&self, end: End, failure: Option<Failure>) -> Status {
        Status::new(end, self.timeout.is_some(), self.interrupt.as_ref(), failure)
    }

    fn run_threads(
        &self,
        program: &Arc<Program>,
        context: Context,
        options: &RunOptions,
    ) -> Result<Vec<gpu_run_run::Outcome>, gpu_run_compiler::Error> {
        let placement = ThreadPlacement::Auto;
        let (outcome, _) = run_threads(program, START, &[], context, self.threads, placement, options)?;
        Ok(vec![outcome])
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command").field("module", &self.module).field("wasi", &self.wasi).finish_non_exhaustive()
    }
}

/// How an instance ended, and what it printed.
#[derive(Debug)]
pub struct Output {
    pub status: Status,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// How an instance ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum Status {
    /// With this exit code; 0 if `main` returned.
    Exited(u32),
    Trapped(Box<Trap>),
    TimedOut,
    /// By an [`Interrupt`].
    Interrupted,
    /// A function of the embedder failed.
    Failed {
        function: String,
        source: AnyError,
    },
}

impl Status {
    pub(crate) fn new(end: End, has_deadline: bool, interrupt: Option<&Interrupt>, failure: Option<Failure>) -> Self {
        let is_stopped = |trap: &Trap| trap.code == TrapCode::Interrupted;
        let is_interrupted = interrupt.is_some_and(Interrupt::is_raised);
        match (end, failure) {
            (_, Some(Failure { function, source })) => Self::Failed { function, source },
            (End::Returned, None) => Self::Exited(0),
            (End::Exited(code), None) => Self::Exited(code),
            (End::Trapped(trap), None) if is_interrupted && is_stopped(&trap) => Self::Interrupted,
            (End::Trapped(trap), None) if has_deadline && is_stopped(&trap) => Self::TimedOut,
            (End::Trapped(trap), None) => Self::Trapped(trap),
        }
    }

    pub fn success(&self) -> bool {
        self.code() == Some(0)
    }

    /// The exit code, if the instance exited.
    pub fn code(&self) -> Option<u32> {
        match self {
            Self::Exited(code) => Some(*code),
            _ => None,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exited with code {code}"),
            Self::Trapped(trap) => write!(f, "trapped: {trap}"),
            Self::TimedOut => f.write_str("did not finish in time"),
            Self::Interrupted => f.write_str("was interrupted"),
            Self::Failed { function, source } => write!(f, "`{function}` failed: {source}"),
        }
    }
}
