//! `std::net`: addresses, and sockets that talk to others of this program on the loopback device.

use std::io::{Read, Write};
use std::net::{
    Incoming, IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, SocketAddrV4, SocketAddrV6, TcpListener, TcpStream,
    ToSocketAddrs, UdpSocket,
};
use std::time::Duration;
use uses_std::{done, kind, show};

fn main() {
    ipv4();
    ipv6();
    socket_addresses();
    listeners();
    streams();
    stream_options();
    datagrams();
    datagram_options();
    groups();
}

fn ipv4() {
    let ip = Ipv4Addr::new(192, 168, 3, 4);
    show!(ip, ip.octets(), ip.to_bits(), Ipv4Addr::from_bits(1), Ipv4Addr::from_octets([1, 2, 3, 4]), Ipv4Addr::BITS);
    show!(ip.is_private(), ip.is_loopback(), ip.is_unspecified(), ip.is_link_local(), ip.is_multicast());
    show!(ip.is_broadcast(), ip.is_documentation(), ip.to_ipv6_compatible(), ip.to_ipv6_mapped());
    show!(
        Ipv4Addr::LOCALHOST.is_loopback(),
        Ipv4Addr::UNSPECIFIED.is_unspecified(),
        Ipv4Addr::BROADCAST.is_broadcast()
    );
    show!("10.1.2.3".parse::<Ipv4Addr>(), "10.1.2".parse::<Ipv4Addr>());
}

fn ipv6() {
    let ip = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0xa, 1);
    show!(ip, ip.segments(), ip.octets(), ip.to_bits(), Ipv6Addr::from_bits(1), Ipv6Addr::BITS);
    show!(Ipv6Addr::from_segments(ip.segments()) == ip, Ipv6Addr::from_octets(ip.octets()) == ip);
    show!(ip.is_unspecified(), ip.is_loopback(), ip.is_unique_local(), ip.is_unicast_link_local(), ip.is_multicast());
    show!(Ipv4Addr::LOCALHOST.to_ipv6_mapped().to_ipv4_mapped(), ip.to_ipv4(), ip.to_canonical());
    show!(Ipv6Addr::LOCALHOST.to_ipv4(), Ipv6Addr::UNSPECIFIED.is_unspecified(), "::x".parse::<Ipv6Addr>());
    let either = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(ip)];
    show!(either.map(|ip| (ip.is_unspecified(), ip.is_loopback(), ip.is_multicast(), ip.is_ipv4(), ip.is_ipv6())));
    show!(IpAddr::V6(Ipv4Addr::LOCALHOST.to_ipv6_mapped()).to_canonical());
}

fn socket_addresses() {
    let mut four = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 80);
    four.set_ip(Ipv4Addr::new(1, 2, 3, 4));
    four.set_port(81);
    show!(four, four.ip(), four.port());
    let mut six = SocketAddrV6::new(Ipv6Addr::LOCALHOST, 80, 1, 2);
    six.set_ip(Ipv6Addr::UNSPECIFIED);
    six.set_port(82);
    six.set_flowinfo(3);
    six.set_scope_id(4);
    show!(six, six.ip(), six.port(), six.flowinfo(), six.scope_id());
    let mut either = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 80);
    either.set_ip(IpAddr::V6(Ipv6Addr::LOCALHOST));
    either.set_port(83);
    show!(either, either.ip(), either.port(), either.is_ipv4(), either.is_ipv6());
    show!("127.0.0.1:80".to_socket_addrs().map(Iterator::collect::<Vec<_>>).ok());
    show!("[::1]:x".parse::<SocketAddr>().map_err(|error: std::net::AddrParseError| error.to_string()));
    show!(kind(("localhost", 80).to_socket_addrs().map(|mut found| found.any(|it| it.to_string() == "127.0.0.1:80"))));
    show!(done("no port".to_socket_addrs()));
}

const ANY_PORT: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);
// Linux rounds to multiples of 4 ms.
const PAUSE: Option<Duration> = Some(Duration::from_millis(40));

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(ANY_PORT).expect("a listener");
    let one = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
    (one, listener.accept().expect("a connection").0)
}

#[allow(deprecated)]
fn listeners() {
    let listener = TcpListener::bind(ANY_PORT).expect("a listener");
    let address = listener.local_addr().expect("an address");
    show!(address.ip(), address.port() > 0, kind(listener.set_ttl(30)), kind(listener.ttl()));
    show!(kind(listener.take_error().map(|error| error.is_none())), kind(listener.set_nonblocking(true)));
    show!(done(listener.accept()), kind(listener.set_nonblocking(false)));
    let other = listener.try_clone().expect("the same listener");
    let connection = TcpStream::connect(address).expect("a connection");
    let accepted = other.accept().map(|(stream, from)| (stream.peer_addr().ok(), from));
    show!(kind(accepted) == kind(connection.local_addr().map(|from| (Some(from), from))));
    let _waiting = TcpStream::connect(address);
    let mut incoming: Incoming = listener.incoming();
    show!(incoming.next().map(|stream| stream.is_ok()), done(TcpListener::bind(address)));
    drop((listener, other));
    show!(done(TcpStream::connect(address)));
    let six = TcpListener::bind((Ipv6Addr::LOCALHOST, 0));
    // A machine may lack IPv6.
    _ = six.map(|six| (six.set_only_v6(true), six.only_v6()));
}

