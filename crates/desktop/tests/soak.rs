//! Random events for a long time: no phase hangs, nothing moves for ever, what was drawn in steps is what is drawn at once, and when all
//! windows are closed nothing is left. `scripts/desktop-soak` runs it for as long as one likes, and shows what it prints.
#![allow(clippy::unwrap_used)] // A test that cannot go on says so by panicking.

use fastrand::Rng;
use gpu_run_cache::{Cache, Options as CacheOptions};
use gpu_run_compiler::Compiler;
use gpu_run_desktop::{Desktop, Options, event as e, map};
use gpu_run_device::Device;
use gpu_run_machine::{Event, GridSize, Start};
use random::{Range, act, begin, farewell};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[path = "../kernel/tests/support/events.rs"]
#[allow(dead_code, unreachable_pub)]
mod events;
#[path = "../kernel/tests/support/random.rs"]
#[allow(dead_code, unreachable_pub)]
mod random;

const RANGE: Range = Range { widgets: 300, width: 640, height: 400 };
/// Frames until all windows are closed, and opened again.
const ROUND: u64 = 4000;
/// Whatever moves has come to its end after so many frames at 120 Hz: tooltips wait longest.
const REST: u32 = 120;
/// How often it is told how things are.
const TOLD: Duration = Duration::from_secs(60);
/// What the process may grow by between its first round and its last.
const GROWTH: u64 = 64 << 20;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}: {text} is not a number")))
}

struct Soak {
    compiler: Compiler,
    device: Arc<dyn Device>,
    /// Taken only while another takes its place: a GPU loads no code while a kernel runs.
    desktop: Option<Desktop>,
    random: Rng,
    began: Instant,
    told: Instant,
    events: u64,
    longest: Duration,
}

impl Soak {
    fn desktop(&mut self) -> &mut Desktop {
        self.desktop.as_mut().unwrap()
    }

    fn word(&mut self, at: u32) -> u32 {
        self.desktop().word(at).unwrap()
    }

    fn frame(&mut self, events: &[Event]) {
        let began = Instant::now();
        self.desktop().frame(events).unwrap();
        self.longest = self.longest.max(began.elapsed());
        self.events += events.len() as u64;
        self.desktop().told();
        if self.told.elapsed() > TOLD {
            self.told = Instant::now();
            self.tell();
        }
    }

    fn tell(&mut self) {
        let (frames, widgets, texts) = (self.desktop().frames(), self.word(map::D_COUNT), self.word(map::D_TEXT_COUNT));
        println!(
            "{:6} s  {:9} frames  {:10} events  {:3} widgets  {:4} units of text  longest frame {:5.1} ms  {:4} MiB",
            self.began.elapsed().as_secs(),
            frames,
            self.events,
            widgets,
            texts,
            self.longest.as_secs_f64() * 1e3,
            resident() >> 20,
        );
        self.longest = Duration::ZERO;
    }

    /// From empty to empty.
    fn round(&mut self, until: Instant) {
        self.frame(&begin(RANGE));
        for number in 0..ROUND {
            let events: Vec<Event> = (0..self.random.u32(1..12)).flat_map(|_| act(&mut self.random, RANGE)).collect();
            self.frame(&events);
            if number % 200 == 199 {
                self.comes_to_rest();
            }
            if Instant::now() > until {
                break;
            }
        }
        self.resumed_is_the_same();
        self.frame(&farewell(RANGE));
        // Lets go of what the pointer and the finger hold.
        let lift = Event { kind: e::TOUCH, flags: e::touch::CANCELLED, ..Event::default() };
        self.frame(&[events::pointer(e::RELEASE, 0.0, 0.0), lift]);
        for word in [map::D_COUNT, map::D_TEXT_COUNT, map::D_PIXEL_COUNT, map::D_PLOTS, map::D_PLOTS_2] {
            assert_eq!(self.word(word), 0, "something is left at {word}");
        }
        self.comes_to_rest();
    }

    fn comes_to_rest(&mut self) {
        for _ in 0..REST {
            self.frame(&[]);
            if self.word(map::D_MOVING) == 0 {
                return;
            }
        }
        panic!("something moves for ever after {} frames", self.desktop().frames());
    }

    /// The desktop goes on as one that was resumed from it.
    fn resumed_is_the_same(&mut self) {
        self.comes_to_rest();
        let desktop = self.desktop.take().unwrap();
        let (checkpoint, now, frames) = (desktop.checkpoint().unwrap(), desktop.picture().unwrap(), desktop.frames());
        desktop.shutdown().unwrap();
        self.desktop = Some(boot(&self.compiler, &self.device, Start::Checkpoint(checkpoint)));
        self.frame(&[]);
        let anew = self.desktop().picture().unwrap();
        let differs = now.pixels.iter().zip(&anew.pixels).position(|(a, b)| a != b);
        assert_eq!(differs, None, "a pixel differs after {frames} frames");
    }
}

fn boot(compiler: &Compiler, device: &Arc<dyn Device>, start: Start) -> Desktop {
    let (width, height) = (RANGE.width, RANGE.height);
    let options = Options { width, height, scale: 1.0, grid: GridSize::Groups(1), threads: None };
    Desktop::boot(compiler, device, start, &options).unwrap()
}

/// Bytes of memory that the process uses.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    pages.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok()).map_or(0, |pages| pages * 4096)
}

#[test]
fn random_events_leave_nothing_stuck_and_nothing_behind() {
    let all = if std::env::var_os("GPU_RUN_TEST_ALL").is_some() { 600 } else { 10 };
    let seconds = number("GPU_RUN_SOAK_SECONDS").unwrap_or(all);
    let seed = number("GPU_RUN_SOAK_SEED").unwrap_or(1);
    println!("seed {seed} (GPU_RUN_SOAK_SEED), {seconds} s (GPU_RUN_SOAK_SECONDS)");
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(CacheOptions { durable: false, ..CacheOptions::new(folder.path().to_owned()) });
    let compiler = Compiler::new(cache);
    let device = gpu_run_device::open(&std::env::var("GPU_RUN_TEST_DEVICE").unwrap_or("cpu".to_owned())).unwrap();
    let desktop = Some(boot(&compiler, &device, Start::Empty));
    let (began, random) = (Instant::now(), Rng::with_seed(seed));
    let mut soak = Soak { compiler, device, desktop, random, began, told: began, events: 0, longest: Duration::ZERO };
    let until = began + Duration::from_secs(seconds);
    let mut first = None;
    while Instant::now() < until {
        soak.round(until);
        let first = *first.get_or_insert_with(resident);
        assert!(resident() < first + GROWTH, "{} MiB have become {}", first >> 20, resident() >> 20);
    }
    soak.tell();
    soak.desktop.take().unwrap().shutdown().unwrap();
}
