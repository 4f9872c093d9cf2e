//! A machine on the `cpu` device: talked to, kept, resumed, started again.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;

use gpu_run_machine::event::{self, Event};
use gpu_run_machine::{Checkpoint, Error, GridSize, Log, Machine, Options, Recorder, Start, Strategy, Workload};
use std::sync::Arc;
use std::time::Duration;
use support::*;

fn object(kind: u16, key: u32, a: u32, b: u32, id: u32) -> Event {
    Event { kind, key, a, b, id, ..Event::default() }
}

#[test]
fn events_are_answered_and_nothing_is_launched_or_waited_for() {
    let machine = boot(Options { rate: 1000, ..quick() });
    let pong = ask(&machine, Event { kind: event::PING, id: 1, ..Event::default() });
    assert_eq!(pong.kind, event::PING | event::REPLY);
    assert_eq!(ask(&machine, object(event::CREATE, 3, 4096, 0, 2)).a, event::DONE);
    assert_eq!(ask(&machine, object(event::WRITE, 3, 400, 99, 3)).a, event::DONE);
    let read = ask(&machine, object(event::READ, 3, 400, 0, 4));
    assert_eq!((read.a, read.b), (event::DONE, 99));
    assert_eq!(ask(&machine, object(event::READ, 4, 0, 0, 5)).a, event::MISSING);
    wait_for(&machine, "a heartbeat with the object in it", |machine| machine.status().objects == 1);
    let state = machine.status();
    assert_eq!((state.launches, state.waits, state.heap_bytes), (0, 0, 4096));
    let ended = end(machine);
    assert!(ended.checkpoint.tick() > 0);
}

#[test]
fn a_mark_is_no_event_and_a_full_ring_says_so() {
    let machine = boot(Options { held: true, ..quick() });
    let mark = Event { kind: event::MARK, ..Event::default() };
    assert!(matches!(machine.post(mark), Err(Error::Usage(_))));
    let full = (0..100_000).find_map(|id| machine.post(object(event::READ, 1, 0, 0, id)).err());
    assert!(matches!(full, Some(Error::Full { waiting }) if waiting > 10_000), "{full:?}");
    machine.go();
    wait_for(&machine, "room", |machine| machine.status().waiting == 0);
}

/// A log with some of everything, and what it comes to.
fn recorded(folder: &std::path::Path) -> (Log, gpu_run_machine::Hash) {
    let path = folder.join("log");
    let record = Some(Recorder::create(&path, 0).unwrap());
    let machine = boot(Options { record, rate: 500, ..quick() });
    for seed in 0..8 {
        post_load(&machine, seed, 150);
        // The next ones are for later ticks.
        let tick = machine.status().tick;
        wait_for(&machine, "a tick", |machine| machine.status().waiting == 0 && machine.status().tick > tick + 1);
    }
    wait_for(&machine, "all events", |machine| machine.status().waiting == 0 && machine.status().events >= 1000);
    let ended = end(machine);
    let log = Log::read(&path).unwrap();
    assert_eq!(log.end, Some((ended.checkpoint.tick(), ended.hash)));
    assert!(log.ticks.len() > 3, "all in {} ticks", log.ticks.len());
    (log, ended.hash)
}

#[test]
fn one_log_gives_one_hash_under_every_strategy_and_grid() {
    let folder = tempfile::tempdir().unwrap();
    let (log, hash) = recorded(folder.path());
    for strategy in strategies() {
        for grid in GRIDS {
            let machine = boot(Options { strategy, grid, held: true, ..quick() });
            machine.replay(compiler(), &log, false, false).unwrap();
            let ended = end(machine);
            assert_eq!((ended.checkpoint.tick(), ended.hash), (log.last_tick(), hash), "{strategy}, {grid:?}");
        }
    }
    // And with other numbers of threads.
    for threads in [32, 256] {
        let machine = boot(Options { threads: Some(threads), held: true, ..quick() });
        machine.replay(compiler(), &log, false, false).unwrap();
        assert_eq!(end(machine).hash, hash, "{threads} threads");
    }
}

#[test]
fn a_checkpoint_and_the_rest_of_the_log_come_to_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (log, hash) = recorded(folder.path());
    let mut half = log.clone();
    half.ticks.truncate(log.ticks.len() / 2);
    half.end = None;
    let machine = boot(Options { held: true, ..quick() });
    machine.replay(compiler(), &half, false, false).unwrap();
    let path = folder.path().join("machine.ckpt");
    let kept = machine.checkpoint(&path).unwrap();
    assert_eq!(kept.tick(), half.last_tick());
    drop(machine);

    let start = Start::Checkpoint(Arc::new(Checkpoint::read(&path).unwrap()));
    let options = Options { held: true, strategy: Strategy::Redispatch, grid: GridSize::Groups(2), ..quick() };
    let machine = Machine::boot(compiler(), &device(), start, options).unwrap();
    machine.replay(compiler(), &log, false, false).unwrap();
    assert_eq!(end(machine).hash, hash);
}

