//! A program with threads that was stopped, by `--timeout` or Ctrl-C: where its threads were.

use crate::backtrace::Wanted;
use anyhow::{Context, Result};
use gpu_run_abi::TrapCode;
use gpu_run_console::units::{count, show_duration};
use gpu_run_run::{End, Outcome, SeenThreads, ThreadGroup, ThreadState};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// Signals that come together are one: `timeout` sends two.
const TOGETHER: Duration = Duration::from_millis(500);

/// Stops a program at the first signal; another one ends the process.
#[derive(Debug, Default)]
pub(crate) struct Interrupt {
    asked: Arc<AtomicBool>,
    signal: Arc<AtomicU8>,
}

impl Interrupt {
    /// Waits for signals from here on.
    pub(crate) fn watch() -> Result<Self> {
        let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot wait for signals")?;
        let new = Self::default();
        let (asked, number) = (new.asked.clone(), new.signal.clone());
        let watch = move || {
            let mut first = None;
            for signal in signals.forever() {
                number.store(signal as u8, Ordering::Relaxed);
                asked.store(true, Ordering::Relaxed);
                if first.get_or_insert_with(Instant::now).elapsed() > TOGETHER {
                    std::process::exit(128 + signal);
                }
            }
        };
        let thread = std::thread::Builder::new().name("signals".into());
        thread.spawn(watch).context("cannot start the thread that waits for signals")?;
        Ok(new)
    }

    /// Becomes true at the first signal.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        self.asked.clone()
    }

    /// Returns the exit code, if a signal ended the program, or processes that outlived it.
    pub(crate) fn exit_code(&self, outcomes: &[Outcome], outlived: usize) -> Option<u8> {
        let is_stopped = |o: &Outcome| matches!(&o.end, End::Trapped(trap) if trap.code == TrapCode::Interrupted);
        let signal = self.signal.load(Ordering::Relaxed);
        let was_stopped = outlived > 0 || outcomes.iter().any(is_stopped);
        (self.asked.load(Ordering::Relaxed) && was_stopped).then_some(128 + signal)
    }
}

/// Returns lines that say where a stopped program's threads were; nothing for other programs.
pub(crate) fn show(outcomes: &[Outcome], backtrace: Wanted) -> String {
    outcomes.iter().filter_map(|outcome| outcome.threads.as_ref()).map(|threads| lines(threads, backtrace)).collect()
}

fn lines(threads: &SeenThreads, backtrace: Wanted) -> String {
    let mut text = format!("  it had {}:\n", count(threads.count, "thread"));
    text.extend(describe(threads).iter().map(|line| format!("    {line}\n")));
    if !backtrace.is_any() {
        text += "  note: run with RUST_BACKTRACE=1 to see which functions of the program led there\n";
    }
    text
}

/// Returns a line for each group of threads, with one behind it if the group has several.
pub(crate) fn describe(threads: &SeenThreads) -> Vec<String> {
    let mut lines = Vec::new();
    for ThreadGroup { first, count, state, has_other_addresses, place, in_warp } in &threads.groups {
        let place = place.as_ref().map_or(String::new(), |place| format!(" {place}"));
        let warp = if *in_warp > 1 { format!(" [{in_warp} threads in its warp]") } else { String::new() };
        lines.push(format!("{first} {}{place}{warp}", does(state)));
        if *count > 1 {
            let others = if *has_other_addresses { ", some at other addresses" } else { "" };
            lines.push(format!("  … and {} more at the same place{others}", count - 1));
        }
    }
    let shown: u64 = threads.groups.iter().map(|group| group.count).sum();
    if shown < threads.count {
        lines.push(format!("… and {} elsewhere", threads.count - shown));
    }
    lines
}

fn does(state: &ThreadState) -> String {
    let at_most = |time: &Option<_>| time.map_or(String::new(), |time| format!(" for at most {}", show_duration(time)));
    match state {
        ThreadState::Runs => "runs".into(),
        ThreadState::Waits { at, time } => format!("waits at address {at:#x}{}", at_most(time)),
        ThreadState::Sleeps(Some(time)) => format!("sleeps for {}", show_duration(*time)),
        ThreadState::Sleeps(None) => "sleeps".into(),
        ThreadState::Calls(name) => format!("waits for the host ({name})"),
    }
}
