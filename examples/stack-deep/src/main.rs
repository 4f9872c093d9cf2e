//! `stack-deep [DEPTH] [N]`: recursion in several shapes: a parser over nested brackets, two functions that call each other, a
//! function that calls itself through a pointer, a list dropped node by node, and Ackermann's function.

use std::env;
use std::hint::black_box;

/// Parses nested brackets, one call a level, and returns the depth and what follows.
fn nesting(text: &[u8]) -> (usize, &[u8]) {
    let mut deepest = 0;
    let mut rest = text;
    while let [b'(', inner @ ..] = rest {
        let (depth, after) = nesting(inner);
        deepest = deepest.max(depth + 1);
        rest = after.strip_prefix(b")").unwrap_or(after);
    }
    (deepest, rest)
}

fn is_even(n: usize) -> bool {
    n == 0 || is_odd(black_box(n - 1))
}

fn is_odd(n: usize) -> bool {
    n != 0 && is_even(black_box(n - 1))
}

/// A frame of 128 bytes that is still needed after the call: it must survive everything below it.
fn frames(depth: usize, seed: u64) -> u64 {
    let mut frame = [seed; 16];
    for (i, cell) in frame.iter_mut().enumerate() {
        *cell = cell.rotate_left(i as u32).wrapping_mul(0x2545_f491_4f6c_dd1d);
    }
    let below = if depth == 0 { seed } else { frames(depth - 1, black_box(&frame)[depth % 16]) };
    black_box(&frame).iter().fold(below, |sum, cell| sum.wrapping_add(*cell).rotate_left(1))
}

/// The steps of a Collatz sequence, each a call through a trait object.
fn collatz(n: u64, step: &dyn Fn(u64) -> u64) -> usize {
    if n == 1 { 0 } else { 1 + collatz(step(n), step) }
}

enum List {
    Nil,
    Node(usize, Box<List>),
}

impl List {
    fn sum(&self) -> usize {
        match self {
            List::Nil => 0,
            List::Node(value, next) => value + next.sum(),
        }
    }
}

fn ackermann(m: u64, n: u64) -> u64 {
    match (m, n) {
        (0, n) => n + 1,
        (m, 0) => ackermann(m - 1, 1),
        (m, n) => ackermann(m - 1, ackermann(m, n - 1)),
    }
}

fn main() {
    let mut args = env::args().skip(1).map(|arg| arg.parse::<usize>().unwrap_or(0));
    let depth = args.next().unwrap_or(500);
    let n = args.next().unwrap_or(0);
    let depth = depth + n % 64;

    let brackets = "(".repeat(depth) + &")".repeat(depth) + "(()())";
    let (deepest, rest) = nesting(brackets.as_bytes());
    println!("brackets nest {deepest} deep, {} left over", rest.len());
    println!("{depth} is {}", if is_even(depth) { "even" } else { "odd" });
    println!("frames {:016x}", frames(depth, n as u64 + 1));
    let start = 27 + n as u64;
    println!("{start} reaches 1 in {} steps", collatz(start, &|n| if n % 2 == 0 { n / 2 } else { 3 * n + 1 }));
    let list = (0..depth).fold(List::Nil, |next, value| List::Node(value, Box::new(next)));
    println!("list sum {}", list.sum());
    drop(list);
    println!("ackermann(2, {}) = {}", n % 16, ackermann(2, n as u64 % 16));
}
