//! A held machine on the `cpu` device: it rests, and wakes when somebody wants something.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;

use gpu_run_machine::event::{self, Event};
use gpu_run_machine::{Machine, Options};
use std::time::{Duration, Instant};
use support::*;

/// Waits until a held machine rests: then its heartbeats are hundreds of milliseconds apart.
fn wait_for_rest(machine: &Machine) {
    let (mut clock, mut since) = (machine.status().clock, Instant::now());
    wait_for(machine, "rest", |machine| {
        let now = machine.status().clock;
        if now != clock {
            (clock, since) = (now, Instant::now());
        }
        since.elapsed() > Duration::from_millis(150)
    });
}

#[test]
fn a_held_machine_rests_and_wakes_at_once() {
    let machine = boot(Options { held: true, ..quick() });
    let mut fastest = Duration::MAX;
    for id in 1..4 {
        wait_for_rest(&machine);
        let since = Instant::now();
        assert_eq!(ask(&machine, Event { kind: event::PING, id, ..Event::default() }).id, id);
        fastest = fastest.min(since.elapsed());
        wait_for_rest(&machine);
        let since = Instant::now();
        post(&machine, Event { kind: event::CREATE, key: id, a: 4096, id: 100 + id, ..Event::default() });
        machine.run_to(id as u64, PATIENCE).unwrap();
        assert_eq!((machine.status().tick, machine.status().waiting), (id as u64, 0));
        fastest = fastest.min(since.elapsed());
        wait_for_rest(&machine);
        assert_eq!(machine.snapshot().unwrap().tick(), id as u64);
    }
    assert!(fastest < Duration::from_millis(50), "{fastest:?}");
    // A rest is no silence.
    let clock = machine.status().clock;
    wait_for(&machine, "a heartbeat long after", |machine| machine.status().clock > clock + Duration::from_secs(4));
    let state = machine.status();
    assert_eq!((state.restarts, state.objects), (0, 3));
    assert_eq!(end(machine).checkpoint.tick(), 3);
}

#[test]
fn a_resting_machine_takes_new_code_and_is_restarted_if_silent() {
    let machine = boot(Options { held: true, ..quick() });
    wait_for_rest(&machine);
    machine.load(compiler(), &debug_kernel()).unwrap();
    wait_for_rest(&machine);
    machine.mute();
    wait_for(&machine, "a restart", |machine| machine.status().restarts == 1);
    machine.run_to(2, PATIENCE).unwrap();
    wait_for_rest(&machine);
    machine.go();
    wait_for(&machine, "ticks", |machine| machine.status().tick > 100);
    end(machine);
}
