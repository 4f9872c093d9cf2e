//! `fork-join THREADS`: Fibonacci numbers by recursion: each call starts a thread for one of its halves, down to a depth.

use std::thread;
use std_programs::threads;

/// The number, and how many threads were started for it.
fn fibonacci(n: u32, depth: u32) -> (u64, usize) {
    if n < 2 {
        return (u64::from(n), 0);
    }
    if depth == 0 {
        return (fibonacci(n - 1, 0).0 + fibonacci(n - 2, 0).0, 0);
    }
    let other = thread::spawn(move || fibonacci(n - 2, depth - 1));
    let (a, started) = fibonacci(n - 1, depth - 1);
    let (b, others) = other.join().expect("the thread returns");
    (a + b, started + others + 1)
}

fn main() {
    // At depth D there are at most 2^D - 1 threads.
    let depth = threads().ilog2();
    let (number, started) = fibonacci(20, depth);
    println!("{number}, by {started} threads and the main one");
}
