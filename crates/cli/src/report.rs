//! How instances ended, and where the time went: the text for stderr.

use crate::args::StatsFormat;
use crate::backtrace::Wanted;
use crate::process_figures;
use gpu_run_abi::{Layout, TrapCode};
use gpu_run_cache::Origin;
use gpu_run_compiler::Trap;
use gpu_run_console::failure::exit;
use gpu_run_console::units::{count, show_duration, show_size};
use gpu_run_device::Properties;
use gpu_run_map::{Counts, Share};
use gpu_run_run::{Denied, End, Outcome, Processes, RunStats, ThreadStats};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Counts how instances ended.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    instances: u64,
    /// Whether there was a deadline. Without one, an interruption is a trap like any other.
    deadline: bool,
    /// By exit code; returning counts as exiting with 0.
    exits: BTreeMap<u32, u64>,
    traps: Ended,
    timeouts: Ended,
    exit_code: u8,
}

/// How many instances trapped or timed out, and the first of them.
#[derive(Debug, Default)]
struct Ended {
    count: u64,
    first: Option<(u64, Trap)>,
}

impl Ended {
    fn add(&mut self, instance: u64, trap: &Trap) {
        self.count += 1;
        self.first.get_or_insert_with(|| (instance, trap.clone()));
    }
}

impl Tally {
    pub(crate) fn new(outcomes: &[Outcome], deadline: bool) -> Self {
        let mut tally = Self { deadline, ..Self::default() };
        outcomes.iter().for_each(|outcome| tally.add(&outcome.end));
        tally
    }

    /// Counts one more instance.
    fn add(&mut self, end: &End) {
        let instance = self.instances;
        self.instances += 1;
        let code = match end {
            End::Returned => self.exited(0),
            End::Exited(code) => self.exited(*code),
            End::Trapped(trap) if self.deadline && trap.code == TrapCode::Interrupted => {
                self.timeouts.add(instance, trap);
                exit::TIMEOUT
            }
            End::Trapped(trap) => {
                self.traps.add(instance, trap);
                exit::TRAP
            }
        };
        if self.exit_code == 0 {
            self.exit_code = code;
        }
    }

    fn exited(&mut self, code: u32) -> u8 {
        *self.exits.entry(code).or_default() += 1;
        match code as u8 {
            // The system keeps only eight bits of an exit code; a failure must not turn into a success that way.
            0 if code != 0 => exit::FAILURE,
            code => code,
        }
    }

    /// Returns 0 if all instances exited with 0, else the exit code of the first that did not, in instance order.
    pub(crate) fn exit_code(&self) -> u8 {
        self.exit_code
    }

    /// Returns the message for the first trap or timeout, and a summary if there are several instances.
    pub(crate) fn report(
        &self,
        file: &str,
        timeout: Option<Duration>,
        backtrace: Wanted,
        summary_always: bool,
    ) -> String {
        let mut text = String::new();
        let who = |instance: &u64| match self.instances {
            1 => file.to_owned(),
            _ => format!("{file}, instance {instance},"),
        };
        if let Some((instance, trap)) = &self.traps.first {
            let (advice, calls) = (advice(trap.code), backtrace.lines(trap));
            text += &format!("error: {} trapped: {trap}{advice}{calls}\n", who(instance));
        }
        if let (Some((instance, trap)), Some(timeout)) = (&self.timeouts.first, timeout) {
            let limit = show_duration(timeout);
            // The trap's own message, "interrupted", is replaced by a better one; its location is kept.
            let place: String = trap.to_string().lines().skip(1).map(|line| format!("\n{line}")).collect();
            let calls = backtrace.lines(trap);
            text += &format!("error: {} did not finish within {limit}{place}{calls}\n", who(instance));
        }
        if self.instances != 1 || summary_always {
            text += &format!("gpu-run: {}\n", self.summary());
        }
        text
    }

