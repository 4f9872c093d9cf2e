//! One run of a kernel, shared by the workers that execute it.

use super::compile::Program;
use super::deal::Deal;
use super::fiber::Entry;
use super::together::Together;
use crate::{Error, Grid, Rest, Result, Service};
use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

pub(super) struct Launch {
    /// Keeps the code mapped, and compiles more of it.
    pub(super) program: Arc<Program>,
    pub(super) entry: Entry,
    /// One cell for each parameter.
    pub(super) parameters: Box<[u64]>,
    pub(super) grid: Grid,
    pub(super) shared_bytes: usize,
    /// Set if all workgroups must run together, because they may wait for each other. Such a launch has a service that does nothing.
    pub(super) whole: Option<Rest>,
    /// Set if any thread may wait for any other.
    pub(super) together: Option<Together>,
    /// The argument of `run`, its lifetime extended. Every other thread that calls it is inside (`enter`), and `run`
    /// does not return before all have left.
    service: Service<'static>,
    deal: Deal,
    /// Counts events that a sleeping thread may have waited for.
    pub(super) epoch: AtomicU32,
    parked: AtomicU32,
    /// How many workers run threads, or look for something to do again and again.
    awake: AtomicU32,
    stopped: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Number of threads that may call `service`, apart from `run`'s own.
    inside: u32,
    closed: bool,
    error: Option<Error>,
    panic: Option<Box<dyn Any + Send>>,
}

impl Launch {
    /// # Safety
    /// `entry` is a kernel of `program` that takes `parameters`. `service` lives until [`Launch::close`] has returned.
    pub(super) unsafe fn new(
        program: Arc<Program>,
        entry: Entry,
        parameters: Box<[u64]>,
        grid: Grid,
        helpers: u32,
        service: Service<'_>,
    ) -> Self {
        // SAFETY: only the lifetime changes, and the caller promises to keep to it.
        let service = unsafe { std::mem::transmute::<Service<'_>, Service<'static>>(service) };
        Self {
            shared_bytes: program.shared_bytes,
            program,
            entry,
            parameters,
            grid,
            whole: None,
            together: None,
            service,
            deal: Deal::new(grid.workgroups, helpers),
            epoch: AtomicU32::new(0),
            parked: AtomicU32::new(0),
            awake: AtomicU32::new(0),
            stopped: AtomicBool::new(false),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// A helper or the watch begins; returns `false` if the launch is over.
    pub(super) fn enter(&self) -> bool {
        let mut state = self.state();
        state.inside += !state.closed as u32;
        !state.closed
    }

    pub(super) fn leave(&self) {
        let mut state = self.state();
        state.inside -= 1;
        if state.inside == 0 {
            self.changed.notify_all();
        }
    }

    pub(super) fn helper_came(&self) {
        self.deal.helper_came();
    }

    /// Returns the next workgroup, for a worker that has `own` already. `any`: helpers that have not come are not waited for.
    pub(super) fn take_workgroup(&self, any: bool, own: u32) -> Option<u32> {
        match &self.whole {
            _ if self.stopped() => None,
            Some(_) => self.deal.take_together(own),
            None => self.deal.take(any),
        }
    }

    /// Lets the host answer. Returns whether the host had something to do.
    #[inline]
    pub(super) fn serve(&self) -> bool {
        let served = self.service.serve();
        if served {
            self.epoch.fetch_add(1, Ordering::SeqCst);
            if self.parked.load(Ordering::SeqCst) != 0 {
                drop(self.state());
                self.changed.notify_all();
            }
        }
        served
    }

    /// Returns until when the service rests, see [`crate::Serve::rests_until`].
    pub(super) fn rests_until(&self) -> Option<Instant> {
        self.service.rests_until()
    }

    /// Whether the host rings when it changes memory that threads look at.
    pub(super) fn may_rest(&self) -> bool {
        self.whole.as_ref().is_some_and(Rest::is_on)
    }

    /// Whether nobody runs, and the service rests.
    pub(super) fn is_resting(&self) -> bool {
        self.awake.load(Ordering::Relaxed) == 0
    }

    pub(super) fn worker_begins(&self) {
        self.awake.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn worker_ends(&self) {
        self.awake.fetch_sub(1, Ordering::Relaxed);
    }

    /// A worker that waits does so in `wait`; while the service rests, the watch rests, too.
    pub(super) fn rest<T>(&self, rests: bool, wait: impl FnOnce() -> T) -> T {
        self.awake.fetch_sub(rests.into(), Ordering::Relaxed);
        let result = wait();
        self.awake.fetch_add(rests.into(), Ordering::Relaxed);
        result
    }

    /// The service has something to do.
    pub(super) fn ring(&self) {
        match &self.together {
            Some(together) => together.ring(),
            None => {
                self.epoch.fetch_add(1, Ordering::SeqCst);
                if self.parked.load(Ordering::SeqCst) != 0 {
                    drop(self.state());
                    self.changed.notify_all();
                }
            }
        }
    }

    /// The watch has answered something.
    pub(super) fn answered(&self) {
        if let Some(together) = &self.together {
            together.ring();
        }
    }

    /// Sleeps until an event after epoch `seen`, or until the time is over.
    pub(super) fn park(&self, seen: u32, time: Duration) {
        let state = self.state();
        self.parked.fetch_add(1, Ordering::SeqCst);
        if self.epoch.load(Ordering::SeqCst) == seen && !self.stopped() {
            drop(self.changed.wait_timeout(state, time));
        }
        self.parked.fetch_sub(1, Ordering::SeqCst);
    }

    #[inline]
    pub(super) fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Stops the launch with an error; the first error is the one that is reported.
    pub(super) fn fail(&self, error: Error) {
        self.state().error.get_or_insert(error);
        self.stop();
    }

    pub(super) fn panicked(&self, payload: Box<dyn Any + Send>) {
        self.state().panic.get_or_insert(payload);
        self.stop();
    }

    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// Waits until the helpers have left, and serves meanwhile.
    pub(super) fn wait(&self, tick: Duration) {
        let mut state = self.state();
        while state.inside != 0 && self.whole.is_some() {
            state = self.changed.wait(state).unwrap_or_else(|e| e.into_inner());
        }
        while state.inside != 0 {
            let (held, timeout) = self.changed.wait_timeout(state, tick).unwrap_or_else(|e| e.into_inner());
            state = held;
            if timeout.timed_out() && state.inside != 0 {
                drop(state);
                self.serve();
                state = self.state();
            }
        }
    }

    /// Lets nobody in any more, and waits until those inside have left: afterwards `service` is not called again.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        while state.inside != 0 {
            state = self.changed.wait(state).unwrap_or_else(|e| e.into_inner());
        }
    }

    pub(super) fn outcome(&self) -> Result<()> {
        let mut state = self.state();
        if let Some(payload) = state.panic.take() {
            drop(state);
            std::panic::resume_unwind(payload);
        }
        state.error.take().map_or(Ok(()), Err)
    }
}

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Launch({:?})", self.grid)
    }
}
