//! What a machine reports with every heartbeat.

use crate::layout::*;
use gpu_run_device::Shared;
use std::time::Duration;

/// A machine's state, at most about a millisecond old; while a machine on `cpu` rests, because it is held and has nothing to do, its
/// clock and rounds are up to half a second old.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// Ticks done.
    pub tick: u64,
    /// Events that ticks took, including fired timers; and how many of those an object, the timers or the work queue
    /// refused.
    pub events: u64,
    pub refused: u64,
    pub heap_bytes: u64,
    pub objects: u64,
    pub timers: u64,
    /// Work items that wait.
    pub work: u64,
    /// Answers that were dropped because the ring of answers was full.
    pub lost: u64,
    /// Rounds of the supervisor.
    pub iterations: u64,
    /// The device's clock at the last heartbeat.
    pub clock: Duration,
    /// The longest time between two heartbeats.
    pub heartbeat_gap: Duration,
    /// Ticks that began more than half a period late.
    pub late: u64,
    /// Launches that left because of their time limit.
    pub limits: u64,
    /// The phase in which the workers have made no progress for a second.
    pub stuck: Option<&'static str>,
    pub phases: Vec<Phase>,
    /// Events posted and not yet taken.
    pub waiting: u32,
    /// Since the machine came up: launches, waits for a launch to finish, copies to and from a GPU that the host waited
    /// for (checkpoints are such copies), and restarts.
    pub launches: u64,
    pub waits: u64,
    pub copies: u64,
    pub restarts: u32,
    /// How often new code was loaded, and for how long no tick could begin during the last load.
    pub loads: u32,
    pub load_gap: Duration,
    /// CPU time of the machine's thread on the host.
    pub host_cpu: Duration,
}

impl Status {
    /// Returns the share of lanes that had something to do: the mean over all phases that did anything.
    pub fn lanes_active(&self) -> Option<f64> {
        let shares: Vec<f64> = self.phases.iter().filter_map(Phase::lanes_active).collect();
        (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
    }
}

/// What one phase has used so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Phase {
    pub name: &'static str,
    pub time: Duration,
    pub active: u64,
    pub slots: u64,
}

impl Phase {
    pub fn lanes_active(&self) -> Option<f64> {
        (self.slots != 0).then(|| self.active as f64 / self.slots as f64)
    }
}

/// Phases that the device's counters have room for, with that of waiting.
const MAX_PHASES: usize = (STATUS_SLOTS - STATUS_ACTIVE) as usize;

/// Sums up the device's 32-bit counters of lanes, which wrap around.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lanes {
    seen: [[u32; 2]; MAX_PHASES],
    total: [[u64; 2]; MAX_PHASES],
}

impl Lanes {
    pub(crate) fn look(&mut self, bus: &Shared) {
        for phase in 0..MAX_PHASES {
            for (which, word) in [STATUS_ACTIVE, STATUS_SLOTS].into_iter().enumerate() {
                let now = status(bus, word + phase as u32) as u32;
                self.total[phase][which] += now.wrapping_sub(self.seen[phase][which]) as u64;
                self.seen[phase][which] = now;
            }
        }
    }

    /// The device's counters start at zero again.
    pub(crate) fn forget_seen(&mut self) {
        self.seen = Default::default();
    }
}

/// Reads a status word.
pub(crate) fn status(bus: &Shared, which: u32) -> u64 {
    bus.load_u64((STATUS + which * 8) as u64)
}

/// Reads the status words into a [`Status`].
pub(crate) fn read(bus: &Shared, lanes: &Lanes, names: &[&'static str]) -> Status {
    let word = |which| status(bus, which);
    let phase = |index: usize| Phase {
        name: names[index],
        time: Duration::from_nanos(word(STATUS_TIME + index as u32)),
        active: lanes.total[index][0],
        slots: lanes.total[index][1],
    };
    Status {
        tick: word(STATUS_TICK),
        events: word(STATUS_EVENTS),
        refused: word(STATUS_REFUSED),
        heap_bytes: word(STATUS_HEAP),
        objects: word(STATUS_OBJECTS),
        timers: word(STATUS_TIMERS),
        work: word(STATUS_WORK),
        lost: word(STATUS_LOST),
        iterations: word(STATUS_ITERATIONS),
        clock: Duration::from_nanos(word(STATUS_CLOCK)),
        heartbeat_gap: Duration::from_nanos(word(STATUS_GAP)),
        late: word(STATUS_LATE),
        limits: word(STATUS_LIMITS),
        stuck: stuck(bus, names),
        phases: (1..names.len().min(MAX_PHASES)).map(phase).collect(),
        ..Status::default()
    }
}

/// Returns the phase in which the workers are stuck.
pub(crate) fn stuck(bus: &Shared, names: &[&'static str]) -> Option<&'static str> {
    let phase = status(bus, STATUS_STUCK).checked_sub(1)?;
    names.get(phase as usize).copied()
}
