//! Batches through the device.
//!
//! The program is compiled and loaded once, and its slots stay from batch to batch. When the device is lost in the middle of a
//! batch, nothing of that batch was written yet: the device is opened again and the batch run again, once.

use super::reader::{Batch, Mark, Place, Record};
use crate::failure::Failure;
use crate::guest::Guest;
use anyhow::{Context, Result};
use gpu_run_device::Error as DeviceError;
use gpu_run_engine::{Done, Error as EngineError, Job, RunStats};
use gpu_run_wasi::Builder;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// What `{}` is called in ARGS.
const RECORD: &[u8] = b"{}";

/// A batch that has run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) first: u64,
    pub(crate) records: Vec<(Place, Outcome)>,
    /// Behind its last record.
    pub(crate) mark: Mark,
}

#[derive(Debug)]
pub(crate) enum Outcome {
    Done(Done),
    /// It could not be run: why.
    Flawed(String),
}

/// Something that runs jobs: a `Mapper` on a device, and in tests what stands for one.
pub(crate) trait Engine {
    fn run(&mut self, jobs: &[Job]) -> Result<(Vec<Done>, RunStats), EngineError>;
    /// Makes it anew, on a device that was opened anew.
    fn reopen(&mut self) -> Result<()>;
}

pub(crate) struct Runner<E> {
    engine: E,
    guest: Guest,
    /// The guest's arguments after its name, if `{}` is in them; else they are in `guest`.
    args: Vec<OsString>,
    /// What all records' instances are given, where their arguments do not differ.
    alike: Option<Arc<Builder>>,
    file: String,
    stats: RunStats,
}

/// Whether `{}` stands in them, so that they differ from record to record.
pub(crate) fn differ(args: &[OsString]) -> bool {
    args.iter().any(|arg| arg.as_bytes().windows(RECORD.len()).any(|w| w == RECORD))
}

impl<E: Engine> Runner<E> {
    pub(crate) fn new(engine: E, guest: Guest, args: Vec<OsString>, file: String) -> Self {
        Self { engine, guest, args, alike: None, file, stats: RunStats::default() }
    }

    pub(crate) fn stats(self) -> (E, RunStats) {
        (self.engine, self.stats)
    }

    pub(crate) fn run(&mut self, batch: Batch) -> Result<Ran> {
        let mut jobs = Vec::with_capacity(batch.records.len());
        let mut records = Vec::with_capacity(batch.records.len());
        for (number, record) in (batch.first..).zip(batch.records) {
            let flaw = match self.job(number, &record) {
                Ok(job) => {
                    jobs.push(job);
                    None
                }
                Err(flaw) => Some(flaw),
            };
            records.push((record.place, flaw));
        }
        let mut done = self.run_jobs(&jobs, batch.first)?.into_iter();
        let outcome = |(place, flaw): (Place, Option<String>)| {
            let outcome = flaw.map(Outcome::Flawed).or_else(|| done.next().map(Outcome::Done));
            Ok((place, outcome.context("internal error: the engine gave fewer results than it got jobs")?))
        };
        let records = records.into_iter().map(outcome).collect::<Result<_>>()?;
        Ok(Ran { first: batch.first, records, mark: batch.mark })
    }

    fn job(&mut self, number: u64, record: &Record) -> Result<Job, String> {
        if let Some(flaw) = &record.flaw {
            return Err(flaw.clone());
        }
        let context = match &self.alike {
            Some(context) => context.clone(),
            None => {
                let args = self.args.iter().map(|arg| replace(arg.as_bytes(), record.text()));
                let context = self.guest.record(args).map_err(|error| format!("cannot be an argument: {error}"))?;
                let context = Arc::new(context);
                if !differ(&self.args) {
                    self.alike = Some(context.clone());
                }
                context
            }
        };
        Ok(Job { context, number, stdin: record.stdin.clone() })
    }

    /// Runs the jobs, a second time if the device was lost.
    fn run_jobs(&mut self, jobs: &[Job], first: u64) -> Result<Vec<Done>> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let result = match self.engine.run(jobs) {
            Err(error) if is_lost(&error) => {
                let _ = writeln!(io::stderr(), "gpu-run: {error}; opening the device again");
                self.engine.reopen().context("the device was lost and cannot be opened again")?;
                self.engine.run(jobs).map_err(|error| match is_lost(&error) {
                    true => Failure::environment(format!("{}: the device was lost twice: {error}", self.file))
                        .hint(format!("one of the {} records from record {first} on does it", jobs.len())),
                    false => Failure::engine(&self.file, error),
                })
            }
            result => result.map_err(|error| Failure::engine(&self.file, error)),
        };
        let (done, stats) = result?;
        self.stats.add(&stats);
        Ok(done)
    }
}

/// After such an error nothing on the device can be used any more.
fn is_lost(error: &EngineError) -> bool {
    matches!(error, EngineError::Device(DeviceError::Fault(_)))
}

/// `arg` with every `{}` replaced.
fn replace(arg: &[u8], record: &[u8]) -> Vec<u8> {
    let (mut rest, mut replaced) = (arg, Vec::with_capacity(arg.len() + record.len()));
    while let Some(at) = rest.windows(RECORD.len()).position(|w| w == RECORD) {
        replaced.extend_from_slice(&rest[..at]);
        replaced.extend_from_slice(record);
        rest = &rest[at + RECORD.len()..];
    }
    replaced.extend_from_slice(rest);
    replaced
}

#[cfg(test)]
#[path = "runner_tests.rs"]
mod tests;
