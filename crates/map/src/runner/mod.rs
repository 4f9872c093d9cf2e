//! Runs batches on the device.
//!
//! The program is compiled and loaded once on each device, and its slots stay from batch to batch. One thread of a
//! device begins a batch and another finishes it, so that the next batch runs while the results of the last are read.

mod engine;
mod gangs;
mod jobs;

pub use engine::Batches;
pub(crate) use engine::{OnDevice, OnHang, RunLimits};
pub use gangs::Gangs;
pub(crate) use gangs::Launcher;
pub(crate) use jobs::Jobs;
pub use jobs::differ;

use crate::batch::{Done, Results, Tuning};
use crate::error::Error;
use crate::input::reader::{Batch, Mark};
use crate::input::{Flaw, Location};
use gpu_run_compiler::Error as EngineError;
use gpu_run_run::{Job, RunStats};
use std::collections::VecDeque;
use std::sync::Arc;

/// A record of a batch that was begun: its location, and why it cannot be run, if so.
type Begun = (Location, Option<Flaw>);

/// A part of a batch, or all of it, that has run.
#[derive(Debug)]
pub(crate) struct RanPart {
    pub(crate) first: u64,
    pub(crate) records: Vec<Begun>,
    /// Results of those records that could be run.
    pub(crate) results: Results,
    /// The position after its last record, if that is the batch's last.
    pub(crate) mark: Option<Mark>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome<'a> {
    Done(Done<'a>),
    /// The record could not be run, for this reason.
    Flawed(&'a Flaw),
}

impl RanPart {
    pub(crate) fn outcomes(&self) -> impl Iterator<Item = (&Location, Outcome<'_>)> {
        let mut done = self.results.iter();
        self.records.iter().filter_map(move |(location, flaw)| match flaw {
            Some(flaw) => Some((location, Outcome::Flawed(flaw))),
            None => done.next().map(|done| (location, Outcome::Done(done))),
        })
    }
}

/// Something that runs jobs: a `Mapper` on a device, a launch for each of them, or a substitute in tests.
pub(crate) trait Engine {
    type Pending: Finish;
    fn begin(&mut self, jobs: Arc<Vec<Job>>) -> Result<Self::Pending, EngineError>;
    /// Returns what was learned about the program.
    fn tuning(&self) -> Option<Tuning> {
        None
    }
}

/// Jobs that were begun.
pub(crate) trait Finish {
    /// Returns how the next jobs ended; `None` after the last.
    fn next_part(&mut self) -> Result<Option<Results>, EngineError>;
    /// Returns the statistics since the last call.
    fn take_stats(&mut self) -> RunStats;
}

/// The device is lost, with everything that ran there.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{error}")]
pub struct DeviceLost {
    pub(crate) error: String,
    /// The first record that was lost, and how many there were.
    pub first: u64,
    pub count: usize,
}

pub(crate) struct Runner<E> {
    engine: E,
    jobs: Jobs,
}

/// A batch as jobs, or what is left of it after its device was lost.
#[derive(Debug)]
pub(crate) struct Work {
    /// The batch's number.
    pub(crate) number: u64,
    /// The first record that was not returned yet.
    first: u64,
    records: VecDeque<Begun>,
    /// The jobs of those records that can be run.
    jobs: Arc<Vec<Job>>,
    /// `None` once all parts were returned.
    mark: Option<Mark>,
    /// How many devices were lost with it.
    pub(crate) losses: u32,
}

/// A batch that was begun.
#[derive(Debug)]
pub(crate) struct Running<P> {
    work: Work,
    /// Jobs whose results were returned.
    done: usize,
    /// `None` if no record of the batch can be run.
    pending: Option<P>,
}

impl<E: Engine> Runner<E> {
    pub(crate) fn new(engine: E, jobs: Jobs) -> Self {
        Self { engine, jobs }
    }

    pub(crate) fn engine(&self) -> &E {
        &self.engine
    }

    /// Makes jobs of a batch's records.
    pub(crate) fn work(&mut self, number: u64, batch: Batch) -> Work {
        let mut jobs = Vec::with_capacity(batch.records.len());
        let mut records = VecDeque::with_capacity(batch.records.len());
        for (number, mut record) in (batch.first..).zip(batch.records) {
            let job = record.flaw.take().map_or_else(|| self.jobs.of(number, &record), Err);
            let flaw = job.map(|job| jobs.push(job)).err();
            records.push_back((record.location, flaw));
        }
        Work { number, first: batch.first, records, jobs: Arc::new(jobs), mark: Some(batch.mark), losses: 0 }
    }

    /// Launches a batch. If that fails, the batch comes back with the error.
    pub(crate) fn begin(&mut self, work: Work) -> Result<Running<E::Pending>, Box<(Work, Error)>> {
        if work.jobs.is_empty() {
            return Ok(Running { work, done: 0, pending: None });
        }
        match self.engine.begin(work.jobs.clone()) {
            Ok(pending) => Ok(Running { work, done: 0, pending: Some(pending) }),
            Err(error) => {
                let error = work.failed(error);
                Err(Box::new((work, error)))
            }
        }
    }
}

impl Work {
    /// Converts an engine's error on this batch.
    fn failed(&self, error: EngineError) -> Error {
        if error.is_device_lost() { Error::DeviceLost(self.lost(&error)) } else { Error::Engine(error) }
    }

    /// Describes the loss of the device with this batch.
    pub(crate) fn lost(&self, error: &EngineError) -> DeviceLost {
        DeviceLost { error: error.to_string(), first: self.first, count: self.records.len() }
    }
}

impl<P: Finish> Running<P> {
    pub(crate) fn number(&self) -> u64 {
        self.work.number
    }

    /// Waits until the next part of the batch has run; returns `None` after the last. If the device is lost, nothing is
    /// known of the parts that were not returned.
    pub(crate) fn next_part(&mut self) -> Result<Option<(RanPart, RunStats)>, Error> {
        if self.work.mark.is_none() {
            return Ok(None);
        }
        let (mut results, mut stats) = <(Results, RunStats)>::default();
        if let Some(pending) = &mut self.pending {
            results = pending.next_part().map_err(|error| self.work.failed(error))?.unwrap_or_default();
            stats = pending.take_stats();
        }
        let Work { first, records, mark, .. } = &mut self.work;
        let fine = records.iter().filter(|(_, flaw)| flaw.is_none()).count();
        if results.len() > fine || results.is_empty() && fine > 0 {
            return Err(Error::Internal("the number of results differs from the number of jobs"));
        }
        let is_last = results.len() == fine;
        let mut left = results.len();
        self.done += left;
        // Records that cannot be run go with the record before them.
        let behind = records.iter().position(|record| {
            let is_next = left == 0 && record.1.is_none();
            left -= usize::from(!is_next && record.1.is_none());
            is_next
        });
        let records: Vec<_> = records.drain(..behind.unwrap_or(records.len())).collect();
        let part = RanPart { first: *first, results, mark: if is_last { mark.take() } else { None }, records };
        *first += part.records.len() as u64;
        Ok(Some((part, stats)))
    }

    /// Returns what was not returned, for another device.
    pub(crate) fn rest(self) -> Work {
        let Self { mut work, done, pending } = self;
        drop(pending);
        if done > 0 {
            work.jobs = Arc::new(work.jobs[done..].to_vec());
        }
        work
    }
}

#[cfg(test)]
#[path = "runner_tests.rs"]
mod tests;
