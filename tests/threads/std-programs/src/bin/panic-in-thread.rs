//! `panic-in-thread THREADS`: one thread panics, which ends the process; what was printed before is there.

use std::sync::Barrier;
use std::thread;
use std_programs::threads;

fn main() {
    let threads = threads();
    let started = Barrier::new(threads + 1);
    println!("before the panic");
    thread::scope(|scope| {
        for thread in 0..threads {
            let started = &started;
            scope.spawn(move || {
                started.wait();
                assert_ne!(thread, threads / 2, "asked to panic");
                loop {
                    thread::park();
                }
            });
        }
        started.wait();
    });
    println!("nobody gets here");
}
