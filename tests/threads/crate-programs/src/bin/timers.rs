//! `timers THREADS`: futures that wait, by futures-timer, whose timers are all kept by one thread; each thread waits for its own.

use crate_programs::threads;
use futures::future::{Either, join_all, select};
use futures_lite::future::block_on;
use futures_timer::Delay;
use std::thread;
use std::time::{Duration, Instant};

fn main() {
    let start = Instant::now();
    // The first timer starts the thread that keeps them; each of several at the same time would start one.
    block_on(Delay::new(Duration::from_millis(1)));
    let running: Vec<_> = (0..threads() as u64)
        .map(|thread| {
            thread::spawn(move || {
                let wait = Duration::from_millis(10 + thread % 8 * 10);
                let start = Instant::now();
                block_on(Delay::new(wait));
                start.elapsed() >= wait
            })
        })
        .collect();
    let waited = running.into_iter().map(|thread| thread.join().expect("the thread returns"));
    println!("{} waited long enough", waited.filter(|long_enough| *long_enough).count());

    let delays = (1..=5).rev().map(|i| async move {
        Delay::new(Duration::from_millis(i * 5)).await;
        i
    });
    println!("{:?}", block_on(join_all(delays)));
    let first = block_on(select(Delay::new(Duration::from_millis(20)), Delay::new(Duration::from_secs(3600))));
    println!("the short one first: {}", matches!(first, Either::Left(_)));
    println!("in time: {}", start.elapsed() < Duration::from_secs(20));
}
