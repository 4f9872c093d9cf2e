//! `detached THREADS`: the main thread returns while others wait, sleep, spin and would print: the program ends at once.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use std_programs::threads;

static STARTED: AtomicUsize = AtomicUsize::new(0);

fn main() {
    let threads = threads();
    for thread in 0..threads {
        thread::spawn(move || {
            STARTED.fetch_add(1, Ordering::Release);
            match thread % 4 {
                0 => thread::sleep(Duration::from_secs(3600)),
                1 => thread::park(),
                2 => _ = mpsc::channel::<()>().1.recv_timeout(Duration::from_secs(3600)),
                _ => loop {
                    spin_loop();
                    thread::yield_now();
                },
            }
        });
    }
    while STARTED.load(Ordering::Acquire) < threads {
        thread::yield_now();
    }
    println!("the main thread returns while {threads} threads run");
}
