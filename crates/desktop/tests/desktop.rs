//! The desktop on the `cpu` device, through the compiler.
#![allow(clippy::unwrap_used)] // A test that cannot go on says so by panicking.

use gpu_run_cache::{Cache, Options as CacheOptions};
use gpu_run_compiler::Compiler;
use gpu_run_desktop::event::{self as e, properties as p};
use gpu_run_desktop::live::{Effects, Handle, Live, Owners, Pace};
use gpu_run_desktop::{Desktop, KERNEL, Options, Script, map};
use gpu_run_device::Device;
use gpu_run_machine::{Checkpoint, Event, GridSize, Kernel, Log, Machine, Recorder, Start};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tempfile::TempDir;

include!("../kernel/tests/support/scene.rs");

static CACHE: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());
static COMPILER: LazyLock<Compiler> = LazyLock::new(|| {
    Compiler::new(Cache::open(CacheOptions { durable: false, ..CacheOptions::new(CACHE.path().to_owned()) }))
});

/// Ends what hangs.
const PATIENCE: Duration = Duration::from_secs(300);

/// The device that is tested: `cpu`, or what `GPU_RUN_TEST_DEVICE` says.
fn device() -> Arc<dyn Device> {
    let id = std::env::var("GPU_RUN_TEST_DEVICE").unwrap_or_else(|_| "cpu".to_owned());
    gpu_run_device::open(&id).unwrap()
}

fn boot(start: Start, groups: u32, threads: u32) -> Desktop {
    let (width, height) = (WIDTH, HEIGHT);
    let options = Options { width, height, scale: 1.0, grid: GridSize::Groups(groups), threads: Some(threads) };
    Desktop::boot(&COMPILER, &device(), start, &options).unwrap()
}

/// The twin's pixels (`kernel/tests/scene.rs`) are the device's, for each team; and a desktop that was resumed in the middle has the same.
#[test]
fn the_scene_has_its_pixels_with_every_team_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("desktop.ckpt");
    let half = frames().len() / 2;
    for (groups, threads) in [(1, 32), (2, 64)] {
        let mut desktop = boot(Start::Empty, groups, threads);
        for (number, events) in frames().iter().enumerate() {
            desktop.frame(events).unwrap();
            if number + 1 == half {
                desktop.checkpoint().unwrap().write(&path).unwrap();
            }
        }
        let picture = desktop.picture().unwrap();
        assert_eq!(hash(picture.pixels.iter().copied()), HASH, "{groups} workgroups of {threads} threads");
        desktop.shutdown().unwrap();
    }
    let start = Start::Checkpoint(Arc::new(Checkpoint::read(&path).unwrap()));
    let mut desktop = boot(start, 1, 64);
    frames()[half..].iter().for_each(|events| desktop.frame(events).unwrap());
    assert_eq!(hash(desktop.picture().unwrap().pixels.into_iter()), HASH, "resumed");
}

#[test]
fn a_script_clicks_and_owners_are_told() {
    let script = "window w \"W\" left=10 top=10\nbutton b in w \"B\"\nfield f in w\nclick b\nclick f\ntype \"ab\"";
    let mut desktop = boot(Start::Empty, 1, 32);
    desktop.run(&Script::parse(script).unwrap()).unwrap();
    let told: Vec<(u16, u32)> = desktop.told().iter().map(|event| (event.kind, event.key)).collect();
    // Both characters were typed in one frame.
    assert_eq!(told, [(e::CLICKED, 2), (e::CHANGED, 3)]);
    let hidden = Script::parse("window v hidden=yes\nclick v").unwrap();
    let error = boot(Start::Empty, 1, 32).run(&hidden).unwrap_err();
    assert_eq!(error.to_string(), "line 2: v does not show, so the pointer cannot go there");
}

#[test]
fn texts_are_read_from_the_state() {
    let (short, long) = ("A short one: é", "A long text, again and again. ".repeat(20));
    let script = format!("window w \"W\"\nlabel a in w \"{short}\"\nlabel b in w \"{long}\"\nlabel c in w");
    let mut desktop = boot(Start::Empty, 1, 32);
    desktop.run(&Script::parse(&script).unwrap()).unwrap();
    let texts: Vec<String> = [1, 2, 3, 4, 5, u32::MAX].map(|widget| desktop.text(widget).unwrap()).into();
    assert_eq!(texts, ["W", short, &long, "", "", ""]);
}

/// Posts a click, is told, and then asks the desktop to end.
struct Clicks(Handle, Vec<(u16, u32)>);

impl Owners for Clicks {
    fn events(&mut self, _: usize) -> Vec<Event> {
        Vec::new()
    }

    fn told(&mut self, told: &[Event], desktop: &Desktop) {
        self.1.extend(told.iter().map(|event| (event.kind, event.key)));
        if !told.is_empty() {
            assert_eq!(desktop.text(2).unwrap(), "Changed");
            let handle = self.0.clone();
            std::thread::spawn(move || handle.stop());
        }
    }
}

