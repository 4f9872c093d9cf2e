//! What a booted machine publishes for `gpu-run top`.

use crate::published::Published;
use gpu_run_console::units::milliseconds;
use gpu_run_machine::Status;
use serde::{Deserialize, Serialize};

/// A machine's state, as another process sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct MachineStatus {
    pub(crate) pid: u32,
    pub(crate) device: String,
    pub(crate) strategy: String,
    /// Seconds since the machine came up.
    pub(crate) seconds: f64,
    pub(crate) tick: u64,
    pub(crate) events: u64,
    pub(crate) refused: u64,
    pub(crate) waiting: u32,
    pub(crate) lost: u64,
    pub(crate) heap_bytes: u64,
    pub(crate) objects: u64,
    pub(crate) timers: u64,
    pub(crate) work: u64,
    pub(crate) heartbeat_gap_ms: f64,
    pub(crate) late: u64,
    pub(crate) launches: u64,
    pub(crate) restarts: u32,
    pub(crate) loads: u32,
    pub(crate) load_gap_ms: f64,
    /// As a fraction of one core.
    pub(crate) host_cpu: f64,
    /// For each phase: name, seconds, share of active lanes.
    pub(crate) phases: Vec<(String, f64, Option<f64>)>,
    pub(crate) stuck: Option<String>,
}

impl MachineStatus {
    pub(crate) fn new(device: &str, strategy: &str, seconds: f64, host_cpu: f64, state: &Status) -> Self {
        let phase = |p: &gpu_run_machine::Phase| (p.name.to_owned(), p.time.as_secs_f64(), p.lanes_active());
        Self {
            pid: std::process::id(),
            device: device.to_owned(),
            strategy: strategy.to_owned(),
            seconds,
            tick: state.tick,
            events: state.events,
            refused: state.refused,
            waiting: state.waiting,
            lost: state.lost,
            heap_bytes: state.heap_bytes,
            objects: state.objects,
            timers: state.timers,
            work: state.work,
            heartbeat_gap_ms: milliseconds(state.heartbeat_gap),
            late: state.late,
            launches: state.launches,
            restarts: state.restarts,
            loads: state.loads,
            load_gap_ms: milliseconds(state.load_gap),
            host_cpu,
            phases: state.phases.iter().map(phase).collect(),
            stuck: state.stuck.map(str::to_owned),
        }
    }
}

impl Published for MachineStatus {
    const PREFIX: &'static str = "machine-";
    fn pid(&self) -> u32 {
        self.pid
    }
}
