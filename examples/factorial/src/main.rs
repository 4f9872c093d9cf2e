//! `factorial [N]`: N! by recursion, first in machine words as far as they go, then in big integers.

use std::env;
use std::fmt;

/// A natural number in base 2^64, the lowest digit first, without leading zeros.
#[derive(Clone)]
struct Natural(Vec<u64>);

impl Natural {
    fn from_word(word: u64) -> Self {
        Self(if word == 0 { Vec::new() } else { vec![word] })
    }

    fn times(&self, other: &Natural) -> Natural {
        let mut product = vec![0u64; self.0.len() + other.0.len()];
        for (i, &a) in self.0.iter().enumerate() {
            let mut carry = 0u128;
            for (j, &b) in other.0.iter().enumerate() {
                let sum = u128::from(a) * u128::from(b) + u128::from(product[i + j]) + carry;
                product[i + j] = sum as u64;
                carry = sum >> 64;
            }
            product[i + other.0.len()] = carry as u64;
        }
        while product.last() == Some(&0) {
            product.pop();
        }
        Natural(product)
    }

    /// Divides in place and returns the remainder.
    fn divide_by_word(&mut self, divisor: u64) -> u64 {
        let mut remainder = 0u128;
        for digit in self.0.iter_mut().rev() {
            let dividend = remainder << 64 | u128::from(*digit);
            *digit = (dividend / u128::from(divisor)) as u64;
            remainder = dividend % u128::from(divisor);
        }
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
        remainder as u64
    }

    fn bits(&self) -> usize {
        self.0.last().map_or(0, |top| self.0.len() * 64 - top.leading_zeros() as usize)
    }
}

impl fmt::Display for Natural {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const CHUNK: u64 = 10_000_000_000_000_000_000; // the largest power of ten in a word: 19 digits
        let mut rest = self.clone();
        let mut chunks = Vec::new();
        while !rest.0.is_empty() {
            chunks.push(rest.divide_by_word(CHUNK));
        }
        let mut text = chunks.pop().unwrap_or(0).to_string();
        for chunk in chunks.iter().rev() {
            text.push_str(&format!("{chunk:019}"));
        }
        f.pad_integral(true, "", &text)
    }
}

/// The product of `low..=high`, halves first: balanced factors, and recursion as deep as the logarithm.
fn product(low: u64, high: u64) -> Natural {
    if low > high {
        return Natural::from_word(1);
    }
    if low == high {
        return Natural::from_word(low);
    }
    let middle = low + (high - low) / 2;
    product(low, middle).times(&product(middle + 1, high))
}

/// `None` where the result does not fit.
fn factorial_u64(n: u64) -> Option<u64> {
    if n == 0 { Some(1) } else { factorial_u64(n - 1)?.checked_mul(n) }
}

fn factorial_u128(n: u128) -> Option<u128> {
    if n == 0 { Some(1) } else { factorial_u128(n - 1)?.checked_mul(n) }
}

fn main() {
    let n = env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(100);
    match factorial_u64(n) {
        Some(value) => println!("in 64 bits:  {value}"),
        None => println!("in 64 bits:  does not fit"),
    }
    match factorial_u128(n.into()) {
        Some(value) => println!("in 128 bits: {value}"),
        None => println!("in 128 bits: does not fit"),
    }
    let factorial = product(2, n);
    let decimal = factorial.to_string();
    let digit_sum: u32 = decimal.chars().filter_map(|c| c.to_digit(10)).sum();
    let zeros = decimal.len() - decimal.trim_end_matches('0').len();
    println!("{n}! = {decimal}");
    println!("{} digits, {} bits, digit sum {digit_sum}, {zeros} zeros at the end", decimal.len(), factorial.bits());
}