#[test]
fn a_live_desktop_takes_posts_and_tells_owners() {
    let mut desktop = boot(Start::Empty, 1, 32);
    desktop.run(&Script::parse("window w left=10 top=10\nbutton b in w \"Old\"").unwrap()).unwrap();
    let (x, y) = desktop.middle(2).unwrap().unwrap();
    let at = |kind| Event { kind, a: (x * 256.0) as u32, b: (y * 256.0) as u32, ..Event::default() };
    let live = Live::default();
    let handle = live.handle();
    // What the machine or the desktop refuses does no harm.
    let refused = [1, 15, e::CREATE, e::SET, 999].map(|kind| Event { kind, key: 70_000, ..Event::default() });
    assert!(handle.post(refused.to_vec()));
    let word = |from: &str| from.chars().rev().fold(0, |word, c| word << 16 | c as u32);
    let text = Event { kind: e::TEXT, flags: 6 | e::TEXT_BEGINS, key: 2, a: word("Ch"), b: word("an"), ..at(0) };
    let more = Event { kind: e::TEXT, flags: 1, key: 2, a: word("d"), ..Event::default() };
    handle.post(vec![Event { id: word("ge"), ..text }, more, at(e::MOVE), at(e::PRESS), at(e::RELEASE)]);
    let mut owners = Clicks(handle.clone(), Vec::new());
    live.run(&mut desktop, &mut owners, Pace { rate: 60, effects: Effects::All }).unwrap();
    assert_eq!(owners.1, [(e::CLICKED, 2)]);
    assert!(!handle.post(Vec::new()), "the desktop has ended");
}

#[test]
fn the_machines_own_kernel_refuses_a_desktops_state() {
    let mut desktop = boot(Start::Empty, 1, 32);
    desktop.frame(&[]).unwrap();
    let start = Start::Checkpoint(desktop.checkpoint().unwrap());
    let options = gpu_run_machine::Options { threads: Some(32), ..gpu_run_machine::Options::default() };
    let error = Machine::boot(&COMPILER, &device(), start, options).unwrap_err().to_string();
    assert!(error.contains("`GPRD`, version 3") && error.contains("this kernel's is the machine's"), "{error}");
}

/// Sizes are found by functions that call themselves: a thread's stack is enough for the deepest tree, and a deeper one is refused.
#[test]
fn the_deepest_tree_is_laid_out_and_a_deeper_one_refused() {
    let script = |levels: usize| {
        let mut script = "window w1 \"Deep\" left=5 top=5 pad=4\n".to_owned();
        for level in 2..levels {
            script +=
                &format!("panel w{level} in w{} direction={} wrap=yes\n", level - 1, ["row", "column"][level % 2]);
        }
        script + &format!("label end in w{} \"end\"", levels - 1)
    };
    let mut desktop = boot(Start::Empty, 1, 32);
    desktop.run(&Script::parse(&script(14)).unwrap()).unwrap();
    let (x, y) = desktop.middle(14).unwrap().unwrap();
    assert!(x > 9.0 && x < 40.0 && y > 9.0 && y < 40.0, "{x} {y}");
    let error = boot(Start::Empty, 1, 32).run(&Script::parse(&script(15)).unwrap()).unwrap_err();
    assert!(error.to_string().contains("too deep"), "{error}");
}

/// A kernel of the desktop that does the same and is another file.
fn other_kernel() -> Kernel {
    let mut wasm = KERNEL.to_vec();
    wasm.extend([0, 2, 1, b'x']);
    Kernel::named("other.wasm", wasm).unwrap()
}

fn machine(kernel: Kernel, record: Option<Recorder>) -> Machine {
    let (threads, phases) = (Some(32), &map::PHASE_NAMES[..]);
    let options =
        gpu_run_machine::Options { rate: 0, held: true, threads, record, kernel, phases, ..Default::default() };
    Machine::boot(&COMPILER, &device(), Start::Empty, options).unwrap()
}

/// The desktop is a machine: it takes new code between two frames, and its log replays to the same state and the same pixels.
#[test]
fn a_recorded_desktop_takes_new_code_and_replays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let desktop = || Kernel::named("desktop.wasm", KERNEL.to_vec()).unwrap();
    let pixels = |machine: &Machine| hash(machine.read(map::PIXELS, WIDTH * HEIGHT * 4).unwrap().into_iter());
    let recorded = machine(desktop(), Some(Recorder::create(&path, 0).unwrap()));
    for (tick, events) in (0..).zip(frames()) {
        if tick == 4 {
            recorded.load(&COMPILER, &other_kernel()).unwrap();
            let refused = recorded.load(&COMPILER, &Kernel::built_in()).unwrap_err().to_string();
            assert!(refused.contains("cannot continue with this machine's state"), "{refused}");
        }
        events.iter().for_each(|event| recorded.post(*event).unwrap());
        recorded.run_to(tick + 1, PATIENCE).unwrap();
    }
    assert_eq!(pixels(&recorded), HASH);
    assert_eq!(recorded.status().restarts, 0);
    let ended = recorded.shutdown().unwrap();
    let log = Log::read(&path).unwrap();
    assert_eq!(log.codes.len(), 2);
    let replayed = machine(desktop(), None);
    replayed.replay(&COMPILER, &log, false, false).unwrap();
    let last = ended.checkpoint.tick();
    replayed.run_to(last, PATIENCE).unwrap();
    assert_eq!(pixels(&replayed), HASH);
    assert_eq!(replayed.shutdown().unwrap().hash, ended.hash);
}
