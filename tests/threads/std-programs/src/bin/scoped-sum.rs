//! `scoped-sum THREADS`: scoped threads sum parts of one vector, which they borrow.

use std::thread;
use std_programs::{share, threads};

const NUMBERS: usize = 200_000;

fn main() {
    let threads = threads();
    let numbers: Vec<u64> = (0..NUMBERS as u64).map(|i| i * i % 1_000_003).collect();
    let parts: Vec<u64> = thread::scope(|scope| {
        let part = |thread| {
            let numbers = &numbers[share(NUMBERS, thread, threads)];
            scope.spawn(move || numbers.iter().sum())
        };
        let running: Vec<_> = (0..threads).map(part).collect();
        running.into_iter().map(|thread| thread.join().expect("the thread returns its sum")).collect()
    });
    println!("{} parts, first {}, last {}", parts.len(), parts[0], parts[threads - 1]);
    println!("sum {}", parts.iter().sum::<u64>());
    assert_eq!(parts.iter().sum::<u64>(), numbers.iter().sum());
}
