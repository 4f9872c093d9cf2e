//! A map's progress: a line on stderr that is redrawn in place.

use gpu_run_console::terminal;
use gpu_run_map::Summary;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};
use std::time::Duration;

/// A bar if the input's length is known, otherwise a count; nothing if stderr is no terminal.
#[derive(Debug)]
pub(super) struct Bar(ProgressBar);

impl Bar {
    /// Returns a bar that is not shown.
    pub(super) fn hidden() -> Self {
        Self(ProgressBar::hidden())
    }

    /// `length` is the input's length in bytes, `from` is where this process begins. `quiet`: the output itself goes to
    /// the terminal, so no bar is drawn.
    pub(super) fn new(length: Option<u64>, from: &Summary, quiet: bool) -> Self {
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
        bar.set_position(from.input_offset);
        bar.reset_eta();
        bar.set_message(format!("{} records", from.records));
        if show {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Self(bar)
    }

    pub(super) fn update(&self, at: &Summary) {
        if self.0.is_hidden() {
            return;
        }
        self.0.set_position(at.input_offset);
        let failed = if at.failed > 0 { format!(", {} failed", at.failed) } else { String::new() };
        self.0.set_message(format!("{} records, {}/s{failed}", at.records, rate(at)));
    }

    /// Prints text on stderr, above the bar.
    pub(super) fn say(&self, text: &str) {
        self.0.suspend(|| terminal::say(text));
    }

    pub(super) fn clear(&self) {
        self.0.finish_and_clear();
    }
}

/// Formats the records per second of this run.
pub(super) fn rate(at: &Summary) -> String {
    let rate = at.records.saturating_sub(at.before) as f64 / at.elapsed.as_secs_f64().max(1e-9);
    match rate {
        r if r >= 99_950.0 => format!("{:.0} k", r / 1e3),
        r if r >= 9_995.0 => format!("{:.1} k", r / 1e3),
        r if r >= 9.95 => format!("{r:.0}"),
        r => format!("{r:.1}"),
    }
}
