//! Panics in a function that is inlined.

use std::hint::black_box;

struct Items(Vec<u32>);

impl Items {
    #[inline(always)]
    fn pick(&self, at: usize) -> u32 {
        self.0[at]
    }
}

#[inline(never)]
fn inner(at: usize) -> u32 {
    Items(black_box(vec![1, 2, 3])).pick(black_box(at))
}

#[inline(never)]
fn outer(call: fn(usize) -> u32) -> u32 {
    black_box(call)(7) + 1
}

fn main() {
    println!("before");
    println!("{}", outer(inner));
}
