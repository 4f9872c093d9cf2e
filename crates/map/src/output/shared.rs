//! The writer, for the thread that writes and for whoever may end the map from outside.

use super::writer::{StopReason, Writer};
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

#[derive(Clone, Debug)]
pub(crate) struct SharedWriter(Arc<State>);

#[derive(Debug)]
struct State {
    writer: Mutex<Writer>,
    /// Somebody has ended the map, or is waiting to.
    is_ended: AtomicBool,
}

/// Ends a map from outside.
#[derive(Clone, Debug)]
pub struct StopHandle(SharedWriter);

impl StopHandle {
    /// Ends the map between two batches: when this returns, nothing is written any more. Says whether it had not ended before; if so, the
    /// thread that runs the map waits for ever: whoever stops a map ends the process.
    pub fn stop(&self, reason: StopReason) -> bool {
        self.0.end(reason)
    }
}

impl SharedWriter {
    pub(crate) fn new(writer: Writer) -> Self {
        Self(Arc::new(State { writer: Mutex::new(writer), is_ended: AtomicBool::new(false) }))
    }

    pub(crate) fn stop_handle(&self) -> StopHandle {
        StopHandle(self.clone())
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Writer> {
        self.0.writer.lock()
    }

    /// Ends the map between two batches. Says whether it had not ended before.
    pub(crate) fn end(&self, reason: StopReason) -> bool {
        self.0.is_ended.store(true, Ordering::SeqCst);
        self.lock().stop(reason)
    }

    /// For the thread that writes: the writer, if nobody has ended the map. Who has ends the process, and is waited for.
    pub(crate) fn writing(&self) -> MutexGuard<'_, Writer> {
        while self.0.is_ended.load(Ordering::SeqCst) {
            thread::park();
        }
        let mut writer = self.lock();
        while writer.is_finished() {
            drop(writer);
            thread::park();
            writer = self.lock();
        }
        writer
    }
}
