//! A context: what a program owns on a GPU, and what is lost together when a kernel faults.
//!
//! The driver works in the context that is current on the calling thread, and other code may have changed that. So
//! every call goes through [`Context::enter`], which makes the context current and returns the driver; a call that
//! needs a context cannot be written without it.
//!
//! Some driver calls wait until no kernel runs, and block every other call in the context meanwhile, even a query
//! whether a kernel has finished. A kernel that waits for the host would then wait for ever. So such calls first wait
//! outside the driver, in [`Context::alone`], until no launch is [`Context::running`].
//!
//! Kernels run on non-blocking streams, one for each launch at a time. Memory is copied and cleared on a separate
//! stream, and the host waits for each copy: a copy does not wait for kernels, and it is finished before the host
//! continues.

use super::driver::{Code, Driver, Failure, Handle, LIMIT_STACK_SIZE, Ordinal, STREAM_NON_BLOCKING};
use crate::{Error, Result};
use std::ptr::null_mut;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// Stack of each thread in a new context, in bytes.
const MIN_STACK: u32 = 1 << 10;

/// Device memory that a context takes by itself, in bytes, about.
pub(super) const CONTEXT_BYTES: u64 = 600 << 20;

/// This many threads keep the GPU's copy engines busy. More threads in the driver would only delay a thread that waits
/// there for a kernel to finish.
const MAX_COPYING: usize = 3;

#[derive(Debug)]
pub(super) struct Context {
    driver: &'static Driver,
    handle: Handle,
    /// The stream for copies.
    transfers: Handle,
    /// Streams that no launch uses now.
    idle: Mutex<Vec<Handle>>,
    stack: Mutex<Stacks>,
    /// A thread that holds `stack` may wait for the gate; a thread that has passed the gate must not wait for `stack`.
    gate: Gate,
    /// Number of threads that are copying to trays.
    copying: Mutex<usize>,
    copied: Condvar,
}

/// What is reserved for each thread that the GPU can hold.
#[derive(Debug)]
pub(super) struct Stacks {
    /// Bytes of stack.
    pub(super) limit: u32,
    /// Bytes of local memory, including the stack: the most that any kernel wanted since the limit was set.
    local: u32,
}

impl Stacks {
    /// Called after a launch failed, when it is unknown what the driver has reserved.
    pub(super) fn forget_kernels(&mut self) {
        self.local = self.limit;
    }
}

/// Counts launches, and holds back whatever must wait until there are none.
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

/// A launch runs while this is held, by any thread.
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

impl Alone<'_> {
    /// Begins a launch in place of this guard.
    fn running(self, context: &Arc<Context>) -> Running {
        lock(&self.0.gate.state).running += 1;
        Running(context.clone())
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        lock(&self.0.gate.state).alone = false;
        self.0.gate.changed.notify_all();
    }
}

/// A thread copies to a tray while this is held.
#[derive(Debug)]
pub(super) struct Copying<'a>(&'a Context);

impl Drop for Copying<'_> {
    fn drop(&mut self) {
        *lock(&self.0.copying) -= 1;
        self.0.copied.notify_one();
    }
}

