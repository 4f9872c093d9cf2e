//! A context: what a program owns on a GPU, and what is lost together when a kernel faults.
//!
//! The driver works in the context that is current on the calling thread, and other code may have changed that. So every way
//! in goes through [`Context::enter`], which makes it current and hands out the driver; a call that needs a context cannot be
//! written without it.
//!
//! Some of what the driver does waits until no kernel runs, and lets nobody else into the context meanwhile, not even to
//! ask whether a kernel is done. A kernel that waits for the host would wait for ever. So whatever does that waits outside the
//! driver, in [`Context::alone`], until no launch is [`Context::running`].
//!
//! Kernels run on streams that wait for nobody, one for each launch at a time. Memory is copied and cleared on a stream of
//! its own and waited for there: the copies neither wait for a kernel nor overtake one.

use super::driver::{Code, Driver, Failure, Handle, LIMIT_STACK_SIZE, Ordinal, STREAM_NON_BLOCKING};
use crate::{Error, Result};
use std::ptr::null_mut;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once};

/// The least stack that is still worth a launch.
const LEAST_STACK: u32 = 1 << 10;

#[derive(Debug)]
pub(super) struct Context {
    driver: &'static Driver,
    handle: Handle,
    /// For copies.
    transfers: Handle,
    /// Streams that no launch uses now.
    idle: Mutex<Vec<Handle>>,
    stack: Mutex<Stack>,
    /// Who has `stack` may wait for it, not the other way round.
    gate: Gate,
}

/// Launches, and what waits until there are none.
#[derive(Debug, Default)]
struct Gate {
    state: Mutex<Passing>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Passing {
    running: u32,
    alone: bool,
}

/// A launch runs while this is held, by whichever thread.
#[derive(Debug)]
pub(super) struct Running(Arc<Context>);

impl Drop for Running {
    fn drop(&mut self) {
        lock(&self.0.gate.state).running -= 1;
        self.0.gate.changed.notify_all();
    }
}

/// No launch runs while this is held.
#[derive(Debug)]
pub(super) struct Alone<'a>(&'a Context);

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        lock(&self.0.gate.state).alone = false;
        self.0.gate.changed.notify_all();
    }
}

// SAFETY: handles of the driver may be used from any thread, from several at once too.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// What threads have as their stack.
#[derive(Debug, Default)]
pub(super) struct Stack {
    wanted: u32,
    pub(super) given: u32,
}

impl Context {
    pub(super) fn new(driver: &'static Driver, device: Ordinal) -> Result<Self> {
        let mut handle = null_mut();
        // SAFETY: `device` is one of the driver's; one handle is written, and the context becomes current.
        unsafe { driver.cuCtxCreate_v2(&mut handle, 0, device) }?;
        let mut context = Self {
            driver,
            handle,
            transfers: null_mut(),
            idle: Mutex::default(),
            stack: Mutex::default(),
            gate: Gate::default(),
        };
        context.transfers = context.new_stream()?;
        Ok(context)
    }

