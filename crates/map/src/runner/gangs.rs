//! The engine for a program with threads: each record is a launch of its own, and several of them run at once.

use super::engine::{OnHang, RunLimits};
use super::{Batches, Engine, Finish};
use crate::batch::{Kept, Results};
use gpu_run_compiler::{Error, Program};
use gpu_run_run::{
    Common, CommonMemory, Denied, End, Job, Limits, RunOptions, RunStats, ThreadPlacement, Watchdog, programs_at_once,
    run_threads,
};
use parking_lot::Mutex;
use std::panic;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

/// How the records of a program with threads run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gangs {
    /// The most threads that a record can have, its first one included; `None`: as many as usual.
    pub threads: Option<u32>,
    pub placement: ThreadPlacement,
}

/// For each record that runs at once, so many are handed on together: a slow one holds up fewer others.
const PART: usize = 4;

pub(crate) struct Launcher {
    terms: Arc<Terms>,
}

struct Terms {
    program: Arc<Program>,
    gangs: Gangs,
    common: Common,
    /// How many records run at once.
    at_once: usize,
    run: RunLimits,
    on_hang: OnHang,
}

/// Records that run as their results are asked for.
pub(crate) struct Waiting {
    terms: Arc<Terms>,
    jobs: Arc<Vec<Job>>,
    /// How many of them have run.
    done: usize,
    stats: RunStats,
}

/// How a record ended, what it printed to stdout and stderr, and what it was refused.
type Ran = (End, Vec<u8>, Vec<u8>, Option<Denied>);

impl Launcher {
    pub(crate) fn new(program: Arc<Program>, batches: Batches, run: RunLimits, on_hang: OnHang) -> Result<Self, Error> {
        let Batches { gangs, common, .. } = batches;
        let gangs = gangs.unwrap_or_default();
        let at_once = programs_at_once(&program, gangs.threads, gangs.placement)?;
        Ok(Self { terms: Arc::new(Terms { program, gangs, common, at_once, run, on_hang }) })
    }
}

impl Engine for Launcher {
    type Pending = Waiting;

    fn begin(&mut self, jobs: Arc<Vec<Job>>) -> Result<Waiting, Error> {
        Ok(Waiting { terms: self.terms.clone(), jobs, done: 0, stats: RunStats::default() })
    }
}

impl Finish for Waiting {
    fn next_part(&mut self) -> Result<Option<Results>, Error> {
        let left = &self.jobs[self.done..];
        if left.is_empty() {
            return Ok(None);
        }
        let part = &left[..left.len().min(PART * self.terms.at_once)];
        let mut results = Results::default();
        for (job, ran) in part.iter().zip(self.terms.run_all(part)) {
            let (ran, stats) = match ran {
                // Beside others, there was too little memory.
                Err(error) if error.is_shortage() => self.terms.run(job),
                ran => ran,
            }?;
            self.stats.add(&stats);
            let (end, stdout, stderr, denied) = ran;
            results.push(end, &stdout, &stderr, denied);
        }
        self.done += part.len();
        Ok(Some(results))
    }

    fn take_stats(&mut self) -> RunStats {
        std::mem::take(&mut self.stats)
    }
}

impl Terms {
    fn run_all(&self, jobs: &[Job]) -> Vec<Result<(Ran, RunStats), Error>> {
        let next = Mutex::new(jobs.iter().enumerate());
        let work = || {
            let take = || next.lock().next();
            std::iter::from_fn(take).map(|(at, job)| (at, self.run(job))).collect::<Vec<_>>()
        };
        let mut ran: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..self.at_once.min(jobs.len())).map(|_| scope.spawn(work)).collect();
            let joined = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|e| panic::resume_unwind(e)));
            joined.flatten().collect()
        });
        ran.sort_by_key(|(at, _)| *at);
        ran.into_iter().map(|(_, ran)| ran).collect()
    }

    fn run(&self, job: &Job) -> Result<(Ran, RunStats), Error> {
        let limits = Limits::default();
        let kept = Kept::new(limits.output_bytes);
        let context = kept.context(job);
        let RunLimits { max_memory, timeout, interrupt } = self.run.clone();
        let _watchdog = timeout.map(|timeout| {
            let on_hang = self.on_hang.clone();
            Watchdog::start(timeout, move || on_hang())
        });
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let common = CommonMemory::new(&self.program, Common { first: job.number, ..self.common })?;
        let options = RunOptions {
            deadline,
            interrupt,
            max_memory,
            common: Some(Arc::new(common)),
            limits,
            ..RunOptions::default()
        };
        let Gangs { threads, placement } = self.gangs;
        let (outcome, stats) = run_threads(&self.program, "_start", &[], context, threads, placement, &options)?;
        let (stdout, is_cut) = kept.stdout.take();
        let refused = is_cut.then_some(Denied::Output(stdout.len() as u64));
        Ok(((outcome.end, stdout, kept.stderr.take(), refused.or(outcome.denied)), stats))
    }
}
