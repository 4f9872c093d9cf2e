//! An echo server with a thread for each connection: `echo-threads ADDRESS CONNECTIONS`. Ends after so many connections.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

fn echo(mut stream: TcpStream) -> io::Result<u64> {
    let (mut bytes, mut total) = ([0; 4096], 0);
    loop {
        match stream.read(&mut bytes)? {
            0 => return Ok(total),
            count => {
                stream.write_all(&bytes[..count])?;
                total += count as u64;
            }
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let connections: usize = arguments[2].parse().expect("a number of connections");
    let listener = TcpListener::bind(&arguments[1]).expect("a listener");
    println!("listening on {}", listener.local_addr().expect("its address"));
    let (mut threads, mut total) = (Vec::new(), 0);
    for stream in listener.incoming().take(connections) {
        let stream = stream.expect("a connection");
        threads.push(thread::spawn(|| echo(stream).expect("a client that stays")));
        // Threads that are joined make room for others.
        while threads.first().is_some_and(|thread| thread.is_finished() || threads.len() >= 120) {
            total += threads.remove(0).join().expect("a thread that does not panic");
        }
    }
    total += threads.into_iter().map(|thread| thread.join().expect("a thread that does not panic")).sum::<u64>();
    println!("{connections} connections, {total} bytes");
}
