//! Acts when a run outlives its deadline by far: the device hangs, or a stream has no reader. The engine's own deadline
//! comes first and gives the better message.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Once it is dropped, the watchdog does nothing any more.
#[derive(Debug)]
pub struct Watchdog {
    _end: mpsc::Sender<()>,
    held: Held,
}

/// While somebody has locked this, the watchdog waits: what takes long then is no hang.
pub type Held = Arc<Mutex<()>>;

impl Watchdog {
    /// How long the watchdog waits after the engine's deadline.
    const GRACE: Duration = Duration::from_millis(800);

    pub fn start(timeout: Duration, act: impl FnOnce() + Send + 'static) -> Self {
        let (end, ended) = mpsc::channel::<()>();
        let held = Held::default();
        let watched = held.clone();
        std::thread::spawn(move || {
            let mut patience = timeout.saturating_add(Self::GRACE);
            while ended.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                if watched.try_lock().is_some() {
                    return act();
                }
                drop(watched.lock());
                patience = Self::GRACE;
            }
        });
        Self { _end: end, held }
    }

    pub fn held(&self) -> Held {
        self.held.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn who_holds_it_is_not_taken_for_a_hang() {
        let (acted, seen) = mpsc::channel();
        let began = Instant::now();
        let watchdog = Watchdog::start(Duration::ZERO, move || acted.send(()).unwrap_or_default());
        let held = watchdog.held();
        let guard = held.lock();
        assert!(seen.recv_timeout(2 * Watchdog::GRACE).is_err(), "it acted while it was held");
        drop(guard);
        assert_eq!(seen.recv_timeout(10 * Watchdog::GRACE), Ok(()));
        assert!(began.elapsed() >= 3 * Watchdog::GRACE, "it acted at once afterwards");
    }
}
