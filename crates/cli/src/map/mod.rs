//! `gpu-run map FILE`: one instance for each record of an input, of any length, in bounded memory.
//!
//! ```text
//! reader     input ▶ records ▶ batches        split, walk, tape   a thread
//! runner     batch ▶ device                   runner, engine      a thread
//! collector  device ▶ outcomes                runner              a thread
//! writer     outcomes ▶ output, journal       writer, target      the main thread
//! ```
//!
//! Batches are handed from one to the next without a queue between them: while one is written the next runs, another waits to run and the one
//! after it is read, and that is all that is in memory. A signal waits for the writer to be between two batches, and ends
//! the process there. When the device is lost, or a launch does not end, another process goes on where the writer is ([`handover`]).

mod args;
mod chain;
mod engine;
mod folder;
mod handover;
mod journal;
mod links;
mod open;
mod progress;
mod reader;
mod runner;
mod split;
mod tape;
mod target;
mod tune;
mod walk;
mod writer;

pub(crate) use args::{MapArgs, Split, TuneArgs};
use tune::Choice;
#[cfg(feature = "bench")]
pub(crate) use tune::sample;
pub(crate) use tune::tune;

use crate::cache;
use crate::devices;
use crate::guest::Guest;
use crate::run::Loaded;
use crate::source::{self, Source as Program};
use crate::surface::Surface;
use gpu_run_console::failure::{Failure, exit};
use gpu_run_console::terminal;
use gpu_run_console::units::count;

use anyhow::{Context, Result};
use chain::Anchor;
use engine::OnDevice;
use gpu_run_compiler::Compiler;
use gpu_run_map::{Pending, SLOW};
use gpu_run_run::RunStats;
use handover::{Contents, Handover, Stream, Surroundings, Suspects};
use open::Place;
use progress::Bar;
use reader::{Batch, Reader};
use runner::{Jobs, Lost, Ran, Runner, Running};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tape::Tape;
use writer::{Flow, Rules, Writer};

/// Records in a batch, unless the user says otherwise.
pub(crate) const GPU_BATCH: u32 = 131_072;
const CPU_BATCH: u32 = 1024;

/// A run that takes so long had better be tuned, the next time.
const LONG: Duration = Duration::from_secs(30);

/// How often in a row the device may be lost before anything is written.
const LOSSES: u32 = 3;
/// Batches that run one by one after a loss: more than were under way.
const CAREFUL: u32 = 4;

