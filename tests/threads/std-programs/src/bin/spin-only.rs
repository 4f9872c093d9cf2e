//! `spin-only THREADS`: threads wait for each other in loops that call nothing: no yield, no lock, only loads.

use std::hint;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std_programs::threads;

fn main() {
    let threads = threads();
    let turn = AtomicUsize::new(0);
    thread::scope(|scope| {
        // The last thread is started first: each waits for one that does not run yet.
        for thread in (0..threads).rev() {
            let turn = &turn;
            scope.spawn(move || {
                while turn.load(Ordering::Acquire) != thread {
                    hint::spin_loop();
                }
                turn.store(thread + 1, Ordering::Release);
            });
        }
    });
    println!("{} turns", turn.into_inner());
}
