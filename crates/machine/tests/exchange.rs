//! New code for a machine that is up: its state goes on, what cannot be loaded is refused, and a log knows which code a tick ran with.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;

use gpu_run_machine::event::{self, Event};
use gpu_run_machine::{Error, KERNEL, KERNEL_DEBUG, Kernel, Loaded, Log, Machine, Options, Recorder, Strategy};
use std::time::Duration;
use support::*;

/// `i32.const` of a number that `work` mixes with, as it is in the module.
const MIXES: [u8; 6] = [0x41, 0xeb, 0x94, 0xaf, 0xaf, 0x78];

/// The kernel with another number in its place, of the same length: objects that are worked on come to something else.
fn other_kernel() -> Kernel {
    other(KERNEL)
}

fn other(kernel: &[u8]) -> Kernel {
    let mut wasm = kernel.to_vec();
    let places: Vec<usize> = (0..wasm.len() - MIXES.len()).filter(|at| wasm[*at..].starts_with(&MIXES)).collect();
    assert!(!places.is_empty(), "the kernel has no such number any more");
    for at in places {
        wasm[at + 2] ^= 0x04;
    }
    Kernel::named("other.wasm", wasm).unwrap()
}

/// Does nothing: not even tick.
fn idle_kernel() -> Kernel {
    trap_kernel("")
}

/// A kernel whose `run` is this.
fn trap_kernel(run: &str) -> Kernel {
    let versions = [gpu_run_machine::layout::VERSION, gpu_run_machine::layout::INTERFACE];
    let bytes: String =
        versions.iter().flat_map(|word| word.to_le_bytes()).map(|byte| format!("\\{byte:02x}")).collect();
    let text = format!(
        r#"(module (@custom "gpu-run-machine" "{bytes}") (memory 304) (func (export "boot")) (func (export "run") {run}))"#
    );
    Kernel::named("small.wasm", wat::parse_str(text).unwrap()).unwrap()
}

fn load(machine: &Machine, image: &Kernel) -> Loaded {
    let loaded = machine.load(compiler(), image).unwrap();
    assert!(loaded.gap > Duration::ZERO, "{loaded:?}");
    assert_eq!(machine.kernel(), *image);
    loaded
}

/// Ticks with events, loads in between; the log of it, and what it came to.
fn recorded(folder: &std::path::Path, images: &[Kernel], options: Options) -> (Log, gpu_run_machine::Hash) {
    let path = folder.join("log");
    let machine = boot(Options { record: Some(Recorder::create(&path, 0).unwrap()), rate: 500, ..options });
    let mut ticks = Vec::new();
    for (seed, image) in images.iter().enumerate() {
        post_load(&machine, seed as u64, 200);
        wait_for(&machine, "a tick", |machine| machine.status().waiting == 0);
        ticks.push(load(&machine, image).tick);
        assert_eq!(machine.status().loads as usize, ticks.len());
    }
    post_load(&machine, 99, 200);
    wait_for(&machine, "all events", |machine| machine.status().waiting == 0);
    // Work that an event asks for begins in the tick after it.
    let taken = machine.status().tick;
    wait_for(&machine, "work", |machine| machine.status().tick > taken + 2);
    let ended = end(machine);
    let log = Log::read(&path).unwrap();
    let codes: Vec<_> = images.iter().map(Kernel::hash).collect();
    assert_eq!(log.codes[0], (0, Kernel::built_in().hash()));
    assert_eq!(log.codes[1..].iter().map(|(tick, _)| *tick).collect::<Vec<_>>(), ticks);
    assert_eq!(log.codes[1..].iter().map(|(_, hash)| *hash).collect::<Vec<_>>(), codes);
    (log, ended.hash)
}

fn replayed(log: &Log, options: Options) -> gpu_run_machine::Hash {
    let machine = boot(Options { held: true, ..options });
    machine.replay(compiler(), log, false, false).unwrap();
    let ended = end(machine);
    assert_eq!(ended.checkpoint.tick(), log.last_tick());
    ended.hash
}

#[test]
fn the_same_code_comes_to_what_it_would_have_without_a_load() {
    for strategy in strategies() {
        let folder = tempfile::tempdir().unwrap();
        let (mut log, hash) =
            recorded(folder.path(), &[Kernel::built_in(), debug_kernel()], Options { strategy, ..quick() });
        // As if nothing had been loaded.
        log.codes.truncate(1);
        assert_eq!(replayed(&log, quick()), hash, "{strategy}");
    }
}

