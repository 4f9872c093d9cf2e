//! `abort-in-thread THREADS`: one thread aborts the process while others wait and spin.

use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std_programs::threads;

static ENDING: AtomicBool = AtomicBool::new(false);

fn main() {
    let threads = threads();
    println!("before the end");
    let running: Vec<_> = (0..threads)
        .map(|thread| {
            thread::spawn(move || {
                if thread + 1 == threads {
                    ENDING.store(true, Ordering::Release);
                    process::abort();
                }
                while thread % 2 == 0 || !ENDING.load(Ordering::Acquire) {
                    thread::yield_now();
                }
                loop {
                    thread::park();
                }
            })
        })
        .collect();
    running.into_iter().for_each(|thread| thread.join().expect("nobody gets here"));
}
