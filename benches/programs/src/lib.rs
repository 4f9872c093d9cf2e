//! What the programs of the set share: the number of the instance, and data that follow from it.

use std::env;

/// The number in `GPU_RUN_INSTANCE`: instances with different numbers work on different data. 0 where it is not set.
pub fn instance() -> u32 {
    env::var("GPU_RUN_INSTANCE").ok().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// A small generator of random numbers (xorshift, after Marsaglia); the same seed gives the same numbers.
pub struct Random(u32);

impl Random {
    pub fn new(seed: u32) -> Self {
        // Neighbouring seeds are spread apart; 0 is the one state xorshift never leaves.
        Self(seed.wrapping_mul(0x9e37_79b9) ^ 0x2545_f491 | 1)
    }

    pub fn number(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }

    /// A number less than `bound`, which is not 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        self.number() % bound
    }

    /// A number from 0 up to 1.
    pub fn unit(&mut self) -> f64 {
        f64::from(self.number()) / 4_294_967_296.0
    }

    pub fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u32) as usize]
    }
}

/// Fowler, Noll and Vo's hash (FNV-1a, 32 bits): one number that depends on every byte.
pub fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}
