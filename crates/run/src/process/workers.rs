//! Host threads for processes. A thread whose process has ended waits for the next one: waking it takes less time than
//! starting another.

use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread;

type Work = Box<dyn FnOnce() + Send>;

#[derive(Default)]
pub(super) struct Workers {
    idle: Arc<Mutex<Vec<Sender<Work>>>>,
}

impl Workers {
    /// Has a thread do the work.
    pub(super) fn run(&self, mut work: Work) -> io::Result<()> {
        // The lock is not held while a message is sent.
        while let Some(worker) = { self.idle.lock().pop() } {
            match worker.send(work) {
                Ok(()) => return Ok(()),
                Err(refused) => work = refused.0,
            }
        }
        let idle = Arc::downgrade(&self.idle);
        let serve = move || {
            work();
            while let Some(idle) = idle.upgrade() {
                // The only way to this thread is in the list: the thread ends with the list.
                let (sender, received) = mpsc::channel::<Work>();
                idle.lock().push(sender);
                drop(idle);
                let Ok(work) = received.recv() else { return };
                work();
            }
        };
        thread::Builder::new().name("gpu-run process".into()).spawn(serve).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_done_takes_the_next_work() {
        let workers = Workers::default();
        let (told, names) = mpsc::channel();
        for _ in 0..50 {
            let told = told.clone();
            workers.run(Box::new(move || told.send(thread::current().id()).expect("it works"))).expect("it works");
            names.recv().expect("it works");
            while workers.idle.lock().is_empty() {
                thread::yield_now();
            }
        }
        assert_eq!(workers.idle.lock().len(), 1);
    }

    #[test]
    fn threads_end_with_the_run() {
        let workers = Workers::default();
        let (alive, ends) = mpsc::channel::<()>();
        // It is dropped when its thread ends.
        thread_local!(static ALIVE: std::cell::RefCell<Option<Sender<()>>> = const { std::cell::RefCell::new(None) });
        workers.run(Box::new(move || ALIVE.set(Some(alive)))).expect("it works");
        while workers.idle.lock().is_empty() {
            thread::yield_now();
        }
        drop(workers);
        let ended = ends.recv_timeout(std::time::Duration::from_secs(60));
        assert_eq!(ended, Err(mpsc::RecvTimeoutError::Disconnected));
    }
}