pub(crate) fn map(args: &MapArgs) -> Result<u8> {
    args.check()?;
    let (handed, mut contents) = Handover::take()?.unzip();
    let wasm = contents.as_mut().map(|contents: &mut Contents| std::mem::take(&mut contents.wasm));
    let source = match (&handed, wasm) {
        (Some(handed), Some(wasm)) => handed.source(wasm),
        _ => source::load(&args.file, args.launch.codegen.bin.as_deref())?,
    };
    let name = &source.name;
    let (split, mut jobs) = prepare(args, &source)?;
    let place = Place::find(args, split)?;
    if let Some(handed) = &handed {
        handed.surroundings.check(&Surroundings::of(args, place.links()), args)?;
    }
    let mut target = open::target(args, split, &source, place.links())?;
    let surroundings = Surroundings::of(args, place.links());
    let from = match &handed {
        Some(handed) => handed.done.clone(),
        None => target.earlier(args.resume, args.force)?.unwrap_or_default(),
    };
    let stream = handed.as_ref().and_then(|handed| handed.stream.clone()).zip(contents);
    let mut input = place.open(split, &from, stream)?;

    let device = devices::open(args.launch.device)?;
    let compiler = Compiler::new(cache::open(&args.launch.cache)?).limited(args.launch.codegen.compile_timeout);
    let (first, tuned) = match handed {
        // Who goes on for another process has what that found out.
        Some(_) => (None, None),
        None if args.tune => {
            let (batch, tuned) = tune::first_batch(&device, &source, args, &mut input.reader, &mut jobs)?;
            (Some(batch), tuned)
        }
        None => (tune::small_batch(&*device, args, input.length, &mut input.reader)?, None),
    };
    let is_few = tune::is_few(first.as_ref(), input.length);
    let Choice { options, most, lanes, learned, is_guess } =
        tune::choice(&compiler, &device, &source, args, is_few, tuned);
    let loaded = Loaded::new(compiler, device, &source, options)?;

    target.begin(from.clone())?;
    let quiet = args.output().is_none() && io::stdout().is_terminal();
    let bar = Bar::new(input.length, &from.mark, quiet);
    let rules = Rules { lines: split != Split::Files, fail_fast: args.fail_fast, timeout: args.launch.timeout };
    let (bar, careful) = match &handed {
        Some(handed) => {
            jobs.give_up(&handed.given_up);
            (bar.continued(handed.before, handed.elapsed), if handed.suspects.is_some() { u32::MAX } else { CAREFUL })
        }
        None => (bar, 0),
    };
    let writer = Writer::new(target, rules, bar, from, input.tape.clone());
    let writer = Shared::new(handed.iter().fold(writer, Writer::continued));
    let engine = OnDevice::new(loaded, most as usize, lanes, &args.launch).carefully(careful);
    // Who goes on after a loss tries nothing.
    let engine = engine.adapting(Some(SLOW).filter(|_| is_guess && handed.is_none()), learned);
    let runner = Runner::new(engine, jobs, name);
    let stats = handed.as_ref().map(|handed| handed.spent.into()).unwrap_or_default();
    let rest = Rest { source, tape: input.tape, header: input.reader.header().to_vec(), handed, surroundings };
    let suspects = rest.handed.as_ref().and_then(|handed| handed.suspects);
    let reader = Feed { first, suspects, reader: input.reader };
    let began = Instant::now();
    match run(reader, runner, most as usize, &writer, stats, args) {
        Err((error, stats)) if error.is::<Hung>() => rest.go_on_without(most, &writer, &stats, args),
        Err((error, stats)) => match error.downcast::<Lost>() {
            Ok(lost) => rest.go_on(&lost, &writer, &stats, args),
            Err(error) => Err(error),
        },
        Ok((code, engine)) => {
            if let Some(engine) = engine {
                engine.remember(&rest.source);
            }
            if is_guess && began.elapsed() > LONG {
                let hint = "  hint: `gpu-run tune` with the same program and --input may find a build that is faster\n";
                terminal::say(hint);
            }
            Ok(code)
        }
    }
}

/// Mistakes that can be seen without compiling are told before it.
fn prepare(args: &MapArgs, source: &Program) -> Result<(Split, Jobs)> {
    let name = &source.name;
    let surface = Surface::read(&source.wasm, name)?;
    surface.check_imports(name)?;
    surface.check_memory(name, args.launch.max_memory)?;
    surface.check_command(name)?;
    let split = args.split()?;
    let (common, own) = if runner::differ(&args.args) { (&[][..], &args.args[..]) } else { (&args.args[..], &[][..]) };
    let argv: Vec<OsString> = std::iter::once(source.argv0.clone().into()).chain(common.iter().cloned()).collect();
    let guest = Guest::new(&argv, &args.launch.env, args.launch.preopens())?;
    Ok((split, Jobs::new(guest, own.to_vec())))
}

/// The input, and what was already taken from it.
struct Feed {
    first: Option<Batch>,
    suspects: Option<Suspects>,
    reader: Reader,
}

impl Feed {
    fn run(mut self, most: usize, send: &SyncSender<Batch>) -> Result<()> {
        if let Some(batch) = self.first.filter(|batch| !batch.records.is_empty())
            && send.send(batch).is_err()
        {
            return Ok(());
        }
        while let Some(suspects) = self.suspects {
            let batch = self.reader.take(suspects.batch as usize)?;
            if batch.records.is_empty() || batch.mark.records >= suspects.until {
                self.suspects = None;
            }
            if !batch.records.is_empty() && send.send(batch).is_err() {
                return Ok(());
            }
        }
        self.reader.run(most, send)
    }
}

/// What another process is given, besides what the writer knows.
struct Rest {
    source: Program,
    tape: Option<Tape>,
    header: Vec<u8>,
    /// What we were given ourselves.
    handed: Option<Handover>,
    surroundings: Surroundings,
}

