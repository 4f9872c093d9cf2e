//! Work on threads of our own, for which Python waits without its lock: other threads of Python go on, and Ctrl-C is noticed.

use crate::failure;
use gpu_run::Interrupt;
use parking_lot::Mutex;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// How often a thread that waits looks whether somebody pressed Ctrl-C.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const SETTLE_STEP: Duration = Duration::from_millis(5);

/// Threads that work.
static WORKING: AtomicUsize = AtomicUsize::new(0);

/// Counts a thread while it works.
struct Working;

impl Working {
    fn begin() -> Self {
        WORKING.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        WORKING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Begins work on another thread.
pub(crate) fn spawn(work: impl FnOnce() + Send + 'static) -> PyResult<()> {
    let working = Working::begin();
    let run = move || {
        let _working = working;
        work();
    };
    thread::Builder::new().name("gpu-run python".into()).spawn(run).map(drop).map_err(PyErr::from)
}

/// The end of a channel that Python waits at.
pub(crate) struct Inbox<T>(Mutex<Receiver<T>>);

impl<T: Send> Inbox<T> {
    pub(crate) fn new(messages: Receiver<T>) -> Self {
        Self(Mutex::new(messages))
    }

    /// Waits for a message; `None` if the other end is gone. Ctrl-C raises the interrupt, and is the error.
    pub(crate) fn wait(&self, py: Python<'_>, interrupt: &Interrupt) -> PyResult<Option<T>> {
        loop {
            match py.detach(|| self.0.lock().recv_timeout(LOOK_EVERY)) {
                Ok(message) => return Ok(Some(message)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => py.check_signals().inspect_err(|_| interrupt.raise())?,
            }
        }
    }
}

/// Does work on another thread and waits for it.
pub(crate) fn wait<T: Send + 'static>(
    py: Python<'_>,
    interrupt: &Interrupt,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (done, result) = mpsc::channel();
    spawn(move || {
        // If Ctrl-C was pressed, nobody waits any more.
        let _ = done.send(work());
    })?;
    let result = Inbox::new(result).wait(py, interrupt)?;
    result.ok_or_else(|| failure::internal("a thread of gpu-run panicked"))
}

/// Waits until no thread works any more, at most for so many seconds: a process should not end in the middle of a launch.
#[pyfunction]
pub(crate) fn settle(py: Python<'_>, seconds: f64) {
    let end = Instant::now() + Duration::from_secs_f64(seconds.clamp(0.0, 60.0));
    py.detach(|| {
        while WORKING.load(Ordering::SeqCst) > 0 && Instant::now() < end {
            thread::sleep(SETTLE_STEP);
        }
    });
}
