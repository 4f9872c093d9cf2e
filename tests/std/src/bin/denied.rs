//! What a program cannot do that is given nothing: no folder, no variable, no network, no program.

use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::process::Command;
use std::{env, fs};

fn kind<T>(result: std::io::Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

fn main() {
    println!("variables: {:?}", env::vars().map(|(name, _)| name).collect::<Vec<_>>());
    println!("set_current_dir: {:?}", kind(env::set_current_dir("/tmp")));
    println!("open: {:?}", kind(fs::File::open("/etc/passwd")));
    println!("create: {:?}", kind(fs::write("file", "text")));
    println!("read_dir: {:?}", kind(fs::read_dir("/")));
    println!("metadata: {:?}", kind(fs::metadata("/etc/passwd")));
    println!("canonicalize: {:?}", kind(fs::canonicalize("/etc/passwd")));
    println!("TcpStream: {:?}", kind(TcpStream::connect("127.0.0.1:80")));
    println!("TcpListener: {:?}", kind(TcpListener::bind("127.0.0.1:0")));
    println!("UdpSocket: {:?}", kind(UdpSocket::bind("127.0.0.1:0")));
    println!("a host's name: {:?}", kind(("localhost", 80).to_socket_addrs()));
    println!("Command: {:?}", kind(Command::new("true").status()));
    println!("Command: {:?}", kind(Command::new("/bin/true").status()));
}