impl Rest {
    /// The device is lost: another process takes this one's place, unless that was tried before to no avail. Returns only with an error.
    fn go_on(self, lost: &Lost, writer: &Shared, stats: &RunStats, args: &MapArgs) -> Result<u8> {
        let name = &self.source.name;
        let records = writer.lock().records();
        // Another record was written since the last time: that counts as progress.
        let in_vain = self.handed.as_ref().filter(|handed| handed.done.mark.records == records);
        let losses = 1 + in_vain.map_or(0, |handed| handed.losses);
        if losses >= LOSSES {
            writer.end("could not go on");
            let (first, last) = (lost.first, lost.first + lost.count as u64 - 1);
            return Err(Failure::environment(format!("{name}: the device was lost {losses} times in a row: {lost}"))
                .hint(format!("one of the records {first} to {last} does it; a smaller --batch tells which"))
                .into());
        }
        let words = format!("{lost}; going on in a new process at record {records}");
        self.hand_over(&words, writer, stats, args, |handover| handover.losses = losses)
    }

    /// A launch did not end, nor when it was told to: another process takes this one's place, and finds out which record it was, or goes on without that.
    fn go_on_without(self, most: u32, writer: &Shared, stats: &RunStats, args: &MapArgs) -> Result<u8> {
        let first = writer.lock().records();
        let (before, mut given_up) =
            self.handed.as_ref().map_or((None, Vec::new()), |handed| (handed.suspects, handed.given_up.clone()));
        let suspects = Suspects::narrowed(before, first, most);
        let words = match suspects {
            Some(_) => format!(
                "a record from {first} on does not end, nor when it is told to; looking for it in a new process"
            ),
            None => {
                format!("record {first} did not end, nor when it was told to; going on without it in a new process")
            }
        };
        if suspects.is_none() {
            given_up.push(first);
        }
        self.hand_over(&words, writer, stats, args, |handover| {
            (handover.suspects, handover.given_up) = (suspects, given_up)
        })
    }

    /// Starts another process in this one's place. Returns only with an error.
    fn hand_over(
        self,
        words: &str,
        writer: &Shared,
        stats: &RunStats,
        args: &MapArgs,
        change: impl FnOnce(&mut Handover),
    ) -> Result<u8> {
        let handover = {
            let mut writer = writer.writing();
            writer.say(&format!("gpu-run: {words}\n"));
            writer.hand_over()?
        };
        let (stream, input) = match &self.tape {
            None => (None, Vec::new()),
            Some(tape) => {
                let anchor = handover.done.mark.anchor.clone().unwrap_or_else(Anchor::start);
                let input = tape.stop(anchor.offset);
                let file = if args.reads_stdin() { None } else { Some(tape.keep_open()?) };
                (Some(Stream::new(anchor, file)), input)
            }
        };
        let given_up = self.handed.map_or_else(Vec::new, |handed| handed.given_up);
        let surroundings = self.surroundings;
        let mut handover = Handover { given_up, spent: stats.into(), stream, surroundings, ..handover };
        change(&mut handover);
        match handover.give(&self.source, &self.header, &input) {
            Ok(never) => match never {},
            Err(error) => {
                let name = &self.source.name;
                Err(error.context(format!("{name}: {words}, and no other process can be started")))
            }
        }
    }
}

/// A launch did not end, nor when it was told to.
#[derive(Debug, thiserror::Error)]
#[error("a launch did not end")]
struct Hung;

/// What the writer is told.
enum Message {
    Ran(Box<Ran>),
    Hung,
}

/// Tells the writer of a launch that does not end, as long as there is something to write.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hangs(Arc<Mutex<Option<SyncSender<Message>>>>);

impl Hangs {
    fn set(&self, writer: Option<SyncSender<Message>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = writer;
    }

