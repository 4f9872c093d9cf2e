//! `println THREADS`: threads print lines of all lengths, in any order; no line is torn.

use std::io::{self, Write};
use std::thread;
use std_programs::threads;

fn main() {
    let threads = threads();
    let lines = (400 / threads).clamp(2, 12);
    let running: Vec<_> = (0..threads)
        .map(|thread| {
            thread::spawn(move || {
                for line in 0..lines {
                    println!("thread {thread} line {line} {}", "x".repeat((thread * 7 + line * 13) % 90));
                }
                // Two writes under one lock are one line.
                let mut stdout = io::stdout().lock();
                write!(stdout, "thread {thread} ").expect("stdout is open");
                writeln!(stdout, "is done").expect("stdout is open");
            })
        })
        .collect();
    running.into_iter().for_each(|thread| thread.join().expect("the thread returns"));
    println!("all are done");
}
