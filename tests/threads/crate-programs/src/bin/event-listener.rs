//! `event-listener THREADS`: threads wait for an Event, and take turns on a queue of concurrent-queue.

use concurrent_queue::ConcurrentQueue;
use crate_programs::threads;
use event_listener::Event;
use futures_lite::future::block_on;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

fn main() {
    let threads = threads();
    let (flag, event) = (AtomicBool::new(false), Event::new());
    let (queue, sum) = (ConcurrentQueue::bounded(8), AtomicUsize::new(0));
    let (filled, emptied) = (Event::new(), Event::new());
    thread::scope(|scope| {
        for thread in 0..threads / 2 {
            let (flag, event, queue, sum, filled, emptied) = (&flag, &event, &queue, &sum, &filled, &emptied);
            scope.spawn(move || {
                // Look, listen, look again, wait.
                while !flag.load(Ordering::Acquire) {
                    let listener = event.listen();
                    if !flag.load(Ordering::Acquire) {
                        block_on(listener);
                    }
                }
                while queue.push(thread).is_err() {
                    let listener = emptied.listen();
                    if queue.is_full() {
                        block_on(listener);
                    }
                }
                filled.notify_additional(1);
            });
            scope.spawn(move || {
                loop {
                    if let Ok(item) = queue.pop() {
                        sum.fetch_add(item, Ordering::Relaxed);
                        return emptied.notify_additional(1);
                    }
                    let listener = filled.listen();
                    if queue.is_empty() {
                        block_on(listener);
                    }
                }
            });
        }
        flag.store(true, Ordering::Release);
        event.notify(usize::MAX);
    });
    println!("sum {}, left {}", sum.into_inner(), queue.len());
}
