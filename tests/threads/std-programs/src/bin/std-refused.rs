//! `std-refused THREADS`: what std for the target, or the sandbox, refuses, and how it says so.

use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::process::Command;
use std::{env, fs, thread};

/// The kind of an error; nothing that a host would word in its own way.
fn kind<T>(result: std::io::Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

fn main() {
    println!("available_parallelism: {:?}", kind(thread::available_parallelism()));
    println!("Command: {:?}", kind(Command::new("true").status()));
    println!("TcpStream: {:?}", kind(TcpStream::connect("127.0.0.1:80")));
    println!("TcpListener: {:?}", kind(TcpListener::bind("127.0.0.1:0")));
    println!("UdpSocket: {:?}", kind(UdpSocket::bind("127.0.0.1:0")));
    println!("a host's name: {:?}", kind(("localhost", 80).to_socket_addrs()));
    println!("pipe: {:?}", kind(std::io::pipe()));
    println!("current_exe: {:?}", kind(env::current_exe()));
    println!("File: {:?}", kind(fs::File::open("/etc/passwd")));
    println!("read_dir: {:?}", kind(fs::read_dir("/etc")));
    println!("lock: {:?}", kind(fs::File::create("file").and_then(|file| file.lock())));
}
