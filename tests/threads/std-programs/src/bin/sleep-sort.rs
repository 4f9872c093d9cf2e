//! `sleep-sort THREADS`: threads sleep at the same time, for different times; those that sleep longer wake later.

use std::sync::{Barrier, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use std_programs::threads;

/// Far enough apart for a busy machine.
const STEP: Duration = Duration::from_millis(70);

static START: OnceLock<Instant> = OnceLock::new();

fn main() {
    let threads = threads();
    let (sender, receiver) = mpsc::channel();
    let all = Barrier::new(threads);
    let woken: Vec<_> = thread::scope(|scope| {
        for thread in (0..threads).rev() {
            let (sender, all) = (sender.clone(), &all);
            scope.spawn(move || {
                all.wait();
                // Eight groups: those of one group wake together.
                let group = thread * 8 / threads;
                let wakes = *START.get_or_init(Instant::now) + STEP * (group as u32 + 1);
                thread::sleep(wakes.saturating_duration_since(Instant::now()));
                sender.send((Instant::now() >= wakes, group)).expect("the main thread waits");
            });
        }
        drop(sender);
        receiver.into_iter().collect()
    });
    println!("{} woke, none early: {}", woken.len(), woken.iter().all(|(slept, _)| *slept));
    println!("in order: {}", woken.is_sorted_by_key(|(_, group)| *group));
    let start = START.get().expect("it is set");
    println!("at the same time: {}", start.elapsed() < Duration::from_secs(5));

    let start = Instant::now();
    thread::sleep(Duration::from_millis(50));
    let slept = start.elapsed();
    println!("50 ms took 50 ms to 5 s: {}", (Duration::from_millis(50)..Duration::from_secs(5)).contains(&slept));
}
