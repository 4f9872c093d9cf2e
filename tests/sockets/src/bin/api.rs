//! Every function of `TcpListener`, `TcpStream`, `UdpSocket` and of what they take: what it prints does not depend on ports. Needs no
//! threads: it talks to itself on the loopback addresses.

use std::fmt::Debug;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};

const LOOPBACK: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);
/// The kernel rounds times up to multiples of up to 10 ms.
const SHORT: Duration = Duration::from_millis(100);

type Part = fn() -> io::Result<()>;

fn show<T: Debug>(what: &str, result: io::Result<T>) {
    match result {
        Ok(value) => println!("{what}: {value:?}"),
        Err(error) => println!("{what}: error {:?}", error.kind()),
    }
}

/// A connection: the client's side, and the server's.
fn connection() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind(LOOPBACK)?;
    let client = TcpStream::connect(listener.local_addr()?)?;
    Ok((client, listener.accept()?.0))
}

fn addresses() -> io::Result<()> {
    let listener = TcpListener::bind(LOOPBACK)?;
    let at = listener.local_addr()?;
    println!("listener: {} {}", at.ip(), at.port() != 0);
    let client = TcpStream::connect(("127.0.0.1", at.port()))?;
    let (server, from) = listener.accept()?;
    println!("peers: {} {} {}", client.peer_addr()? == at, server.local_addr()? == at, from == client.local_addr()?);
    println!("peer of the server: {}", server.peer_addr()? == client.local_addr()?);
    let by_name = TcpStream::connect(format!("localhost:{}", at.port()))?;
    println!("by name: {}", by_name.peer_addr()?.port() == at.port());
    let several: [SocketAddr; 2] = [closed_port()?, at];
    println!("the second address: {}", TcpStream::connect(&several[..])?.peer_addr()? == at);
    show("no address", TcpStream::connect(&[][..] as &[SocketAddr]).map(drop));
    show("taken", TcpListener::bind(at).map(drop));
    show("not this machine's", TcpListener::bind("192.0.2.1:0").map(drop));
    let shown = format!("{client:?}");
    println!("shown: {}", shown.starts_with("TcpStream { addr: 127.0.0.1:") && shown.contains(", peer: 127.0.0.1:"));
    println!("shown: {}", format!("{listener:?}").starts_with("TcpListener { addr: 127.0.0.1:"));
    let mut found: Vec<IpAddr> = "localhost:80".to_socket_addrs()?.map(|address| address.ip()).collect();
    found.retain(IpAddr::is_ipv4);
    println!("localhost: {}", found.contains(&Ipv4Addr::LOCALHOST.into()));
    for text in ["127.0.0.1:80", "[::1]:80", "127.0.0.1", "localhost:", "localhost:99999"] {
        show(text, text.to_socket_addrs().map(Vec::from_iter));
    }
    Ok(())
}

/// An address that nobody listens at.
fn closed_port() -> io::Result<SocketAddr> {
    TcpListener::bind(LOOPBACK)?.local_addr()
}

fn connecting() -> io::Result<()> {
    let closed = closed_port()?;
    show("refused", TcpStream::connect(closed).map(drop));
    show("refused in time", TcpStream::connect_timeout(&closed, Duration::from_secs(10)).map(drop));
    let listener = TcpListener::bind(LOOPBACK)?;
    let at = listener.local_addr()?;
    show("in time", TcpStream::connect_timeout(&at, Duration::from_secs(10)).map(drop));
    show("no time", TcpStream::connect_timeout(&at, Duration::ZERO).map(drop));
    show("port 0", TcpStream::connect(LOOPBACK).map(drop));
    Ok(())
}

fn reading_and_writing() -> io::Result<()> {
    let (mut client, mut server) = connection()?;
    client.write_all(b"hello, server")?;
    let mut bytes = [0; 5];
    show("peeked", server.peek(&mut bytes));
    show("peeked again", server.peek(&mut bytes));
    server.read_exact(&mut bytes)?;
    println!("read: {:?}", str::from_utf8(&bytes));
    let (mut first, mut second) = ([0; 3], [0; 10]);
    show("vectored", server.read_vectored(&mut [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)]));
    println!("{:?} {:?}", str::from_utf8(&first), str::from_utf8(&second[..5]));
    show("vectored", server.write_vectored(&[IoSlice::new(b"two "), IoSlice::new(b"parts")]));
    // Both descriptors are of one connection.
    let mut clone = client.try_clone()?;
    show("cloned", clone.read(&mut second[..4]));
    show("the original", client.read(&mut second));
    show("flush", client.flush());
    // More than any buffer between them holds: a write takes what there is room for.
    client.set_nonblocking(true)?;
    let mut sent = 0;
    let large = vec![7; 1 << 20];
    let full = loop {
        match client.write(&large) {
            Ok(count) => sent += count,
            Err(error) => break error.kind(),
        }
    };
    println!("full: {full:?}");
    drop(client);
    drop(clone);
    let mut rest = Vec::new();
    server.read_to_end(&mut rest)?;
    println!("all arrives: {}", rest.len() == sent && rest.iter().all(|byte| *byte == 7));
    show("at the end", server.read(&mut bytes));
    Ok(())
}

