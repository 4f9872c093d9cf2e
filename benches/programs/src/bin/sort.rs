//! Sorts 4096 numbers, and 512 strings.

use bench_programs::{Random, checksum, instance};

fn main() {
    let mut random = Random::new(instance());
    let mut numbers: Vec<u32> = (0..4096).map(|_| random.number()).collect();
    let mut names: Vec<String> = (0..512).map(|_| format!("name-{}", random.below(10_000))).collect();
    numbers.sort_unstable();
    names.sort();
    names.dedup();
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    println!("{} to {}, checksum {:08x}", numbers[0], numbers[4095], checksum(&bytes));
    println!(
        "{} names, {} to {}, checksum {:08x}",
        names.len(),
        names[0],
        names[names.len() - 1],
        checksum(names.concat().as_bytes())
    );
}
