//! `panics [N]`: does N mod 8's kind of thing that makes a Rust program panic.

use std::cell::RefCell;
use std::env;
use std::num::ParseIntError;

/// Kept out of line and away from constant folding: the checks must happen when the program runs.
#[inline(never)]
fn misbehave(kind: usize, n: usize) -> usize {
    let items: Vec<usize> = (0..n % 8).collect();
    match kind {
        0 => panic!("asked to panic, with N = {n}"),
        1 => items[n + 1],
        2 => n / items.iter().filter(|&&item| item > 100).count(),
        3 => items.iter().copied().find(|&item| item > 100).expect("no item is that large"),
        4 => {
            let parsed: Result<usize, ParseIntError> = format!("{n}x").parse();
            parsed.unwrap()
        }
        5 => "Grüße"[..3].len() + n,
        6 => {
            let cell = RefCell::new(n);
            let _writing = cell.borrow_mut();
            *cell.borrow()
        }
        _ => {
            assert_eq!(n, n + 1, "numbers should stand still");
            n
        }
    }
}

fn main() {
    let n: usize = env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
    println!("kind {} of 8, N = {n}", n % 8);
    let result = misbehave(n % 8, n);
    println!("not reached: {result}");
}