fn shutting_down() -> io::Result<()> {
    let (mut client, mut server) = connection()?;
    client.write_all(b"last words")?;
    client.shutdown(Shutdown::Write)?;
    show("written after", client.write(b"more"));
    let mut text = String::new();
    show("heard", server.read_to_string(&mut text));
    server.write_all(b"answer")?;
    drop(server);
    show("answered", client.read_to_string(&mut text));
    println!("{text}");
    let (mut client, _server) = connection()?;
    client.shutdown(Shutdown::Read)?;
    show("read after", client.read(&mut [0; 10]));
    let (client, _server) = connection()?;
    show("both", client.shutdown(Shutdown::Both));
    // The other side is gone, with bytes that it has not read.
    let (mut client, server) = connection()?;
    client.write_all(b"never read")?;
    drop(server);
    show("reset", client.read(&mut [0; 10]));
    show("broken", client.write(b"x").and_then(|_| client.write(b"y")));
    Ok(())
}

fn waiting() -> io::Result<()> {
    let (mut client, mut server) = connection()?;
    show("none", client.read_timeout());
    client.set_read_timeout(Some(SHORT))?;
    client.set_write_timeout(Some(SHORT * 2))?;
    println!("{:?} {:?}", client.read_timeout()?, client.write_timeout()?);
    show("of a clone", client.try_clone()?.read_timeout());
    let began = Instant::now();
    show("in vain", client.read(&mut [0; 10]));
    show("peeked in vain", client.peek(&mut [0; 10]));
    println!("waited: {}", began.elapsed() >= SHORT * 2 && began.elapsed() < Duration::from_secs(20));
    show("no time", client.set_read_timeout(Some(Duration::ZERO)));
    let large = vec![0; 1 << 20];
    let error = loop {
        if let Err(error) = client.write(&large) {
            break error;
        }
    };
    println!("written in vain: {:?}", error.kind());
    client.set_read_timeout(None)?;
    show("none", client.read_timeout());

    server.set_nonblocking(true)?;
    let (_other, mut empty) = connection()?;
    empty.set_nonblocking(true)?;
    show("not waiting", empty.read(&mut [0; 10]));
    show("not waiting, but there is something", server.read(&mut [0; 10]));
    let listener = TcpListener::bind(LOOPBACK)?;
    listener.set_nonblocking(true)?;
    show("nobody", listener.accept().map(drop));
    show("nobody", listener.incoming().next().expect("an endless iterator").map(drop));
    let _client = TcpStream::connect(listener.local_addr()?)?;
    show("somebody", listener.accept().map(drop));
    Ok(())
}

fn options() -> io::Result<()> {
    let (client, server) = connection()?;
    show("nodelay", client.nodelay());
    client.set_nodelay(true)?;
    show("nodelay", client.nodelay());
    show("nodelay of the other", server.nodelay());
    client.set_ttl(42)?;
    show("ttl", client.ttl());
    show("ttl", client.set_ttl(1000));
    show("error", client.take_error().map(|error| error.is_some()));
    let listener = TcpListener::bind(LOOPBACK)?;
    listener.set_ttl(7)?;
    show("ttl", listener.ttl());
    show("error", listener.take_error().map(|error| error.is_some()));
    let clone = listener.try_clone()?;
    drop(listener);
    let mut client = TcpStream::connect(clone.local_addr()?)?;
    let mut accepted = clone.incoming().next().expect("an endless iterator")?;
    client.write_all(b"x")?;
    show("by a clone", accepted.read(&mut [0; 10]));
    Ok(())
}

