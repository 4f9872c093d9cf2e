//! `sleep-sort THREADS`: threads sleep for different times; those that sleep longer wake later.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use std_programs::threads;

/// Far enough apart for a busy machine.
const STEP: Duration = Duration::from_millis(70);

fn main() {
    let threads = threads();
    let (sender, receiver) = mpsc::channel();
    let start = Instant::now() + Duration::from_millis(100);
    for thread in (0..threads).rev() {
        let sender = sender.clone();
        thread::spawn(move || {
            // Eight groups: those of one group wake together.
            let wakes = start + STEP * (thread * 8 / threads) as u32;
            thread::sleep(wakes.saturating_duration_since(Instant::now()));
            sender.send((Instant::now() >= wakes, thread * 8 / threads)).expect("the main thread waits");
        });
    }
    drop(sender);
    let woken: Vec<_> = receiver.into_iter().collect();
    println!("{} woke, none early: {}", woken.len(), woken.iter().all(|(slept, _)| *slept));
    println!("in order: {}", woken.is_sorted_by_key(|(_, group)| *group));

    let start = Instant::now();
    thread::sleep(Duration::from_millis(50));
    let slept = start.elapsed();
    println!("50 ms took 50 ms to 5 s: {}", (Duration::from_millis(50)..Duration::from_secs(5)).contains(&slept));
}
