//! How children end: by themselves, with a code, by a trap, killed; and what the parent sees of that.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

fn tool(args: &[&str]) -> Command {
    let mut command = Command::new("tool");
    command.args(args).stdin(Stdio::null());
    command
}

fn main() {
    for code in [0, 1, 7, 101, 255, 256, 300, -1, -256] {
        let status = tool(&["exit", &code.to_string()]).status().expect("a process");
        println!("{:?} {} {status}", status.code(), status.success());
    }

    let aborted = tool(&["abort"]).stderr(Stdio::null()).status().expect("a process");
    println!("aborted: {:?} {}", aborted.code(), aborted.success());

    let mut spinning = tool(&["spin"]).spawn().expect("a process");
    assert!(spinning.id() > 0);
    println!("runs: {:?}", spinning.try_wait().expect("an answer"));
    thread::sleep(Duration::from_millis(20));
    spinning.kill().expect("it runs");
    let killed = spinning.wait().expect("an end");
    println!("killed: {:?} {}", killed.code(), killed.success());
    println!("again: {}", killed == spinning.wait().expect("the same end"));
    println!("kill of the dead: {:?}", spinning.kill().is_ok());

    let mut asleep = tool(&["sleep", "10000"]).spawn().expect("a process");
    let began = Instant::now();
    asleep.kill().expect("it sleeps");
    asleep.wait().expect("an end");
    println!("a sleeper is woken: {}", began.elapsed() < Duration::from_secs(5));

    let mut short = tool(&["exit", "3"]).spawn().expect("a process");
    let status = loop {
        match short.try_wait().expect("an answer") {
            Some(status) => break status,
            None => thread::sleep(Duration::from_millis(1)),
        }
    };
    println!("found ended: {status}");

    let missing = Command::new("no-such-program").spawn();
    println!("missing: {:?}", missing.map(drop).map_err(|error| error.kind()));
    println!("missing: {:?}", Command::new("./no/such/program").spawn().map(drop).map_err(|error| error.kind()));
}
