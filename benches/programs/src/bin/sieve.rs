//! The primes below some 100,000, by the sieve of Eratosthenes.

use bench_programs::instance;

/// Which numbers below `limit` are prime.
fn sieve(limit: usize) -> Vec<bool> {
    let mut prime = vec![true; limit];
    prime[..2].fill(false);
    let mut n = 2;
    while n * n < limit {
        if prime[n] {
            for multiple in (n * n..limit).step_by(n) {
                prime[multiple] = false;
            }
        }
        n += 1;
    }
    prime
}

fn main() {
    let limit = 100_000 + (instance() % 1000) as usize;
    let primes: Vec<usize> = sieve(limit).iter().enumerate().filter(|(_, prime)| **prime).map(|(n, _)| n).collect();
    let sum: u64 = primes.iter().map(|prime| *prime as u64).sum();
    println!("{} primes below {limit}, the last {}, their sum {sum}", primes.len(), primes[primes.len() - 1]);
}
