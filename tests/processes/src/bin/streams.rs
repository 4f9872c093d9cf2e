//! Standard streams of children: piped, null, from files, inherited; both outputs at once; a pipe that breaks.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::process::{Command, Stdio};

fn tool(args: &[&str]) -> Command {
    let mut command = Command::new("tool");
    command.args(args);
    command
}

fn main() {
    // Inherited: in order with what the parent prints.
    println!("before");
    tool(&["echo", "inherited"]).status().expect("a process");
    println!("after");

    // More than a pipe holds, on both.
    let output = tool(&["both", "20000"]).output().expect("a process");
    println!("{} bytes, {} bytes of errors", output.stdout.len(), output.stderr.len());
    assert!(output.stdout.ends_with(b"out 19999\n") && output.stderr.ends_with(b"err 19999\n"));

    // There and back.
    let mut child = tool(&["upper"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a process");
    let mut stdin = child.stdin.take().expect("a pipe");
    let mut stdout = child.stdout.take().expect("a pipe");
    stdin.write_all(b"hello\n").expect("the child reads");
    let mut first = [0; 6];
    stdout.read_exact(&mut first).expect("the child answers");
    println!("{:?}", String::from_utf8_lossy(&first));
    stdin.write_all(b"good bye\n").expect("the child reads");
    drop(stdin);
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).expect("the child's rest");
    println!("{rest:?} {}", child.wait().expect("an end"));

    // The child reads one line, and is gone.
    let mut child = tool(&["first-line"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a process");
    let mut stdin = child.stdin.take().expect("a pipe");
    let broken = loop {
        if let Err(error) = stdin.write_all(&[b'x', b'\n'].repeat(5000)) {
            break error;
        }
    };
    println!("{:?}", broken.kind());
    println!("{:?}", child.wait_with_output().map(|output| String::from_utf8_lossy(&output.stdout).into_owned()));

    // Files and nothing.
    fs::write("input.txt", "one\ntwo\n").expect("a file");
    let input = File::open("input.txt").expect("a file");
    let output = File::create("output.txt").expect("a file");
    let status = tool(&["upper"]).stdin(input).stdout(output).status().expect("a process");
    println!("{status} {:?}", fs::read_to_string("output.txt"));
    let output = File::options().append(true).open("output.txt").expect("a file");
    tool(&["echo", "three"]).stdout(output).status().expect("a process");
    println!("{:?}", fs::read_to_string("output.txt"));
    let status = tool(&["cat"]).stdin(Stdio::null()).stdout(Stdio::null()).status().expect("a process");
    println!("{status}");

    // A pipe of one's own.
    let (mut reader, writer) = io::pipe().expect("a pipe");
    let mut command = tool(&["both", "2"]);
    command.stdout(writer.try_clone().expect("another end")).stderr(writer);
    command.status().expect("a process");
    drop(command);
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("all of it");
    println!("{text:?}");

    fs::remove_file("input.txt").expect("it is there");
    fs::remove_file("output.txt").expect("it is there");
}
