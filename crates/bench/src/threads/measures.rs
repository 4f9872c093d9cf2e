//! What `gpu-run bench threads` measures, in ordinary Rust. This file is compiled twice, for the host as a part of this
//! crate and for wasm32-wasip1-threads (`guest/`), so that both sides run the same source.
//!
//! Times are in nanoseconds.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Condvar, Mutex};
use std::thread::{self, Builder, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// Stacks are small, so that those of 16,384 threads fit into the memory of wasm32.
const STACK_BYTES: usize = 32 << 10;
/// The most repetitions of what takes a while.
const MAX_ROUNDS: usize = 2000;
/// Lock and unlock take less than a clock's step: so many of them are timed together.
pub(crate) const LOCKS_TOGETHER: u64 = 1000;
/// How long a thread sleeps.
const NAP: Duration = Duration::from_millis(1);
/// The Mandelbrot set's picture: its width, the most iterations, and the pixels that a thread takes at a time.
const WIDTH: u64 = 1024;
const MAX_ITERATIONS: u32 = 1000;
const BLOCK: u64 = 64;

/// Does one task, and returns its figures. `size` is a time for all tasks but the last two. Returns `None` if there is
/// no such task.
pub(crate) fn measure(task: &str, threads: usize, size: u64) -> Option<Vec<u64>> {
    let time = Duration::from_nanos(size);
    Some(match task {
        "spawn" => repeat(time, spawn_and_join),
        "lock" => uncontended(time),
        "contend" => contended(threads, time, false),
        "fairness" => contended(threads, time, true),
        "ping-pong" => ping_pong(time),
        "sleep" => repeat(time, oversleep),
        "mandelbrot" => mandelbrot(threads, size),
        "sha256" => sha256_search(threads, size),
        _ => return None,
    })
}

/// Returns the figures of as many rounds as fit into the time.
fn repeat(time: Duration, mut round: impl FnMut() -> u64) -> Vec<u64> {
    let began = Instant::now();
    let mut figures = Vec::with_capacity(MAX_ROUNDS);
    while figures.len() < MAX_ROUNDS && (figures.is_empty() || began.elapsed() < time) {
        figures.push(round());
    }
    figures
}

fn nanoseconds(since: Instant) -> u64 {
    since.elapsed().as_nanos() as u64
}

/// Starts a thread with a small stack.
fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    body: impl FnOnce() -> T + Send + 'scope,
) -> ScopedJoinHandle<'scope, T> {
    Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, body).expect("a thread can be started")
}

/// Starts threads, and returns what each returned.
fn all<T: Send>(threads: usize, body: impl Fn(usize) -> T + Sync, meanwhile: impl FnOnce()) -> Vec<T> {
    thread::scope(|scope| {
        let body = &body;
        let handles: Vec<_> = (0..threads).map(|thread| spawn(scope, move || body(thread))).collect();
        meanwhile();
        handles.into_iter().map(|handle| handle.join().expect("no thread panics")).collect()
    })
}

fn spawn_and_join() -> u64 {
    let began = Instant::now();
    let thread = Builder::new().stack_size(STACK_BYTES).spawn(|| ()).expect("a thread can be started");
    thread.join().expect("it does nothing");
    nanoseconds(began)
}

/// Returns how long [`LOCKS_TOGETHER`] locks and unlocks took that nobody else wanted, again and again.
fn uncontended(time: Duration) -> Vec<u64> {
    let counter = Mutex::new(0u64);
    repeat(time, || {
        let began = Instant::now();
        for _ in 0..LOCKS_TOGETHER {
            *black_box(&counter).lock().expect("no thread panics") += 1;
        }
        nanoseconds(began)
    })
}

/// All threads lock one mutex again and again. Returns how long they did, how often the threads had it in all, the
/// thread that had it least and the one that had it most, and, if it `watches`, the longest time that a thread was
/// without it.
fn contended(threads: usize, time: Duration, watches: bool) -> Vec<u64> {
    let (counter, stop, start) = (Mutex::new(0u64), AtomicBool::new(false), Barrier::new(threads + 1));
    let took = AtomicU64::new(0);
    let counts = all(
        threads,
        |_| {
            start.wait();
            let (mut count, mut longest, mut last) = (0u64, 0, Instant::now());
            while !stop.load(Ordering::Relaxed) {
                *counter.lock().expect("no thread panics") += 1;
                count += 1;
                if watches {
                    longest = longest.max(nanoseconds(last));
                    last = Instant::now();
                }
            }
            (count, longest)
        },
        || {
            start.wait();
            let began = Instant::now();
            thread::sleep(time);
            stop.store(true, Ordering::Relaxed);
            took.store(nanoseconds(began), Ordering::Relaxed);
        },
    );
    let total = counts.iter().map(|(count, _)| count).sum();
    let lowest = counts.iter().map(|(count, _)| *count).min().unwrap_or(0);
    let highest = counts.iter().map(|(count, _)| *count).max().unwrap_or(0);
    let longest = counts.iter().map(|(_, longest)| *longest).max().unwrap_or(0);
    assert_eq!(total, counter.into_inner().expect("no thread panics"), "the mutex let two threads in");
    vec![took.into_inner(), total, lowest, highest, longest]
}

