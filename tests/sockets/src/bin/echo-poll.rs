//! An echo server with one thread, whose sockets never wait: `echo-poll ADDRESS CONNECTIONS`. Ends after so many connections.

use std::io::{ErrorKind, Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

struct Client {
    stream: TcpStream,
    /// Bytes that are not yet sent back.
    waiting: Vec<u8>,
    is_reading: bool,
}

/// Nothing, where the socket would have to wait.
fn unless_waiting<T>(result: Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) if error.kind() == ErrorKind::WouldBlock => None,
        Err(error) => panic!("{error}"),
    }
}

impl Client {
    /// Returns how many bytes were read and written.
    fn serve(&mut self) -> usize {
        let (mut bytes, mut moved) = ([0; 4096], 0);
        if self.is_reading
            && let Some(count) = unless_waiting(self.stream.read(&mut bytes))
        {
            self.is_reading = count > 0;
            self.waiting.extend(&bytes[..count]);
            moved += count;
        }
        if !self.waiting.is_empty()
            && let Some(count) = unless_waiting(self.stream.write(&self.waiting))
        {
            self.waiting.drain(..count);
            moved += count;
        }
        moved
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let connections: usize = arguments[2].parse().expect("a number of connections");
    let listener = TcpListener::bind(&arguments[1]).expect("a listener");
    listener.set_nonblocking(true).expect("a listener that does not wait");
    println!("listening on {}", listener.local_addr().expect("its address"));
    let (mut clients, mut accepted, mut moved): (Vec<Client>, _, _) = (Vec::new(), 0, 0);
    while accepted < connections || !clients.is_empty() {
        let mut is_idle = true;
        while let Some((stream, _)) = unless_waiting(listener.accept()) {
            stream.set_nonblocking(true).expect("a stream that does not wait");
            clients.push(Client { stream, waiting: Vec::new(), is_reading: true });
            accepted += 1;
            is_idle = false;
        }
        for client in &mut clients {
            let count = client.serve();
            moved += count;
            is_idle &= count == 0;
        }
        clients.retain(|client| client.is_reading || !client.waiting.is_empty());
        if is_idle {
            thread::sleep(Duration::from_millis(1));
        }
    }
    println!("{accepted} connections, {} bytes", moved / 2);
}
