//! The host's threads that run kernels.
//!
//! The thread that calls `run` works on the launch itself; helpers from a pool of waiting threads take further
//! workgroups. So a launch of one workgroup need not wake another thread. One more thread, the watch, calls every
//! launch's `service` a few hundred times a second, so that a timeout is noticed while all workers compute. Launches of a
//! queue have no service to call.

use super::launch::Launch;
use super::schedule::work;
use super::stack::Stacks;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// How often the watch serves.
const TICK: Duration = Duration::from_millis(3);
/// And while the services of all launches rest.
const REST_TICK: Duration = Duration::from_millis(20);
/// Stack of a worker: it compiles functions that are called for the first time. Set here, because the usual size is the
/// user's to set (`RUST_MIN_STACK`), for programs with threads.
const STACK_BYTES: usize = 2 << 20;
/// Ticks without a launch that has a service after which the watch waits for one.
const MAX_QUIET_TICKS: u32 = 40;
/// Maximum number of GPU threads in progress at once, on all workers of all devices together. Each needs two entries in the system's
/// table of mappings.
const MAX_THREADS_UNDER_WAY: u32 = 16 << 10;

#[derive(Debug)]
pub(super) struct Pool {
    inner: Arc<Inner>,
    workers: u32,
}

#[derive(Debug, Default)]
struct Inner {
    stacks: Stacks,
    queue: Mutex<Queue>,
    work: Condvar,
    watched: Mutex<Watched>,
    watch: Condvar,
    resident: u32,
}

#[derive(Debug, Default)]
struct Queue {
    launches: VecDeque<Arc<Launch>>,
    threads: u32,
    busy: u32,
    over: bool,
}

#[derive(Debug, Default)]
struct Watched {
    launches: Vec<Arc<Launch>>,
    running: bool,
    waiting: bool,
    over: bool,
}

impl Watched {
    /// The launches that have a service to call.
    fn served(&self) -> impl Iterator<Item = &Arc<Launch>> {
        self.launches.iter().filter(|launch| launch.whole.is_none())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

impl Pool {
    /// The process has so many devices with such a pool.
    pub(super) fn new(workers: u32, devices: u32) -> Self {
        let resident = (MAX_THREADS_UNDER_WAY / devices.max(1) / workers.max(1)).clamp(1, 2048);
        Self { inner: Arc::new(Inner { resident, ..Inner::default() }), workers }
    }

    /// Returns how many helpers a launch can use that has so many parts, each for one worker.
    pub(super) fn helpers(&self, parts: u32) -> u32 {
        parts.min(self.workers).saturating_sub(1)
    }

    /// Runs a launch until it finishes. Afterwards nobody calls its `service` any more.
    pub(super) fn run(&self, launch: &Arc<Launch>, helpers: u32) {
        self.watch(launch);
        if helpers != 0 {
            self.offer(launch, helpers);
        }
        let _closing = Closing { pool: self, launch, helpers };
        work(launch, &self.inner.stacks, self.inner.resident);
        if helpers != 0 {
            self.withdraw(launch);
            launch.wait(TICK);
        }
    }

    fn offer(&self, launch: &Arc<Launch>, helpers: u32) {
        let mut queue = lock(&self.inner.queue);
        queue.launches.extend((0..helpers).map(|_| launch.clone()));
        while queue.threads + 1 < self.workers && queue.threads < queue.busy + queue.launches.len() as u32 {
            let inner = self.inner.clone();
            let worker = std::thread::Builder::new().name("gpu-run worker".into()).stack_size(STACK_BYTES);
            if worker.spawn(move || help(&inner)).is_err() {
                break; // fewer helpers: the other workers take their workgroups
            }
            queue.threads += 1;
        }
        drop(queue);
        for _ in 0..helpers {
            self.inner.work.notify_one();
        }
    }

    fn withdraw(&self, launch: &Arc<Launch>) {
        lock(&self.inner.queue).launches.retain(|l| !Arc::ptr_eq(l, launch));
    }

    fn watch(&self, launch: &Arc<Launch>) {
        let mut watched = lock(&self.inner.watched);
        watched.launches.push(launch.clone());
        if !watched.running {
            let inner = self.inner.clone();
            watched.running =
                std::thread::Builder::new().name("gpu-run watch".into()).spawn(move || tick(&inner)).is_ok();
        } else if watched.waiting {
            self.inner.watch.notify_one();
        }
    }

    /// Has the workers of all launches call their services now.
    pub(super) fn ring(&self) {
        let launches = lock(&self.inner.watched).launches.clone();
        launches.iter().for_each(|launch| launch.ring());
    }

    fn unwatch(&self, launch: &Arc<Launch>) {
        lock(&self.inner.watched).launches.retain(|l| !Arc::ptr_eq(l, launch));
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        lock(&self.inner.queue).over = true;
        self.inner.work.notify_all();
        lock(&self.inner.watched).over = true;
        self.inner.watch.notify_all();
    }
}

/// Closes a launch when dropped, even if `service` panicked on this thread.
struct Closing<'p> {
    pool: &'p Pool,
    launch: &'p Arc<Launch>,
    helpers: u32,
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.launch.stop();
        self.pool.unwatch(self.launch);
        if self.helpers != 0 {
            self.pool.withdraw(self.launch);
        }
        self.launch.close();
    }
}

/// The main loop of a helper.
fn help(inner: &Inner) {
    let mut queue = lock(&inner.queue);
    while !queue.over {
        let Some(launch) = queue.launches.pop_front() else {
            queue = inner.work.wait(queue).unwrap_or_else(|e| e.into_inner());
            continue;
        };
        queue.busy += 1;
        drop(queue);
        if launch.enter() {
            launch.helper_came();
            let outcome = catch_unwind(AssertUnwindSafe(|| work(&launch, &inner.stacks, inner.resident)));
            if let Err(payload) = outcome {
                launch.panicked(payload);
            }
            launch.leave();
        }
        drop(launch);
        queue = lock(&inner.queue);
        queue.busy -= 1;
    }
}

/// The main loop of the watch.
fn tick(inner: &Inner) {
    let mut quiet = 0;
    let mut watched = lock(&inner.watched);
    while !watched.over {
        quiet = if watched.served().next().is_none() { quiet + 1 } else { 0 };
        if quiet > MAX_QUIET_TICKS {
            watched.waiting = true;
            watched = inner.watch.wait(watched).unwrap_or_else(|e| e.into_inner());
            watched.waiting = false;
            continue;
        }
        let rests = quiet == 0 && watched.served().all(|launch| launch.is_resting());
        let time = if rests { REST_TICK } else { TICK };
        watched = inner.watch.wait_timeout(watched, time).unwrap_or_else(|e| e.into_inner()).0;
        let launches: Vec<_> = watched.served().cloned().collect();
        drop(watched);
        for launch in launches {
            if launch.enter() {
                match catch_unwind(AssertUnwindSafe(|| launch.serve())) {
                    Ok(true) => launch.answered(),
                    Ok(false) => {}
                    Err(payload) => launch.panicked(payload),
                }
                launch.leave();
            }
        }
        watched = lock(&inner.watched);
    }
}
