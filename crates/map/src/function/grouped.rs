//! The engine that calls a function: puts the calls of a batch into groups, and makes text of what they return.

use super::arguments::Calls;
use super::{ALONE, MAX_GROUP};
use crate::batch::{Done, Mapper, Results, Tuning};
use crate::runner::{Engine, Finish};
use gpu_run_abi::TrapCode;
use gpu_run_compiler::Error;
use gpu_run_run::{End, Job, RunStats};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Makes the mapper that runs calls alone, for so many at once.
pub(crate) type MakeAlone = Box<dyn Fn(u32) -> Result<Mapper, Error> + Send + Sync>;

/// Jobs that are given to it are calls: their stdin is the words of their arguments.
pub(crate) struct Grouped<E> {
    engine: E,
    shared: Arc<Shared>,
}

/// What the groups under way share.
struct Shared {
    calls: Arc<Calls>,
    /// How many instances run at once.
    at_once: usize,
    timeout: Option<Duration>,
    /// Whether the function has printed something, so that calls need an instance each: nothing says which call of a
    /// group has printed what.
    prints: AtomicBool,
    make_alone: MakeAlone,
    /// From the first group on that fails.
    alone: Mutex<Option<Mapper>>,
}

/// Groups that were begun.
pub(crate) struct PendingGroups<P> {
    pending: P,
    shared: Arc<Shared>,
    /// The calls of each group whose results have not come.
    groups: VecDeque<Vec<Job>>,
    /// What calls alone have taken.
    stats: RunStats,
}

impl<E> Grouped<E> {
    pub(crate) fn new(
        engine: E,
        calls: Arc<Calls>,
        at_once: usize,
        timeout: Option<Duration>,
        make_alone: MakeAlone,
    ) -> Self {
        let (prints, alone) = (AtomicBool::new(false), Mutex::default());
        let at_once = at_once.max(1);
        Self { engine, shared: Arc::new(Shared { calls, at_once, timeout, prints, make_alone, alone }) }
    }
}

impl<E: Engine> Engine for Grouped<E> {
    type Pending = PendingGroups<E::Pending>;

    fn begin(&mut self, jobs: Arc<Vec<Job>>) -> Result<Self::Pending, Error> {
        let prints = self.shared.prints.load(Ordering::Relaxed);
        // Few calls have an instance each: more instances at once are faster than more calls of one.
        let most = if prints { 1 } else { jobs.len().div_ceil(self.shared.at_once).clamp(1, MAX_GROUP) };
        let groups: VecDeque<_> = jobs.chunks(most).map(<[Job]>::to_vec).collect();
        let pending = self.engine.begin(Arc::new(groups.iter().map(|calls| together(calls)).collect()))?;
        Ok(PendingGroups { pending, shared: self.shared.clone(), groups, stats: RunStats::default() })
    }

    fn tuning(&self) -> Option<Tuning> {
        self.engine.tuning()
    }
}

/// Returns the job of an instance with these calls, of which there is at least one.
fn together(calls: &[Job]) -> Job {
    match calls {
        [one] => one.clone(),
        calls => {
            let words: Vec<_> = calls.iter().map(|call| &call.stdin[..]).collect();
            Job { stdin: words.concat().into(), ..calls[0].clone() }
        }
    }
}

impl<P: Finish> Finish for PendingGroups<P> {
    fn next_part(&mut self) -> Result<Option<Results>, Error> {
        let Some(part) = self.pending.next_part()? else { return Ok(None) };
        let groups: Vec<_> = self.groups.drain(..part.len().min(self.groups.len())).collect();
        let failed: Vec<Job> = groups
            .iter()
            .zip(part.iter())
            .filter(|(calls, done)| !self.shared.is_fine(calls, done))
            .flat_map(|(calls, _)| calls.iter().cloned())
            .collect();
        let alone = if failed.is_empty() { Results::default() } else { self.run_alone(failed)? };
        let (mut alone, mut results, mut text) = (alone.iter(), Results::default(), Vec::new());
        for (calls, done) in groups.iter().zip(part.iter()) {
            if !self.shared.is_fine(calls, &done) {
                alone.by_ref().take(calls.len()).for_each(|done| self.shared.put(&done, &mut results));
            } else if calls.len() == 1 {
                self.shared.put(&done, &mut results);
            } else if let Some((_, words)) = self.shared.calls.function.results(done.stdout, calls.len()) {
                let of_call = words.len() / calls.len();
                for call in 0..calls.len() {
                    text.clear();
                    self.shared.calls.show(&words[call * of_call..][..of_call], &mut text);
                    results.push(End::Returned, &text, b"", None);
                }
            }
        }
        Ok(Some(results))
    }

    fn take_stats(&mut self) -> RunStats {
        let mut stats = self.pending.take_stats();
        stats.add(&std::mem::take(&mut self.stats));
        stats
    }
}

impl<P> PendingGroups<P> {
    fn run_alone(&mut self, calls: Vec<Job>) -> Result<Results, Error> {
        // One batch after the other: what is free for two may be too little for them.
        let mut alone = self.shared.alone.lock();
        let mapper = match &mut *alone {
            Some(mapper) => mapper,
            none => none.insert((self.shared.make_alone)(ALONE)?),
        };
        let (results, stats) = mapper.run(calls, self.shared.timeout)?;
        self.stats.add(&stats);
        Ok(results)
    }
}

impl Shared {
    /// Returns whether it is known how each call of a group ended. Of a group of one, it always is.
    fn is_fine(&self, calls: &[Job], done: &Done<'_>) -> bool {
        if calls.len() == 1 {
            return true;
        }
        let results = self.calls.function.results(done.stdout, calls.len());
        let has_printed = results.is_some_and(|(printed, _)| !printed.is_empty());
        if *done.end == End::Returned && has_printed {
            self.prints.store(true, Ordering::Relaxed);
        }
        *done.end == End::Returned && done.denied.is_none() && results.is_some() && !has_printed
    }

    /// Appends how a call ended that had an instance to itself.
    fn put(&self, done: &Done<'_>, results: &mut Results) {
        if *done.end != End::Returned || done.denied.is_some() {
            results.push(done.end.clone(), done.stdout, done.stderr, done.denied);
            return;
        }
        match self.calls.function.results(done.stdout, 1) {
            Some((printed, words)) => {
                let mut text = printed.to_vec();
                self.calls.show(words, &mut text);
                results.push(End::Returned, &text, done.stderr, None);
            }
            // The function has put something else in the place of stdout.
            None => results.push(End::trapped(TrapCode::Unreachable), b"", done.stderr, None),
        }
    }
}