    /// `64 instances: 62 exited 0, 1 exited 3, 1 trapped (first: instance 17: unreachable)`
    fn summary(&self) -> String {
        let mut parts: Vec<_> = self.exits.iter().map(|(code, count)| format!("{count} exited {code}")).collect();
        if let Some((instance, trap)) = &self.traps.first {
            let count = self.traps.count;
            parts.push(format!("{count} trapped (first: instance {instance}: {})", trap.code.message()));
        }
        if let Some((instance, _)) = &self.timeouts.first {
            parts.push(format!("{} timed out (first: instance {instance})", self.timeouts.count));
        }
        format!("{}: {}", count(self.instances, "instance"), parts.join(", "))
    }
}

/// A map counts traps but does not keep the first one.
impl From<&Counts> for Tally {
    fn from(counts: &Counts) -> Self {
        let Counts { instances, exits, trapped, timed_out } = counts.clone();
        let (traps, timeouts) = (Ended { count: trapped, first: None }, Ended { count: timed_out, first: None });
        Self { instances, exits, traps, timeouts, ..Self::default() }
    }
}

/// What `--stats` prints.
#[derive(Debug)]
pub(crate) struct Stats<'a> {
    pub(crate) device: &'a Properties,
    pub(crate) layout: Layout,
    pub(crate) timings: &'a [(&'static str, Duration)],
    pub(crate) load: Duration,
    /// `None` if there is no cache.
    pub(crate) cache: Option<Origin>,
    pub(crate) run: &'a RunStats,
    /// What each device did, if there are several.
    pub(crate) shares: &'a [Share],
    /// `None` where programs start no processes.
    pub(crate) processes: Option<&'a Processes>,
}

impl Stats<'_> {
    pub(crate) fn show(&self, format: StatsFormat, tally: &Tally) -> String {
        match format {
            StatsFormat::Text => self.text(),
            StatsFormat::Json => self.json(tally),
        }
    }

    fn text(&self) -> String {
        let compile: Vec<_> =
            self.timings.iter().map(|(step, time)| format!("{step} {}", show_duration(*time))).collect();
        let compile = if compile.is_empty() { "nothing".into() } else { compile.join(", ") };
        let cache = match self.cache {
            None => "off".into(),
            Some(Origin::Hit { saved }) => format!("hit, saved {}", show_duration(saved)),
            Some(Origin::Fetched { saved }) => format!("fetched, saved {}", show_duration(saved)),
            Some(Origin::Miss { kept: Some(bytes), .. }) => format!("miss, kept {}", show_size(bytes)),
            Some(Origin::Miss { kept: None, .. }) => "miss, not kept".into(),
        };
        let run = self.run;
        let on_host = match run.on_host {
            0 => String::new(),
            some => format!(" ({some} on the cpu: the device has too little memory for their call stacks)"),
        };
        format!(
            "gpu-run: device   {} ({}), {} layout\n\
             gpu-run: cache    {cache}\n\
             gpu-run: compile  {compile}\n\
             gpu-run: load     {}\n\
             gpu-run: run      {}{on_host} in {}, {}, {} of device memory; host before {}, device {}, host after {}\n",
            self.device.id,
            self.device.name,
            self.layout,
            show_duration(self.load),
            count(run.instances, "instance"),
            count(run.launches, "launch"),
            count(run.hostcalls, "host call"),
            show_size(run.device_bytes),
            show_duration(run.prepare),
            show_duration(run.run),
            show_duration(run.collect),
        ) + &show_shares(self.shares)
            + &run.threads.map_or(String::new(), |threads| show_threads(threads, self.device.is_cpu()))
            + &self.processes.map_or(String::new(), process_figures::show)
    }

    /// One object on one line; times are in seconds.
    fn json(&self, tally: &Tally) -> String {
        let compile: Map<_, _> =
            self.timings.iter().map(|(s, time)| (s.to_string(), time.as_secs_f64().into())).collect();
        let exits: Map<_, _> = tally.exits.iter().map(|(code, count)| (code.to_string(), (*count).into())).collect();
        let object = json!({
            "device": self.device.id,
            "device_name": self.device.name,
            "layout": self.layout.to_string(),
            "cache": match self.cache {
                None => "off",
                Some(Origin::Hit { .. }) => "hit",
                Some(Origin::Fetched { .. }) => "fetched",
                Some(Origin::Miss { .. }) => "miss",
            },
            "cache_saved_seconds": match self.cache {
                Some(Origin::Hit { saved } | Origin::Fetched { saved }) => saved.as_secs_f64(),
                _ => 0.0,
            },
            "compilations": gpu_run_compiler::compilations().0 + gpu_run_compiler::compilations().1,
            "compile_seconds": compile,
            "load_seconds": self.load.as_secs_f64(),
            "prepare_seconds": self.run.prepare.as_secs_f64(),
            "run_seconds": self.run.run.as_secs_f64(),
            "collect_seconds": self.run.collect.as_secs_f64(),
            "instances": self.run.instances,
            "launches": self.run.launches,
            "on_cpu": self.run.on_host,
            "host_calls": self.run.hostcalls,
            "threads": self.run.threads.map(|threads| json!({
                "limit": threads.limit,
                "started": threads.started,
                "most_at_once": threads.most_running,
                "warps_shared": threads.shared_warps,
                "threads_in_shared_warps": threads.in_shared_warps,
            })),
            "processes": self.processes.map(process_figures::json),
            "device_bytes": self.run.device_bytes,
            "devices": self.shares.iter().map(share_json).collect::<Vec<_>>(),
            "exits": exits,
            "trapped": tally.traps.count,
            "timed_out": tally.timeouts.count,
        });
        format!("{object}\n")
    }
}