#[test]
fn a_log_that_begins_later_than_the_machine_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    drop(Recorder::create(&path, 50).unwrap());
    let machine = boot(Options { held: true, ..quick() });
    let refused = machine.replay(compiler(), &Log::read(&path).unwrap(), false, false).unwrap_err().to_string();
    assert!(refused.contains("50"), "{refused}");
}

#[test]
fn a_silent_machine_is_noticed_and_goes_on_as_if_nothing_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let record = Some(Recorder::create(&path, 0).unwrap());
    let machine = boot(Options { record, rate: 200, kernel: debug_kernel(), ..quick() });
    post_load(&machine, 1, 300);
    machine.snapshot().unwrap();
    post_load(&machine, 2, 300);
    wait_for(&machine, "all events", |machine| machine.status().waiting == 0);
    machine.mute();
    wait_for(&machine, "a restart", |machine| machine.status().restarts > 0);
    post_load(&machine, 3, 100);
    wait_for(&machine, "events after it", |machine| machine.status().waiting == 0 && machine.status().events >= 700);
    let notices = machine.notices();
    assert!(
        notices.iter().any(|notice| notice.contains("no heartbeat") && notice.contains("checkpoint")),
        "{notices:?}"
    );
    let ended = end(machine);

    // What the log says is what has happened, the restart left out.
    let log = Log::read(&path).unwrap();
    let machine = boot(Options { held: true, ..quick() });
    machine.replay(compiler(), &log, false, false).unwrap();
    assert_eq!(end(machine).hash, ended.hash);
}

#[test]
fn a_phase_that_does_not_get_on_is_named() {
    let machine = boot(Options { rate: 200, kernel: debug_kernel(), ..quick() });
    post(&machine, Event { kind: event::STALL, a: 1800, ..Event::default() });
    let mut notices = Vec::new();
    wait_for(&machine, "a notice", |machine| {
        notices.extend(machine.notices());
        !notices.is_empty()
    });
    assert!(notices[0].contains("`objects`"), "{notices:?}");
    wait_for(&machine, "its end", |machine| machine.status().stuck.is_none());
    assert_eq!(machine.status().restarts, 0);
    end(machine);
}

#[test]
fn what_users_boot_can_be_neither_stalled_nor_muted() {
    let machine = boot(Options { rate: 200, ..quick() });
    assert_eq!(ask(&machine, Event { kind: event::STALL, a: 1800, id: 1, ..Event::default() }).a, event::UNKNOWN);
    machine.mute();
    let clock = machine.status().clock;
    wait_for(&machine, "a heartbeat long after", |machine| machine.status().clock > clock + Duration::from_secs(3));
    assert_eq!(machine.status().restarts, 0);
    end(machine);
}

#[test]
fn messages_from_the_device_name_their_thread() {
    let machine = boot(Options { kernel: debug_kernel(), rate: 200, ..quick() });
    (0..300).for_each(|key| post(&machine, object(event::CREATE, key, 1 << 16, 0, key)));
    let mut messages = Vec::new();
    wait_for(&machine, "a message", |machine| {
        messages.extend(machine.debug_messages());
        !messages.is_empty()
    });
    assert!(messages[0].starts_with("[0:0] no room for ") && messages[0].ends_with(" of 65536 bytes"), "{messages:?}");
}

#[test]
fn without_objects_the_heap_is_empty_again() {
    let machine = boot(quick());
    post_load(&machine, 5, 2000);
    Workload::farewell().for_each(|event| post(&machine, event));
    // Events that wait come later than the farewell: once more, when all have had their effect.
    wait_for(&machine, "timers", |machine| machine.status().waiting == 0 && machine.status().timers == 0);
    Workload::farewell().for_each(|event| post(&machine, event));
    wait_for(&machine, "an empty heap", |machine| machine.status().heap_bytes == 0 && machine.status().objects == 0);
    wait_for(&machine, "no work", |machine| machine.status().work == 0);
    end(machine);
}

#[test]
fn answers_that_nobody_takes_are_counted_and_told_once() {
    let machine = boot(quick());
    for id in 0..20_000 {
        post(&machine, Event { flags: event::ANSWER, ..object(event::READ, 1, 0, 0, id) });
    }
    wait_for(&machine, "all events", |machine| {
        machine.status().waiting == 0 && machine.status().lost == 20_000 - 16_384
    });
    let mut notices = Vec::new();
    wait_for(&machine, "a notice", |machine| {
        notices.extend(machine.notices());
        !notices.is_empty()
    });
    assert!(notices[0].contains("16384"), "{notices:?}");
    // Those that waited are there, in order, and there is room again.
    let ids: Vec<u32> = machine.take_events().iter().map(|answer| answer.id).collect();
    assert!(ids.iter().copied().eq(0..16_384), "{} answers", ids.len());
    assert_eq!(ask(&machine, object(event::READ, 1, 0, 0, 77_777)).a, event::MISSING);
    end(machine);
}
