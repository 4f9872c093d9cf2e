//! Sends datagrams of all lengths to a server that sends them back: `udp-client SERVER COUNT`.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::Duration;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let count: usize = arguments[2].parse().expect("a number of datagrams");

    // Not connected.
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    let sent = socket.send_to(b"first", &arguments[1]).expect("a datagram");
    let mut bytes = [0; 65536];
    let (peeked, from) = socket.peek_from(&mut bytes[..3]).expect("an answer");
    let (length, also_from) = socket.recv_from(&mut bytes).expect("an answer");
    println!("{sent} sent, {peeked} peeked, {:?}", str::from_utf8(&bytes[..length]));
    println!("from the server: {} {}", from == also_from, from.to_string() == arguments[1]);

    // Connected.
    socket.connect(&arguments[1]).expect("a peer");
    println!("connected: {}", socket.peer_addr().expect("a peer").to_string() == arguments[1]);
    let mut total = 0;
    for at in 1..count {
        let out: Vec<u8> = (0..at * 65000 / count).map(|byte| (byte * at) as u8).collect();
        assert_eq!(socket.send(&out).expect("a datagram"), out.len());
        let length = socket.recv(&mut bytes).expect("an answer");
        assert_eq!(&bytes[..length], out, "datagram {at}");
        total += length;
    }
    println!("{total} bytes");

    // Too long, and nothing there.
    println!("too long: {}", socket.send(&[0; 65536]).is_err());
    socket.set_nonblocking(true).expect("a socket that does not wait");
    println!("nothing there: {:?}", socket.recv(&mut bytes).map_err(|error| error.kind() == ErrorKind::WouldBlock));
}
