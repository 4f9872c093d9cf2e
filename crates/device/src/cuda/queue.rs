//! Launches on a stream, one after the other. An event behind each launch shows when it has finished.

use super::context::{Context, Running};
use super::driver::{Code, EVENT_DISABLE_TIMING, Handle};
use super::launch::{Loaded, pause};
use crate::{Arg, Error, Grid, Launched, Queue, Result};
use std::fmt;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

pub(super) struct StreamQueue {
    module: Arc<Loaded>,
    stream: Handle,
    /// Launches not yet seen to finish.
    flights: Vec<Arc<Flight>>,
    /// The launch that was last found to fit: kernel, workgroups, threads.
    fitting: Option<(String, u32, u32)>,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for StreamQueue {}

impl StreamQueue {
    pub(super) fn new(module: Arc<Loaded>) -> Result<Self> {
        let stream = module.context().new_stream()?;
        Ok(Self { module, stream, flights: Vec::new(), fitting: None })
    }
}

impl Queue for StreamQueue {
    fn launch(&mut self, kernel: &str, grid: Grid, args: &[Arg]) -> Result<Box<dyn Launched>> {
        self.flights.retain(|flight| !matches!(flight.is_done(), Ok(true)));
        let known = self.fitting.as_ref().is_some_and(|(name, blocks, threads)| {
            (name.as_str(), *blocks, *threads) == (kernel, grid.workgroups, grid.threads)
        });
        if !known {
            self.module.fits(kernel, grid)?;
            self.fitting = Some((kernel.to_owned(), grid.workgroups, grid.threads));
        }
        let context = self.module.context();
        let flight = Flight::new(context)?;
        *flight.state() = State::Running(self.module.start(kernel, grid, args, self.stream)?);
        // SAFETY: entered; both handles are alive.
        unsafe { context.enter()?.cuEventRecord(flight.event, self.stream) }?;
        let flight = Arc::new(flight);
        self.flights.push(flight.clone());
        Ok(Box::new(Ticket(flight)))
    }
}

impl Drop for StreamQueue {
    fn drop(&mut self) {
        for flight in &self.flights {
            let _ = flight.wait();
        }
        if let Ok(driver) = self.module.context().enter() {
            // SAFETY: entered; nothing runs on the stream, and nobody else has it. A failure leaks.
            let _ = unsafe { driver.cuStreamDestroy_v2(self.stream) };
        }
    }
}

impl fmt::Debug for StreamQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue({:?}, {} under way)", self.module, self.flights.len())
    }
}

/// A launch, and the event behind it.
struct Flight {
    context: Arc<Context>,
    event: Handle,
    state: Mutex<State>,
}

enum State {
    /// The guard keeps everything out of the context that would wait until no kernel runs.
    Running(#[allow(dead_code)] Running),
    Ended(Result<()>),
}

// SAFETY: the driver's handles may be used from any thread, and from several at once.
unsafe impl Send for Flight {}
// SAFETY: as above.
unsafe impl Sync for Flight {}

impl Flight {
    fn new(context: &Arc<Context>) -> Result<Self> {
        let mut event = null_mut();
        // SAFETY: entered; one handle is written.
        unsafe { context.enter()?.cuEventCreate(&mut event, EVENT_DISABLE_TIMING) }?;
        Ok(Self { context: context.clone(), event, state: Mutex::new(State::Ended(Ok(()))) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn is_done(&self) -> Result<bool> {
        let mut state = self.state();
        if let State::Ended(outcome) = &*state {
            return outcome.clone().map(|()| true);
        }
        // SAFETY: entered; the event lives as long as `self`.
        let outcome = match unsafe { self.context.enter()?.cuEventQuery(self.event) } {
            Err(failure) if failure.code == Code::NOT_READY => return Ok(false),
            outcome => outcome.map_err(Error::from),
        };
        *state = State::Ended(outcome.clone());
        outcome.map(|()| true)
    }

    fn wait(&self) -> Result<()> {
        let began = Instant::now();
        while !self.is_done()? {
            pause(began.elapsed());
        }
        Ok(())
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if let Ok(driver) = self.context.enter() {
            // SAFETY: entered; made in `new` and destroyed only here. The driver keeps the event as long as the stream
            // needs it.
            let _ = unsafe { driver.cuEventDestroy_v2(self.event) };
        }
    }
}

struct Ticket(Arc<Flight>);

impl Launched for Ticket {
    fn is_done(&self) -> Result<bool> {
        self.0.is_done()
    }

    fn wait(&self) -> Result<()> {
        crate::count_wait();
        self.0.wait()
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Launched(cuda)")
    }
}