/// Says what each of several devices did.
fn show_shares(shares: &[Share]) -> String {
    let all: u64 = shares.iter().map(|share| share.records).sum();
    let line = |share: &Share| {
        let Share { device, name, records, batches, run, is_lost } = share;
        let part = *records as f64 / all.max(1) as f64 * 100.0;
        let lost = if *is_lost { ", then lost" } else { "" };
        let (records, batches, run) = (count(*records, "record"), count(*batches, "batch"), show_duration(*run));
        format!("gpu-run: share    {device} ({name}): {records} ({part:.0} %) in {batches}, {run}{lost}\n")
    };
    shares.iter().map(line).collect()
}

fn share_json(share: &Share) -> Value {
    json!({
        "device": share.device,
        "device_name": share.name,
        "records": share.records,
        "batches": share.batches,
        "run_seconds": share.run.as_secs_f64(),
        "lost": share.is_lost,
    })
}

/// Says how many threads a program had, and how they lay on the device.
fn show_threads(threads: ThreadStats, is_cpu: bool) -> String {
    let ThreadStats { limit, started, most_running, shared_warps, in_shared_warps } = threads;
    let placed = match shared_warps {
        _ if is_cpu => String::new(),
        0 => ", each in a warp of its own".to_owned(),
        _ => format!(", {in_shared_warps} of them in {} together", count(shared_warps, "warp")),
    };
    format!("gpu-run: threads  {started} started, at most {most_running} at once (of {}){placed}\n", limit - 1)
}

/// Returns a hint for the user about a trap, on a line of its own.
pub(crate) fn advice(code: TrapCode) -> &'static str {
    match code {
        TrapCode::Inexact | TrapCode::Deviated => "\n  hint: run it with --checks exact",
        _ => "",
    }
}

/// Says what an instance was denied, and what the user can do about it.
pub(crate) fn describe_denied(denied: Denied) -> String {
    let hint = match denied {
        Denied::MaxMemory(_) => "\n  hint: raise --max-memory",
        _ => "",
    };
    format!("{denied}{hint}")
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
