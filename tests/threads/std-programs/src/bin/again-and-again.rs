//! `again-and-again THREADS`: starts as many threads as a run has room for, joins them, and starts as many at once again. A thread that
//! was joined has made room.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std_programs::threads;

const ROUNDS: usize = 10;
/// The room that a run has besides the threads it was asked for, less the first thread.
const SPARE: usize = 7;

fn main() {
    let threads = threads() + SPARE;
    let sum = AtomicUsize::new(0);
    for round in 1..=ROUNDS {
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| sum.fetch_add(round, Ordering::Relaxed));
            }
        });
    }
    println!("{} threads, sum {}", ROUNDS * threads, sum.into_inner());
}
