//! A network that fails, between a client and a server that closes a connection after each answer.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub(super) enum Faults {
    /// Every other answer breaks off, or never begins, although the server did what was asked.
    Broken,
    /// Every other request is turned away.
    Busy,
    /// Answers come in small pieces, with pauses.
    Slow,
}

pub(super) struct Proxy {
    address: SocketAddr,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    requests: AtomicUsize,
    faults: AtomicUsize,
}

impl Proxy {
    pub(super) fn start(server: SocketAddr, faults: Faults) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, counts) = (listener.local_addr().unwrap(), Arc::new(Counts::default()));
        let counted = counts.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let counts = counted.clone();
                thread::spawn(move || {
                    let request = counts.requests.fetch_add(1, Ordering::SeqCst);
                    let failed = forward(client, server, faults, request % 2 == 1);
                    counts.faults.fetch_add(usize::from(failed), Ordering::SeqCst);
                });
            }
        });
        Self { address, counts }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn requests(&self) -> usize {
        self.counts.requests.load(Ordering::SeqCst)
    }

    pub(super) fn faults(&self) -> usize {
        self.counts.faults.load(Ordering::SeqCst)
    }
}

/// Whether a request begins an upload in parts. Without the answer, nobody knows the upload's name: it would stay there.
fn begins_upload(client: &TcpStream) -> bool {
    let mut head = [0; 1 << 10];
    let count = client.peek(&mut head).unwrap_or(0);
    let line = String::from_utf8_lossy(&head[..count]).lines().next().unwrap_or_default().to_owned();
    line.starts_with("POST ") && line.contains("?uploads") && !line.contains("uploadId=")
}

/// Returns whether something went wrong on purpose.
fn forward(mut client: TcpStream, server: SocketAddr, faults: Faults, fails: bool) -> bool {
    if fails && matches!(faults, Faults::Busy) {
        let _ = client.read(&mut [0; 1 << 10]);
        let _ = client.write_all(b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        let _ = client.shutdown(Shutdown::Write);
        // What the client still sends is taken, or it would not see the answer.
        let _ = std::io::copy(&mut client, &mut std::io::sink());
        return true;
    }
    let fails = fails && !begins_upload(&client);
    let mut upstream = TcpStream::connect(server).unwrap();
    let (mut from, mut to) = (client.try_clone().unwrap(), upstream.try_clone().unwrap());
    thread::spawn(move || std::io::copy(&mut from, &mut to));
    // Some answers break off at once, others in the middle.
    let mut left = match faults {
        Faults::Broken if fails => fastrand::usize(..3) * fastrand::usize(..300_000),
        _ => usize::MAX,
    };
    let mut buffer = vec![0; 64 << 10];
    let mut passed = false;
    while let Ok(count) = upstream.read(&mut buffer) {
        let now = count.min(left);
        if count == 0 || client.write_all(&buffer[..now]).is_err() {
            break;
        }
        left -= now;
        if left == 0 {
            let _ = upstream.shutdown(Shutdown::Both);
            let _ = client.shutdown(Shutdown::Both);
            return true;
        }
        if matches!(faults, Faults::Slow) {
            thread::sleep(Duration::from_millis(3));
            passed = true;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    passed
}
