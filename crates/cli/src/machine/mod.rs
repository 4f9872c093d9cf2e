//! `gpu-run boot`: boots the resident machine, posts a load of events, and reports how it went.

mod reload;
mod status;
mod top;

pub(crate) use top::top;

use crate::args::{BootArgs, StatsFormat};
use crate::published::Publisher;
use crate::{devices, program_cache};
use anyhow::{Result, bail};
use gpu_run_compiler::Compiler;
use gpu_run_console::failure::Failure;
use gpu_run_console::output::Standard;
use gpu_run_console::terminal;
use gpu_run_console::units::milliseconds;
use gpu_run_device::Device;
use gpu_run_machine::{Checkpoint, Ended, Error, Log, Machine, Options, Recorder, Start, Status, Workload};
use reload::Reloads;
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use status::MachineStatus;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often this thread wakes to post events and take answers.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How often the machine's state is published for `gpu-run top`.
const PUBLISH_EVERY: Duration = Duration::from_millis(250);
/// How long `--drain` may take until the machine is empty.
const MAX_DRAIN_TIME: Duration = Duration::from_secs(10);

pub(crate) fn boot(args: &BootArgs) -> Result<u8> {
    let device = devices::open(&args.device)?;
    let compiler = Compiler::new(program_cache::open(&args.cache)?);
    let start = start(args)?;
    let tick = match &start {
        Start::Checkpoint(checkpoint) => checkpoint.tick(),
        Start::Empty => 0,
    };
    let (record, recovered) = recorder(args, tick)?;
    let replayed = args.replay.as_deref().map(read_log).transpose()?;
    let checkpoints = args.checkpoint_every.map(|every| {
        let path = args.checkpoint.clone().or_else(|| args.resume.clone());
        (path.unwrap_or_else(|| "machine.ckpt".into()), every)
    });
    let options = Options {
        strategy: args.strategy,
        grid: args.grid,
        threads: args.threads,
        rate: args.rate,
        held: replayed.is_some() || recovered.is_some(),
        record,
        checkpoints,
        idle_sleep: args.idle_sleep,
        kernel: reload::kernel(args.kernel.as_deref())?,
        ..Options::default()
    };
    let machine = Machine::boot(&compiler, &device, start, options).map_err(failure)?;
    let host = Host::new(&*device);
    if let Some(log) = &recovered {
        machine.replay(&compiler, log, replayed.is_none(), true).map_err(failure)?;
    }
    if let Some(log) = &replayed {
        machine.replay(&compiler, log, false, false).map_err(failure)?;
    } else {
        std::thread::scope(|scope| {
            let reloads = Reloads::new(scope, &machine, &compiler, args)?;
            attend(&machine, args, &*device, &host, reloads)
        })?;
    }
    tell(&machine.notices());
    let ended = machine.shutdown().map_err(failure)?;
    let (used, time) = (host.used(&ended.state), host.began.elapsed());
    report(args, &ended, used / time.as_secs_f64())?;
    judge(&ended, replayed.as_ref())
}

fn start(args: &BootArgs) -> Result<Start> {
    Ok(match &args.resume {
        Some(path) => Start::Checkpoint(Arc::new(Checkpoint::read(path).map_err(failure)?)),
        None => Start::Empty,
    })
}

/// Returns the log to write, and the log that has to be replayed first.
fn recorder(args: &BootArgs, tick: u64) -> Result<(Option<Recorder>, Option<Log>)> {
    let Some(path) = &args.record else { return Ok((None, None)) };
    if args.resume.is_none() || !path.exists() {
        return Ok((Some(Recorder::create(path, tick).map_err(failure)?), None));
    }
    let log = read_log(path)?;
    Ok((Some(Recorder::append(path, &log).map_err(failure)?), Some(log)))
}

fn read_log(path: &Path) -> Result<Log> {
    let log = Log::read(path).map_err(failure)?;
    if log.torn > 0 {
        tell(&[format!("{}: ignored {} bytes of an unfinished record at the end", path.display(), log.torn)]);
    }
    Ok(log)
}

/// Posts the load and watches the machine, until the time is over or a signal arrives.
fn attend(
    machine: &Machine,
    args: &BootArgs,
    device: &dyn Device,
    host: &Host,
    mut reloads: Reloads<'_, '_>,
) -> Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, stop.clone())?;
        signal_hook::flag::register(signal, stop.clone())?;
    }
    let publisher = Publisher::new::<MachineStatus>()
        .inspect_err(|error| tell(&[format!("`gpu-run top` cannot show this machine: {error}")]));
    let (publisher, strategy) = (publisher.ok(), args.strategy.to_string());
    let (mut load, mut posted, mut published) = (Workload::new(args.seed), 0, None::<Instant>);
    let mut held_back = None;
    while !stop.load(Ordering::Relaxed) && machine.is_up() {
        let elapsed = host.began.elapsed();
        if args.time.is_some_and(|time| elapsed >= time) {
            break;
        }
        while posted < (elapsed.as_secs_f64() * args.load as f64) as u64 {
            let Some(event) = held_back.take().or_else(|| load.next()) else { break };
            if machine.post(event).is_err() {
                // The ring is full: post this event later.
                held_back = Some(event);
                break;
            }
            posted += 1;
        }
        machine.take_events();
        tell(&machine.notices());
        reloads.step();
        if published.is_none_or(|at| at.elapsed() >= PUBLISH_EVERY) {
            published = Some(Instant::now());
            let (state, seconds) = (machine.status(), elapsed.as_secs_f64().max(1e-9));
            let id = &device.properties().id;
            if let Some(publisher) = &publisher {
                publisher.publish(&MachineStatus::new(id, &strategy, seconds, host.used(&state) / seconds, &state));
            }
        }
        std::thread::sleep(LOOK_EVERY.min(args.time.map_or(LOOK_EVERY, |time| time.saturating_sub(elapsed))));
    }
    if args.drain {
        drain(machine);
    }
    Ok(())
}