#[test]
fn other_code_does_something_else_and_a_replay_does_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (log, hash) = recorded(folder.path(), &[other_kernel()], quick());
    for strategy in [Strategy::Resident, Strategy::Buffered(3)] {
        assert_eq!(replayed(&log, Options { strategy, ..quick() }), hash, "{strategy}");
    }
    // Whatever the machine begins with.
    assert_eq!(replayed(&log, Options { kernel: other_kernel(), ..quick() }), hash);
    let mut without = log.clone();
    without.codes.truncate(1);
    assert_ne!(replayed(&without, quick()), hash);
}

#[test]
fn messages_come_from_the_code_that_was_loaded() {
    let machine = boot(Options { rate: 500, ..quick() });
    let full = |first: u32| {
        (first..first + 300).for_each(|key| {
            post(&machine, Event { kind: event::CREATE, key, a: 1 << 16, ..Event::default() });
        });
        wait_for(&machine, "all events", |machine| machine.status().waiting == 0);
    };
    full(0);
    assert_eq!(machine.debug_messages(), [""; 0]);
    load(&machine, &debug_kernel());
    full(300);
    wait_for(&machine, "objects", |machine| machine.status().refused >= 300);
    load(&machine, &Kernel::built_in());
    let messages = machine.debug_messages();
    assert!(messages.iter().any(|message| message.contains("no room for")), "{messages:?}");
}

#[test]
fn what_cannot_be_loaded_is_refused_and_the_machine_goes_on() {
    let machine = boot(Options { rate: 500, ..quick() });
    // It is an image by all that can be seen; the compiler knows better.
    let wrong = trap_kernel("i32.add");
    let refused = machine.load(compiler(), &wrong).unwrap_err();
    assert!(matches!(refused, Error::Engine(_)), "{refused}");
    let tick = machine.status().tick;
    wait_for(&machine, "ticks", |machine| machine.status().tick > tick + 20);
    let state = machine.status();
    assert_eq!((state.loads, state.restarts), (0, 0));
    load(&machine, &Kernel::built_in());
    end(machine);
}

#[test]
fn a_held_machine_takes_new_code_without_a_tick() {
    let machine = boot(Options { held: true, ..quick() });
    machine.run_to(30, PATIENCE).unwrap();
    let loaded = load(&machine, &other_kernel());
    assert_eq!((loaded.tick, loaded.between_ticks), (30, None));
    machine.run_to(40, PATIENCE).unwrap();
    assert_eq!(end(machine).checkpoint.tick(), 40);
}

#[test]
fn a_restart_goes_on_with_the_code_that_was_loaded_last() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let machine = boot(Options { record: Some(Recorder::create(&path, 0).unwrap()), rate: 200, ..quick() });
    post_load(&machine, 1, 200);
    wait_for(&machine, "all events", |machine| machine.status().waiting == 0);
    let other = other(KERNEL_DEBUG);
    load(&machine, &other);
    post_load(&machine, 2, 200);
    wait_for(&machine, "all events", |machine| machine.status().waiting == 0);
    machine.mute();
    wait_for(&machine, "a restart", |machine| machine.status().restarts == 1);
    post_load(&machine, 3, 200);
    wait_for(&machine, "all events", |machine| machine.status().waiting == 0 && machine.status().events >= 600);
    assert_eq!(machine.kernel(), other);
    let ended = end(machine);
    assert_eq!(replayed(&Log::read(&path).unwrap(), quick()), ended.hash);
}

#[test]
fn code_that_fails_at_once_is_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let machine = boot(Options { record: Some(Recorder::create(&path, 0).unwrap()), rate: 200, ..quick() });
    post_load(&machine, 1, 300);
    wait_for(&machine, "all events", |machine| machine.status().waiting == 0);
    for image in [trap_kernel("unreachable"), idle_kernel()] {
        let restarts = machine.status().restarts;
        let failed = machine.load(compiler(), &image).unwrap_err().to_string();
        assert!(failed.contains("failed at once"), "{failed}");
        wait_for(&machine, "what was", |machine| machine.kernel() == Kernel::built_in());
        let tick = machine.status().tick;
        wait_for(&machine, "ticks", |machine| machine.status().tick > tick + 5);
        assert_eq!(machine.status().restarts, restarts + 2, "{:?}", machine.notices());
        // A restart is counted until there is a checkpoint.
        machine.snapshot().unwrap();
    }
    let ended = end(machine);
    assert_eq!(replayed(&Log::read(&path).unwrap(), quick()), ended.hash);
}
