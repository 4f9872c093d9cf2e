//! `gpu-run map FILE`: one instance for each record of an input, of any length, in bounded memory.
//!
//! ```text
//! reader   input ▶ records ▶ batches        split, walk     a thread
//! runner   batch ▶ device ▶ outcomes        runner          a thread
//! writer   outcomes ▶ output, journal       writer, target  the main thread
//! ```
//!
//! Batches are handed from one to the next without a queue between them: while one is written the next runs and the one
//! after it is read, and that is all that is in memory. A signal waits for the writer to be between two batches, and ends
//! the process there.

mod args;
mod engine;
mod journal;
mod progress;
mod reader;
mod runner;
mod split;
mod target;
mod walk;
mod writer;

pub(crate) use args::MapArgs;

use crate::devices;
use crate::failure::{Failure, exit};
use crate::guest::Guest;
use crate::run::{Loaded, is_gpu};
use crate::source::{self, Source as Program};
use crate::surface::Surface;

use anyhow::{Context, Result};
use args::Split;
use engine::OnDevice;
use gpu_run_engine::{Entry, RunStats};
use journal::{Identity, Journal, Progress, Task};
use progress::Bar;
use reader::{Batch, Reader};
use runner::{Ran, Runner};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use split::Rule;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use target::Target;
use writer::{Flow, Rules, Writer};

/// Records in a batch, unless the user says otherwise.
pub(crate) const GPU_BATCH: u32 = 65_536;
const CPU_BATCH: u32 = 1024;

pub(crate) fn map(args: &MapArgs) -> Result<u8> {
    args.check()?;
    let source = source::load(&args.file, args.launch.codegen.bin.as_deref())?;
    let name = &source.name;

    // Mistakes that can be seen without compiling are told before it.
    let surface = Surface::read(&source.wasm, name)?;
    surface.check_imports(name)?;
    surface.check_memory(name, args.launch.max_memory)?;
    surface.check_command(name)?;
    let split = args.split()?;
    let (common, own) = if runner::differ(&args.args) { (&[][..], &args.args[..]) } else { (&args.args[..], &[][..]) };
    let argv: Vec<OsString> = std::iter::once(source.argv0.clone().into()).chain(common.iter().cloned()).collect();
    let guest = Guest::new(&argv, &args.launch.env, &args.launch.dirs)?;
    let mut target = open_target(args, split, &source)?;
    let from = target.earlier(args.resume, args.force)?.unwrap_or_default();
    let (reader, length) = open_reader(args, split, &from)?;

    let device = devices::open(args.launch.device)?;
    let most = args.batch.unwrap_or(if is_gpu(&*device) { GPU_BATCH } else { CPU_BATCH });
    let loaded = Loaded::new(device, &source, Entry::Start, most, &args.launch, args.checks.into())?;

    target.begin(from.clone())?;
    let quiet = args.output().is_none() && io::stdout().is_terminal();
    let bar = Bar::new(length, &from.mark, quiet);
    let rules = Rules { lines: split != Split::Files, fail_fast: args.fail_fast, timeout: args.launch.timeout };
    let writer = Shared::new(Writer::new(target, rules, bar, from));
    let engine = OnDevice::new(loaded, most as usize, &args.launch, name.clone(), writer.clone());
    let runner = Runner::new(engine, guest, own.to_vec(), name.clone());
    run(reader, runner, most as usize, &writer, args)
}

/// The writer, and who else may end the run.
#[derive(Clone, Debug)]
pub(crate) struct Shared(Arc<(Mutex<Writer>, AtomicBool)>);

impl Shared {
    fn new(writer: Writer) -> Self {
        Self(Arc::new((Mutex::new(writer), AtomicBool::new(false))))
    }

    fn lock(&self) -> MutexGuard<'_, Writer> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the run between two batches: when this returns, none will be written any more. Says whether it had not ended before.
    pub(crate) fn end(&self, why: &str) -> bool {
        self.0.1.store(true, Ordering::SeqCst);
        self.lock().stop(why)
    }

    /// For the thread that writes: the writer, if nobody has ended the run. Who has ends the process, and is waited for.
    fn writing(&self) -> MutexGuard<'_, Writer> {
        while self.0.1.load(Ordering::SeqCst) {
            thread::park();
        }
        let mut writer = self.lock();
        while writer.is_finished() {
            drop(writer);
            thread::park();
            writer = self.lock();
        }
        writer
    }
}

/// Reads, runs and writes until the input ends, or something else does.
fn run(reader: Reader, runner: Runner<OnDevice>, most: usize, writer: &Shared, args: &MapArgs) -> Result<u8> {
    watch_signals(writer.clone())?;
    // No room in between: whoever hands over waits until the other takes.
    let (to_run, batches) = mpsc::sync_channel::<Batch>(0);
    let (to_write, ran) = mpsc::sync_channel::<Ran>(0);
    let reading = spawn("reader", move || reader.run(most, &to_run))?;
    let running = spawn("runner", move || run_all(runner, &batches, &to_write))?;
    match write_all(&ran, writer) {
        Ok(Flow::GoOn) => {}
        // The others are not waited for: they may be reading from a pipe, or running for long.
        Ok(Flow::Stop) => {
            writer.end("stopped at the first failure");
            return Ok(exit::FAILURE);
        }
        Err(error) => {
            writer.end("could not go on writing");
            return Err(error);
        }
    }
    let ended = join(running).and_then(|ended| join(reading).map(|()| ended));
    let (engine, stats) = ended.inspect_err(|_| {
        writer.end("could not go on");
    })?;
    let mut writer = writer.writing();
    writer.finish()?;
    if let Some(format) = args.launch.stats {
        let text = engine.loaded().map_or_else(String::new, |loaded| loaded.stats(&stats).show(format, writer.tally()));
        let _ = io::stderr().write_all(text.as_bytes());
    }
    Ok(if writer.all_fine() { 0 } else { exit::FAILURE })
}

