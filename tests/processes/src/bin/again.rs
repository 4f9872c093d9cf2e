//! A thousand children, one after the other, and then 24 at a time: nothing is left behind.

use std::process::{Command, Stdio};

fn main() {
    let rounds = std::env::args().nth(1).map_or(1000, |rounds| rounds.parse().expect("a number"));
    let mut sum = 0;
    for round in 0..rounds {
        let output = Command::new("tool").args(["echo", &format!("{round}")]).output().expect("a process");
        sum += String::from_utf8_lossy(&output.stdout).trim().parse::<u64>().expect("the number");
    }
    println!("{sum}");
    for _ in 0..4 {
        let children: Vec<_> = (0..24)
            .map(|code| Command::new("tool").args(["exit", &format!("{code}")]).stdin(Stdio::null()).spawn())
            .collect();
        let codes: i32 = children
            .into_iter()
            .map(|child| child.expect("a process").wait().expect("an end").code().expect("a code"))
            .sum();
        println!("{codes}");
    }
}
