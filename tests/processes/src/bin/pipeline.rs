//! Three filters in a row with megabytes through them: numbers | upper | reverse, and what comes out is summed up here.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

fn main() {
    let lines = std::env::args().nth(1).map_or(200_000, |lines| lines.parse().expect("a number"));
    let mut numbers =
        Command::new("tool").args(["numbers", &format!("{lines}")]).stdout(Stdio::piped()).spawn().expect("numbers");
    let mut upper = Command::new("tool")
        .arg("upper")
        .stdin(numbers.stdout.take().expect("a pipe"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("upper");
    let mut reverse = Command::new("tool")
        .arg("reverse")
        .stdin(upper.stdout.take().expect("a pipe"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("reverse");
    let (mut count, mut bytes, mut last) = (0u64, 0, String::new());
    for line in BufReader::new(reverse.stdout.take().expect("a pipe")).lines() {
        last = line.expect("a line");
        count += 1;
        bytes += last.len() + 1;
    }
    println!("{count} lines, {bytes} bytes, the last one is {last:?}");
    for (name, child) in [("numbers", &mut numbers), ("upper", &mut upper), ("reverse", &mut reverse)] {
        println!("{name}: {}", child.wait().expect("an end"));
    }
}
