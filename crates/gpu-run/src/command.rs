//! Programs that run from `main` to their end.

use crate::error::{AnyError, Error, Result};
use crate::given::given;
use crate::interrupt::Interrupt;
use crate::linker::{Failure, Failures, Linker, Shared};
use crate::module::Module;
use crate::statistics::Statistics;
use crate::wasi::{OutputBuffer, Wasi};
use gpu_run_abi::{Layout, TrapCode};
use gpu_run_compiler::{Build, Calls, CompileOptions, Detail, EmbedderFunctions, Entry, Program, Trap};
use gpu_run_run::{End, INSTANCE, RunOptions, RunStats, ThreadPlacement, run_threads};
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
    backtrace: bool,
    trace: Option<Print>,
}

/// Takes lines.
type Print = Arc<dyn Fn(&str) + Send + Sync>;

/// The functions of a linker that a module imports, whatever the data is that they see.
#[derive(Clone, Default)]
pub(crate) struct Provided {
    pub(crate) signatures: EmbedderFunctions,
    make: Option<MakeFunctions>,
}

/// Makes the functions of a run, whose failures go into a list of its own: other runs have instances with the same numbers.
type MakeFunctions = Arc<dyn Fn(&Failures) -> Arc<dyn Functions> + Send + Sync>;

impl Provided {
    pub(crate) fn new<T: Send + 'static>(
        module: &Module,
        linker: &Linker<T>,
        data: impl Fn(u64) -> T + Send + Sync + 'static,
    ) -> Self {
        let (imported, data) = (linker.imported(module), Arc::new(data));
        let signatures = imported.signatures();
        let make = move |failures: &Failures| {
            let (data, failures) = (data.clone(), failures.clone());
            imported.functions(move |number| Shared::new(Some(data(number)), failures.clone()))
        };
        Self { signatures, make: Some(Arc::new(make)) }
    }

    /// Returns the functions of a run, and the list of their failures.
    pub(crate) fn listed(&self) -> (Option<Arc<dyn Functions>>, Failures) {
        let failures = Failures::default();
        (self.make.as_ref().map(|make| make(&failures)), failures)
    }
}

impl Command {
    given!();

    pub fn new(module: &Module) -> Self {
        let (wasi, provided) = (Wasi::new(), Provided::default());
        let (module, interrupt) = (module.clone(), None);
        Self {
            module,
            wasi,
            provided,
            max_memory: None,
            interrupt,
            timeout: None,
            threads: None,
            backtrace: false,
            trace: None,
        }
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

    /// Has `print` called with a line for each host call of the program, as `strace` prints it.
    pub fn trace(mut self, print: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.trace = Some(Arc::new(print));
        self
    }

    /// Runs the program and returns what it printed.
    pub fn output(&self) -> Result<Output> {
        let mut outputs = self.outputs(1)?;
        outputs.pop().ok_or_else(|| Error::Internal("an instance without an output".into()))
    }

    /// Runs several instances at once. Each finds its number, from 0, in the variable `GPU_RUN_INSTANCE`.
    pub fn outputs(&self, instances: u32) -> Result<Vec<Output>> {
        Ok(self.measured(instances)?.0)
    }

    /// Like [`Command::outputs`], and says what that cost.
    pub fn measured(&self, instances: u32) -> Result<(Vec<Output>, Statistics)> {
        let (functions, failures) = self.provided.listed();
        let buffers: Vec<_> = (0..instances).map(|_| (OutputBuffer::new(), OutputBuffer::new())).collect();
        let contexts = (0u64..)
            .zip(&buffers)
            .map(|(number, (stdout, stderr))| {
                let mut context = self.context(number, self.wasi.clone().stdout(stdout).stderr(stderr), &functions)?;
                if let Some(print) = self.trace.clone() {
                    let caller = if instances > 1 { format!("[instance {number}] ") } else { String::new() };
                    context.trace(caller, print);
                }
                Ok(context)
            })
            .collect::<Result<_>>()?;
        let (statuses, statistics) = self.run(contexts, &failures)?;
        let output = |(status, (stdout, stderr)): (Status, (OutputBuffer, OutputBuffer))| Output {
            status,
            stdout: stdout.take(),
            stderr: stderr.take(),
        };
        Ok((statuses.into_iter().zip(buffers).map(output).collect(), statistics))
    }

    /// Runs the program with the streams that its [`Wasi`] has; those of this process, if it has none.
    pub fn status(&self) -> Result<Status> {
        let wasi = if self.wasi.has_streams() { self.wasi.clone() } else { self.wasi.clone().inherit_stdio() };
        let (functions, failures) = self.provided.listed();
        let mut context = self.context(0, wasi, &functions)?;
        self.trace.iter().for_each(|print| context.trace(String::new(), print.clone()));
        let (mut statuses, _) = self.run(vec![context], &failures)?;
        statuses.pop().ok_or_else(|| Error::Internal("an instance without an ending".into()))
    }

    fn context(&self, number: u64, wasi: Wasi, functions: &Option<Arc<dyn Functions>>) -> Result<Context> {
        wasi.env(INSTANCE, number.to_string()).context(number, functions.clone())
    }

    fn run(&self, mut contexts: Vec<Context>, failures: &Failures) -> Result<(Vec<Status>, Statistics)> {
        let (engine, name) = (self.module.engine(), self.module.name());
        let layout = Layout::suited(engine.is_gpu(), contexts.len() as u32);
        let has_threads = self.module.has_threads();
        let build = if has_threads { Build::Threads } else { Build::Exact(layout) };
        let (embedder, backtrace) = (self.provided.signatures.clone(), self.backtrace);
        let options = CompileOptions { embedder, backtrace, ..CompileOptions::new(build, Entry::Start) };
        let program = engine.program(name, self.module.wasm(), &options)?;
        let deadline = self.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let interrupt = self.interrupt.as_ref().map(|interrupt| interrupt.0.clone());
        let options = RunOptions { deadline, interrupt, max_memory: self.max_memory, ..RunOptions::default() };
        let ran = match has_threads {
            false => gpu_run_run::run(&program, START, &[], contexts, &options),
            true if contexts.len() != 1 => {
                return Err(Error::Limit(format!("{name} has threads: it cannot run as several instances")));
            }
            true => self.run_threads(&program, contexts.remove(0), &options),
        };
        let (outcomes, stats) = ran.map_err(|error| Error::of_compiler(name, error))?;
        let mut failures = std::mem::take(&mut *failures.lock());
        let statuses =
            (0..).zip(outcomes).map(|(number, outcome)| self.status_of(outcome.end, failures.remove(&number)));
        Ok((statuses.collect(), Statistics::from(&stats)))
    }

    fn status_of(&self, end: End, failure: Option<Failure>) -> Status {
        Status::new(end, self.timeout.is_some(), self.interrupt.as_ref(), failure)
    }

    fn run_threads(
        &self,
        program: &Arc<Program>,
        context: Context,
        options: &RunOptions,
    ) -> Result<(Vec<gpu_run_run::Outcome>, RunStats), gpu_run_compiler::Error> {
        let placement = ThreadPlacement::Auto;
        let (outcome, stats) = run_threads(program, START, &[], context, self.threads, placement, options)?;
        Ok((vec![outcome], stats))
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

    /// The functions and lines that led to a trap, if the command or mapper was told to note them.
    pub fn backtrace(&self) -> Option<String> {
        match self {
            Self::Trapped(trap) => match &trap.calls {
                Calls::Noted(chain) => Some(chain.backtrace(Detail::Short, None).to_string()),
                _ => None,
            },
            _ => None,
        }
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