    /// Makes the context current on this thread. What the driver does next happens in it.
    pub(super) fn enter(&self) -> Result<&'static Driver> {
        // SAFETY: the context lives until `drop`.
        unsafe { self.driver.cuCtxSetCurrent(self.handle) }?;
        Ok(self.driver)
    }

    /// A launch runs while the guard is held.
    pub(super) fn running(self: &Arc<Self>) -> Running {
        self.pass(|state| !state.alone).running += 1;
        Running(self.clone())
    }

    /// No launch runs while the guard is held.
    pub(super) fn alone(&self) -> Alone<'_> {
        self.pass(|state| !state.alone && state.running == 0).alone = true;
        Alone(self)
    }

    /// Waits for its turn.
    fn pass(&self, may: impl Fn(&Passing) -> bool) -> MutexGuard<'_, Passing> {
        let mut state = lock(&self.gate.state);
        while !may(&state) {
            state = self.gate.changed.wait(state).unwrap_or_else(|e| e.into_inner());
        }
        state
    }

    pub(super) fn new_stream(&self) -> Result<Handle> {
        let mut stream = null_mut();
        // SAFETY: entered; one handle is written.
        unsafe { self.enter()?.cuStreamCreate(&mut stream, STREAM_NON_BLOCKING) }?;
        Ok(stream)
    }

    /// Copies or clears: `queue` puts the work on the stream it is given, and it is done when this returns.
    pub(super) fn transfer(&self, queue: impl FnOnce(&Driver, Handle) -> Result<(), Failure>) -> Result<()> {
        crate::count_copy();
        let driver = self.enter()?;
        queue(driver, self.transfers)?;
        // SAFETY: entered; the stream lives until `drop`.
        Ok(unsafe { driver.cuStreamSynchronize(self.transfers) }?)
    }

    pub(super) fn stream(&self) -> Result<Stream<'_>> {
        let idle = lock(&self.idle).pop();
        let handle = idle.map_or_else(|| self.new_stream(), Ok)?;
        Ok(Stream { context: self, handle, drained: false })
    }

    /// Gives each thread of the next launch so much stack, or as much as the card has for it. The launch has to be made while
    /// the guard is held.
    ///
    /// To change it waits for all launches, and takes the driver a third of a second for the stacks of all threads that fit on a large card. So `few` threads that want less have what there is: the others
    /// will be back.
    pub(super) fn stack(&self, wanted: u32, few: bool) -> Result<MutexGuard<'_, Stack>> {
        let mut stack = lock(&self.stack);
        if stack.wanted == wanted || few && stack.given >= wanted {
            return Ok(stack);
        }
        let _alone = self.alone();
        let driver = self.enter()?;
        let mut given = wanted.max(LEAST_STACK);
        // SAFETY: entered; takes no pointer.
        while let Err(failure) = unsafe { driver.cuCtxSetLimit(LIMIT_STACK_SIZE, given as usize) } {
            if !matches!(failure.code, Code::INVALID_VALUE | Code::OUT_OF_MEMORY) || given / 2 < LEAST_STACK {
                return Err(failure.taking(u64::from(wanted)));
            }
            given /= 2;
        }
        if given < wanted {
            static SAID: Once = Once::new();
            SAID.call_once(|| {
                tracing::warn!(
                    "a thread of this GPU gets {given} bytes of stack instead of {wanted}: deep recursion ends earlier"
                );
            });
        }
        *stack = Stack { wanted, given };
        Ok(stack)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let Ok(driver) = self.enter() else { return };
        let idle = std::mem::take(&mut *lock(&self.idle));
        for stream in idle.into_iter().chain([self.transfers]).filter(|s| !s.is_null()) {
            // SAFETY: entered; nobody else has the stream. Failure leaks, nothing else: the same below.
            let _ = unsafe { driver.cuStreamDestroy_v2(stream) };
        }
        // SAFETY: whatever was made in the context holds it in an `Arc`, so all of that is gone.
        let _ = unsafe { driver.cuCtxDestroy_v2(self.handle) };
    }
}

/// A stream that one launch has to itself.
#[derive(Debug)]
pub(super) struct Stream<'a> {
    context: &'a Context,
    handle: Handle,
    /// All that was put on it has ended.
    drained: bool,
}

impl Stream<'_> {
    pub(super) fn handle(&self) -> Handle {
        self.handle
    }

    /// Whether all that was put on it has ended.
    pub(super) fn is_done(&mut self) -> Result<bool> {
        let driver = self.context.enter()?;
        // SAFETY: entered; the stream is this one's.
        match unsafe { driver.cuStreamQuery(self.handle) } {
            Ok(()) => self.drained = true,
            Err(failure) if failure.code == Code::NOT_READY => {}
            Err(failure) => return Err(Error::from(failure)),
        }
        Ok(self.drained)
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        if self.drained {
            return lock(&self.context.idle).push(self.handle);
        }
        // The host gave up on what runs there. The driver keeps the stream until that has ended.
        if let Ok(driver) = self.context.enter() {
            // SAFETY: entered; the handle is used by nobody afterwards.
            let _ = unsafe { driver.cuStreamDestroy_v2(self.handle) };
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}
