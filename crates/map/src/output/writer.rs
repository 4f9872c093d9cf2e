//! Writes the outputs of records in order, and reports failures.
//!
//! An output record is the guest's stdout as it is. If the input is lines, JSON or CSV, the record ends with a newline,
//! which is added if missing: so for a program that prints one line, or nothing, line *n* of the output belongs to
//! record *n*. A record that exited with a code other than 0 has said what it had to say: its output is kept. The
//! output of a record that was cut off (by a trap, the time limit, or too much output) or could not be run is dropped:
//! its output record is empty, or, in a folder, has no file.

use super::Counts;
use super::journal::Progress;
use super::target::Target;
use crate::batch::Done;
use crate::error::Error;
use crate::handover::State;
use crate::input::Location;
use crate::input::tape::Tape;
use crate::observer::{FailedRecord, Observer, RecordFailure, Stopped, Summary};
use crate::runner::{Outcome, RanPart};
use gpu_run_abi::TrapCode;
use gpu_run_run::{Denied, End};
use std::path::Path;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(crate) struct Rules {
    /// Whether each record ends with a newline.
    pub(crate) lines: bool,
    pub(crate) fail_fast: bool,
    /// Whether there is a time limit. Without one, an interruption is a trap like any other.
    pub(crate) has_deadline: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    GoOn,
    /// A record failed, and the map is to stop there.
    Stop,
}

/// Why a map stops before the end of its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StopReason {
    #[error("interrupted")]
    Interrupted,
    #[error("stopped at the first failure")]
    RecordFailed,
    #[error("cannot continue")]
    CannotRun,
    #[error("cannot write any more")]
    CannotWrite,
}

pub(crate) struct Writer {
    target: Target,
    rules: Rules,
    observer: Box<dyn Observer>,
    began: Instant,
    /// How far the whole batches reach that were written.
    done: Progress,
    /// Records that earlier runs did.
    before: u64,
    /// Records of an incomplete batch that are written after `done`.
    beyond: u64,
    /// Records after `done` that another process has written: they are run again, but not written.
    skip: u64,
    counts: Counts,
    /// The counts of whole batches.
    counted: Counts,
    /// Whether the output ends where `done` says. If not, no checkpoint may be made.
    whole: bool,
    /// Failures that were reported.
    told: u64,
    /// What is kept of an input that can be read only once.
    tape: Option<Tape>,
    finished: bool,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("target", &self.target).field("done", &self.done).finish_non_exhaustive()
    }
}

impl Writer {
    /// `target` has begun, at `from`. Input whose output is written is dropped from `tape`.
    pub(crate) fn new(
        target: Target,
        rules: Rules,
        observer: Box<dyn Observer>,
        from: Progress,
        tape: Option<Tape>,
    ) -> Self {
        Self {
            target,
            rules,
            observer,
            began: Instant::now(),
            before: from.records(),
            done: from,
            beyond: 0,
            skip: 0,
            counts: Counts::default(),
            counted: Counts::default(),
            whole: true,
            told: 0,
            tape,
            finished: false,
        }
    }

    /// Continues the counts of another process.
    pub(crate) fn continued(mut self, from: &State) -> Self {
        self.began = self.began.checked_sub(from.elapsed).unwrap_or(self.began);
        (self.before, self.told, self.skip) = (from.before, from.told, from.skip);
        (self.counts, self.counted) = (from.counts.clone(), from.counts.clone());
        self
    }

    /// Reports that the map begins; `input_bytes` is the length of the input, if known.
    pub(crate) fn begin(&mut self, input_bytes: Option<u64>) {
        self.observer.begun(input_bytes, &self.summary());
    }

    /// Writes a batch, or the next part of one. After an error, no part of a record is left in a file.
    pub(crate) fn write(&mut self, ran: RanPart) -> Result<Flow, Error> {
        let written = self.write_part(ran);
        if written.is_err() {
            self.target.cut_back();
            self.whole = false;
        }
        written
    }

    fn write_part(&mut self, ran: RanPart) -> Result<Flow, Error> {
        let failures: Vec<_> = ran.outcomes().map(|(_, outcome)| self.failure(outcome)).collect();
        let first = failures.iter().position(Option::is_some).filter(|_| self.rules.fail_fast);
        if first.is_some() && self.whole {
            // What follows is part of an incomplete batch: a later run does it again.
            self.target.checkpoint(self.done.clone(), true)?;
        }
        let count = first.unwrap_or(ran.records.len());
        let skipped = self.skip.saturating_sub(self.beyond).min(count as u64) as usize;
        self.whole = false;
        for ((location, outcome), failure) in ran.outcomes().zip(&failures).take(count).skip(skipped) {
            self.put(location, outcome, failure.is_some())?;
        }
        let told = ran.outcomes().zip(failures).enumerate().take(first.map_or(count, |at| at + 1)).skip(skipped);
        for (at, ((location, outcome), failure)) in told {
            if let Outcome::Done(done) = outcome {
                self.counts.add(done.end, self.rules.has_deadline);
            }
            if let Some(failure) = failure {
                self.done.failed += 1;
                self.tell(ran.first + at as u64, location, failure, outcome);
            }
        }
        self.target.deliver()?;
        self.beyond += count as u64;
        if first.is_some() {
            return Ok(Flow::Stop);
        }
        let Some(mark) = ran.mark else { return Ok(Flow::GoOn) };
        self.done.mark = mark;
        (self.whole, self.beyond, self.skip) = (true, 0, 0);
        self.counted = self.counts.clone();
        if let (Some(tape), Some(anchor)) = (&self.tape, &self.done.mark.anchor) {
            tape.forget(anchor.offset);
        }
        self.observer.written(&self.summary());
        self.target.checkpoint(self.done.clone(), false)?;
        Ok(Flow::GoOn)
    }

