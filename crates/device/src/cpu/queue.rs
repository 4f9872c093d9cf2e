//! Launches that run one after the other on a thread of their own, so that nobody has to wait for them.

use super::{Loaded, MAX_THREADS, WORKGROUP_THREADS, Workgroups};
use crate::{Arg, Error, Grid, Launched, Queue, Rest, Result};
use std::fmt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

pub(super) struct ThreadQueue {
    /// `None` once the queue is being dropped.
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    rest: Rest,
}

struct Job {
    kernel: String,
    grid: Grid,
    args: Vec<Arg>,
    rest: Rest,
    ticket: Arc<Ticket>,
}

impl ThreadQueue {
    pub(super) fn new(module: Arc<Loaded>) -> Result<Self> {
        let (jobs, queue) = channel();
        let thread = std::thread::Builder::new()
            .name("gpu-run queue".into())
            .spawn(move || work(&module, &queue))
            .map_err(|e| Error::Unavailable(format!("cannot start a thread for a queue of launches: {e}")))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread), rest: Rest::default() })
    }
}

/// Runs one job after the other. After a launch has failed, all later ones fail with the same error, because what it
/// should have left for them is missing.
fn work(module: &Loaded, queue: &Receiver<Job>) {
    let mut failed: Option<Error> = None;
    while let Ok(Job { kernel, grid, args, rest, ticket }) = queue.recv() {
        let run = || module.execute(&kernel, grid, &args, &|| false, Workgroups::Whole(&rest));
        let outcome = failed.clone().map_or_else(run, Err);
        failed = outcome.clone().err();
        *ticket.outcome() = Some(outcome);
        ticket.changed.notify_all();
    }
}

impl Queue for ThreadQueue {
    fn launch(&mut self, kernel: &str, grid: Grid, args: &[Arg]) -> Result<Box<dyn Launched>> {
        let threads = u64::from(grid.workgroups) * u64::from(grid.threads);
        if grid.threads <= WORKGROUP_THREADS && threads > u64::from(MAX_THREADS) {
            let most = MAX_THREADS / grid.threads.max(1);
            return Err(Error::Unavailable(format!(
                "{} workgroups of {} threads: the cpu device runs at most {most} of them at once",
                grid.workgroups, grid.threads
            )));
        }
        let ticket = Arc::new(Ticket::default());
        let (args, rest) = (args.to_vec(), self.rest.clone());
        let job = Job { kernel: kernel.to_owned(), grid, args, rest, ticket: ticket.clone() };
        let sent = self.jobs.as_ref().map(|jobs| jobs.send(job));
        match sent {
            Some(Ok(())) => Ok(Box::new(Waiting(ticket))),
            _ => Err(Error::Unavailable("the queue of launches has ended".into())),
        }
    }

    fn rest_with(&mut self, rest: &Rest) {
        self.rest = rest.clone();
    }
}

impl Drop for ThreadQueue {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for ThreadQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Queue(cpu)")
    }
}

#[derive(Debug, Default)]
struct Ticket {
    outcome: Mutex<Option<Result<()>>>,
    changed: Condvar,
}

impl Ticket {
    fn outcome(&self) -> MutexGuard<'_, Option<Result<()>>> {
        self.outcome.lock().unwrap_or_else(|e| e.into_inner())
    }
}

#[derive(Debug)]
struct Waiting(Arc<Ticket>);

impl Launched for Waiting {
    fn is_done(&self) -> Result<bool> {
        match &*self.0.outcome() {
            None => Ok(false),
            Some(outcome) => outcome.clone().map(|()| true),
        }
    }

    fn wait(&self) -> Result<()> {
        crate::count_wait();
        let mut outcome = self.0.outcome();
        loop {
            match &*outcome {
                Some(outcome) => return outcome.clone(),
                None => outcome = self.0.changed.wait(outcome).unwrap_or_else(|e| e.into_inner()),
            }
        }
    }
}
