//! Acts when a run outlives its deadline by far: the device hangs, or a stream has no reader. The engine's own deadline
//! comes first and gives the better message.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Once it is dropped, the watchdog does nothing any more.
#[derive(Debug)]
pub struct Watchdog {
    _end: mpsc::Sender<()>,
}

impl Watchdog {
    /// How long the watchdog waits after the engine's deadline.
    const GRACE: Duration = Duration::from_millis(800);

    pub fn start(timeout: Duration, act: impl FnOnce() + Send + 'static) -> Self {
        let (end, ended) = mpsc::channel::<()>();
        std::thread::spawn(move || {
            if ended.recv_timeout(timeout.saturating_add(Self::GRACE)) == Err(RecvTimeoutError::Timeout) {
                act();
            }
        });
        Self { _end: end }
    }
}
