//! `barrier THREADS`: in every round each thread reads what its neighbours wrote in the round before; a Barrier separates rounds.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std_programs::threads;

const ROUNDS: usize = 6;

fn main() {
    let threads = threads();
    let barrier = Barrier::new(threads);
    let cells: [Vec<AtomicU64>; 2] = [(); 2].map(|()| (0..threads as u64).map(AtomicU64::new).collect());
    let leaders: usize = thread::scope(|scope| {
        let work = |thread: usize| {
            let (barrier, cells) = (&barrier, &cells);
            scope.spawn(move || {
                let mut led = 0;
                for round in 0..ROUNDS {
                    let (old, new) = (&cells[round % 2], &cells[(round + 1) % 2]);
                    let read = |at: usize| old[at % threads].load(Ordering::Relaxed);
                    let sum = read(thread + threads - 1) + 2 * read(thread) + read(thread + 1);
                    new[thread].store(sum % 1_000_003, Ordering::Relaxed);
                    led += usize::from(barrier.wait().is_leader());
                }
                led
            })
        };
        let running: Vec<_> = (0..threads).map(work).collect();
        running.into_iter().map(|thread| thread.join().expect("the thread returns")).sum()
    });
    let sum: u64 = cells[ROUNDS % 2].iter().map(|cell| cell.load(Ordering::Relaxed)).sum();
    println!("{ROUNDS} rounds, {leaders} leaders, sum {sum}");
}