    pub(crate) fn tell(&self) {
        let writer = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let _ = writer.map(|writer| writer.send(Message::Hung));
    }
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

/// Reads, runs and writes until the input ends, or something else does. What has run it comes back, unless it is still at it; an error comes with what was spent until then.
fn run(
    reader: Feed,
    runner: Runner<OnDevice>,
    most: usize,
    writer: &Shared,
    stats: RunStats,
    args: &MapArgs,
) -> Result<(u8, Option<OnDevice>), (anyhow::Error, RunStats)> {
    let spent = Arc::new(Mutex::new(stats));
    let stats = || spent.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let threads = start(reader, runner, most, writer, &spent);
    let (threads, ran) = threads.map_err(|error| (error, stats()))?;
    match write_all(&ran, writer) {
        Ok(Flow::GoOn) => {}
        // The others are not waited for: they may be reading from a pipe, or running for long.
        Ok(Flow::Stop) => {
            writer.end("stopped at the first failure");
            return Ok((exit::FAILURE, None));
        }
        Err(error) if error.is::<Hung>() => {
            // What they have run would be waited for.
            std::mem::forget(threads);
            return Err((error, stats()));
        }
        Err(error) => {
            writer.end("could not go on writing");
            return Err((error, stats()));
        }
    }
    let engine = threads.join().map_err(|error| {
        if !error.is::<Lost>() {
            writer.end("could not go on");
        }
        (error, stats())
    })?;
    let mut writer = writer.writing();
    writer.finish().map_err(|error| (error, stats()))?;
    if let Some(format) = args.launch.stats {
        let text = engine.loaded().stats(&stats()).show(format, writer.tally());
        terminal::say(&text);
    } else if stats().on_host > 0 {
        let on_host = count(stats().on_host, "record");
        terminal::say(&format!("gpu-run: {on_host} ran on the cpu: the device has no memory for their call stacks\n"));
    }
    Ok((if writer.all_fine() { 0 } else { exit::FAILURE }, Some(engine)))
}

/// Those who work for the writer.
struct Threads {
    reading: JoinHandle<Result<()>>,
    running: JoinHandle<Result<OnDevice>>,
    collecting: JoinHandle<Result<()>>,
}

fn start(
    reader: Feed,
    runner: Runner<OnDevice>,
    most: usize,
    writer: &Shared,
    spent: &Arc<Mutex<RunStats>>,
) -> Result<(Threads, Receiver<Message>)> {
    watch_signals(writer.clone())?;
    // No room in between: whoever hands over waits until the other takes.
    let (to_run, batches) = mpsc::sync_channel::<Batch>(0);
    let (to_collect, begun) = mpsc::sync_channel::<Running<Pending>>(0);
    let (to_write, ran) = mpsc::sync_channel::<Message>(0);
    let (spent, hangs) = (spent.clone(), runner.engine().hangs().clone());
    hangs.set(Some(to_write.clone()));
    let reading = spawn("reader", move || reader.run(most, &to_run))?;
    let running = spawn("runner", move || run_all(runner, &batches, &to_collect))?;
    let collecting = spawn("collector", move || {
        let collected = collect_all(&begun, &to_write, &spent);
        hangs.set(None);
        collected
    })?;
    Ok((Threads { reading, running, collecting }, ran))
}

impl Threads {
    /// Waits for them to end, in the order of the way back: one that has nobody to give to may wait for ever.
    fn join(self) -> Result<OnDevice> {
        join(self.collecting)?;
        let engine = join(self.running)?;
        join(self.reading)?;
        Ok(engine)
    }
}

fn run_all(
    mut runner: Runner<OnDevice>,
    batches: &Receiver<Batch>,
    to_collect: &SyncSender<Running<Pending>>,
) -> Result<OnDevice> {
    for batch in batches {
        if to_collect.send(runner.begin(batch)?).is_err() {
            break;
        }
    }
    Ok(runner.into_engine())
}

fn collect_all(
    begun: &Receiver<Running<Pending>>,
    to_write: &SyncSender<Message>,
    spent: &Mutex<RunStats>,
) -> Result<()> {
    for mut running in begun {
        while let Some((ran, stats)) = running.next_part()? {
            spent.lock().unwrap_or_else(PoisonError::into_inner).add(&stats);
            if to_write.send(Message::Ran(Box::new(ran))).is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn write_all(ran: &Receiver<Message>, writer: &Shared) -> Result<Flow> {
    let mut hung = None;
    // What has run before a launch that hangs is written.
    while let Ok(message) = if hung.is_some() { ran.try_recv().map_err(drop) } else { ran.recv().map_err(drop) } {
        match message {
            Message::Ran(batch) => {
                if writer.writing().write(*batch)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
            Message::Hung => hung = Some(Hung),
        }
    }
    hung.map_or(Ok(Flow::GoOn), |hung| Err(hung.into()))
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
