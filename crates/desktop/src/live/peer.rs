//! Whose program is at the other end of a connection from this computer. Its other users must not use a desktop that has somebody's
//! folders.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The user whose programs reach everything anyway.
const ROOT: u32 = 0;

/// Whether a connection from this computer is one of this user's. The kernel lists connections with their users; where it does not, nobody
/// is refused.
pub(crate) fn is_own(peer: SocketAddr) -> bool {
    let tables: Vec<String> =
        ["/proc/net/tcp", "/proc/net/tcp6"].iter().filter_map(|path| std::fs::read_to_string(path).ok()).collect();
    let own = rustix::process::geteuid().as_raw();
    tables.is_empty()
        || tables.iter().find_map(|table| user(table, peer)).is_some_and(|user| [own, ROOT].contains(&user))
}

/// The user of the connection that has this address at its own end.
fn user(table: &str, address: SocketAddr) -> Option<u32> {
    table.lines().skip(1).find_map(|line| {
        let mut words = line.split_whitespace();
        let local = words.nth(1)?;
        let user = words.nth(5)?;
        if parse(local)? == (address.ip().to_canonical(), address.port()) { user.parse().ok() } else { None }
    })
}

/// `0100007F:1F90` is 127.0.0.1:8080: words in the byte order of the processor.
fn parse(text: &str) -> Option<(IpAddr, u16)> {
    let (ip, port) = text.split_once(':')?;
    let word = |at: usize| u32::from_str_radix(ip.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    let ip: IpAddr = match ip.len() {
        8 => Ipv4Addr::from(word(0)?).into(),
        _ => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            Ipv6Addr::from(<[u8; 16]>::try_from(words.concat()).ok()?).to_canonical()
        }
    };
    Some((ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
        0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0\n   \
        1: 0100007F:B2C4 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 2 1 0\n";

    #[test]
    #[cfg(target_endian = "little")]
    fn the_user_of_a_connection_is_found() {
        assert_eq!(user(TABLE, "127.0.0.1:45764".parse().unwrap()), Some(1001));
        assert_eq!(user(TABLE, "[::ffff:127.0.0.1]:45764".parse().unwrap()), Some(1001));
        assert_eq!(user(TABLE, "127.0.0.1:45765".parse().unwrap()), None);
        let six = "header\n 0: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 0:0 0:0 0 7 0 1\n";
        assert_eq!(user(six, "[::1]:80".parse().unwrap()), Some(7));
    }

    #[test]
    fn our_own_connection_is_ours() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(is_own(stream.local_addr().unwrap()));
        // Nobody has this one.
        assert!(!is_own("127.0.0.9:1".parse().unwrap()));
    }
}
