//! `lazy-lock THREADS`: a static LazyLock is filled by whichever thread comes first, while the others wait.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std_programs::{share, threads};

const NUMBERS: usize = 1 << 13;
static FILLED: AtomicUsize = AtomicUsize::new(0);
static SQUARES: LazyLock<HashMap<usize, u64>> = LazyLock::new(|| {
    FILLED.fetch_add(1, Ordering::Relaxed);
    (0..NUMBERS).map(|i| (i, (i * i) as u64)).collect()
});

fn main() {
    let threads = threads();
    let running: Vec<_> = (0..threads)
        .map(|thread| thread::spawn(move || share(NUMBERS, thread, threads).map(|i| SQUARES[&i]).sum::<u64>()))
        .collect();
    let sum: u64 = running.into_iter().map(|thread| thread.join().expect("the thread returns")).sum();
    println!("filled {} time, sum {sum}", FILLED.load(Ordering::Relaxed));
}
