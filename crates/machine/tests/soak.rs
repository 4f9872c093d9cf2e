//! A machine under load for a minute: steady heartbeats, no drift, nothing left behind. `GPU_RUN_SOAK=600` makes it ten.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;

use gpu_run_machine::{Load, Options};
use std::time::{Duration, Instant};
use support::*;

/// Events a second.
const LOAD: f64 = 2000.0;

#[test]
fn a_soak_has_steady_heartbeats_no_drift_and_leaves_nothing_behind() {
    let seconds = std::env::var("GPU_RUN_SOAK").ok().and_then(|n| n.parse().ok()).unwrap_or(60);
    let machine = boot(Options { rate: 120, ..quick() });
    let (began, first) = (Instant::now(), machine.state().tick);
    let (mut load, mut posted) = (Load::new(11), 0);
    while began.elapsed() < Duration::from_secs(seconds) {
        while (posted as f64) < began.elapsed().as_secs_f64() * LOAD {
            load.next().into_iter().for_each(|event| post(&machine, event));
            posted += 1;
        }
        machine.take_events();
        std::thread::sleep(Duration::from_millis(5));
    }
    let (time, state) = (began.elapsed().as_secs_f64(), machine.state());
    let ticks = (state.tick - first) as f64;
    // Other tests may take the cores for a while: then ticks are late, and those far behind are left out.
    assert!(ticks > 0.9 * 120.0 * time && ticks < 1.02 * 120.0 * time, "{ticks} ticks in {time:.1} s: {state:?}");
    assert!(state.heartbeat_gap < Duration::from_secs(1), "{state:?}");
    assert_eq!((state.launches, state.waits, state.restarts, state.lost), (0, 0, 0, 0));

    wait_for(&machine, "timers", |machine| machine.state().waiting == 0 && machine.state().timers == 0);
    Load::farewell().for_each(|event| post(&machine, event));
    wait_for(&machine, "an empty heap", |machine| machine.state().waiting == 0 && machine.state().heap_bytes == 0);
    wait_for(&machine, "no work", |machine| machine.state().work == 0);
    let ended = end(machine);
    assert!(ended.checkpoint.tick() >= state.tick);
}
