//! What records gave becomes output, in order, and what went wrong is told.
//!
//! An output record is the guest's stdout as it is. Where the input is lines, JSON or CSV it ends with a newline, which is
//! added if it is missing, so that a program which prints one line, or nothing, keeps line *n* of the output for record *n*. A
//! record that exited with another code than 0 has said what it had to say, and that is kept; of one that was
//! cut off (a trap, the time limit, too much output) or could not be run nothing is kept: its record is empty, in a
//! folder it has no file.

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
    /// Whether records that take too long are ended: without that, an interruption is a trap like any other.
    pub(crate) has_deadline: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    GoOn,
    /// A record failed, and the map is to stop there.
    Stop,
}

/// Why a map ends before its input does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StopReason {
    #[error("interrupted")]
    Interrupted,
    #[error("stopped at the first failure")]
    RecordFailed,
    #[error("could not go on")]
    CannotRun,
    #[error("could not go on writing")]
    CannotWrite,
}

pub(crate) struct Writer {
    target: Target,
    rules: Rules,
    observer: Box<dyn Observer>,
    began: Instant,
    /// Behind the last batch that was written whole.
    done: Progress,
    /// Records that earlier runs did.
    before: u64,
    /// Records of a batch that is not whole, behind `done`.
    beyond: u64,
    /// Records behind `done` that another process has written: they are run again, and not written.
    skip: u64,
    counts: Counts,
    /// What was counted of whole batches.
    counted: Counts,
    /// Whether the output ends where `done` says. If not, no checkpoint may be made any more.
    whole: bool,
    /// Failures that were told.
    told: u64,
    /// What the input was read from, where that comes once.
    tape: Option<Tape>,
    finished: bool,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("target", &self.target).field("done", &self.done).finish_non_exhaustive()
    }
}

impl Writer {
    /// The target has begun, at `from`. What is read of `tape` and was written is forgotten there.
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
            before: from.mark.records,
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

    /// Goes on counting where another process was.
    pub(crate) fn continued(mut self, from: &State) -> Self {
        self.began = self.began.checked_sub(from.elapsed).unwrap_or(self.began);
        (self.before, self.told, self.skip) = (from.before, from.told, from.skip);
        (self.counts, self.counted) = (from.counts.clone(), from.counts.clone());
        self
    }

    /// An input of so many bytes, if that is known, will be written.
    pub(crate) fn begin(&mut self, input_bytes: Option<u64>) {
        self.observer.begun(input_bytes, &self.summary());
    }

    /// Writes a batch, or the next part of one. After an error no part of a record is left in a file.
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
            // What comes now is part of a batch, and done again by whoever goes on.
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

    /// What went wrong with a record.
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

    /// All records are written: the output is finished.
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        self.target.finish()?;
        self.finished = true;
        self.observer.finished(&self.summary());
        Ok(())
    }

    /// It ends here, before the input does: what is written is made safe, and the way on is told. Says whether that was so: it
    /// may have ended already.
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

    /// What another process needs to go on here: everything that was written is safe, and nothing is written any more.
    pub(crate) fn hand_over(&mut self) -> Result<State, Error> {
        if self.whole {
            self.target.checkpoint(self.done.clone(), true)?;
        }
        self.finished = true;
        // What is behind the last checkpoint of a file is cut off, and done again. What went down a pipe stays.
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

    /// The records that are written.
    pub(crate) fn records(&self) -> u64 {
        self.done.mark.records + self.beyond
    }

    /// The records that failed, those of earlier runs too.
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
            records: self.records(),
            before: self.before,
            failed: self.done.failed,
            elapsed: self.elapsed(),
            input_offset: self.done.mark.offset,
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
