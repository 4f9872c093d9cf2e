//! `park-ring THREADS`: a token goes round a ring of parked threads, each of which unparks the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use std_programs::threads;

const ROUNDS: usize = 2;

fn main() {
    let threads = threads();
    let token = Arc::new(AtomicUsize::new(0));
    let mut next = thread::current();
    let mut ring = Vec::new();
    // The last thread unparks the main one.
    for place in (1..=threads).rev() {
        let (token, after) = (token.clone(), next);
        let running = thread::spawn(move || {
            for round in 0..ROUNDS {
                let mine = round * (threads + 1) + place;
                while token.load(Ordering::Acquire) != mine {
                    thread::park();
                }
                token.store(mine + 1, Ordering::Release);
                after.unpark();
            }
        });
        next = running.thread().clone();
        ring.push(running);
    }
    for round in 1..=ROUNDS {
        // It is the main thread's turn: its places are the multiples of `threads + 1`.
        token.store((round - 1) * (threads + 1) + 1, Ordering::Release);
        next.unpark();
        while token.load(Ordering::Acquire) != round * (threads + 1) {
            thread::park();
        }
        println!("round {round}");
    }
    ring.into_iter().for_each(|thread| thread.join().expect("the thread returns"));
    // A token that is already there makes `park` return at once; otherwise the time limit does.
    thread::current().unpark();
    thread::park();
    thread::park_timeout(Duration::from_millis(5));
    println!("token {}", token.load(Ordering::Relaxed));
}