    fn put(&mut self, location: &Location, outcome: Outcome<'_>, failed: bool) -> Result<(), Error> {
        let kept = match outcome {
            Outcome::Done(done) if !failed || exited(&done) => Some(done.stdout),
            _ => None,
        };
        match location {
            Location::File(path) => self.target.put(path, kept),
            Location::Line(_) => self.target.put(Path::new(""), kept),
        }?;
        let missing = self.rules.lines && !kept.is_some_and(|bytes| bytes.ends_with(b"\n"));
        if missing { self.target.put(Path::new(""), Some(b"\n")) } else { Ok(()) }
    }

    /// Returns what went wrong with a record.
    fn failure<'a>(&self, outcome: Outcome<'a>) -> Option<RecordFailure<'a>> {
        let done = match outcome {
            Outcome::Flawed(flaw) => return Some(RecordFailure::Flawed(flaw)),
            Outcome::Done(done) => done,
        };
        match done.end {
            _ if is_cut(&done) => Some(RecordFailure::PrintedTooMuch),
            End::Returned | End::Exited(0) => None,
            End::Exited(code) => Some(RecordFailure::Exited(*code)),
            End::Trapped(trap) if self.rules.has_deadline && trap.code == TrapCode::Interrupted => {
                Some(RecordFailure::TimedOut(trap))
            }
            End::Trapped(trap) => Some(RecordFailure::Trapped(trap)),
        }
    }

    fn tell(&mut self, number: u64, location: &Location, failure: RecordFailure<'_>, outcome: Outcome<'_>) {
        self.told += 1;
        let (denied, stderr) = match outcome {
            Outcome::Done(done) => (done.denied, done.stderr),
            Outcome::Flawed(_) => (None, &[][..]),
        };
        self.observer.record_failed(&FailedRecord { number, location, failure, denied, stderr, nth: self.told });
    }

    /// Finishes the output: all records are written.
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        self.target.finish(&self.done)?;
        self.finished = true;
        self.observer.finished(&self.summary());
        Ok(())
    }

    /// Stops before the end of the input: makes the written output safe, and reports where a later run can continue.
    /// Returns false if the map has ended already.
    pub(crate) fn stop(&mut self, reason: StopReason) -> bool {
        if self.finished {
            return false;
        }
        self.finished = true;
        let unsafe_because = match self.whole {
            true => self.target.checkpoint(self.done.clone(), true).err(),
            false => None,
        };
        let resumes_at = self.target.safe().map(|safe| safe.mark.records);
        let stopped = Stopped { reason, summary: self.summary(), resumes_at, error: unsafe_because };
        self.observer.stopped(stopped);
        true
    }

    /// Returns what another process needs to continue here. All written output is safe, and nothing is written any
    /// more.
    pub(crate) fn hand_over(&mut self) -> Result<State, Error> {
        if self.whole {
            self.target.checkpoint(self.done.clone(), true)?;
        }
        self.finished = true;
        // A file is cut back to the last checkpoint, and the rest is done again. What went down a pipe stays.
        let safe = self.target.safe().cloned();
        let (skip, counts) = match safe {
            Some(_) => (0, self.counted.clone()),
            None => (self.skip.max(self.beyond), self.counts.clone()),
        };
        Ok(State {
            done: safe.unwrap_or_else(|| self.done.clone()),
            skip,
            before: self.before,
            told: self.told,
            counts,
            elapsed: self.elapsed(),
            ..State::default()
        })
    }

    pub(crate) fn observer(&mut self) -> &mut dyn Observer {
        &mut *self.observer
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Returns the number of the first record that is not written.
    pub(crate) fn records(&self) -> u64 {
        self.done.mark.records + self.beyond
    }

    /// Returns how many records another process would not have to write again, were this one to hand over now.
    pub(crate) fn kept_records(&self) -> u64 {
        match self.target.safe() {
            Some(safe) if !self.whole || !self.target.can_be_safe() => safe.mark.records,
            Some(_) => self.done.mark.records,
            None => self.done.mark.records + self.skip.max(self.beyond),
        }
    }

    /// Returns how many records failed, including those of earlier runs.
    pub(crate) fn failed(&self) -> u64 {
        self.done.failed
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    fn summary(&self) -> Summary {
        Summary {
            records: self.done.records() + self.beyond,
            before: self.before,
            failed: self.done.failed,
            elapsed: self.elapsed(),
            input_offset: self.done.mark.offset.saturating_sub(self.done.start.offset),
        }
    }
}

fn is_cut(done: &Done<'_>) -> bool {
    matches!(done.denied, Some(Denied::Output(_)))
}

fn exited(done: &Done<'_>) -> bool {
    !is_cut(done) && matches!(done.end, End::Returned | End::Exited(_))
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