fn run_all(
    mut runner: Runner<OnDevice>,
    batches: &Receiver<Batch>,
    to_write: &SyncSender<Ran>,
) -> Result<(OnDevice, RunStats)> {
    for batch in batches {
        if to_write.send(runner.run(batch)?).is_err() {
            break;
        }
    }
    Ok(runner.stats())
}

fn write_all(ran: &Receiver<Ran>, writer: &Shared) -> Result<Flow> {
    for batch in ran {
        if writer.writing().write(batch)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::GoOn)
}

/// The first signal waits for the writer, the second does not.
fn watch_signals(writer: Shared) -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot wait for signals")?;
    spawn("signals", move || {
        for (count, signal) in signals.forever().enumerate() {
            let code = 128 + signal;
            if count > 0 {
                std::process::exit(code);
            }
            let writer = writer.clone();
            thread::spawn(move || {
                // A run that has just ended has an exit code of its own, and is about to give it.
                if writer.end("interrupted") {
                    std::process::exit(code);
                }
            });
        }
    })?;
    Ok(())
}

fn spawn<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>> {
    thread::Builder::new().name(name.into()).spawn(work).with_context(|| format!("cannot start the {name}'s thread"))
}

fn join<T>(thread: JoinHandle<Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("internal error: a thread of the map panicked")))
}

/// Opens the input, and skips what an earlier run did. Also says how long it is, if that can be known.
fn open_reader(args: &MapArgs, split: Split, from: &Progress) -> Result<(Reader, Option<u64>)> {
    let rule = match split {
        Split::Lines => Rule::Lines,
        Split::Jsonl => Rule::Jsonl,
        Split::Csv => Rule::Csv,
        Split::Files => {
            let mut reader = Reader::folder(&args.input)?;
            if from.mark.records > 0 {
                reader.skip_to(&from.mark)?;
            }
            return Ok((reader, None));
        }
    };
    let (source, length) = if args.reads_stdin() {
        let stdin = File::from(io::stdin().as_fd().try_clone_to_owned().context("cannot read stdin")?);
        let length = stdin.metadata().ok().filter(|m| m.is_file()).map(|m| m.len());
        (split::Source::Stream(Box::new(stdin)), length)
    } else {
        let source = reader::open(&args.input)?;
        let length = fs::metadata(&args.input).ok().filter(|m| m.is_file()).map(|m| m.len());
        (source, length)
    };
    let mut reader = Reader::stream(source, rule)?;
    if from.mark.records > 0 {
        reader.skip_to(&from.mark)?;
    }
    Ok((reader, length))
}

/// Opens the output, unless that would destroy the input.
fn open_target(args: &MapArgs, split: Split, program: &Program) -> Result<Target> {
    let Some(output) = args.output() else { return Target::stdout() };
    let task = task(args, split, program)?;
    if !args.reads_stdin() {
        check_apart(&args.input, output)?;
    }
    let is_folder = output.is_dir();
    match split {
        Split::Files if output.exists() && !is_folder => {
            Err(Failure::usage(format!("--output {} is a file, and --split files writes a folder", output.display()))
                .hint("leave --output out and redirect stdout to have all output in one file")
                .into())
        }
        Split::Files => Target::folder(output, Journal::within(output, task)),
        _ if is_folder => {
            Err(Failure::usage(format!("--output {} is a folder; only --split files writes one", output.display()))
                .into())
        }
        _ => Target::file(output, Journal::beside(output, task)),
    }
}

fn task(args: &MapArgs, split: Split, program: &Program) -> Result<Task> {
    let input = if args.reads_stdin() {
        Identity::Stream
    } else {
        Identity::of(&args.input).with_context(|| format!("cannot read {}", args.input.display()))?
    };
    let launch = &args.launch;
    let env = format!("{:?}", crate::guest::environment(&launch.env));
    Ok(Task {
        program: hash(&program.wasm),
        input,
        split: split.to_string(),
        args: args.args.iter().map(|arg| format!("{arg:?}")).collect(),
        dirs: launch.dirs.iter().map(|dir| format!("{dir:?}")).collect(),
        env: hash(env.as_bytes()),
        max_memory: launch.max_memory,
    })
}

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Refuses an output that is the input, or within it, or around it.
fn check_apart(input: &Path, output: &Path) -> Result<()> {
    // What does not exist yet will be where the nearest folder is that does.
    let real = |path: &Path| {
        let path = std::path::absolute(path).ok()?;
        path.ancestors().find_map(|there| Some(fs::canonicalize(there).ok()?.join(path.strip_prefix(there).ok()?)))
    };
    let (Some(from), Some(to)) = (real(input), real(output)) else { return Ok(()) };
    let within = from.is_dir() && (to.starts_with(&from) || to.is_dir() && from.starts_with(&to));
    if from != to && !within {
        return Ok(());
    }
    let (input, output) = (input.display(), output.display());
    Err(Failure::usage(format!(
        "--output {output} and --input {input} are in each other's way: input would be overwritten"
    ))
    .hint("write beside it")
    .into())
}
