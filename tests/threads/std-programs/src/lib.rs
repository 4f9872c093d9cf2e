//! What the programs have in common: the number of threads, a share of the work, a generator.

use std::ops::Range;

/// The first argument, the number of threads; 8 without one.
pub fn threads() -> usize {
    std::env::args().nth(1).map_or(8, |text| text.parse().expect("the number of threads"))
}

/// The part of `0..total` that belongs to `thread` of `threads`.
pub fn share(total: usize, thread: usize, threads: usize) -> Range<usize> {
    let at = |thread: usize| (total as u64 * thread as u64 / threads as u64) as usize;
    at(thread)..at(thread + 1)
}

/// Marsaglia's xorshift64: small, and the same everywhere.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn draw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}
