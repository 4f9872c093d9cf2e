//! Starts itself; then what `std::process` and `std::io::pipe` say of it.

use std::env;
use std::io::{Read, Write, copy, pipe, stdin, stdout};
use std::net::TcpStream;
use std::process::{Command, Stdio};

fn main() {
    match env::args().nth(1).as_deref() {
        Some("exit") => std::process::exit(3),
        Some("trap") => std::process::abort(),
        Some("copy") => _ = copy(&mut stdin(), &mut stdout()).unwrap(),
        Some("wait") => loop {
            std::thread::sleep(std::time::Duration::from_millis(10));
        },
        Some("both") => {
            for _ in 0..2000 {
                print!("{}", "out ".repeat(20));
                eprint!("{}", "err ".repeat(20));
            }
        }
        _ => parent(),
    }
}

fn itself(what: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap_or("/proc/self/exe".into()));
    command.arg(what);
    command
}

fn parent() {
    println!("{:?}", env::temp_dir());
    println!("{:?}", TcpStream::connect("127.0.0.1:1").map(drop).map_err(|error| error.kind()));
    println!("{:?}", pipe().map(drop).map_err(|error| error.kind()));
    println!("{:?}", Command::new("unknown").spawn().map(drop).map_err(|error| error.kind()));
    let Ok(status) = itself("exit").status() else {
        println!("no processes");
        return;
    };
    println!("{status}, {:?}", status.code());
    let status = itself("trap").stderr(Stdio::null()).status().unwrap();
    println!("{status}, {:?}", status.code());
    let both = itself("both").output().unwrap();
    println!("{}, {}, {}", both.status, both.stdout.len(), both.stderr.len());
    let mut waits = itself("wait").spawn().unwrap();
    println!("{:?}", waits.try_wait().unwrap());
    waits.kill().unwrap();
    println!("{}", waits.wait().unwrap());
    let (mut reader, writer) = pipe().unwrap();
    let mut copies = itself("copy").stdin(Stdio::piped()).stdout(writer).spawn().unwrap();
    copies.stdin.take().unwrap().write_all(b"through a child").unwrap();
    copies.wait().unwrap();
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    println!("{text}");
}
