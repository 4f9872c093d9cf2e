//! `rwlock THREADS`: every fourth thread writes both halves of a pair under an RwLock; the others check that they always match.

use std::collections::BTreeMap;
use std::sync::RwLock;
use std::thread;
use std_programs::threads;

const ROUNDS: u64 = 25;

fn main() {
    let threads = threads();
    let pair = RwLock::new((0u64, u64::MAX));
    let torn: u64 = thread::scope(|scope| {
        let work = |thread: usize| {
            let pair = &pair;
            scope.spawn(move || {
                let mut torn = 0;
                for _ in 0..ROUNDS {
                    if thread.is_multiple_of(4) {
                        let mut pair = pair.write().expect("nobody panics");
                        pair.0 += 1;
                        pair.1 = !pair.0;
                    } else {
                        let pair = pair.read().expect("nobody panics");
                        torn += u64::from(pair.0 != !pair.1);
                    }
                }
                torn
            })
        };
        let running: Vec<_> = (0..threads).map(work).collect();
        running.into_iter().map(|thread| thread.join().expect("the thread returns")).sum()
    });
    println!("{} writes, {torn} torn reads", pair.read().expect("nobody panics").0);

    // Look under the read lock; take the write lock only if something is missing, and look again.
    let made = RwLock::new(BTreeMap::new());
    thread::scope(|scope| {
        for thread in 0..threads {
            let made = &made;
            scope.spawn(move || {
                let key = thread % 10;
                if made.read().expect("nobody panics").contains_key(&key) {
                    return;
                }
                let mut made = made.write().expect("nobody panics");
                made.entry(key).or_insert_with(|| format!("value {key}"));
            });
        }
    });
    println!("{:?}", made.into_inner().expect("nobody panicked"));
}
