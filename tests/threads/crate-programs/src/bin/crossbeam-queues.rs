//! `crossbeam-queues THREADS`: queues without locks, work-stealing deques, memory reclaimed by epochs, a WaitGroup.

use crate_programs::threads;
use crossbeam::atomic::AtomicCell;
use crossbeam::deque::{Injector, Steal, Stealer, Worker};
use crossbeam::epoch::{self, Atomic, Owned};
use crossbeam::queue::{ArrayQueue, SegQueue};
use crossbeam::sync::{ShardedLock, WaitGroup};
use crossbeam::utils::{Backoff, CachePadded};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const ITEMS: usize = 4096;

fn find(own: &Worker<usize>, injector: &Injector<usize>, stealers: &[Stealer<usize>]) -> Option<usize> {
    own.pop().or_else(|| {
        std::iter::repeat_with(|| {
            injector.steal_batch_and_pop(own).or_else(|| stealers.iter().map(Stealer::steal).collect())
        })
        .find(|steal| !steal.is_retry())
        .and_then(Steal::success)
    })
}

fn deques(threads: usize) {
    let injector = Injector::new();
    (0..ITEMS).for_each(|item| injector.push(item));
    let workers: Vec<_> = (0..threads).map(|_| Worker::new_fifo()).collect();
    // Each looks at a few neighbours.
    let stealers: Vec<_> = workers.iter().map(Worker::stealer).collect();
    let sum = CachePadded::new(AtomicUsize::new(0));
    thread::scope(|scope| {
        for (thread, own) in workers.into_iter().enumerate() {
            let (injector, sum) = (&injector, &sum);
            let neighbours: Vec<_> = stealers.iter().cycle().skip(thread + 1).take(3).cloned().collect();
            scope.spawn(move || {
                while let Some(item) = find(&own, injector, &neighbours) {
                    sum.fetch_add(item, Ordering::Relaxed);
                }
            });
        }
    });
    println!("deques: sum {}", sum.load(Ordering::Relaxed));
}

fn queues(threads: usize) {
    let (bounded, unbounded) = (ArrayQueue::new(16), SegQueue::new());
    let wait = WaitGroup::new();
    thread::scope(|scope| {
        for thread in 0..threads {
            let (bounded, unbounded, wait) = (&bounded, &unbounded, wait.clone());
            scope.spawn(move || {
                let backoff = Backoff::new();
                while bounded.push(thread).is_err() {
                    backoff.snooze();
                }
                drop(wait);
            });
            scope.spawn(move || {
                let backoff = Backoff::new();
                loop {
                    match bounded.pop() {
                        Some(item) => break unbounded.push(item),
                        None => backoff.snooze(),
                    }
                }
            });
        }
        wait.wait();
    });
    let mut items: Vec<_> = std::iter::from_fn(|| unbounded.pop()).collect();
    items.sort_unstable();
    println!("queues: {} items, in order {}", items.len(), items.iter().copied().eq(0..threads));
}

/// A stack after Treiber: popped nodes are freed when no thread can see them any more.
struct Node {
    value: usize,
    next: Atomic<Node>,
}

fn push(head: &Atomic<Node>, value: usize) {
    let guard = epoch::pin();
    let mut node = Owned::new(Node { value, next: Atomic::null() });
    loop {
        let old = head.load(Ordering::Relaxed, &guard);
        node.next.store(old, Ordering::Relaxed);
        match head.compare_exchange(old, node, Ordering::Release, Ordering::Relaxed, &guard) {
            Ok(_) => return,
            Err(error) => node = error.new,
        }
    }
}

fn pop(head: &Atomic<Node>) -> Option<usize> {
    let guard = epoch::pin();
    loop {
        let old = head.load(Ordering::Acquire, &guard);
        // SAFETY: nodes are freed only after all threads that were pinned have moved on, and this one is pinned.
        let node = unsafe { old.as_ref() }?;
        let next = node.next.load(Ordering::Relaxed, &guard);
        if head.compare_exchange(old, next, Ordering::Relaxed, Ordering::Relaxed, &guard).is_ok() {
            let value = node.value;
            // SAFETY: the node is no longer reachable, and only this thread took it out.
            unsafe { guard.defer_destroy(old) };
            return Some(value);
        }
    }
}

fn epochs(threads: usize) {
    let head = Atomic::null();
    let (popped, last) = (AtomicUsize::new(0), AtomicCell::new((0u64, 0u64)));
    thread::scope(|scope| {
        for thread in 0..threads {
            let (head, popped, last) = (&head, &popped, &last);
            scope.spawn(move || {
                (0..10).for_each(|i| push(head, thread * 10 + i));
                for _ in 0..10 {
                    popped.fetch_add(pop(head).expect("as many pops as pushes"), Ordering::Relaxed);
                }
                last.store((thread as u64, thread as u64));
            });
        }
    });
    let (a, b) = last.load();
    println!("epochs: sum {}, empty {}, whole {}", popped.into_inner(), pop(&head).is_none(), a == b);
}

fn main() {
    let threads = threads();
    deques(threads);
    queues(threads / 2);
    epochs(threads);
    let lock = ShardedLock::new(0);
    thread::scope(|scope| {
        for thread in 0..threads {
            let lock = &lock;
            scope.spawn(move || match thread % 8 {
                0 => *lock.write().expect("nobody panics") += 1,
                _ => assert!(*lock.read().expect("nobody panics") <= threads),
            });
        }
    });
    println!("sharded lock: {}", lock.into_inner().expect("nobody panicked"));
}
