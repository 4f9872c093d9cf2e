//! `gpu-run bench desktop`: how long frames of a desktop take, phase by phase, and how soon pixels follow what happens.

mod scenes;

use crate::sheet::Record;
use crate::{Sheet, percentile};
use anyhow::Result;
use gpu_run_compiler::Compiler;
use gpu_run_console::units::show_duration;
use gpu_run_desktop::{Desktop, Options, event as e, map};
use gpu_run_device::Device;
use gpu_run_machine::{Event, GridSize, Start, Status};
use rustix::time::{ClockId, clock_gettime};
use scenes::{SCENES, Scene};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The name of this bench among the programs of `gpu-run bench`.
pub const NAME: &str = "desktop";

/// Frames before the first that counts, and how long they may take.
const WARM_UP: u32 = 30;
const WARM_UP_TIME: Duration = Duration::from_secs(2);
/// How many frames count, and how long they may take together.
const FRAMES: u32 = 1000;
/// Frames and events a second where both have a rate, and for how long.
const RATE: u32 = 120;
const PACED: Duration = Duration::from_secs(4);
/// For how long nothing happens.
const IDLE: Duration = Duration::from_secs(2);

/// What each phase may take, in milliseconds, by its name.
const BUDGETS: [(&str, f64); 7] = [
    ("input", 0.01),
    ("hit test", 0.02),
    ("dispatch", 0.1),
    ("layout", 0.5),
    ("order", 0.2),
    ("geometry", 1.0),
    ("raster and frame end", 5.0),
];

/// The grids that are compared: the key of their figures, what people read, and their size.
const GRIDS: [(&str, &str, GridSize); 2] =
    [("one", "one group", GridSize::Groups(1)), ("all", "all groups", GridSize::Auto)];

/// Measures each scene with one workgroup and with all. A scene takes at most so long on each.
pub fn measure(device: Arc<dyn Device>, compiler: &Compiler, time: Duration, sheet: &mut Sheet) -> Result<()> {
    let name = device.properties().name.clone();
    let mut record = Record::new(sheet);
    record.line(&format!("frames of a desktop on {name}"))?;
    record.put("device", json!(name))?;
    for scene in &SCENES {
        record.line(&format!("\n{}: {}", scene.name, scene.what))?;
        let heads = GRIDS.map(|(_, name, _)| name);
        record.line(&format!("  {:24}{:>12}{:>12}{:>12}", "", "budget", heads[0], heads[1]))?;
        let of = |(_, _, grid)| frames(&device, compiler, grid, scene, time);
        let (one, all) = (of(GRIDS[0])?, of(GRIDS[1])?);
        let shown = |budget: Duration, figure: fn(&Frames) -> Duration, what: &str| {
            let [budget, one, all] = [budget, figure(&one), figure(&all)].map(show_duration);
            format!("  {what:24}{budget:>12}{one:>12}{all:>12}")
        };
        record.line(&shown(scene.budget, |it| it.p50, "frame, p50"))?;
        record.line(&shown(scene.budget, |it| it.p99, "frame, p99"))?;
        record.line(&format!("  {:24}{:>12}{:>12.0}{:>12.0}", "frames a second", RATE, one.rate, all.rate))?;
        for (at, (phase, budget)) in BUDGETS.iter().enumerate() {
            let budget = show_duration(Duration::from_secs_f64(budget / 1e3));
            let [one, all] = [&one, &all].map(|it| show_duration(it.phases[at]));
            record.line(&format!("  {phase:24}{budget:>12}{one:>12}{all:>12}"))?;
        }
        record.line(&format!("  {:24}{:>12}{:>12}{:>12}", "tiles drawn a frame", "", one.tiles, all.tiles))?;
        record.put(scene.name, json!({ "one": one.figures(), "all": all.figures() }))?;
    }
    record.line(&format!("\n{}, {RATE} frames and {RATE} events a second", SCENES[0].what))?;
    for (key, name, grid) in GRIDS {
        let paced = paced(&device, compiler, grid)?;
        record.line(&format!(
            "  {name}: event posted to pixels complete p50 {}, p99 {}; {} launches, {} waits for one; {:.1} % of a core of the host; when nothing happens {:.2} %",
            show_duration(paced.p50),
            show_duration(paced.p99),
            paced.launches,
            paced.waits,
            paced.busy * 100.0,
            paced.idle * 100.0,
        ))?;
        record.put(&format!("paced_{key}"), paced.figures())?;
    }
    if !device.is_gpu() {
        record.line("\n`cpu` is the host: its work is among that of the cores")?;
    }
    record.end()
}

/// How frames went that followed each other without a pause.
struct Frames {
    p50: Duration,
    p99: Duration,
    rate: f64,
    /// How many tiles a frame drew, on average.
    tiles: u32,
    /// The mean of each phase.
    phases: [Duration; BUDGETS.len()],
}

