//! Loading new code into a running machine: the machine leaves at a tick boundary and comes back with the new code.
//!
//! ```text
//! caller     compile ▸ prepare device memory ▸ ask
//! service                                      ask to leave ▸ wait ▸ copy on the device, load ▸ launch ▸ checkpoint
//! machine    tick    tick    tick    tick    tick    tick │◂─────────────── the gap ─────────────▸│ tick    tick
//! ```
//!
//! Everything slow is done before the machine is asked to leave. The machine leaves right after a tick, so that it can
//! be back before the next tick is due; meanwhile events wait in the ring. New code takes over everything above the
//! linker's part of memory: the state, and scratch with the ring positions and the staged events. The state that the
//! old code left is still in its own memory: the checkpoint for a restart is made from it. So no tick is ever redone
//! with other code than it was first done with, and code that fails before its first checkpoint can be taken back.

use crate::boot::{NAME, read_state};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::layout::*;
use crate::machine::{Machine, ServiceRequest, gone};
use crate::service::{MAX_LEAVE_TIME, Service};
use crate::status::status;
use gpu_run_compiler::Compiler;
use gpu_run_gang::Successor;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// How long new code may take to its first heartbeat.
const FIRST_SIGN: Duration = Duration::from_secs(10);
/// How long the caller waits for the new code's first tick.
const FIRST_TICK: Duration = Duration::from_millis(100);
/// How long the service polls without sleeping whether the machine has left; after that it sleeps between two polls.
const SPIN_UNTIL: Duration = Duration::from_millis(20);
const PAUSE: Duration = Duration::from_micros(100);

/// What a load took.
#[derive(Clone, Copy, Debug)]
pub struct Loaded {
    /// The first tick of the new code.
    pub tick: u64,
    /// How long no tick could begin: from the tick boundary where the old code left to the new code's first look, by
    /// the device's clock.
    pub gap: Duration,
    /// From that boundary, right after the old code's last tick, to the new code's first tick. `None` if no tick began
    /// within 100 ms.
    pub between_ticks: Option<Duration>,
    /// How long compiling and preparing took, while the machine ticked.
    pub preparation: Duration,
}

/// Code that is ready to be loaded.
#[derive(Debug)]
pub(crate) struct Change {
    successor: Successor,
    kernel: Kernel,
    /// Whether to record the load in the log.
    record: bool,
    /// Receives the number of the new code's first launch, and its first tick.
    answer: SyncSender<Result<(u64, u64)>>,
}

impl Machine {
    /// Replaces the machine's code while it runs. Code that cannot be loaded is refused, and the machine continues with
    /// its own.
    pub fn load(&self, compiler: &Compiler, kernel: &Kernel) -> Result<Loaded> {
        self.load_as(compiler, kernel, true)
    }

    pub(crate) fn load_as(&self, compiler: &Compiler, kernel: &Kernel, record: bool) -> Result<Loaded> {
        let inner = self.inner();
        let _one_at_a_time = inner.loading.lock();
        let began = Instant::now();
        let place = inner.settings.place;
        if kernel.place() != place {
            return Err(Error::Usage(format!(
                "the new code cannot continue with this machine's state: it keeps its own at {:?}, and the machine at {:?}",
                kernel.place(),
                place
            )));
        }
        // New code takes over everything behind the constants.
        let carried = STATE as u64..place.memory() as u64;
        let (wasm, options) = (kernel.wasm().clone(), &inner.settings.gang);
        let mut spare = inner.spare.lock().take();
        let prepared = Successor::prepare(compiler, &inner.seat, wasm, options, NAME, carried, &mut spare);
        if spare.is_some() {
            *inner.spare.lock() = spare;
        }
        let (successor, restarts) = (prepared?, inner.restarts.load(Ordering::Relaxed));
        let preparation = began.elapsed();
        let (answer, answered) = sync_channel(1);
        let change = Change { successor, kernel: kernel.clone(), record, answer };
        self.ask(ServiceRequest::Load(Box::new(change)));
        let (launch, tick) = answered.recv().unwrap_or_else(|_| Err(gone()))?;
        self.await_sign(launch, restarts)?;
        let (left, back) = (status(&inner.bus, STATUS_LEFT), status(&inner.bus, STATUS_BACK));
        let gap = Duration::from_nanos(back.saturating_sub(left));
        inner.load_gap.store(gap.as_nanos() as u64, Ordering::Relaxed);
        inner.loads.fetch_add(1, Ordering::Relaxed);
        Ok(Loaded { tick, gap, between_ticks: self.first_tick(left), preparation })
    }

