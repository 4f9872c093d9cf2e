//! Deterministic randomness, with a liking for the values arithmetic goes wrong at.

#[derive(Clone, Debug)]
pub(crate) struct Random(fastrand::Rng);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// A number from 0 to `limit`, that excluded.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0.usize(..limit)
    }

    /// True once in `n` times.
    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.0.u8(..)).collect()
    }

    pub(crate) fn i32(&mut self) -> i32 {
        match self.below(4) {
            0 => self.pick(&[
                0,
                1,
                -1,
                2,
                31,
                32,
                33,
                i32::MIN,
                i32::MAX,
                i32::MIN + 1,
                0x7f,
                0x80,
                0xff,
                0x7fff,
                0x8000,
                0xffff,
            ]),
            1 => (1i32 << self.below(32)).wrapping_sub(self.below(3) as i32 - 1),
            2 => self.below(256) as i32 - 128,
            _ => self.next() as i32,
        }
    }

    pub(crate) fn i64(&mut self) -> i64 {
        match self.below(4) {
            0 => self.pick(&[
                0,
                1,
                -1,
                63,
                64,
                65,
                i64::MIN,
                i64::MAX,
                i64::MIN + 1,
                1 << 31,
                1 << 32,
                0xffff_ffff,
                -1 << 31,
            ]),
            1 => (1i64 << self.below(64)).wrapping_sub(self.below(3) as i64 - 1),
            2 => i64::from(self.i32()),
            _ => self.next() as i64,
        }
    }

    /// The bits of a v128, made of lanes of one size.
    pub(crate) fn v128(&mut self) -> u128 {
        let (bits, count) = self.pick(&[(8, 16), (16, 8), (32, 4), (64, 2)]);
        let floats = self.one_in(2);
        let mut lane = || match bits {
            32 if floats => self.f32().into(),
            64 if floats => self.f64(),
            64 => self.i64() as u64,
            _ => u64::from(self.i32() as u32) & ((1 << bits) - 1),
        };
        (0..count).fold(0, |all, i| all | u128::from(lane()) << (i * bits))
    }

    /// The bits of an f32.
    pub(crate) fn f32(&mut self) -> u32 {
        match self.below(4) {
            0 => f32_edges()[self.below(f32_edges().len())],
            1 => (self.below(2001) as f32 / 8.0 - 125.0).to_bits(),
            2 => (self.i64() as f32).to_bits(),
            _ => self.next() as u32,
        }
    }

    /// The bits of an f64.
    pub(crate) fn f64(&mut self) -> u64 {
        match self.below(5) {
            0 => f64_edges()[self.below(f64_edges().len())],
            1 => (self.below(2001) as f64 / 8.0 - 125.0).to_bits(),
            2 => (self.i64() as f64).to_bits(),
            3 => f64::from(f32::from_bits(self.f32() & 0xffbf_ffff)).to_bits(),
            _ => self.next(),
        }
    }
}

#[rustfmt::skip] // a table
fn f32_edges() -> [u32; 30] {
    [
        0x0000_0000,
        0x8000_0000,
        0x0000_0001,
        0x8000_0001,
        0x007f_ffff,
        0x0080_0000,
        0x7f7f_ffff,
        0xff7f_ffff,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0xffc0_0000,
        0x7f80_0001,
        0x7fff_ffff,
        0x7fa0_0000,
        1.0f32.to_bits(),
        (-1.0f32).to_bits(),
        0.5f32.to_bits(),
        (-0.5f32).to_bits(),
        1.5f32.to_bits(),
        2.5f32.to_bits(),
        0x3eff_ffff, // the largest below 0.5
        0x4aff_ffff,
        0x4b00_0000,
        0x4b7f_ffff, // where halves and then odd numbers end
        0x4eff_ffff,
        0x4f00_0000,
        0xcf00_0000, // 2^31
        0x4f80_0000,
        0x5f00_0000, // 2^32, 2^63
    ]
}

#[rustfmt::skip]
fn f64_edges() -> [u64; 32] {
    [
        0,
        1 << 63,
        1,
        1 << 63 | 1,
        0x000f_ffff_ffff_ffff,
        0x0010_0000_0000_0000,
        0x7fef_ffff_ffff_ffff,
        0xffef_ffff_ffff_ffff,
        0x7ff0_0000_0000_0000,
        0xfff0_0000_0000_0000,
        0x7ff8_0000_0000_0000,
        0xfff8_0000_0000_0000,
        0x7ff0_0000_0000_0001,
        0x7fff_ffff_ffff_ffff,
        0x7ff4_0000_0000_0000,
        1.0f64.to_bits(),
        (-1.0f64).to_bits(),
        0.5f64.to_bits(),
        (-0.5f64).to_bits(),
        1.5f64.to_bits(),
        2.5f64.to_bits(),
        0x3fdf_ffff_ffff_ffff,
        0x432f_ffff_ffff_ffff,
        0x4330_0000_0000_0000,
        2147483647.0f64.to_bits(),
        2147483647.9f64.to_bits(),
        (-2147483648.9f64).to_bits(),
        4294967295.9f64.to_bits(),
        9223372036854775808.0f64.to_bits(),
        (-9223372036854775808.0f64).to_bits(),
        18446744073709551616.0f64.to_bits(),
        f64::from(f32::MAX).to_bits() + 1,
    ]
}