impl Frames {
    fn figures(&self) -> Value {
        let phases = BUDGETS.iter().zip(&self.phases);
        let phases: serde_json::Map<_, _> =
            phases.map(|((name, _), time)| ((*name).to_owned(), json!(time.as_nanos() as u64))).collect();
        json!({
            "p50_ns": self.p50.as_nanos() as u64,
            "p99_ns": self.p99.as_nanos() as u64,
            "frames_per_second": self.rate,
            "tiles": self.tiles,
            "phases_ns": phases,
        })
    }
}

fn boot(device: &Arc<dyn Device>, compiler: &Compiler, grid: GridSize, scene: &Scene) -> Result<Desktop> {
    let (width, height) = scene.size;
    let options = Options { width, height, scale: 1.0, grid, threads: None };
    let mut desktop = Desktop::boot(compiler, device, Start::Empty, &options)?;
    let rate = Event { kind: e::RATE, a: RATE, ..Event::default() };
    desktop.frame(&[&[rate], &(scene.begins)()[..]].concat())?;
    let began = Instant::now();
    for number in (0..WARM_UP).take_while(|_| began.elapsed() < WARM_UP_TIME) {
        desktop.frame(&(scene.frame)(number))?;
    }
    Ok(desktop)
}

fn frames(
    device: &Arc<dyn Device>,
    compiler: &Compiler,
    grid: GridSize,
    scene: &Scene,
    time: Duration,
) -> Result<Frames> {
    let mut desktop = boot(device, compiler, grid, scene)?;
    let drawn = |desktop: &Desktop| desktop.word(map::S_TILES);
    let (before, drawn_before, began) = (desktop.status(), drawn(&desktop)?, Instant::now());
    let mut took = Vec::new();
    while took.is_empty() || took.len() < FRAMES as usize && began.elapsed() < time {
        let events = (scene.frame)(WARM_UP + took.len() as u32);
        let frame = Instant::now();
        desktop.frame(&events)?;
        took.push(frame.elapsed());
        desktop.told();
    }
    let (lasted, count) = (took.iter().sum::<Duration>(), took.len() as u32);
    let after = desktop.status();
    let phase = |name: &str| (time_of(&after, name) - time_of(&before, name)) / count;
    let figures = Frames {
        p50: percentile(&mut took, 50),
        p99: percentile(&mut took, 99),
        rate: f64::from(count) / lasted.as_secs_f64(),
        tiles: drawn(&desktop)?.wrapping_sub(drawn_before) / count,
        phases: BUDGETS.map(|(name, _)| phase(name)),
    };
    desktop.shutdown()?;
    Ok(figures)
}

fn time_of(status: &Status, phase: &str) -> Duration {
    status.phases.iter().find(|it| it.name == phase).map_or(Duration::ZERO, |it| it.time)
}

/// How it went with a rate.
struct Paced {
    p50: Duration,
    p99: Duration,
    launches: u64,
    waits: u64,
    /// Shares of a core.
    busy: f64,
    idle: f64,
}

impl Paced {
    fn figures(&self) -> Value {
        json!({
            "event_to_pixels_p50_ns": self.p50.as_nanos() as u64,
            "event_to_pixels_p99_ns": self.p99.as_nanos() as u64,
            "launches": self.launches,
            "waits": self.waits,
            "host_share_of_a_core": self.busy,
            "host_share_when_idle": self.idle,
        })
    }
}

/// Frames come at a rate, and an event somewhere between two of them, which starts a frame of its own, as a live desktop does it.
fn paced(device: &Arc<dyn Device>, compiler: &Compiler, grid: GridSize) -> Result<Paced> {
    let scene = &SCENES[0];
    let mut desktop = boot(device, compiler, grid, scene)?;
    let before = desktop.status();
    let (began, busy) = (Instant::now(), cpu_time());
    let period = Duration::from_secs(1) / RATE;
    let mut took = Vec::new();
    let mut number = 0;
    while began.elapsed() < PACED {
        sleep_until(began + period * number);
        // At another place between two frames each time. It waits for a frame that is under way, which counts.
        let posted = Instant::now() + period * (number * 37 % 100) / 100;
        desktop.frame(&(scene.frame)(WARM_UP + number))?;
        sleep_until(posted);
        let at = |at: u32| (at % 3000) << 8;
        desktop.frame(&[Event { kind: e::MOVE, a: at(number * 7), b: at(number * 3), ..Event::default() }])?;
        took.push(posted.elapsed());
        desktop.told();
        number += 1;
    }
    let busy = (cpu_time() - busy).as_secs_f64() / began.elapsed().as_secs_f64();
    let after = desktop.status();
    let (began, idle) = (Instant::now(), cpu_time());
    std::thread::sleep(IDLE);
    let idle = (cpu_time() - idle).as_secs_f64() / began.elapsed().as_secs_f64();
    let figures = Paced {
        p50: percentile(&mut took, 50),
        p99: percentile(&mut took, 99),
        launches: after.launches - before.launches,
        waits: after.waits - before.waits,
        busy,
        idle,
    };
    desktop.shutdown()?;
    Ok(figures)
}

fn sleep_until(time: Instant) {
    std::thread::sleep(time.saturating_duration_since(Instant::now()));
}

/// What this process has used of all cores.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
