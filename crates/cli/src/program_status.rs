//! What a program with threads or with processes publishes for `gpu-run top`, while it runs.

use crate::process_figures;
use crate::published::{Published, Publisher};
use crate::stopped_threads::describe;
use gpu_run_compiler::printable;
use gpu_run_console::units::show_duration;
use gpu_run_run::{Onlooker, ProcessInfo, ProcessOnlooker, SeenThreads};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// A program's threads and processes, as another process sees them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ProgramStatus {
    pid: u32,
    file: String,
    device: String,
    /// Seconds since the program began.
    seconds: f64,
    /// How many threads there are; 0 until somebody looks.
    threads: u64,
    /// What they do, as it is shown.
    lines: Vec<String>,
    /// The processes that it started, as they are shown.
    processes: Vec<String>,
}

impl Published for ProgramStatus {
    const PREFIX: &'static str = "program-";
    fn pid(&self) -> u32 {
        self.pid
    }
}

impl ProgramStatus {
    /// Formats the threads and the processes.
    pub(crate) fn show(&self) -> String {
        let name = |text: &str| printable::name(text).into_owned();
        let up = show_duration(Duration::try_from_secs_f64(self.seconds.max(0.0)).unwrap_or(Duration::MAX));
        let (file, device) = (name(&self.file), name(&self.device));
        let mut text = format!("program  {file} on {device}, process {}, up {up}\n", self.pid);
        if self.threads > 0 {
            text += &format!("threads  {}\n\n", self.threads);
            text.extend(self.lines.iter().map(|line| format!("{}\n", name(line))));
        }
        if !self.processes.is_empty() {
            text += "\nprocesses\n";
            text.extend(self.processes.iter().map(|line| format!("  {}\n", name(line))));
        }
        text
    }

    /// Whether nobody has looked yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.threads == 0 && self.processes.is_empty()
    }
}

/// Publishes the threads and processes of the program that this process runs.
#[derive(Debug)]
pub(crate) struct ProgramPublisher {
    publisher: Publisher,
    status: Mutex<ProgramStatus>,
    began: Instant,
}

impl ProgramPublisher {
    /// `None` if that is not possible: the program runs as well without.
    pub(crate) fn new(file: &str, device: &str) -> Option<Self> {
        let publisher = Publisher::new::<ProgramStatus>();
        let publisher =
            publisher.inspect_err(|error| tracing::info!("`gpu-run top` cannot show this program: {error}"));
        let (pid, file, device) = (std::process::id(), file.to_owned(), device.to_owned());
        let status = ProgramStatus { pid, file, device, ..ProgramStatus::default() };
        let publisher = publisher.ok()?;
        publisher.publish(&status);
        Some(Self { publisher, status: Mutex::new(status), began: Instant::now() })
    }
}

impl ProgramPublisher {
    fn publish(&self, change: impl FnOnce(&mut ProgramStatus)) {
        let mut status = self.status.lock();
        status.seconds = self.began.elapsed().as_secs_f64();
        change(&mut status);
        self.publisher.publish(&*status);
    }
}

impl ProcessOnlooker for ProgramPublisher {
    fn is_looking(&self) -> bool {
        self.publisher.is_asked()
    }

    fn sees(&self, processes: &[ProcessInfo]) {
        let lines = processes.iter().map(process_figures::describe).collect();
        self.publish(|status| status.processes = lines);
    }
}

impl Onlooker for ProgramPublisher {
    fn is_looking(&self) -> bool {
        self.publisher.is_asked()
    }

    fn sees(&self, threads: &SeenThreads) {
        let lines = describe(threads);
        self.publish(|status| (status.threads, status.lines) = (threads.count, lines));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_read_can_be_shown() {
        let evil = "\x1b[2J\n".repeat(3);
        for seconds in [f64::NAN, -1e300, 1e300] {
            let (file, device, lines) = (evil.clone(), evil.clone(), vec![evil.clone(), evil.clone()]);
            let processes = lines.clone();
            let text = ProgramStatus { pid: 1, file, device, seconds, threads: u64::MAX, lines, processes }.show();
            assert!(!text.contains('\x1b') && text.lines().count() == 9, "{text}");
        }
    }
}
