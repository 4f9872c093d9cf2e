//! `merge-sort THREADS`: a merge sort that gives one half to a new thread while there are threads left.

use std::thread;
use std_programs::{Random, threads};

const NUMBERS: usize = 30_000;

fn sort(numbers: &mut [u64], buffer: &mut [u64], threads: usize) {
    if threads < 2 || numbers.len() < 2 {
        numbers.sort_unstable();
        return;
    }
    let middle = numbers.len() / 2;
    let (left, right) = numbers.split_at_mut(middle);
    let (left_buffer, right_buffer) = buffer.split_at_mut(middle);
    thread::scope(|scope| {
        scope.spawn(move || sort(left, left_buffer, threads / 2));
        sort(right, right_buffer, threads - threads / 2);
    });
    let (mut i, mut j) = (0, middle);
    for slot in buffer.iter_mut() {
        let take_left = j == numbers.len() || i < middle && numbers[i] <= numbers[j];
        let from = if take_left { &mut i } else { &mut j };
        *slot = numbers[*from];
        *from += 1;
    }
    numbers.copy_from_slice(buffer);
}

fn main() {
    let mut random = Random::new(11);
    let mut numbers: Vec<u64> = (0..NUMBERS).map(|_| random.draw() % 1_000_000).collect();
    let mut expected = numbers.clone();
    expected.sort_unstable();
    sort(&mut numbers, &mut vec![0; NUMBERS], threads());
    println!("sorted: {}, first {}, last {}", numbers == expected, numbers[0], numbers[NUMBERS - 1]);
}
