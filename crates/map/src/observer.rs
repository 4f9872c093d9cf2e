//! What is said of a map while it runs, to whoever wants to print it.

use crate::error::Error;
use crate::handover::HandoverReason;
use crate::input::{Flaw, Location};
use crate::output::writer::StopReason;
use gpu_run_compiler::Trap;
use gpu_run_run::Denied;
use std::time::Duration;

/// Is told what happens, in order. No batch is written meanwhile.
pub trait Observer: Send {
    /// The map begins, or goes on. The input has so many bytes, if that is known.
    fn begun(&mut self, _input_bytes: Option<u64>, _summary: &Summary) {}
    /// A batch was written.
    fn written(&mut self, _summary: &Summary) {}
    fn record_failed(&mut self, _record: &FailedRecord<'_>) {}
    /// All records are written.
    fn finished(&mut self, _summary: &Summary) {}
    /// The map ends before its input does.
    fn stopped(&mut self, _stopped: Stopped) {}
    /// Another process is to go on.
    fn handing_over(&mut self, _reason: &HandoverReason) {}
}

/// Nobody listens.
impl Observer for () {}

/// How far a map is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Records that are written, by this run and earlier ones.
    pub records: u64,
    /// Those that earlier runs wrote.
    pub before: u64,
    pub failed: u64,
    /// The time that this run takes so far, in all its processes.
    pub elapsed: Duration,
    /// Bytes of input that are dealt with.
    pub input_offset: u64,
}

#[derive(Debug)]
pub struct FailedRecord<'a> {
    pub number: u64,
    pub location: &'a Location,
    pub failure: RecordFailure<'a>,
    /// What its instance was refused.
    pub denied: Option<Denied>,
    /// The end of it, if it is long.
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
    /// It did not end in time, and was here then.
    TimedOut(&'a Trap),
    Trapped(&'a Trap),
}

#[derive(Debug)]
pub struct Stopped {
    pub reason: StopReason,
    pub summary: Summary,
    /// The record that a later run can go on at, if one can.
    pub resumes_at: Option<u64>,
    /// Why what was written last could not be made safe.
    pub error: Option<Error>,
}
