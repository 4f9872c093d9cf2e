//! A program with threads whose threads start processes, all at the same time.

use std::process::Command;
use std::thread;

fn main() {
    let threads: Vec<_> = (0..8)
        .map(|number| {
            thread::spawn(move || {
                let mut sum = 0;
                for round in 0..5 {
                    let text = format!("{}", number * 10 + round);
                    let output = Command::new("tool").args(["echo", &text]).output().expect("a process");
                    sum += String::from_utf8_lossy(&output.stdout).trim().parse::<u32>().expect("the number");
                }
                sum
            })
        })
        .collect();
    let sums: Vec<u32> = threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
    println!("{sums:?}");
}
