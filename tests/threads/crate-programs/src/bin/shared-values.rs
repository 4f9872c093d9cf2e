//! `shared-values THREADS`: arc-swap, once_cell, thread_local and sharded-slab: values that threads exchange without a lock of their own.

use arc_swap::ArcSwap;
use crate_programs::threads;
use once_cell::sync::{Lazy, OnceCell};
use sharded_slab::{Config, Slab};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use thread_local::ThreadLocal;

static MADE: AtomicUsize = AtomicUsize::new(0);
static LAZY: Lazy<String> = Lazy::new(|| {
    MADE.fetch_add(1, Ordering::Relaxed);
    "made once".to_owned()
});

/// More threads than by default, and room for one entry of each in a single shard: threads that follow each other may share one.
struct ManyThreads;

impl Config for ManyThreads {
    const MAX_THREADS: usize = 2048;
    const INITIAL_PAGE_SIZE: usize = 32;
    const MAX_PAGES: usize = 6;
}

fn main() {
    let threads = threads();
    let settings = ArcSwap::from_pointee((0usize, 0usize));
    let winner = OnceCell::new();
    let counts = ThreadLocal::new();
    let slab = Slab::new_with_config::<ManyThreads>();
    let keys: Vec<OnceCell<usize>> = (0..threads).map(|_| OnceCell::new()).collect();
    let (torn, found): (usize, usize) = thread::scope(|scope| {
        let work = |thread: usize| {
            let (settings, winner, counts, slab, keys) = (&settings, &winner, &counts, &slab, &keys);
            scope.spawn(move || {
                let mut torn = 0;
                for _ in 0..4 {
                    let now = settings.load();
                    torn += usize::from(now.1 != 2 * now.0);
                    drop(now);
                    settings.rcu(|old| (old.0 + 1, old.1 + 2));
                    counts.get_or(|| Cell::new(0usize)).set(counts.get_or(|| Cell::new(0)).get() + thread);
                }
                _ = winner.set(thread);
                assert_eq!(LAZY.len(), 9);
                let key = slab.insert(thread).expect("there is room");
                keys[thread].set(key).expect("each sets its own");
                // What a neighbour put in is found from here, and some of it is taken out.
                let neighbour = (thread + 1) % threads;
                let key = keys[neighbour].wait();
                let found = slab.get(*key).is_some_and(|entry| *entry == neighbour);
                if neighbour.is_multiple_of(2) {
                    assert!(slab.remove(*key));
                }
                (torn, usize::from(found))
            })
        };
        let running: Vec<_> = (0..threads).map(work).collect();
        let results = running.into_iter().map(|thread| thread.join().expect("the thread returns"));
        results.fold((0, 0), |sum, result| (sum.0 + result.0, sum.1 + result.1))
    });
    println!("settings {:?}, {torn} torn", settings.load());
    println!("made {}, a winner: {}", MADE.load(Ordering::Relaxed), winner.get().is_some_and(|it| *it < threads));
    let left = keys.iter().filter(|key| slab.contains(*key.get().expect("it is set"))).count();
    println!("found {found}, left in the slab {left}");
    println!("counted {}", counts.into_iter().map(Cell::into_inner).sum::<usize>());
}
