//! Batches through the device.
//!
//! The program is compiled and loaded once, and its slots stay from batch to batch. A batch is begun by one thread and finished by
//! another, so that the next runs while the results of the last are read.

use super::reader::{Batch, Mark, Place, Record};
use crate::guest::Guest;
use anyhow::{Result, bail};
use gpu_run_compiler::Error as EngineError;
use gpu_run_console::failure::Failure;
use gpu_run_map::{Done, Results};
use gpu_run_run::{Job, RunStats};
use gpu_run_wasi::Builder;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// What `{}` is called in ARGS.
const RECORD: &[u8] = b"{}";

/// A batch that has run, or a part of one.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) first: u64,
    /// Where each record is, and why it could not be run, if so.
    pub(crate) records: Vec<(Place, Option<String>)>,
    /// Of the others.
    pub(crate) results: Results,
    /// Behind its last record, which is the batch's last.
    pub(crate) mark: Option<Mark>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome<'a> {
    Done(Done<'a>),
    /// It could not be run: why.
    Flawed(&'a str),
}

impl Ran {
    pub(crate) fn outcomes(&self) -> impl Iterator<Item = (&Place, Outcome<'_>)> {
        let mut done = self.results.iter();
        self.records.iter().filter_map(move |(place, flaw)| match flaw {
            Some(flaw) => Some((place, Outcome::Flawed(flaw))),
            None => done.next().map(|done| (place, Outcome::Done(done))),
        })
    }
}

/// Something that runs jobs: a `Mapper` on a device, and in tests what stands for one.
pub(crate) trait Engine {
    type Pending: Finish;
    fn begin(&mut self, jobs: Vec<Job>) -> Result<Self::Pending, EngineError>;
}

/// Jobs that were begun.
pub(crate) trait Finish {
    /// What became of the next of them; `None` when there are no more.
    fn next_part(&mut self) -> Result<Option<Results>, EngineError>;
    /// What was spent since it was asked last.
    fn take_stats(&mut self) -> RunStats;
}

/// The device is gone, and with it what ran there.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub(crate) struct Lost {
    error: String,
    /// The first record of the batch that was lost, and how many it had.
    pub(crate) first: u64,
    pub(crate) count: usize,
}

pub(crate) struct Runner<E> {
    engine: E,
    jobs: Jobs,
    file: Arc<str>,
}

/// What becomes of a record: an instance's job.
pub(crate) struct Jobs {
    guest: Guest,
    /// The guest's arguments after its name, if `{}` is in them; else they are in `guest`.
    args: Vec<OsString>,
    /// What all records' instances are given, where their arguments do not differ.
    alike: Option<Arc<Builder>>,
    /// Records that are not run: they did not end, and could not be ended but with their process.
    given_up: Vec<u64>,
}

/// A batch that was begun.
#[derive(Debug)]
pub(crate) struct Running<P> {
    /// The first record that was not given out yet.
    first: u64,
    records: VecDeque<(Place, Option<String>)>,
    /// `None`: all were given out.
    mark: Option<Mark>,
    /// `None`: no record of it can be run.
    pending: Option<P>,
    file: Arc<str>,
}

/// Whether `{}` stands in them, so that they differ from record to record.
pub(crate) fn differ(args: &[OsString]) -> bool {
    args.iter().any(|arg| arg.as_bytes().windows(RECORD.len()).any(|w| w == RECORD))
}

impl<E: Engine> Runner<E> {
    pub(crate) fn new(engine: E, jobs: Jobs, file: &str) -> Self {
        Self { engine, jobs, file: file.into() }
    }

    pub(crate) fn engine(&self) -> &E {
        &self.engine
    }

    pub(crate) fn into_engine(self) -> E {
        self.engine
    }

    pub(crate) fn begin(&mut self, batch: Batch) -> Result<Running<E::Pending>> {
        let mut jobs = Vec::with_capacity(batch.records.len());
        let mut records = Vec::with_capacity(batch.records.len());
        for (number, record) in (batch.first..).zip(batch.records) {
            let flaw = match self.jobs.of(number, &record) {
                Ok(job) => {
                    jobs.push(job);
                    None
                }
                Err(flaw) => Some(flaw),
            };
            records.push((record.place, flaw));
        }
        let pending = match jobs.is_empty() {
            true => None,
            false => Some(self.engine.begin(jobs).map_err(|e| failed(&self.file, e, batch.first, records.len()))?),
        };
        let (mark, records) = (Some(batch.mark), records.into());
        Ok(Running { first: batch.first, records, mark, pending, file: self.file.clone() })
    }
}

impl Jobs {
    pub(crate) fn new(guest: Guest, args: Vec<OsString>) -> Self {
        Self { guest, args, alike: None, given_up: Vec::new() }
    }

    /// These records are not run.
    pub(crate) fn give_up(&mut self, records: &[u64]) {
        self.given_up = records.to_vec();
    }

    /// A record's job, or why it cannot be run.
    pub(crate) fn of(&mut self, number: u64, record: &Record) -> Result<Job, String> {
        if let Some(flaw) = &record.flaw {
            return Err(flaw.clone());
        }
        if self.given_up.contains(&number) {
            return Err("did not end in time, nor when it was told to".to_owned());
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
}

impl<P: Finish> Running<P> {
    /// Waits until the next part of the batch has run; `None` after the last. If the device is lost, nothing is known of what was not given out.
    pub(crate) fn next_part(&mut self) -> Result<Option<(Ran, RunStats)>> {
        if self.mark.is_none() {
            return Ok(None);
        }
        let (mut results, mut stats) = <(Results, RunStats)>::default();
        if let Some(pending) = &mut self.pending {
            let lost = |e| failed(&self.file, e, self.first, self.records.len());
            results = pending.next_part().map_err(lost)?.unwrap_or_default();
            stats = pending.take_stats();
        }
        let is_fine = |(_, flaw): &&(Place, Option<String>)| flaw.is_none();
        let fine = self.records.iter().filter(is_fine).count();
        if results.len() > fine || results.is_empty() && fine > 0 {
            bail!("internal error: the engine gave another number of results than it got jobs");
        }
        let is_last = results.len() == fine;
        let mut left = results.len();
        // Those that cannot be run go with the one before them.
        let behind = self.records.iter().position(|record| {
            let is_next = left == 0 && record.1.is_none();
            left -= usize::from(!is_next && record.1.is_none());
            is_next
        });
        let records: Vec<_> = self.records.drain(..behind.unwrap_or(self.records.len())).collect();
        let first = self.first;
        self.first += records.len() as u64;
        let mark = if is_last { self.mark.take() } else { None };
        Ok(Some((Ran { first, records, results, mark }, stats)))
    }
}

/// What the engine says of a batch. After a fault nothing on the device can be used any more.
fn failed(file: &str, error: EngineError, first: u64, count: usize) -> anyhow::Error {
    match error.is_device_lost() {
        true => Lost { error: error.to_string(), first, count }.into(),
        false => Failure::compiler(file, error).into(),
    }
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
