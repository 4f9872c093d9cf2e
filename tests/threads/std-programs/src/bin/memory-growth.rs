//! `memory-growth THREADS`: threads make vectors grow, and with them the memory, while others read what was written before.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std_programs::{share, threads};

const BYTES: usize = 48 << 20;

fn main() {
    let threads = threads();
    let shared: Vec<u64> = (0..4096).map(|i| i * 3).collect();
    let growing = AtomicUsize::new(threads.div_ceil(2));
    let (grown, wrong) = thread::scope(|scope| {
        let grow = |thread: usize| {
            let (growing, numbers) = (&growing, share(BYTES / 8, thread, threads.div_ceil(2)).len());
            scope.spawn(move || {
                let mut list = Vec::new();
                // Pushed one by one, so that the vector moves again and again; 16 at a time would say as much.
                while list.len() < numbers {
                    let from = list.len() as u64;
                    list.extend((from..from + 16).map(|i| i ^ thread as u64));
                    if list.len().is_multiple_of(1 << 14) {
                        thread::yield_now();
                    }
                }
                list.truncate(numbers);
                growing.fetch_sub(1, Ordering::Release);
                let wrong = list.iter().zip(0..).filter(|(value, i)| **value != *i ^ thread as u64).count();
                (list.len(), wrong)
            })
        };
        let read = |_| {
            let (growing, shared) = (&growing, &shared);
            scope.spawn(move || {
                let mut wrong = 0;
                loop {
                    let last = growing.load(Ordering::Acquire) == 0;
                    wrong += shared.iter().step_by(64).zip(0..).filter(|(value, i)| **value != 192 * i).count();
                    if last {
                        return (0, wrong);
                    }
                    thread::yield_now();
                }
            })
        };
        let mut running: Vec<_> = (0..threads.div_ceil(2)).map(grow).collect();
        running.extend((0..threads / 2).map(read));
        let results = running.into_iter().map(|thread| thread.join().expect("the thread returns"));
        results.fold((0, 0), |sum, result: (usize, usize)| (sum.0 + result.0, sum.1 + result.1))
    });
    println!("{grown} numbers, {wrong} wrong");
}
