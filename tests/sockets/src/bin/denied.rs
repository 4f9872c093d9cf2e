//! Tries to reach the network, and prints which error it gets: `denied WAY TARGET...`. The way `child` has the program `denied` do the
//! rest of the arguments.

use std::io::Result;
use std::net::{Ipv4Addr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::process::Command;
use std::time::Duration;

/// Sends a datagram from an address of a client's.
fn send(target: &str) -> Result<()> {
    let all = if target.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" };
    UdpSocket::bind(all)?.send_to(b"x", target).map(drop)
}

fn send_connected(target: &str) -> Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(target)?;
    socket.send(b"x").map(drop)
}

fn join(group: &str) -> Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.join_multicast_v4(&group.parse().expect("a group"), &Ipv4Addr::LOCALHOST)
}

fn connect_soon(target: &str) -> Result<()> {
    let addresses = target.to_socket_addrs()?;
    let mut result = Ok(());
    for address in addresses {
        result = TcpStream::connect_timeout(&address, Duration::from_secs(5)).map(drop);
    }
    result
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (way, targets) = arguments.split_first().expect("a way");
    if way == "child" {
        let status = Command::new("denied").args(targets).status().expect("a process");
        assert!(status.success());
        return;
    }
    for target in targets {
        let result = match way.as_str() {
            "connect" => TcpStream::connect(target).map(drop),
            "connect-soon" => connect_soon(target),
            "listen" => TcpListener::bind(target).map(drop),
            "bind" => UdpSocket::bind(target).map(drop),
            "send" => send(target),
            "send-connected" => send_connected(target),
            "join" => join(target),
            "look-up" => target.to_socket_addrs().map(drop),
            other => panic!("{other} is no way"),
        };
        match result {
            Ok(()) => println!("{way} {target}: ok"),
            Err(error) => println!("{way} {target}: {:?}", error.kind()),
        }
    }
}
