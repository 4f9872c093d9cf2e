//! Sends datagrams back: `udp-echo ADDRESS COUNT`. Ends after so many.

use std::net::UdpSocket;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let count: usize = arguments[2].parse().expect("a number of datagrams");
    let socket = UdpSocket::bind(&arguments[1]).expect("a socket");
    println!("listening on {}", socket.local_addr().expect("its address"));
    let (mut bytes, mut total) = ([0; 65536], 0);
    for _ in 0..count {
        let (length, peer) = socket.recv_from(&mut bytes).expect("a datagram");
        let sent = socket.send_to(&bytes[..length], peer).expect("an answer");
        assert_eq!(sent, length);
        total += sent;
    }
    println!("{count} datagrams, {total} bytes");
}
