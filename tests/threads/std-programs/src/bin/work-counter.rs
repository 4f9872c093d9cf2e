//! `work-counter THREADS`: threads take the next piece of work from one atomic counter; pieces differ in size.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std_programs::threads;

const PIECES: usize = 4000;

/// The steps until the Collatz sequence of `n` reaches 1.
fn steps(mut n: u64) -> u64 {
    let mut steps = 0;
    while n != 1 {
        n = if n.is_multiple_of(2) { n / 2 } else { 3 * n + 1 };
        steps += 1;
    }
    steps
}

fn main() {
    let next = AtomicUsize::new(0);
    let (sum, longest) = (AtomicU64::new(0), AtomicU64::new(0));
    let done: usize = thread::scope(|scope| {
        let work = |_| {
            scope.spawn(|| {
                let mut done = 0;
                loop {
                    let piece = next.fetch_add(1, Ordering::Relaxed);
                    if piece >= PIECES {
                        return done;
                    }
                    let steps = steps(piece as u64 + 1);
                    sum.fetch_add(steps, Ordering::Relaxed);
                    longest.fetch_max(steps << 32 | piece as u64, Ordering::Relaxed);
                    done += 1;
                }
            })
        };
        let running: Vec<_> = (0..threads()).map(work).collect();
        running.into_iter().map(|thread| thread.join().expect("the thread returns")).sum()
    });
    let longest = longest.into_inner();
    println!("{done} pieces, {} steps", sum.into_inner());
    println!("longest: {} with {} steps", (longest & u64::from(u32::MAX)) + 1, longest >> 32);
}
