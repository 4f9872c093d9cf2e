//! `sort [SEED]`: makes records from a seed, sorts them in five ways that must agree, and searches the result.

use std::collections::BinaryHeap;
use std::env;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Record {
    key: u32,
    name: String,
}

/// Marsaglia's xorshift64: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn records(seed: u64, count: usize) -> Vec<Record> {
    let mut random = Random::new(seed);
    let name = |bits: u64| (0..6).map(|i| char::from(b'a' + (bits >> (8 * i)) as u8 % 26)).collect();
    // Keys repeat on purpose: equal keys are what tells a stable sort from an unstable one.
    (0..count).map(|_| Record { key: (random.next() >> 40) as u32 % 500, name: name(random.next()) }).collect()
}

fn quick_sort<T: Ord>(items: &mut [T]) {
    if items.len() < 2 {
        return;
    }
    let last = items.len() - 1;
    items.swap(last / 2, last);
    let mut split = 0;
    for i in 0..last {
        if items[i] < items[last] {
            items.swap(i, split);
            split += 1;
        }
    }
    items.swap(split, last);
    let (low, high) = items.split_at_mut(split);
    quick_sort(low);
    quick_sort(&mut high[1..]);
}

fn merge_sort<T: Ord + Clone>(items: &[T]) -> Vec<T> {
    if items.len() < 2 {
        return items.to_vec();
    }
    let (low, high) = items.split_at(items.len() / 2);
    let mut low = merge_sort(low).into_iter().peekable();
    let mut high = merge_sort(high).into_iter().peekable();
    let mut merged = Vec::with_capacity(items.len());
    loop {
        let next = match (low.peek(), high.peek()) {
            (Some(a), Some(b)) if a <= b => low.next(),
            (_, Some(_)) => high.next(),
            _ => low.next(),
        };
        match next {
            Some(item) => merged.push(item),
            None => return merged,
        }
    }
}

fn main() {
    let seed = env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(42);
    let original = records(seed, 2000);

    let mut unstable = original.clone();
    unstable.sort_unstable();
    let mut stable = original.clone();
    stable.sort_by(|a, b| a.name.cmp(&b.name));
    stable.sort_by_key(|record| record.key);
    let mut quick = original.clone();
    quick_sort(&mut quick);
    let heap = BinaryHeap::from(original.clone()).into_sorted_vec();
    let merged = merge_sort(&original);
    assert!(stable == unstable && quick == unstable && heap == unstable && merged == unstable, "the sorts disagree");

    println!("seed {seed}: {} records, five sorts agree", original.len());
    for record in unstable.iter().step_by(250) {
        println!("{:>4} {}", record.key, record.name);
    }
    let found = (0..500).filter(|key| unstable.binary_search_by_key(key, |record| record.key).is_ok()).count();
    println!("{found} of 500 keys occur, the median is {}", unstable[unstable.len() / 2].key);
    let median_name = &unstable[unstable.len() / 2].name;
    match original.iter().position(|record| record.name == *median_name) {
        Some(at) => println!("{median_name} was record {at}"),
        None => println!("{median_name} was lost"),
    }
}
