//! Acts when a run outlives its deadline by far: a device that hangs, or a stream that nobody reads. The
//! engine's own deadline comes first and says more.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Dropped, it does nothing any more.
#[derive(Debug)]
pub struct Watchdog {
    _end: mpsc::Sender<()>,
}

impl Watchdog {
    /// How much later than the engine it acts.
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
