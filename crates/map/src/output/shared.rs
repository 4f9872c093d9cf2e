//! The writer, shared by the thread that writes and by those who may stop the map from outside.

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
    /// Somebody has stopped the map, or is waiting to.
    is_ended: AtomicBool,
}

/// Stops a map from outside.
#[derive(Clone, Debug)]
pub struct StopHandle(SharedWriter);

impl StopHandle {
    /// Stops the map between two batches: after this returns, nothing is written any more. Returns whether the map was
    /// still running. In that case the thread that runs the map waits for ever: whoever stops a map must end the
    /// process.
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

    /// Stops the map between two batches. Returns whether it was still running.
    pub(crate) fn end(&self, reason: StopReason) -> bool {
        self.0.is_ended.store(true, Ordering::SeqCst);
        self.lock().stop(reason)
    }

    /// Returns the writer to the thread that writes. If somebody has stopped the map, it waits for ever, until they end
    /// the process.
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