// SAFETY: the driver's handles may be used from any thread, and from several at once.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    pub(super) fn new(driver: &'static Driver, device: Ordinal) -> Result<Self> {
        let mut handle = null_mut();
        // SAFETY: `device` is one of the driver's; one handle is written, and the context becomes current.
        unsafe { driver.cuCtxCreate_v2(&mut handle, 0, device) }.map_err(|e| e.taking(CONTEXT_BYTES))?;
        let mut context = Self {
            driver,
            handle,
            transfers: null_mut(),
            idle: Mutex::default(),
            stack: Mutex::new(Stacks { limit: MIN_STACK, local: MIN_STACK }),
            gate: Gate::default(),
            copying: Mutex::default(),
            copied: Condvar::new(),
        };
        context.transfers = context.new_stream()?;
        Ok(context)
    }

    /// Makes the context current on this thread and returns the driver.
    pub(super) fn enter(&self) -> Result<&'static Driver> {
        // SAFETY: the context lives until `drop`.
        unsafe { self.driver.cuCtxSetCurrent(self.handle) }?;
        Ok(self.driver)
    }

    /// Begins a launch of a kernel with `local` bytes of local memory for each thread; it runs while the guard is held.
    ///
    /// If `local` is more than any kernel had before, the driver reserves more memory: it waits for all kernels and
    /// blocks every other call. So this waits first until no launch runs.
    pub(super) fn running(self: &Arc<Self>, local: u32, stacks: &mut Stacks) -> Running {
        if local > stacks.local {
            stacks.local = local;
            return self.alone().running(self);
        }
        self.pass(|state| !state.alone).running += 1;
        Running(self.clone())
    }

    /// Waits until no launch runs; none runs while the guard is held.
    pub(super) fn alone(&self) -> Alone<'_> {
        self.pass(|state| !state.alone && state.running == 0).alone = true;
        Alone(self)
    }

    /// Like [`Context::alone`], but returns `None` instead of waiting.
    fn alone_now(&self) -> Option<Alone<'_>> {
        let mut state = lock(&self.gate.state);
        let is_free = !state.alone && state.running == 0;
        state.alone |= is_free;
        is_free.then(|| Alone(self))
    }

    /// Waits until `may` is true of the gate's state.
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

    /// Copies or clears memory: `queue` puts the work on the stream it is given, and the work is done when this
    /// returns.
    pub(super) fn transfer(&self, queue: impl FnOnce(&Driver, Handle) -> Result<(), Failure>) -> Result<()> {
        crate::count_copy();
        let driver = self.enter()?;
        queue(driver, self.transfers)?;
        // SAFETY: entered; the stream lives until `drop`.
        Ok(unsafe { driver.cuStreamSynchronize(self.transfers) }?)
    }

    /// Waits until fewer than [`MAX_COPYING`] threads copy to trays.
    pub(super) fn copying(&self) -> Copying<'_> {
        let is_full = |copying: &mut usize| *copying == MAX_COPYING;
        *self.copied.wait_while(lock(&self.copying), is_full).unwrap_or_else(|e| e.into_inner()) += 1;
        Copying(self)
    }

    pub(super) fn stream(&self) -> Result<Stream<'_>> {
        let idle = lock(&self.idle).pop();
        let handle = idle.map_or_else(|| self.new_stream(), Ok)?;
        Ok(Stream { context: self, handle, drained: false })
    }

    /// Gives each thread of the next launch `wanted` bytes of stack, or more if the limit is higher already. The launch
    /// has to be made while the guard is held.
    ///
    /// A change of the limit waits for all launches and takes the driver up to a third of a second, because it reserves
    /// the stacks of all threads that fit on the card, `resident`. So a reserved stack stays until somebody needs the
    /// memory.
    pub(super) fn stack(&self, wanted: u32, resident: u64) -> Result<MutexGuard<'_, Stacks>> {
        let mut given = lock(&self.stack);
        if given.limit < wanted {
            let _alone = self.alone();
            // SAFETY: entered; takes no pointer.
            let set = unsafe { self.enter()?.cuCtxSetLimit(LIMIT_STACK_SIZE, wanted as usize) };
            set.map_err(|failure| match failure.code {
                Code::INVALID_VALUE | Code::OUT_OF_MEMORY => {
                    Error::OutOfMemory { wanted: u64::from(wanted) * resident }
                }
                _ => failure.into(),
            })?;
            *given = Stacks { limit: wanted, local: wanted };
        }
        Ok(given)
    }

    /// Does something that takes device memory. If there is too little, releases the stacks kept for later launches and
    /// tries once more.
    pub(super) fn with_room<T>(&self, mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
        match attempt() {
            Err(Error::OutOfMemory { .. }) if self.release_stacks() => attempt(),
            result => result,
        }
    }

    /// Releases the stacks and the local memory that are kept, if no launch runs now. Returns whether it did.
    pub(super) fn release_stacks(&self) -> bool {
        let Ok(mut given) = self.stack.try_lock() else { return false };
        let Some(_alone) = self.alone_now() else { return false };
        let Ok(driver) = self.enter() else { return false };
        // The driver also releases the kernels' own local memory, but only if the limit changes.
        let least = if given.limit == MIN_STACK { 2 * MIN_STACK } else { MIN_STACK };
        // SAFETY: entered; takes no pointer.
        let released = unsafe { driver.cuCtxSetLimit(LIMIT_STACK_SIZE, least as usize) }.is_ok();
        if released {
            *given = Stacks { limit: least, local: least };
        }
        released
    }

    /// Bytes that could be allocated now, including the stacks that are kept, one for each of `resident` threads.
    pub(super) fn free_bytes(&self, resident: u64) -> Result<u64> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: entered; two sizes are written.
        unsafe { self.enter()?.cuMemGetInfo_v2(&mut free, &mut total) }?;
        let kept = self.stack.try_lock().map_or(0, |given| given.local - MIN_STACK);
        Ok(free as u64 + u64::from(kept) * resident)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let Ok(driver) = self.enter() else { return };
        let idle = std::mem::take(&mut *lock(&self.idle));
        for stream in idle.into_iter().chain([self.transfers]).filter(|s| !s.is_null()) {
            // SAFETY: entered; nobody else has the stream. A failure only leaks, here and below.
            let _ = unsafe { driver.cuStreamDestroy_v2(stream) };
        }
        // SAFETY: everything made in the context holds it in an `Arc`, so all of that is gone.
        let _ = unsafe { driver.cuCtxDestroy_v2(self.handle) };
    }
}

/// A stream that one launch has to itself.
#[derive(Debug)]
pub(super) struct Stream<'a> {
    context: &'a Context,
    handle: Handle,
    /// Whether all work on the stream has finished.
    drained: bool,
}

impl Stream<'_> {
    pub(super) fn handle(&self) -> Handle {
        self.handle
    }

    /// Whether all work on the stream has finished.
    pub(super) fn is_done(&mut self) -> Result<bool> {
        let driver = self.context.enter()?;
        // SAFETY: entered; `self` owns the stream.
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
        // The host gave up waiting for the kernel on this stream. The driver keeps the stream until the kernel has
        // finished.
        if let Ok(driver) = self.context.enter() {
            // SAFETY: entered; nobody uses the handle afterwards.
            let _ = unsafe { driver.cuStreamDestroy_v2(self.handle) };
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}
