//! A machine under load for 1,200 ticks, ten seconds where the cores are its own: no drift, nothing left behind. With
//! `scripts/test --all` it is a minute; `GPU_RUN_SOAK=72000` makes it ten.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;

use gpu_run_machine::{Options, Workload};
use std::time::{Duration, Instant};
use support::*;

/// Ticks a second.
const RATE: u32 = 120;
/// Events for each tick.
const LOAD: u64 = 17;

#[test]
fn a_soak_has_no_drift_and_leaves_nothing_behind() {
    let usual = if std::env::var_os("GPU_RUN_TEST_ALL").is_some() { 7200 } else { 1200 };
    let ticks = std::env::var("GPU_RUN_SOAK").ok().and_then(|n| n.parse().ok()).unwrap_or(usual);
    let machine = boot(Options { rate: RATE, ..quick() });
    let (began, first) = (Instant::now(), machine.status().tick);
    let (mut load, mut posted, mut last) = (Workload::new(11), 0, (began, 0));
    while last.1 < ticks {
        while posted < last.1 * LOAD {
            load.next().into_iter().for_each(|event| post(&machine, event));
            posted += 1;
        }
        machine.take_events();
        std::thread::sleep(Duration::from_millis(5));
        let done = machine.status().tick - first;
        if done > last.1 {
            last = (Instant::now(), done);
        }
        assert!(last.0.elapsed() < PATIENCE, "it does not tick: {:?}", machine.status());
    }
    let (time, state) = (began.elapsed().as_secs_f64(), machine.status());
    // Where others have the cores, ticks are late; they are never early, but for those that were late before.
    let (ticks, due) = ((state.tick - first) as f64, f64::from(RATE) * time);
    assert!(ticks < due + f64::from(RATE), "{ticks} ticks in {time:.1} s: {state:?}");
    assert_eq!((state.launches, state.waits, state.restarts, state.lost), (0, 0, 0, 0));

    wait_for(&machine, "timers", |machine| machine.status().waiting == 0 && machine.status().timers == 0);
    Workload::farewell().for_each(|event| post(&machine, event));
    wait_for(&machine, "an empty heap", |machine| machine.status().waiting == 0 && machine.status().heap_bytes == 0);
    wait_for(&machine, "no work", |machine| machine.status().work == 0);
    let ended = end(machine);
    assert!(ended.checkpoint.tick() >= state.tick);
}
