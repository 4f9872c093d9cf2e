//! `rayon-pool THREADS`: map, sum, sort, reduce, join and scope in a pool of its own.

use crate_programs::{Random, threads};
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

const NUMBERS: u64 = 20_000;

fn fibonacci(n: u32) -> u64 {
    if n < 12 {
        return (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0;
    }
    let (a, b) = rayon::join(|| fibonacci(n - 1), || fibonacci(n - 2));
    a + b
}

fn main() {
    let threads = threads();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("the pool starts");
    pool.install(|| {
        println!("{} threads", rayon::current_num_threads());
        let squares: Vec<u64> = (0..NUMBERS).into_par_iter().map(|i| i * i).collect();
        println!("sum {}, last {}", squares.par_iter().sum::<u64>(), squares[squares.len() - 1]);
        println!("largest remainder {:?}", squares.par_iter().map(|i| i % 9973).max());
        let longest = (1..5000u64).into_par_iter().map(|i| (i.count_ones(), i)).reduce(|| (0, 0), Ord::max);
        println!("most ones {longest:?}");

        let mut random = Random::new(3);
        let mut numbers: Vec<u64> = (0..NUMBERS).map(|_| random.draw() % 100_000).collect();
        let mut expected = numbers.clone();
        expected.sort();
        let mut stable: Vec<(u64, usize)> = numbers.iter().map(|n| n % 100).zip(0..).collect();
        numbers.par_sort_unstable();
        stable.par_sort_by_key(|(key, _)| *key);
        println!("sorted: {}, stable: {}", numbers == expected, stable.is_sorted());

        println!("fibonacci {}", fibonacci(20));
        let words: Vec<String> = (0..200).into_par_iter().filter(|i| i % 3 == 0).map(|i| format!("w{i}")).collect();
        println!("{} words, {}", words.len(), words.concat().len());
        println!("first over 1000: {:?}", squares.par_iter().find_first(|i| **i > 1000));

        let sum = AtomicU64::new(0);
        rayon::scope(|scope| {
            for i in 0..threads as u64 {
                let sum = &sum;
                scope.spawn(move |scope| {
                    sum.fetch_add(i, Ordering::Relaxed);
                    scope.spawn(move |_| _ = sum.fetch_add(1, Ordering::Relaxed));
                });
            }
        });
        println!("scope {}", sum.into_inner());
    });
    let seen = pool.broadcast(|context| context.index());
    println!("broadcast to {}", seen.len());
}
