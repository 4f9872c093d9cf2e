//! `mutex-counter THREADS`: threads count up under one Mutex, with `lock` and with `try_lock`.

use std::sync::{Arc, Mutex};
use std::thread;
use std_programs::threads;

const ROUNDS: u64 = 50;

fn main() {
    let threads = threads();
    let counter = Arc::new(Mutex::new((0u64, 0u64)));
    let running: Vec<_> = (0..threads as u64)
        .map(|thread| {
            let counter = counter.clone();
            thread::spawn(move || {
                for _ in 0..ROUNDS {
                    let mut counter = counter.lock().expect("nobody panics");
                    counter.0 += 1;
                    counter.1 += thread;
                }
                // Whoever finds the Mutex locked lets others run.
                loop {
                    if let Ok(mut counter) = counter.try_lock() {
                        counter.0 += 1;
                        break;
                    }
                    thread::yield_now();
                }
            })
        })
        .collect();
    running.into_iter().for_each(|thread| thread.join().expect("the thread returns"));
    let counter = Arc::into_inner(counter).expect("no other thread is left").into_inner().expect("nobody panicked");
    println!("count {}, sum {}", counter.0, counter.1);
}
