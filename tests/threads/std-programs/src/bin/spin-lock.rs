//! `spin-lock THREADS`: a lock made by hand from an AtomicBool, and a ticket lock from two counters.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::{hint, thread};
use std_programs::threads;

const ROUNDS: usize = 10;

#[derive(Default)]
struct Shared {
    locked: AtomicBool,
    next: AtomicUsize,
    serving: AtomicUsize,
    /// Counted under the first lock, and under the second.
    counts: [UnsafeCell<usize>; 2],
}

// SAFETY: each count is only touched under its lock.
unsafe impl Sync for Shared {}

impl Shared {
    fn count_with_flag(&self) {
        while self.locked.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            while self.locked.load(Ordering::Relaxed) {
                hint::spin_loop();
                thread::yield_now();
            }
        }
        // SAFETY: this thread has the lock.
        unsafe { *self.counts[0].get() += 1 };
        self.locked.store(false, Ordering::Release);
    }

    fn count_with_ticket(&self) {
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        while self.serving.load(Ordering::Acquire) != ticket {
            hint::spin_loop();
            thread::yield_now();
        }
        // SAFETY: it is this thread's turn.
        unsafe { *self.counts[1].get() += 1 };
        self.serving.store(ticket + 1, Ordering::Release);
    }
}

fn main() {
    let shared = Shared::default();
    thread::scope(|scope| {
        for _ in 0..threads() {
            scope.spawn(|| {
                (0..ROUNDS).for_each(|_| shared.count_with_flag());
                shared.count_with_ticket();
            });
        }
    });
    let [flag, ticket] = shared.counts.map(UnsafeCell::into_inner);
    println!("with a flag {flag}, with tickets {ticket}");
}
