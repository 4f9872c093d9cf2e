//! What of `std::range` is stable.

use std::range::{RangeInclusive, RangeInclusiveIter};

fn main() {
    let range = RangeInclusive { start: 2, last: 5 };
    println!("{range:?} {} {} {}", range.contains(&5), range.contains(&6), range.is_empty());
    let iter: RangeInclusiveIter<i32> = range.iter();
    println!("{:?}", iter.map(|n| n * n).collect::<Vec<_>>());
    println!("{:?} {:?}", std::ops::RangeInclusive::from(range), RangeInclusive::from(1..=3));
}
