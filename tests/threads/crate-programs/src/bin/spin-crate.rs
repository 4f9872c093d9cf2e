//! `spin-crate THREADS`: the locks of the crate spin: none ever sleeps.

use crate_programs::threads;
use spin::{Barrier, Lazy, Mutex, Once, RwLock};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

static TABLE: Lazy<Vec<usize>> = Lazy::new(|| (0..256).map(|i| i * i).collect());

fn main() {
    let threads = threads();
    let (counter, pair, once) = (Mutex::new(0), RwLock::new((0, 0)), Once::new());
    let (barrier, leaders, torn) = (Barrier::new(threads), AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for thread in 0..threads {
            let (counter, pair, once, barrier) = (&counter, &pair, &once, &barrier);
            let (leaders, torn) = (&leaders, &torn);
            scope.spawn(move || {
                for _ in 0..5 {
                    *counter.lock() += TABLE[thread % 256];
                }
                if barrier.wait().is_leader() {
                    leaders.fetch_add(1, Ordering::Relaxed);
                }
                if thread % 4 == 0 {
                    let mut pair = pair.write();
                    pair.0 += 1;
                    pair.1 += 1;
                } else {
                    let pair = pair.read();
                    torn.fetch_add(usize::from(pair.0 != pair.1), Ordering::Relaxed);
                }
                assert_eq!(*once.call_once(|| threads), threads);
            });
        }
    });
    println!("counter {}, pair {:?}", counter.into_inner(), pair.into_inner());
    println!("leaders {}, torn {}", leaders.into_inner(), torn.into_inner());
}
