//! What runs have cost.

use gpu_run_map::Share;
use gpu_run_run::RunStats;
use std::time::Duration;

/// What a run or a map has cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    pub instances: u64,
    pub launches: u64,
    /// Calls of guests that the host answered.
    pub host_calls: u64,
    /// Instances that ran again: a fast build was not sure of them, or they needed more than they were given first.
    pub reruns: u64,
    /// Instances that ran on `cpu`, because the device has no memory for a stack as deep as theirs.
    pub on_host: u64,
    /// Bytes of device memory that instances took, at most.
    pub device_bytes: u64,
    /// Time on the host before launches.
    pub prepare: Duration,
    /// Time from the begin to the end of launches, summed over all of them.
    pub run: Duration,
    /// Time on the host after launches.
    pub collect: Duration,
    /// What each device did of a map of files.
    pub devices: Vec<DeviceShare>,
}

/// What a device did of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceShare {
    /// As in `cuda:0`.
    pub device: String,
    pub records: u64,
    pub batches: u64,
    /// Time from the begin to the end of its launches.
    pub run: Duration,
    /// Whether it was lost, and others continued.
    pub is_lost: bool,
}

impl From<&RunStats> for Statistics {
    fn from(stats: &RunStats) -> Self {
        Self {
            instances: stats.instances,
            launches: stats.launches,
            host_calls: stats.hostcalls,
            reruns: stats.reruns,
            on_host: stats.on_host,
            device_bytes: stats.device_bytes,
            prepare: stats.prepare,
            run: stats.run,
            collect: stats.collect,
            devices: Vec::new(),
        }
    }
}

impl From<&Share> for DeviceShare {
    fn from(share: &Share) -> Self {
        let Share { device, records, batches, run, is_lost, .. } = share.clone();
        Self { device, records, batches, run, is_lost }
    }
}
