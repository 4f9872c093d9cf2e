//! What the tests of the machine share: the `cpu` device, a compiler whose cache all tests of a run share, machines booted and brought to a tick.
#![allow(dead_code, clippy::unwrap_used)] // not every test uses all of it; one that cannot go on panics

use gpu_run_cache::{Cache, Options as CacheOptions};
use gpu_run_compiler::Compiler;
use gpu_run_device::Device;
use gpu_run_machine::event::{self, Event};
use gpu_run_machine::{Ended, GridSize, KERNEL_DEBUG, Kernel, Machine, Options, Start, Strategy, Workload};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Ends what hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

static CACHE: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());
static COMPILER: LazyLock<Compiler> = LazyLock::new(|| {
    Compiler::new(Cache::open(CacheOptions { durable: false, ..CacheOptions::new(CACHE.path().to_owned()) }))
});

pub(crate) fn compiler() -> &'static Compiler {
    &COMPILER
}

/// The device that is tested: `cpu`, or what `GPU_RUN_TEST_DEVICE` says.
pub(crate) fn device() -> Arc<dyn Device> {
    let id = std::env::var("GPU_RUN_TEST_DEVICE").unwrap_or_else(|_| "cpu".to_owned());
    gpu_run_device::open(&id).unwrap()
}

/// As fast as it goes, with few threads.
pub(crate) fn quick() -> Options {
    Options { rate: 0, threads: Some(64), ..Options::default() }
}

pub(crate) fn boot(options: Options) -> Machine {
    Machine::boot(compiler(), &device(), Start::Empty, options).unwrap()
}

/// The kernel that sends messages and can be stalled and muted; what it does to the state is the same.
pub(crate) fn debug_kernel() -> Kernel {
    Kernel::named("kernel-debug.wasm", KERNEL_DEBUG.to_vec()).unwrap()
}

/// All strategies, with launches short enough that there are several in a test.
pub(crate) fn strategies() -> [Strategy; 6] {
    [
        Strategy::Resident,
        Strategy::Mega(7),
        Strategy::Redispatch,
        Strategy::Buffered(2),
        Strategy::Buffered(3),
        Strategy::Checkpointed(Duration::from_millis(20)),
    ]
}

pub(crate) const GRIDS: [GridSize; 2] = [GridSize::One, GridSize::Groups(2)];

/// Posts, and waits where there is no room.
pub(crate) fn post(machine: &Machine, event: Event) {
    let since = Instant::now();
    while machine.post(event).is_err() {
        assert!(since.elapsed() < PATIENCE && machine.is_up(), "it takes no more: {:?}", machine.status());
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub(crate) fn post_load(machine: &Machine, seed: u64, count: usize) {
    Workload::new(seed).take(count).for_each(|event| post(machine, event));
}

/// Waits until it is so.
#[track_caller]
pub(crate) fn wait_for(machine: &Machine, what: &str, mut so: impl FnMut(&Machine) -> bool) {
    let since = Instant::now();
    while !so(machine) {
        let state = machine.status();
        assert!(since.elapsed() < PATIENCE && machine.is_up(), "{what}: {state:?} {:?}", machine.notices());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The answer to one event.
pub(crate) fn ask(machine: &Machine, event: Event) -> Event {
    let mut answer = None;
    post(machine, Event { flags: event.flags | event::ANSWER, ..event });
    wait_for(machine, "an answer", |machine| {
        answer = machine.take_events().into_iter().find(|answer| answer.id == event.id);
        answer.is_some()
    });
    answer.unwrap()
}

pub(crate) fn end(machine: Machine) -> Ended {
    machine.shutdown().unwrap()
}
