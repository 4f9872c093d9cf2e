//! `exit-in-thread THREADS`: one thread ends the process with an exit code while all others, the main one among them, wait.

use std::process;
use std::sync::Barrier;
use std::thread;
use std_programs::threads;

fn main() {
    let threads = threads();
    let started = Barrier::new(threads + 1);
    thread::scope(|scope| {
        for thread in 0..threads {
            let started = &started;
            scope.spawn(move || {
                started.wait();
                if thread == threads / 2 {
                    println!("thread {thread} ends the process");
                    process::exit(7);
                }
                loop {
                    thread::park();
                }
            });
        }
        started.wait();
    });
    println!("nobody gets here");
}
