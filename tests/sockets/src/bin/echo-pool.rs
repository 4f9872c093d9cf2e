//! An echo server with a fixed number of threads, which all accept: `echo-pool ADDRESS CONNECTIONS`. Ends after so many connections.

use std::io;
use std::net::{Shutdown, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const THREADS: usize = 8;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let connections: usize = arguments[2].parse().expect("a number of connections");
    let listener = TcpListener::bind(&arguments[1]).expect("a listener");
    println!("listening on {}", listener.local_addr().expect("its address"));
    let accepted = AtomicUsize::new(0);
    let total: u64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let listener = listener.try_clone().expect("another descriptor");
                let accepted = &accepted;
                scope.spawn(move || {
                    let mut total = 0;
                    while accepted.fetch_add(1, Ordering::Relaxed) < connections {
                        let (mut stream, _) = listener.accept().expect("a connection");
                        let mut reader = stream.try_clone().expect("another descriptor");
                        total += io::copy(&mut reader, &mut stream).expect("a client that stays");
                        stream.shutdown(Shutdown::Both).ok();
                    }
                    total
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread that does not panic")).sum()
    });
    println!("{connections} connections, {total} bytes");
}
