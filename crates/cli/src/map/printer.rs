//! What a map prints on stderr while it runs: failed records, progress, and how it ended.

use super::failure::told;
use super::progress::{Bar, rate};
use crate::backtrace::Wanted;
use crate::report::{advice, describe_denied};
use gpu_run_compiler::{Trap, printable};
use gpu_run_console::units::{count, show_duration};
use gpu_run_map::{
    FailedRecord, Flaw, HandoverReason, Location, LostDevice, Observer, RecordFailure, Stopped, Summary,
};
use std::time::Duration;

/// How many failed records are printed individually.
const MAX_FAILURES_SHOWN: u64 = 10;
/// How many characters of a failed record's stderr are shown.
const MAX_STDERR_SHOWN: usize = 1000;

#[derive(Debug)]
pub(super) struct Printer {
    program: String,
    timeout: Option<Duration>,
    backtrace: Wanted,
    /// Whether the output itself goes to the terminal.
    quiet: bool,
    bar: Bar,
}

impl Printer {
    pub(super) fn new(program: &str, timeout: Option<Duration>, backtrace: Wanted, quiet: bool) -> Self {
        Self { program: program.to_owned(), timeout, backtrace, quiet, bar: Bar::hidden() }
    }

    /// Says what went wrong with a record.
    fn what(&self, record: &FailedRecord<'_>) -> String {
        let what = match &record.failure {
            RecordFailure::Flawed(flaw @ Flaw::LinkOut) => format!("{flaw}; use --follow-links to follow it"),
            RecordFailure::Flawed(flaw) => flaw.to_string(),
            RecordFailure::PrintedTooMuch => "printed too much".to_owned(),
            RecordFailure::Exited(code) => format!("exited with {code}"),
            RecordFailure::TimedOut(trap) => {
                let limit = self.timeout.unwrap_or_default();
                format!("did not finish within {}{}{}", show_duration(limit), place_of(trap), self.calls(trap, record))
            }
            RecordFailure::Trapped(trap) => {
                format!("trapped: {trap}{}{}", advice(trap.code), self.calls(trap, record))
            }
        };
        record.denied.map_or(what.clone(), |denied| format!("{what}\n  {}", describe_denied(denied)))
    }

    /// Says which calls led to a trap. How to see them is said once.
    fn calls(&self, trap: &Trap, record: &FailedRecord<'_>) -> String {
        match self.backtrace.is_any() || record.nth == 1 {
            true => self.backtrace.lines(trap),
            false => String::new(),
        }
    }
}

impl Observer for Printer {
    fn begun(&mut self, input_bytes: Option<u64>, summary: &Summary) {
        self.bar = Bar::new(input_bytes, summary, self.quiet);
    }

    fn written(&mut self, summary: &Summary) {
        self.bar.update(summary);
    }

    fn record_failed(&mut self, record: &FailedRecord<'_>) {
        if record.nth > MAX_FAILURES_SHOWN {
            if record.nth == MAX_FAILURES_SHOWN + 1 {
                self.bar.say("gpu-run: further failed records are only counted\n");
            }
            return;
        }
        let location = match record.location {
            Location::Line(line) => format!("line {line}"),
            Location::File(path) => printable::path(path),
        };
        let (number, what, stderr) = (record.number, self.what(record), shown(record.stderr));
        self.bar.say(&format!("gpu-run: {location} (record {number}) {what}\n{stderr}"));
    }

    fn finished(&mut self, summary: &Summary) {
        self.bar.clear();
        self.bar.say(&format!("gpu-run: {}\n", summed_up(summary)));
    }

    fn stopped(&mut self, stopped: Stopped) {
        self.bar.clear();
        if let Some(error) = stopped.error {
            self.bar.say(&format!("gpu-run: {:#}\n", told(&self.program, error)));
        }
        let way = match stopped.resumes_at {
            Some(record) => format!("the same command with --resume continues at record {record}"),
            None => "with --output FILE, --resume could continue from here".to_owned(),
        };
        self.bar.say(&format!("gpu-run: {}: {}; {way}\n", stopped.reason, summed_up(&stopped.summary)));
    }

    fn device_lost(&mut self, lost: &LostDevice) {
        let LostDevice { device, error, others } = lost;
        let go_on = if others.len() == 1 { "continues" } else { "continue" };
        self.bar.say(&format!("gpu-run: {device} was lost: {error}; {} {go_on}\n", others.join(", ")));
    }

    fn handing_over(&mut self, reason: &HandoverReason) {
        self.bar.say(&format!("gpu-run: {reason}\n"));
        self.bar.clear();
    }
}

/// `1000 records, 2 failed, in 1.23 s (811 records/s)`
fn summed_up(summary: &Summary) -> String {
    let Summary { records, before, failed, elapsed, .. } = summary;
    let before = if *before > 0 { format!(" ({before} by earlier runs)") } else { String::new() };
    let (time, rate) = (show_duration(*elapsed), rate(summary));
    format!("{}{before}, {failed} failed, in {time} ({rate} records/s)", count(*records, "record"))
}

/// Returns the lines of a trap's message that say where it happened.
fn place_of(trap: &Trap) -> String {
    trap.to_string().lines().skip(1).map(|line| format!("\n{line}")).collect()
}

/// Returns the end of a record's stderr, indented.
fn shown(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let skip = text.chars().count().saturating_sub(MAX_STDERR_SHOWN);
    let text: String = text.chars().skip(skip).filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    let dots = if skip > 0 { "…" } else { "" };
    format!("{dots}{text}").lines().map(|line| format!("    {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stderr_is_shown_indented_short_and_without_control_characters() {
        assert_eq!(shown(b"one\n\x1b[31mtwo\n"), "    one\n    [31mtwo\n");
        let long = shown("x".repeat(5000).as_bytes());
        assert_eq!(long.chars().filter(|c| *c == 'x').count(), MAX_STDERR_SHOWN);
        assert!(long.starts_with("    …x"));
        assert_eq!(shown(b""), "");
    }

    #[test]
    fn a_run_is_summed_up_with_what_earlier_ones_did() {
        let mut summary =
            Summary { records: 30, before: 0, failed: 2, elapsed: Duration::from_secs(2), input_offset: 0 };
        assert_eq!(summed_up(&summary), "30 records, 2 failed, in 2.00 s (15 records/s)");
        summary.before = 10;
        assert_eq!(summed_up(&summary), "30 records (10 by earlier runs), 2 failed, in 2.00 s (10 records/s)");
    }
}
