//! `seqlock THREADS`: one writer, many readers that never lock: a reader tries again when a write came in between.

use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::thread;
use std_programs::threads;

const WRITES: u64 = 50;

#[derive(Default)]
struct SeqLock {
    sequence: AtomicU64,
    words: [AtomicU64; 4],
}

impl SeqLock {
    fn write(&self, value: u64) {
        let sequence = self.sequence.load(Ordering::Relaxed);
        self.sequence.store(sequence + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        self.words.iter().zip(1..).for_each(|(word, factor)| word.store(value * factor, Ordering::Relaxed));
        self.sequence.store(sequence + 2, Ordering::Release);
    }

    fn read(&self) -> [u64; 4] {
        loop {
            let before = self.sequence.load(Ordering::Acquire);
            let words = self.words.each_ref().map(|word| word.load(Ordering::Relaxed));
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && self.sequence.load(Ordering::Relaxed) == before {
                return words;
            }
            thread::yield_now();
        }
    }
}

fn main() {
    let lock = SeqLock::default();
    let (torn, backwards) = thread::scope(|scope| {
        let read = |_| {
            scope.spawn(|| {
                let (mut torn, mut backwards, mut last) = (0, 0, 0);
                while last < WRITES {
                    let words = lock.read();
                    torn += u32::from(words != [words[0], 2 * words[0], 3 * words[0], 4 * words[0]]);
                    backwards += u32::from(words[0] < last);
                    last = words[0];
                    thread::yield_now();
                }
                (torn, backwards)
            })
        };
        let readers: Vec<_> = (1..threads()).map(read).collect();
        scope.spawn(|| {
            for value in 1..=WRITES {
                lock.write(value);
                thread::yield_now();
            }
        });
        let results = readers.into_iter().map(|thread| thread.join().expect("the thread returns"));
        results.fold((0, 0), |sum, result| (sum.0 + result.0, sum.1 + result.1))
    });
    println!("{} words, {torn} torn, {backwards} backwards", lock.read()[3]);
}
