//! What a map reports while it runs, for whoever wants to print it.

use crate::error::Error;
use crate::handover::HandoverReason;
use crate::input::{Flaw, Location};
use crate::output::writer::StopReason;
use gpu_run_compiler::Trap;
use gpu_run_run::Denied;
use std::time::Duration;

/// Is called for each event, in order. No batch is written during a call.
pub trait Observer: Send {
    /// The map begins or continues. `input_bytes` is the length of the input, if known.
    fn begun(&mut self, _input_bytes: Option<u64>, _summary: &Summary) {}
    /// A batch was written.
    fn written(&mut self, _summary: &Summary) {}
    fn record_failed(&mut self, _record: &FailedRecord<'_>) {}
    /// All records are written.
    fn finished(&mut self, _summary: &Summary) {}
    /// The map stops before the end of its input.
    fn stopped(&mut self, _stopped: Stopped) {}
    /// A device was lost; the map continues on others.
    fn device_lost(&mut self, _lost: &LostDevice) {}
    /// Another process is about to continue.
    fn handing_over(&mut self, _reason: &HandoverReason) {}
}

/// Ignores everything.
impl Observer for () {}

/// A device that was lost while others can continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostDevice {
    /// Its id.
    pub device: String,
    pub error: String,
    /// The ids of those that continue.
    pub others: Vec<String>,
}

/// How far a map is. Of a shard, only the shard's records and bytes count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Records written by this run and earlier ones.
    pub records: u64,
    /// Records written by earlier runs.
    pub before: u64,
    pub failed: u64,
    /// The time that this run has taken so far, in all its processes.
    pub elapsed: Duration,
    /// Bytes of input whose records are written.
    pub input_offset: u64,
}

#[derive(Debug)]
pub struct FailedRecord<'a> {
    pub number: u64,
    pub location: &'a Location,
    pub failure: RecordFailure<'a>,
    /// What its instance was refused.
    pub denied: Option<Denied>,
    /// The end of stderr, if it is long.
    pub stderr: &'a [u8],
    /// Its number among the failures of this run, from 1.
    pub nth: u64,
}

/// What went wrong with a record.
#[derive(Debug)]
pub enum RecordFailure<'a> {
    /// It could not be run.
    Flawed(&'a Flaw),
    PrintedTooMuch,
    Exited(u32),
    /// It did not finish in time; this is where it was then.
    TimedOut(&'a Trap),
    Trapped(&'a Trap),
}

#[derive(Debug)]
pub struct Stopped {
    pub reason: StopReason,
    pub summary: Summary,
    /// The record at which a later run can continue, if one can.
    pub resumes_at: Option<u64>,
    /// Why the last output could not be made safe.
    pub error: Option<Error>,
}