/// Two threads wake each other in turn by a condition variable. Returns half of each round trip.
fn ping_pong(time: Duration) -> Vec<u64> {
    // The number of hits so far: the first player has the even ones.
    let (hits, hit) = (Mutex::new(0u64), Condvar::new());
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        spawn(scope, || {
            let mut hits = hits.lock().expect("no thread panics");
            loop {
                hits = hit.wait_while(hits, |hits| *hits % 2 == 0).expect("no thread panics");
                *hits += 1;
                hit.notify_one();
                if done.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        let mut round = || {
            let began = Instant::now();
            let mut hits = hits.lock().expect("no thread panics");
            *hits += 1;
            hit.notify_one();
            drop(hit.wait_while(hits, |hits| *hits % 2 == 1).expect("no thread panics"));
            nanoseconds(began) / 2
        };
        let figures = repeat(time, &mut round);
        done.store(true, Ordering::Relaxed);
        round();
        figures
    })
}

/// Returns how much later than asked for a sleeping thread continued.
fn oversleep() -> u64 {
    let began = Instant::now();
    thread::sleep(NAP);
    nanoseconds(began).saturating_sub(NAP.as_nanos() as u64)
}

/// Returns how long the work took, how long it took until all threads were started, and the result.
fn work(threads: usize, body: impl Fn(usize) + Sync, result: &AtomicU64) -> Vec<u64> {
    let (began, mut started) = (Instant::now(), 0);
    all(threads, body, || started = nanoseconds(began));
    vec![nanoseconds(began), started, result.load(Ordering::Relaxed)]
}

/// Computes so many rows of a picture of the Mandelbrot set. The result is the sum of all iterations.
fn mandelbrot(threads: usize, rows: u64) -> Vec<u64> {
    let (next, sum, pixels) = (AtomicU64::new(0), AtomicU64::new(0), WIDTH * rows);
    let body = |_| {
        let mut own = 0;
        loop {
            let first = next.fetch_add(BLOCK, Ordering::Relaxed);
            if first >= pixels {
                break;
            }
            for pixel in first..first + BLOCK {
                let (x, y) = ((pixel % WIDTH) as f64 / WIDTH as f64, (pixel / WIDTH) as f64 / rows as f64);
                own += u64::from(iterations(x * 3.0 - 2.0, y * 2.0 - 1.0));
            }
        }
        sum.fetch_add(own, Ordering::Relaxed);
    };
    work(threads, body, &sum)
}

fn iterations(x: f64, y: f64) -> u32 {
    let (mut re, mut im) = (0.0, 0.0);
    for i in 0..MAX_ITERATIONS {
        if re * re + im * im > 4.0 {
            return i;
        }
        (re, im) = (re * re - im * im + x, 2.0 * re * im + y);
    }
    MAX_ITERATIONS
}

/// Looks among the first `count` nonces for the one with the smallest SHA-256. The result is its first eight bytes.
fn sha256_search(threads: usize, count: u64) -> Vec<u64> {
    let best = AtomicU64::new(u64::MAX);
    let body = |thread| {
        let own = (thread as u64..count).step_by(threads).map(sha256).min();
        best.fetch_min(own.unwrap_or(u64::MAX), Ordering::Relaxed);
    };
    work(threads, body, &best)
}

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
const ROUND: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98,
    0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8,
    0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
    0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
    0xc67178f2,
];

const START: [u32; 8] =
    [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];

/// Returns the first eight bytes of the SHA-256 of a nonce's eight bytes.
fn sha256(nonce: u64) -> u64 {
    let mut w = [0u32; 64];
    (w[0], w[1]) = ((nonce >> 32) as u32, nonce as u32);
    // The end of the message, and its length in bits.
    (w[2], w[15]) = (0x8000_0000, 64);
    for i in 16..64 {
        let s0 = w[i - 15].rotate_right(7) ^ w[i - 15].rotate_right(18) ^ (w[i - 15] >> 3);
        let s1 = w[i - 2].rotate_right(17) ^ w[i - 2].rotate_right(19) ^ (w[i - 2] >> 10);
        w[i] = w[i - 16].wrapping_add(s0).wrapping_add(w[i - 7]).wrapping_add(s1);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = START;
    for i in 0..64 {
        let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = (e & f) ^ (!e & g);
        let t1 = h.wrapping_add(s1).wrapping_add(choice).wrapping_add(ROUND[i]).wrapping_add(w[i]);
        let s0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let majority = (a & b) ^ (a & c) ^ (b & c);
        (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(t1), c, b, a, t1.wrapping_add(s0.wrapping_add(majority)));
    }
    u64::from(START[0].wrapping_add(a)) << 32 | u64::from(START[1].wrapping_add(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sha256_of_eight_zero_bytes_is_as_others_compute_it() {
        assert_eq!(sha256(0), 0xaf55_70f5_a181_0b7a);
    }
}
