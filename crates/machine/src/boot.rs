//! Booting a machine; and the steps on their own, for callers that need a kernel's code and memory without a machine,
//! such as measurements.

use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::layout::*;
use crate::log::Recorder;
use crate::machine::{Inner, Machine};
use crate::place::Place;
use crate::service::{self, Service};
use crate::status::status;
use crate::strategy::Strategy;
use gpu_run_compiler::Compiler;
use gpu_run_device::{Device, Shared};
use gpu_run_gang::{Gang, GangOptions, GangProgram};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a machine starts from.
#[derive(Clone, Debug)]
pub enum Start {
    /// The kernel's `boot` entry makes an empty state.
    Empty,
    /// The checkpoint of another machine, on this or another device.
    Checkpoint(Arc<Checkpoint>),
}

/// How many workgroups work; the supervisor has one more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridSize {
    One,
    /// As many as the GPU has multiprocessors, less one for the supervisor; on `cpu`, one per core, at most 16.
    Auto,
    Groups(u32),
}

#[derive(Debug)]
pub struct Options {
    pub strategy: Strategy,
    pub grid: GridSize,
    /// Threads per workgroup. Default: 64 on `cpu`, 1024 on a GPU.
    pub threads: Option<u32>,
    /// Ticks per second; 0 means as fast as possible.
    pub rate: u32,
    /// Do no tick before [`Machine::go`], [`Machine::run_to`] or [`Machine::replay`] allows it.
    pub held: bool,
    /// Records the events that the machine takes.
    pub record: Option<Recorder>,
    /// Where to write checkpoints, and how often.
    pub checkpoints: Option<(PathBuf, Duration)>,
    /// Nanoseconds that the supervisor sleeps after a look that found nothing. Default: 1000 on `cpu`, 0 on a GPU.
    pub idle_sleep: Option<u32>,
    /// The code to run, and the names of its phases, of which the first is that of waiting.
    pub kernel: Kernel,
    pub phases: &'static [&'static str],
}

impl Default for Options {
    fn default() -> Self {
        Self {
            strategy: Strategy::Resident,
            grid: GridSize::One,
            threads: None,
            rate: 120,
            held: false,
            record: None,
            checkpoints: None,
            idle_sleep: None,
            kernel: Kernel::built_in(),
            phases: &PHASE_NAMES,
        }
    }
}

/// How long a machine may take from its launch to its first heartbeat. Its code is loaded before the launch.
const FIRST_BEAT: Duration = Duration::from_secs(20);
/// The name of a machine's code in the cache.
pub(crate) const NAME: &str = "machine";

/// Settings that stay the same while a machine is up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) strategy: Strategy,
    /// Nanoseconds from tick to tick.
    pub(crate) period: u64,
    pub(crate) idle_sleep: u32,
    pub(crate) gang: GangOptions,
    pub(crate) place: Place,
    pub(crate) phases: &'static [&'static str],
}

/// Compiles the kernel or fetches it from the cache, and sets up its memory. Nothing runs until an entry is launched.
pub fn gang(compiler: &Compiler, device: &Arc<dyn Device>, kernel: &Kernel, groups: u32, threads: u32) -> Result<Gang> {
    let options = gang_options(&kernel.place(), groups, threads);
    let program = GangProgram::compile(compiler, device, kernel.wasm().clone(), &options, NAME)?;
    Ok(Gang::new(program)?)
}

fn gang_options(place: &Place, groups: u32, threads: u32) -> GangOptions {
    GangOptions {
        threads,
        groups,
        stack_bytes: place.stack(),
        image_bytes: place.memory() as u64,
        bus_bytes: BUS_BYTES as u64,
        // The kernel issues its own fences.
        relaxed: true,
    }
}

/// Returns the PTX of a kernel for this many workgroups of this many threads.
pub fn kernel_ptx(kernel: &Kernel, groups: u32, threads: u32) -> Result<String> {
    Ok(gang_options(&kernel.place(), groups, threads).ptx(kernel.wasm())?)
}

/// Returns the threads per workgroup: `asked`, or the default for the device.
pub fn threads(device: &dyn Device, asked: Option<u32>) -> u32 {
    asked.unwrap_or(if device.is_gpu() { 1024 } else { 64 })
}

/// Returns the nanoseconds that the supervisor sleeps between two looks: `asked`, or the default for the device.
pub fn idle_sleep(device: &dyn Device, asked: Option<u32>) -> u32 {
    asked.unwrap_or(if device.is_gpu() { 0 } else { 1000 })
}