    /// Waits for a launch's first heartbeat.
    fn await_sign(&self, launch: u64, restarts: u32) -> Result<()> {
        let (since, inner) = (Instant::now(), self.inner());
        loop {
            let there = status(&inner.bus, STATUS_LAUNCHES) >= launch;
            if inner.restarts.load(Ordering::Relaxed) != restarts {
                return Err(Error::Usage("the new code failed at once; the machine has printed why".to_owned()));
            }
            if there {
                return Ok(());
            }
            if !self.is_up() {
                return Err(gone());
            }
            if since.elapsed() > FIRST_SIGN {
                return Err(Error::Slow { what: "start its new code", seconds: FIRST_SIGN.as_secs() });
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn first_tick(&self, left: u64) -> Option<Duration> {
        let since = Instant::now();
        while since.elapsed() < FIRST_TICK {
            let first = status(&self.inner().bus, STATUS_FIRST);
            if first != 0 {
                return Some(Duration::from_nanos(first.saturating_sub(left)));
            }
            std::thread::sleep(PAUSE);
        }
        None
    }
}

impl Service {
    pub(crate) fn exchange(&mut self, change: Change) -> Result<()> {
        let Change { successor, kernel, record, answer } = change;
        let told = |outcome| drop(answer.send(outcome));
        self.inner.control(C_LEAVE, self.ended + self.launches.len() as u64);
        match self.drained(MAX_LEAVE_TIME) {
            Ok(true) => {}
            Ok(false) => {
                self.inner.control(C_LEAVE, 0);
                self.unused.push(successor);
                told(Err(Error::Slow {
                    what: "reach a tick boundary to load new code",
                    seconds: MAX_LEAVE_TIME.as_secs(),
                }));
                return self.keep_launched();
            }
            Err(why) => {
                self.unused.push(successor);
                told(Err(Error::Usage(format!("the machine failed before it could load new code: {why}"))));
                return self.restart(why.to_string());
            }
        }
        // The log must have the events of the old code's ticks before it records the new code.
        self.read_ledger()?;
        self.unused.clear();
        let tick = status(&self.inner.bus, STATUS_TICK);
        let taken_over = successor.take_over(&self.gang);
        self.inner.control(C_LEAVE, 0);
        let before = match taken_over {
            Ok(gang) => std::mem::replace(&mut self.gang, gang),
            Err(error) => {
                told(Err(error.into()));
                return self.keep_launched();
            }
        };
        let first = self.ended + 1;
        self.inner.control(C_FRESH, first);
        if let (Err(error), true) = (self.keep_launched(), self.launches.is_empty()) {
            // Back to the old gang, whose image is unchanged.
            *self.inner.spare.lock() = Some(std::mem::replace(&mut self.gang, before));
            told(Err(error));
            return self.keep_launched();
        }
        self.beat.1 = Instant::now();
        let kept = read_state(&before, &self.inner.settings.place)?;
        *self.inner.spare.lock() = Some(before);
        self.keep(Arc::new(kept));
        if let (Some(recorder), true) = (&mut self.recorder, record) {
            recorder.code(tick, &kernel)?;
        }
        self.before = Some(self.inner.set_kernel(kernel));
        told(Ok((first, tick)));
        Ok(())
    }

    /// Replaces code that failed twice before it reached a checkpoint by the code that ran before it.
    pub(crate) fn take_back(&mut self) -> Result<()> {
        let spare = self.inner.spare.lock().take();
        let (Some(kernel), Some(gang)) = (self.before.take(), spare) else { return Ok(()) };
        *self.inner.spare.lock() = Some(std::mem::replace(&mut self.gang, gang));
        let tick = self.last.tick();
        if let Some(recorder) = &mut self.recorder {
            recorder.code(tick, &kernel)?;
        }
        self.inner.set_kernel(kernel);
        self.inner.notice(format!("the new code failed: going back to the code before it, from tick {tick} on"));
        Ok(())
    }

    /// Waits until all launches have finished. Returns whether they did so in time.
    fn drained(&mut self, patience: Duration) -> Result<bool> {
        let since = Instant::now();
        while let Some(first) = self.launches.front() {
            if first.is_done()? {
                // A launch that trapped left in the middle of a tick.
                if let Some(trap) = first.trap() {
                    return Err(Error::Usage(trap.to_string()));
                }
                self.count_ended()?;
            } else if since.elapsed() > patience {
                return Ok(false);
            } else if since.elapsed() < SPIN_UNTIL {
                std::thread::yield_now();
            } else {
                std::thread::sleep(PAUSE);
            }
        }
        Ok(true)
    }
}
