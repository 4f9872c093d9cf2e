//! What records gave becomes output, in order, and what went wrong is told.
//!
//! An output record is the guest's stdout as it is. Where the input is lines, JSON or CSV it ends with a newline, which is
//! added if it is missing, so that a program which prints one line, or nothing, keeps line *n* of the output for record *n*. A
//! record that exited with another code than 0 has said what it had to say, and that is kept; of one that was
//! cut off (a trap, the time limit, too much output) or could not be run nothing is kept: its record is empty, in a
//! folder it has no file.

use super::handover::Handover;
use super::journal::Progress;
use super::progress::Bar;
use super::reader::Place;
use super::runner::{Outcome, Ran};
use super::tape::Tape;
use super::target::Target;
use crate::report::{Counts, Tally};
use anyhow::Result;
use gpu_run_abi::TrapCode;
use gpu_run_compiler::{Trap, printable};
use gpu_run_console::units::{count, show_duration};
use gpu_run_map::Done;
use gpu_run_run::{Denied, End};
use std::path::Path;
use std::time::Duration;

/// Failures that are told one by one.
const TOLD: u64 = 10;
/// Characters of a record's stderr that are shown.
const STDERR_SHOWN: usize = 1000;

#[derive(Debug)]
pub(crate) struct Rules {
    /// Whether each record ends with a newline.
    pub(crate) lines: bool,
    pub(crate) fail_fast: bool,
    pub(crate) timeout: Option<Duration>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    GoOn,
    /// A record failed and `--fail-fast` was given.
    Stop,
}

#[derive(Debug)]
pub(crate) struct Writer {
    target: Target,
    rules: Rules,
    bar: Bar,
    tally: Tally,
    /// Behind the last batch that was written whole.
    done: Progress,
    /// What an earlier run did.
    before: u64,
    /// Records of a batch that is not whole, behind `done`.
    beyond: u64,
    /// Records behind `done` that another process has written: they are run again, and not written.
    skip: u64,
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

impl Writer {
    /// The target has begun, at `from`. What is read of `tape` and was written is forgotten there.
    pub(crate) fn new(target: Target, rules: Rules, bar: Bar, from: Progress, tape: Option<Tape>) -> Self {
        let tally = Tally::new(&[], rules.timeout.is_some());
        let before = from.mark.records;
        let (beyond, skip, whole, told, finished) = (0, 0, true, 0, false);
        let counted = tally.counts();
        Self { target, rules, bar, tally, done: from, before, beyond, skip, counted, whole, told, tape, finished }
    }

    /// Goes on counting where another process was.
    pub(crate) fn continued(mut self, from: &Handover) -> Self {
        self.before = from.before;
        self.told = from.told;
        self.tally = Tally::continued(&from.counts, self.rules.timeout.is_some());
        (self.counted, self.skip) = (from.counts.clone(), from.skip);
        self
    }

    /// What another process needs to go on here: everything that was written is safe, and nothing is written any more.
    pub(crate) fn hand_over(&mut self) -> Result<Handover> {
        if self.whole {
            self.target.checkpoint(self.done.clone(), true)?;
        }
        self.finished = true;
        self.bar.clear();
        // What is behind the last checkpoint of a file is cut off, and done again. What went down a pipe stays.
        let safe = self.target.safe().cloned();
        let (skip, counts) = match safe {
            Some(_) => (0, self.counted.clone()),
            None => (self.skip.max(self.beyond), self.tally.counts()),
        };
        Ok(Handover {
            done: safe.unwrap_or_else(|| self.done.clone()),
            skip,
            before: self.before,
            told: self.told,
            counts,
            elapsed: self.bar.elapsed(),
            ..Handover::default()
        })
    }

    /// The records that are written.
    pub(crate) fn records(&self) -> u64 {
        self.done.mark.records + self.beyond
    }

    pub(crate) fn say(&self, text: &str) {
        self.bar.say(text);
    }

    /// Writes a batch, or the next part of one. After an error no part of a record is left in a file.
    pub(crate) fn write(&mut self, ran: Ran) -> Result<Flow> {
        let written = self.write_batch(ran);
        if written.is_err() {
            self.target.cut_back();
            self.whole = false;
        }
        written
    }

