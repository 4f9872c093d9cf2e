//! `sleep-sort THREADS`: threads sleep at the same time, for different times; those that sleep longer wake later.

use std::sync::{Barrier, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use std_programs::threads;

/// Far enough apart for a busy machine, most of the time.
const STEP: Duration = Duration::from_millis(70);
const TRIES: u32 = 4;

/// Lets threads sleep. Returns when they began to, and for each that woke, in this order, whether it had slept long enough, and
/// its group: eight groups wake one after the other.
fn sleep_together(threads: usize) -> (Instant, Vec<(bool, usize)>) {
    let (sender, receiver) = mpsc::channel();
    let (all, start) = (Barrier::new(threads), OnceLock::new());
    let woken = thread::scope(|scope| {
        for thread in (0..threads).rev() {
            let (sender, all, start) = (sender.clone(), &all, &start);
            scope.spawn(move || {
                all.wait();
                let group = thread * 8 / threads;
                let wakes = *start.get_or_init(Instant::now) + STEP * (group as u32 + 1);
                thread::sleep(wakes.saturating_duration_since(Instant::now()));
                sender.send((Instant::now() >= wakes, group)).expect("the main thread waits");
            });
        }
        drop(sender);
        receiver.into_iter().collect()
    });
    (*start.get().expect("it is set"), woken)
}

fn main() {
    let threads = threads();
    let in_order = |woken: &[(bool, usize)]| woken.is_sorted_by_key(|(_, group)| *group);
    let (mut start, mut woken) = sleep_together(threads);
    for _ in 1..TRIES {
        // A machine that is very busy may wake the threads of two groups at once.
        if !in_order(&woken) {
            (start, woken) = sleep_together(threads);
        }
    }
    println!("{} woke, none early: {}", woken.len(), woken.iter().all(|(slept, _)| *slept));
    println!("in order: {}", in_order(&woken));
    println!("at the same time: {}", start.elapsed() < Duration::from_secs(5));

    let start = Instant::now();
    thread::sleep(Duration::from_millis(50));
    let slept = start.elapsed();
    println!("50 ms took 50 ms to 5 s: {}", (Duration::from_millis(50)..Duration::from_secs(5)).contains(&slept));
}