/// Destroys the objects that the load made. Waiting events may still create some, so this is repeated until nothing is
/// left.
fn drain(machine: &Machine) {
    let since = Instant::now();
    let is_empty = |state: &Status| state.objects == 0 && state.timers == 0 && state.work == 0 && state.waiting == 0;
    while since.elapsed() < MAX_DRAIN_TIME && machine.is_up() && !is_empty(&machine.status()) {
        Workload::farewell().for_each(|event| drop(machine.post(event))); // Ring full: next round.
        std::thread::sleep(PUBLISH_EVERY);
        machine.take_events();
    }
}

fn tell(notices: &[String]) {
    for notice in notices {
        terminal::say(&format!("gpu-run: {notice}\n"));
    }
}

/// CPU time that the host's side takes.
#[derive(Debug)]
pub(crate) struct Host {
    gpu: bool,
    began: Instant,
    /// CPU seconds of the process and of this thread when measuring began.
    process: f64,
    thread: f64,
}

impl Host {
    fn new(device: &dyn Device) -> Self {
        let (process, thread) = (seconds(ClockId::ProcessCPUTime), seconds(ClockId::ThreadCPUTime));
        Self { gpu: device.is_gpu(), began: Instant::now(), process, thread }
    }

    /// Returns the CPU seconds used since: of the whole process on a GPU; on `cpu`, whose cores run the device, only of
    /// this thread and the machine's.
    fn used(&self, state: &Status) -> f64 {
        match self.gpu {
            true => seconds(ClockId::ProcessCPUTime) - self.process,
            false => seconds(ClockId::ThreadCPUTime) - self.thread + state.host_cpu.as_secs_f64(),
        }
    }
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn report(args: &BootArgs, ended: &Ended, host_cpu: f64) -> Result<()> {
    let (state, tick) = (&ended.state, ended.checkpoint.tick());
    let heap = ended.checkpoint.word(gpu_run_machine::layout::H_HEAP);
    match args.stats {
        Some(StatsFormat::Json) => {
            let object = json!({
                "ticks": tick,
                "launches": state.launches,
                "waits": state.waits,
                "heartbeat_gap_ms": milliseconds(state.heartbeat_gap),
                "lanes_active": state.lanes_active(),
                "host_cpu": host_cpu,
                "heap_bytes": heap,
                "loads": state.loads,
                "load_gap_ms": (state.loads != 0).then(|| milliseconds(state.load_gap)),
                "image_hash": ended.hash.to_string(),
            });
            writeln!(Standard::stdout()?, "{object}")?;
        }
        Some(StatsFormat::Text) => {
            let lanes = state.lanes_active().map_or("-".to_owned(), |share| format!("{:.0} %", share * 100.0));
            let mut err = Standard::stderr()?;
            writeln!(err, "ticks      {tick}, {} events, {} late", state.events, state.late)?;
            let (launches, waits, copies) = (state.launches, state.waits, state.copies);
            writeln!(
                err,
                "launches   {launches} since the start, {waits} waits, {copies} copies for checkpoints and loads"
            )?;
            writeln!(err, "heartbeat  {:.2} ms apart at most", milliseconds(state.heartbeat_gap))?;
            writeln!(err, "lanes      {lanes} active")?;
            writeln!(err, "host       {:.1} % of a core", host_cpu * 100.0)?;
            writeln!(err, "heap       {heap} bytes in use")?;
            if state.loads != 0 {
                let gap = milliseconds(state.load_gap);
                writeln!(err, "code       loaded {} times, {gap:.2} ms of pause the last time", state.loads)?;
            }
            writeln!(err, "image      {}", ended.hash)?;
        }
        None => {}
    }
    Ok(())
}

/// Checks that a replay reached the tick and the state that its log ends with.
fn judge(ended: &Ended, replayed: Option<&Log>) -> Result<u8> {
    let Some((tick, hash)) = replayed.and_then(|log| log.end) else { return Ok(0) };
    if (tick, hash) != (ended.checkpoint.tick(), ended.hash) {
        bail!(
            "the log ends at tick {tick} with the state {hash}, but its replay ended at tick {} with {}",
            ended.checkpoint.tick(),
            ended.hash
        );
    }
    Ok(0)
}

/// Turns a machine's error into one for the command line, with its exit code.
pub(crate) fn failure(error: Error) -> anyhow::Error {
    match error {
        Error::Engine(error) => Failure::compiler("the machine", error).into(),
        Error::Version { .. } | Error::Foreign { .. } | Error::Usage(_) => Failure::usage(error.to_string()).into(),
        error => error.into(),
    }
}