    fn write_batch(&mut self, ran: Ran) -> Result<Flow> {
        let failures: Vec<_> = ran.outcomes().map(|(_, outcome)| self.failure(outcome)).collect();
        let first = failures.iter().position(Option::is_some).filter(|_| self.rules.fail_fast);
        if first.is_some() && self.whole {
            // What comes now is part of a batch, and done again by whoever goes on.
            self.target.checkpoint(self.done.clone(), true)?;
        }
        let count = first.unwrap_or(ran.records.len());
        let skipped = self.skip.saturating_sub(self.beyond).min(count as u64) as usize;
        self.whole = false;
        for ((place, outcome), failure) in ran.outcomes().zip(&failures).take(count).skip(skipped) {
            self.put(place, outcome, failure.is_some())?;
        }
        let told = ran.outcomes().zip(&failures).enumerate().take(first.map_or(count, |at| at + 1)).skip(skipped);
        for (at, ((place, outcome), failure)) in told {
            if let Outcome::Done(done) = outcome {
                self.tally.add(done.end);
            }
            if let Some(what) = failure {
                self.done.failed += 1;
                self.tell(ran.first + at as u64, place, what, outcome);
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
        self.counted = self.tally.counts();
        if let (Some(tape), Some(anchor)) = (&self.tape, &self.done.mark.anchor) {
            tape.forget(anchor.offset);
        }
        self.bar.update(&self.done.mark, self.done.failed);
        self.target.checkpoint(self.done.clone(), false)?;
        Ok(Flow::GoOn)
    }

    fn put(&mut self, place: &Place, outcome: Outcome<'_>, failed: bool) -> Result<()> {
        let kept = match outcome {
            Outcome::Done(done) if !failed || exited(&done) => Some(done.stdout),
            _ => None,
        };
        match place {
            Place::File(path) => self.target.put(path, kept),
            Place::Line(_) => self.target.put(Path::new(""), kept),
        }?;
        let missing = self.rules.lines && !kept.is_some_and(|bytes| bytes.ends_with(b"\n"));
        if missing { self.target.put(Path::new(""), Some(b"\n")) } else { Ok(()) }
    }

    /// What went wrong with a record.
    fn failure(&self, outcome: Outcome<'_>) -> Option<String> {
        let done = match outcome {
            Outcome::Flawed(why) => return Some(why.to_owned()),
            Outcome::Done(done) => done,
        };
        let what = match (done.end, self.rules.timeout) {
            _ if is_cut(&done) => "printed too much".to_owned(),
            (End::Returned | End::Exited(0), _) => return None,
            (End::Exited(code), _) => format!("exited with {code}"),
            (End::Trapped(trap), Some(limit)) if trap.code == TrapCode::Interrupted => {
                format!("did not end within {}{}", show_duration(limit), place_of(trap))
            }
            (End::Trapped(trap), _) => format!("trapped: {trap}"),
        };
        Some(done.denied.map_or(what.clone(), |denied| format!("{what}\n  {denied}")))
    }

    fn tell(&mut self, number: u64, place: &Place, what: &str, outcome: Outcome<'_>) {
        self.told += 1;
        if self.told > TOLD {
            if self.told == TOLD + 1 {
                self.bar.say("gpu-run: more records fail; from here on they are only counted\n");
            }
            return;
        }
        let place = match place {
            Place::Line(line) => format!("line {line}"),
            Place::File(path) => printable::path(path),
        };
        let stderr = match outcome {
            Outcome::Done(done) => shown(done.stderr),
            Outcome::Flawed(_) => String::new(),
        };
        self.bar.say(&format!("gpu-run: {place} (record {number}) {what}\n{stderr}"));
    }

    /// All records are written: the output is finished.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.target.finish()?;
        self.finished = true;
        self.bar.clear();
        self.bar.say(&format!("gpu-run: {}\n", self.summary()));
        Ok(())
    }

    /// It ends here, before the input does: what is written is made safe, and the way on is told. Says whether that was so: it
    /// may have ended already.
    pub(crate) fn stop(&mut self, why: &str) -> bool {
        if self.finished {
            return false;
        }
        self.finished = true;
        self.bar.clear();
        if self.whole
            && let Err(error) = self.target.checkpoint(self.done.clone(), true)
        {
            self.bar.say(&format!("gpu-run: {error:#}\n"));
        }
        let way = match self.target.safe() {
            Some(safe) => format!("the same command with --resume goes on at record {}", safe.mark.records),
            None => "with --output FILE, --resume could go on from here".to_owned(),
        };
        self.bar.say(&format!("gpu-run: {why}: {}; {way}\n", self.summary()));
        true
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Whether all records were fine, those of an earlier run too.
    pub(crate) fn all_fine(&self) -> bool {
        self.done.failed == 0
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// `1000 records, 2 failed, in 1.23 s (811 records/s)`
    fn summary(&self) -> String {
        let records = self.done.mark.records + self.beyond;
        let before = if self.before > 0 { format!(" ({} by earlier runs)", self.before) } else { String::new() };
        let (time, rate) = (show_duration(self.bar.elapsed()), self.bar.rate(records));
        format!("{}{before}, {} failed, in {time} ({rate} records/s)", count(records, "record"), self.done.failed)
    }
}

fn is_cut(done: &Done<'_>) -> bool {
    matches!(done.denied, Some(Denied::Output(_)))
}

fn exited(done: &Done<'_>) -> bool {
    !is_cut(done) && matches!(done.end, End::Returned | End::Exited(_))
}

/// The lines of a trap that say where it was.
fn place_of(trap: &Trap) -> String {
    trap.to_string().lines().skip(1).map(|line| format!("\n{line}")).collect()
}

/// The end of a record's stderr, indented.
fn shown(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let skip = text.chars().count().saturating_sub(STDERR_SHOWN);
    let text: String = text.chars().skip(skip).filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    let dots = if skip > 0 { "…" } else { "" };
    format!("{dots}{text}").lines().map(|line| format!("    {line}\n")).collect()
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
