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
        let (own, received) = mpsc::channel::<Work>();
        let idle = Arc::downgrade(&self.idle);
        let serve = move || {
            work();
            // The thread ends with the last process of the run.
            while let Some(idle) = idle.upgrade() {
                idle.lock().push(own.clone());
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
}
