//! `atomics THREADS`: every operation of atomics of every width, by all threads at once; the result is the same in any order.

use std::sync::atomic::{
    AtomicBool, AtomicI8, AtomicI32, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
    Ordering,
};
use std::thread;
use std_programs::threads;

const RELAXED: Ordering = Ordering::Relaxed;
const ROUNDS: u64 = 20;

#[derive(Default)]
struct Cells {
    // Neighbours in one word.
    bytes: [AtomicU8; 8],
    halves: [AtomicU16; 4],
    words: [AtomicU32; 2],
    sum: AtomicU64,
    difference: AtomicI64,
    bits: AtomicU64,
    mask: AtomicU64,
    toggled: AtomicU64,
    smallest: AtomicI32,
    largest: AtomicI8,
    tripled: AtomicU64,
    swapped: AtomicU64,
    ever: AtomicBool,
    flips: AtomicBool,
    pointer: AtomicPtr<u64>,
}

fn work(cells: &Cells, thread: u64) -> u64 {
    let mut received = 0;
    for round in 0..ROUNDS {
        let at = (thread + round) as usize;
        cells.bytes[at % 8].fetch_add(1, RELAXED);
        cells.halves[at % 4].fetch_add(3, RELAXED);
        cells.words[at % 2].fetch_add(5, RELAXED);
        cells.sum.fetch_add(1 << 33, RELAXED);
        cells.difference.fetch_sub(thread as i64 * (1 << 20), RELAXED);
        cells.bits.fetch_or(1 << (at % 48), RELAXED);
        cells.mask.fetch_and(!(1 << (thread % 40)), RELAXED);
        cells.toggled.fetch_xor(1 << (thread % 60), Ordering::SeqCst);
        cells.smallest.fetch_min(-(thread as i32) - round as i32, RELAXED);
        cells.largest.fetch_max((thread % 100) as i8, RELAXED);
        _ = cells.tripled.fetch_update(Ordering::AcqRel, RELAXED, |old| Some(old.wrapping_mul(3)));
        // Every number that was put in comes out of somebody's swap, except the last.
        received += cells.swapped.swap(thread * ROUNDS + round, Ordering::AcqRel);
        cells.ever.fetch_or(thread == 0, RELAXED);
        cells.flips.fetch_xor(true, RELAXED);
        advance(&cells.pointer);
    }
    received
}

fn advance(pointer: &AtomicPtr<u64>) {
    let mut old = pointer.load(RELAXED);
    while let Err(now) = pointer.compare_exchange_weak(old, old.wrapping_add(1), Ordering::AcqRel, RELAXED) {
        old = now;
    }
}

fn main() {
    let threads = threads() as u64;
    let cells = Cells { mask: AtomicU64::new(u64::MAX), tripled: AtomicU64::new(1), ..Cells::default() };
    let total = AtomicUsize::new(0);
    thread::scope(|scope| {
        for thread in 0..threads {
            let (cells, total) = (&cells, &total);
            scope.spawn(move || total.fetch_add(work(cells, thread) as usize, RELAXED));
        }
    });
    println!("bytes {:?}", cells.bytes);
    println!("halves {:?}", cells.halves);
    println!("words {:?}", cells.words);
    println!("sum {:?}, difference {:?}", cells.sum, cells.difference);
    println!("bits {:x?}, mask {:x?}, toggled {:x?}", cells.bits, cells.mask, cells.toggled);
    println!("smallest {:?}, largest {:?}, tripled {:?}", cells.smallest, cells.largest, cells.tripled);
    println!("swapped {}", total.into_inner() as u64 + cells.swapped.into_inner());
    println!("ever {:?}, flips {:?}", cells.ever, cells.flips);
    println!("pointer {}", cells.pointer.into_inner() as usize / size_of::<u64>());
}
