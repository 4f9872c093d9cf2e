//! What the other programs start. The first argument says what it does.

use std::io::{self, BufRead, Read, Write};
use std::process::{self, Command};
use std::time::Duration;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["echo", ref words @ ..] => println!("{}", words.join(" ")),
        ["error", ref words @ ..] => eprintln!("{}", words.join(" ")),
        ["exit", code] => process::exit(code.parse().expect("a number")),
        ["abort"] => process::abort(),
        ["spin"] => loop {
            std::hint::black_box(0);
        },
        ["sleep", milliseconds] => {
            std::thread::sleep(Duration::from_millis(milliseconds.parse().expect("a number")));
        }
        ["sleep-echo"] => {
            std::thread::sleep(Duration::from_millis(200));
            println!("slept");
        }
        ["cat"] => {
            io::copy(&mut io::stdin(), &mut io::stdout()).expect("stdin goes to stdout");
        }
        ["upper"] => {
            let mut out = io::stdout().lock();
            for line in io::stdin().lock().lines() {
                writeln!(out, "{}", line.expect("a line").to_uppercase()).expect("a line is written");
            }
        }
        ["reverse"] => {
            for line in io::stdin().lock().lines() {
                println!("{}", line.expect("a line").chars().rev().collect::<String>());
            }
        }
        // A line for each of the lines 1 to N.
        ["numbers", most] => {
            let mut out = io::BufWriter::new(io::stdout().lock());
            for number in 1..=most.parse::<u64>().expect("a number") {
                writeln!(out, "line {number}").expect("a line is written");
            }
        }
        ["sum"] => {
            let mut bytes = Vec::new();
            io::stdin().read_to_end(&mut bytes).expect("stdin is read");
            let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
            let sum = bytes.iter().fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
            println!("{} bytes, {lines} lines, sum {sum:x}", bytes.len());
        }
        ["first-line"] => {
            let mut line = String::new();
            io::stdin().lock().read_line(&mut line).expect("a line");
            print!("{line}");
        }
        ["both", count] => {
            for number in 0..count.parse::<u32>().expect("a number") {
                println!("out {number}");
                eprintln!("err {number}");
            }
        }
        ["env", ref names @ ..] => {
            for name in names {
                println!("{name} = {:?}", std::env::var(name));
            }
        }
        ["folder"] => {
            let folder = std::env::current_dir().expect("a folder");
            println!("{}", folder.file_name().unwrap_or_default().display());
            println!("{:?}", std::fs::read_to_string("here.txt"));
        }
        // Starts itself until the depth is 0.
        ["nested", "0"] => println!("the innermost"),
        ["nested", depth] => {
            let depth: u32 = depth.parse().expect("a number");
            let inner = (depth - 1).to_string();
            let output = Command::new("tool").args(["nested", &inner]).output().expect("a process");
            print!("{depth} has: {}", String::from_utf8_lossy(&output.stdout));
            process::exit(output.status.code().map_or(99, |code| code + 1));
        }
        ref other => panic!("{other:?}"),
    }
}