/// Returns how many workgroups work; the supervisor has one more.
fn workers(device: &dyn Device, grid: GridSize) -> u32 {
    let processors = device.properties().processors;
    match grid {
        GridSize::One => 1,
        GridSize::Groups(groups) => groups.max(1),
        GridSize::Auto if device.is_gpu() => processors.saturating_sub(1).clamp(1, GROUPS_MAX),
        GridSize::Auto => processors.clamp(1, 16),
    }
}

impl Machine {
    /// Boots a machine. It ticks when this returns, unless it is held.
    pub fn boot(compiler: &Compiler, device: &Arc<dyn Device>, start: Start, options: Options) -> Result<Self> {
        let threads = threads(&**device, options.threads);
        if !(32..=1024).contains(&threads) || !threads.is_multiple_of(32) {
            return Err(Error::Usage(format!("{threads} threads: a workgroup has a multiple of 32, from 32 to 1024")));
        }
        let groups = workers(&**device, options.grid) + 1;
        let place = options.kernel.place();
        let mut gang = gang(compiler, device, &options.kernel, groups, threads)?;
        match &start {
            Start::Empty => run_once(&mut gang, "boot")?,
            Start::Checkpoint(checkpoint) => {
                checkpoint.check(&place)?;
                write_state(&gang, &place, checkpoint)?;
            }
        }
        let first = match start {
            Start::Empty => Arc::new(read_state(&gang, &place)?),
            Start::Checkpoint(checkpoint) => checkpoint,
        };
        let settings = Settings {
            strategy: options.strategy,
            period: if options.rate == 0 { 0 } else { 1_000_000_000 / options.rate as u64 },
            idle_sleep: idle_sleep(&**device, options.idle_sleep),
            gang: gang_options(&place, groups, threads),
            place,
            phases: options.phases,
        };
        let mut record = options.record;
        if let Some(recorder) = record.as_mut().filter(|recorder| !recorder.has_code()) {
            recorder.code(first.tick(), &options.kernel)?;
        }
        let inner = Arc::new(Inner::new(&gang, settings, options.kernel));
        let limit = if options.held { first.tick() } else { u64::MAX };
        let mut service = Service::new(inner.clone(), gang, first, limit, record, options.checkpoints);
        service.launch()?;
        wait_for_beat(&inner)?;
        inner.is_up();
        let thread = service::start(service)?;
        Ok(Self::new(inner, thread))
    }
}

/// Launches an entry and waits until it returns.
pub fn run_once(gang: &mut Gang, entry: &str) -> Result<()> {
    gang.launch(entry)?.wait()?.map_err(|trap| Error::Usage(format!("`{entry}` of the kernel failed: {trap}")))
}

/// Reads the state from the device's memory. No tick may run meanwhile.
pub(crate) fn read_state(gang: &Gang, place: &Place) -> Result<Checkpoint> {
    let mut state = vec![0; place.state_bytes()];
    let mut rest = state.as_mut_slice();
    for part in place.state() {
        let (bytes, behind) = rest.split_at_mut(part.len());
        gang.read(part.start as u64, bytes)?;
        rest = behind;
    }
    Ok(Checkpoint::new(state))
}

/// Writes a state to the device's memory. No launch may be running.
pub(crate) fn write_state(gang: &Gang, place: &Place, checkpoint: &Checkpoint) -> Result<()> {
    let mut rest = checkpoint.status();
    for part in place.state() {
        let (bytes, behind) = rest.split_at(part.len());
        gang.write(part.start as u64, bytes)?;
        rest = behind;
    }
    Ok(())
}

fn wait_for_beat(inner: &Inner) -> Result<()> {
    let since = Instant::now();
    while status(&inner.bus, STATUS_LAUNCHES) == 0 {
        if since.elapsed() > FIRST_BEAT {
            return Err(Error::Slow { what: "start", seconds: FIRST_BEAT.as_secs() });
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    Ok(())
}

/// Writes the control words that the machine must see at its first look.
pub(crate) fn set_control(bus: &Shared, settings: &Settings, limit: u64) {
    let set = |which: u32, value: u64| bus.store_u64((CONTROL + which * 8) as u64, value);
    (0..CONTROL_WORDS).for_each(|which| set(which, 0));
    set(C_LIMIT, limit);
    set(C_PERIOD, settings.period);
    set(C_SLEEP, settings.idle_sleep as u64);
    set(C_TICKS, settings.strategy.ticks() as u64);
    set(C_TIME, settings.strategy.limit().map_or(0, |limit| limit.as_micros() as u64));
}
