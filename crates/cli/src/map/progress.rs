//! How far a map is: a line on a terminal's stderr, redrawn in place.

use super::reader::Mark;
use gpu_run_console::terminal;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

/// A bar where the input's length is known, else a count; nothing where stderr is no terminal.
#[derive(Debug)]
pub(crate) struct Bar {
    bar: ProgressBar,
    began: Instant,
    /// Records that an earlier run did.
    before: u64,
}

impl Bar {
    /// `length` is the input's in bytes, `from` where this process begins. `quiet`: the output itself goes to the terminal.
    pub(crate) fn new(length: Option<u64>, from: &Mark, quiet: bool) -> Self {
        let show = !quiet && io::stderr().is_terminal();
        let target = if show { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(length, target);
        let template = match length {
            Some(_) => "{bar:30} {percent:>3} %  {msg}, {eta} left",
            None => "{spinner} {msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_position(from.offset);
        bar.reset_eta();
        bar.set_message(format!("{} records", from.records));
        if show {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Self { bar, began: Instant::now(), before: from.records }
    }

    /// Another process has been at it for so long, and began at this record.
    pub(crate) fn continued(self, before: u64, elapsed: Duration) -> Self {
        let began = self.began.checked_sub(elapsed).unwrap_or(self.began);
        Self { began, before, ..self }
    }

    pub(crate) fn update(&self, at: &Mark, failed: u64) {
        if self.bar.is_hidden() {
            return;
        }
        self.bar.set_position(at.offset);
        let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
        self.bar.set_message(format!("{} records, {}/s{failed}", at.records, self.rate(at.records)));
    }

    /// How long this run takes so far.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Records a second, of this run.
    pub(crate) fn rate(&self, records: u64) -> String {
        let rate = records.saturating_sub(self.before) as f64 / self.elapsed().as_secs_f64().max(1e-9);
        match rate {
            r if r >= 99_950.0 => format!("{:.0} k", r / 1e3),
            r if r >= 9_995.0 => format!("{:.1} k", r / 1e3),
            r if r >= 9.95 => format!("{r:.0}"),
            r => format!("{r:.1}"),
        }
    }

    /// Writes to stderr, above the bar.
    pub(crate) fn say(&self, text: &str) {
        self.bar.suspend(|| terminal::say(text));
    }

    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