fn streams() {
    let (mut one, mut other) = pair();
    show!(one.peer_addr().ok() == other.local_addr().ok(), one.local_addr().ok() == other.peer_addr().ok());
    let mut bytes = [0; 4];
    show!(kind(one.write(b"hello")), kind(other.peek(&mut bytes)), bytes, kind(other.read(&mut bytes)), bytes);
    show!(kind(other.read(&mut bytes)), bytes[0], kind(other.set_nonblocking(true)), kind(other.read(&mut bytes)));
    show!(kind(other.set_nonblocking(false)), kind(other.set_read_timeout(PAUSE)), kind(other.read_timeout()));
    show!(other.read(&mut bytes).is_err(), kind(other.set_read_timeout(None)), kind(other.read_timeout()));
    show!(kind(other.set_read_timeout(Some(Duration::ZERO))));
    let mut again = one.try_clone().expect("the same stream");
    show!(kind(again.write(b"more")), kind(one.shutdown(Shutdown::Write)), again.write(b"x").is_err());
    let mut text = String::new();
    show!(kind(other.read_to_string(&mut text)), text, kind(other.write(b"answer")));
    drop(other);
    show!(kind(one.read_to_string(&mut text)), text);
    // It is shut already, which some systems call an error.
    _ = one.shutdown(Shutdown::Both);
    let listener = TcpListener::bind(ANY_PORT).expect("a listener");
    let address = listener.local_addr().expect("an address");
    show!(done(TcpStream::connect_timeout(&address, Duration::from_secs(5))));
}

fn stream_options() {
    let (one, _other) = pair();
    show!(kind(one.set_nodelay(true)), kind(one.nodelay()), kind(one.set_nodelay(false)), kind(one.nodelay()));
    show!(kind(one.set_ttl(40)), kind(one.ttl()), kind(one.take_error().map(|error| error.is_none())));
    show!(kind(one.set_write_timeout(PAUSE)), kind(one.write_timeout()), kind(one.set_write_timeout(None)));
}

fn datagrams() {
    let (one, other) = (UdpSocket::bind(ANY_PORT).expect("a socket"), UdpSocket::bind(ANY_PORT).expect("a socket"));
    let (from, to) = (one.local_addr().expect("an address"), other.local_addr().expect("an address"));
    let mut bytes = [0; 8];
    show!(kind(one.send_to(b"first", to)), kind(other.peek_from(&mut bytes).map(|(count, it)| (count, it == from))));
    show!(kind(other.recv_from(&mut bytes).map(|(count, it)| (count, it == from))), bytes);
    show!(one.peer_addr().is_err(), kind(one.connect(to)), one.peer_addr().ok() == Some(to));
    show!(kind(one.send(b"second")), kind(other.peek(&mut bytes)), kind(other.recv(&mut bytes)), bytes);
    let again = one.try_clone().expect("the same socket");
    show!(kind(again.send(b"much too long")), kind(other.recv(&mut bytes)), bytes);
    show!(kind(other.set_nonblocking(true)), kind(other.recv(&mut bytes)), kind(other.set_nonblocking(false)));
    show!(kind(other.set_read_timeout(PAUSE)), kind(other.read_timeout()), other.recv(&mut bytes).is_err());
    show!(kind(other.set_write_timeout(PAUSE)), kind(other.write_timeout()));
}

fn datagram_options() {
    let socket = UdpSocket::bind(ANY_PORT).expect("a socket");
    show!(kind(socket.broadcast()), kind(socket.set_broadcast(true)), kind(socket.broadcast()));
    show!(kind(socket.set_ttl(50)), kind(socket.ttl()), kind(socket.take_error().map(|error| error.is_none())));
    show!(
        kind(socket.multicast_loop_v4()),
        kind(socket.set_multicast_loop_v4(false)),
        kind(socket.multicast_loop_v4())
    );
    show!(kind(socket.set_multicast_ttl_v4(3)), kind(socket.multicast_ttl_v4()));
}

/// Whether a group can be joined depends on the machine's interfaces, so both outcomes are right.
fn groups() {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a socket");
    let group = Ipv4Addr::new(224, 0, 0, 251);
    let joined = socket.join_multicast_v4(&group, &Ipv4Addr::LOCALHOST).is_ok();
    show!(joined == socket.leave_multicast_v4(&group, &Ipv4Addr::LOCALHOST).is_ok());
    // A machine may lack IPv6.
    let Ok(socket) = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)) else { return };
    let _ = (socket.set_multicast_loop_v6(false), socket.multicast_loop_v6());
    let group = Ipv6Addr::new(0xff01, 0, 0, 0, 0, 0, 0, 0xfb);
    let joined = socket.join_multicast_v6(&group, 1).is_ok();
    show!(joined == socket.leave_multicast_v6(&group, 1).is_ok());
}
