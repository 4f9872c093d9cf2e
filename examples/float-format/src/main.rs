//! `float-format [SEED]`: prints floating-point numbers in every format, and reads them back. What is printed
//! must parse to the very same bits.

use std::env;

struct Random(u64);

impl Random {
    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

fn show(value: f64) {
    println!("{value:?} | {value:e} | {value:.3} | {value:+.1e} | {value:>12.2} | {:08x}", (value as f32).to_bits());
}

fn special_values() {
    println!("-- special values");
    let subnormal = f64::from_bits(1);
    for value in [0.0, -0.0, 1.0, 0.1, 1.0 / 3.0, 1e21, 1e-7, 123_456_789.0, 2f64.powi(53), subnormal] {
        show(value);
    }
    for value in [f64::MAX, f64::MIN_POSITIVE, f64::EPSILON, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
        println!("{value:e} {:e}", value as f32);
    }
}

fn rounding() {
    println!("-- rounding");
    for value in [0.5f64, 1.5, 2.5, -0.5, -1.5, 0.499_999_999_999_999_94, 4_503_599_627_370_497.5, -2.000_000_1] {
        let f64_ways = [value.floor(), value.ceil(), value.trunc(), value.round(), value.round_ties_even()];
        println!("{value:?} {f64_ways:?} fract {:?} in f32 {:?}", value.fract(), (value as f32).round_ties_even());
    }
    for value in [1e10, -1e10, 300.7, -1.9, f64::NAN, f64::INFINITY, 1e300] {
        println!(
            "{value:?} as u8 {} i32 {} u32 {} i64 {} u64 {}",
            value as u8, value as i32, value as u32, value as i64, value as u64
        );
    }
    println!("{:?} {:?}", u64::MAX as f32, (u64::MAX - 1024) as f64);
    println!("{:?} {:?} {:?}", f64::NAN.min(1.0), 1f64.max(f64::NAN), (-0.0f64).max(0.0).to_bits() == 0);
    println!("{:?} {:?}", 2f64.mul_add(3.0, -6.0), (1.0 + f64::EPSILON).mul_add(1.0 - f64::EPSILON, -1.0));
    println!("{:?} {:?} {:?}", 2f32.sqrt(), 2f64.sqrt(), (-1f64).sqrt().is_nan());
    println!("{:?} {:?}", 5.5f64.rem_euclid(-2.0), -5.5f64 % 2.0);
}

fn parsing() {
    println!("-- parsing");
    let texts = [
        "1e400",
        "-1e-400",
        "2.2250738585072011e-308",
        "0x10",
        "1_000",
        ".5",
        "5.",
        "inf",
        "-NaN",
        "1e",
        "9007199254740993",
        "",
    ];
    for text in texts {
        match text.parse::<f64>() {
            Ok(value) if value.is_nan() => println!("{text:?} is not a number"),
            Ok(value) => println!("{text:?} is {value:e}, {:016x}", value.to_bits()),
            Err(error) => println!("{text:?}: {error}"),
        }
    }
}

/// Random bits, so that every exponent is met: printed, parsed, and compared bit by bit.
fn round_trips(seed: u64) {
    println!("-- round trips, seed {seed}");
    let mut random = Random(seed);
    let (mut same, mut length, mut sum) = (0, 0, 0.0);
    for i in 0..300 {
        let (wide, narrow) = (f64::from_bits(random.next()), f32::from_bits(random.next() as u32));
        if wide.is_nan() || narrow.is_nan() {
            continue;
        }
        let texts = [format!("{wide:?}"), format!("{wide:e}"), format!("{narrow:?}"), format!("{narrow:e}")];
        same += texts[..2].iter().filter(|text| text.parse() == Ok(wide)).count();
        same += texts[2..].iter().filter(|text| text.parse() == Ok(narrow)).count();
        length += texts.iter().map(String::len).sum::<usize>();
        sum += wide % 1e3 + f64::from(narrow) % 1e3;
        if i % 60 == 0 {
            println!("{} {}", texts[1], texts[3]);
        }
    }
    println!("{same} came back, {length} characters, checksum {sum:.6}");
}

fn main() {
    let seed = env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(2024);
    special_values();
    rounding();
    parsing();
    round_trips(seed);
}