fn datagrams() -> io::Result<()> {
    let (one, two) = (UdpSocket::bind(LOOPBACK)?, UdpSocket::bind(LOOPBACK)?);
    let (at, from) = (two.local_addr()?, one.local_addr()?);
    let mut bytes = [0; 10];
    show("sent", one.send_to(b"hello", at));
    show("peeked", two.peek_from(&mut bytes).map(|(count, peer)| (count, peer == from)));
    show("a part", two.recv_from(&mut bytes[..2]).map(|(count, peer)| (count, peer == from)));
    show("empty", one.send_to(b"", at));
    show("empty", two.recv_from(&mut bytes).map(|(count, peer)| (count, peer == from)));
    show("without a peer", one.send(b"x"));
    show("peer", one.peer_addr().map(|_| ()));
    one.connect(at)?;
    show("peer", one.peer_addr().map(|peer| peer == at));
    show("sent", one.send(b"again"));
    show("peeked", two.peek(&mut bytes));
    show("received", two.recv(&mut bytes));
    two.set_read_timeout(Some(SHORT))?;
    two.set_write_timeout(Some(SHORT))?;
    println!("{:?} {:?}", two.read_timeout()?, two.write_timeout()?);
    show("in vain", two.recv_from(&mut bytes).map(drop));
    two.set_nonblocking(true)?;
    show("not waiting", two.try_clone()?.recv(&mut bytes));
    show("too long", one.send(&[0; 70_000]));
    two.set_ttl(9)?;
    show("ttl", two.ttl());
    show("broadcast", two.broadcast());
    two.set_broadcast(true)?;
    show("broadcast", two.broadcast());
    two.set_multicast_loop_v4(false)?;
    show("multicast", two.multicast_loop_v4());
    two.set_multicast_ttl_v4(3)?;
    show("multicast", two.multicast_ttl_v4());
    show("join", two.join_multicast_v4(&Ipv4Addr::new(239, 1, 2, 3), &Ipv4Addr::LOCALHOST));
    show("leave", two.leave_multicast_v4(&Ipv4Addr::new(239, 1, 2, 3), &Ipv4Addr::LOCALHOST));
    show("join no group", two.join_multicast_v4(&Ipv4Addr::LOCALHOST, &Ipv4Addr::LOCALHOST));
    // What was sent to nobody is an error of the next call.
    let closed = UdpSocket::bind(LOOPBACK)?.local_addr()?;
    one.connect(closed)?;
    one.set_read_timeout(Some(Duration::from_secs(10)))?;
    show("to nobody", one.send(b"x"));
    show("refused", one.recv(&mut bytes));
    one.send(b"x")?;
    show("error", one.take_error().map(|error| error.map(|error| error.kind())));
    println!("shown: {}", format!("{two:?}").starts_with("UdpSocket { addr: 127.0.0.1:"));
    Ok(())
}

/// Where there is no IPv6, all of it fails in the same way.
fn version_6() -> io::Result<()> {
    let listener = TcpListener::bind((Ipv6Addr::LOCALHOST, 0));
    show("listener", listener.as_ref().map(drop).map_err(|error| error.kind().into()));
    if let Ok(listener) = listener {
        let client = TcpStream::connect(listener.local_addr()?)?;
        let (server, from) = listener.accept()?;
        println!("{} {}", client.peer_addr()?.ip(), from == client.local_addr()? && from == server.peer_addr()?);
    }
    let mapped = TcpListener::bind((Ipv4Addr::LOCALHOST.to_ipv6_mapped(), 0));
    show(
        "mapped",
        mapped.and_then(|mapped| TcpStream::connect((Ipv4Addr::LOCALHOST, mapped.local_addr()?.port()))).map(drop),
    );
    let socket = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0));
    show("socket", socket.as_ref().map(drop).map_err(|error| error.kind().into()));
    if let Ok(socket) = socket {
        show("multicast", socket.set_multicast_loop_v6(false).and_then(|()| socket.multicast_loop_v6()));
        let group = Ipv6Addr::new(0xff01, 0, 0, 0, 0, 0, 1, 2);
        show("join", socket.join_multicast_v6(&group, 1));
        show("leave", socket.leave_multicast_v6(&group, 1));
        show("join no group", socket.join_multicast_v6(&Ipv6Addr::LOCALHOST, 1));
    }
    Ok(())
}

fn main() {
    let parts: [(&str, Part); 8] = [
        ("addresses", addresses),
        ("connecting", connecting),
        ("reading and writing", reading_and_writing),
        ("shutting down", shutting_down),
        ("waiting", waiting),
        ("options", options),
        ("datagrams", datagrams),
        ("version 6", version_6),
    ];
    for (name, part) in parts {
        println!("{name}");
        part().unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}
