//! Sockets that a guest opens itself, by the requests of [`gpu_run_abi::extension`].

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use crate::guest::*;
use gpu_run_abi::extension::{ADDRESS_BYTES, DESCRIPTOR, ask, fetch, offset, option};
use gpu_run_abi::hostcall::Call;
use gpu_run_wasi::stdio::Null;
use gpu_run_wasi::{Errno, Reply};

const ALL: &[&str] = &["connect=*:*", "listen=*:*"];
const FD: u64 = DESCRIPTOR as u64;

fn guest(rules: &[&str]) -> Guest {
    Guest::with(Null, |builder| {
        for rule in rules {
            builder.net(rule.parse().unwrap());
        }
    })
}

fn address(text: &str) -> Vec<u8> {
    encoded(text.parse().unwrap())
}

fn encoded(address: SocketAddr) -> Vec<u8> {
    let (family, ip, flow, scope) = match address {
        SocketAddr::V4(v4) => (4u16, [&v4.ip().octets()[..], &[0; 12]].concat(), 0, 0),
        SocketAddr::V6(v6) => (6, v6.ip().octets().to_vec(), v6.flowinfo(), v6.scope_id()),
    };
    let (flow, scope) = (u32::to_le_bytes(flow), u32::to_le_bytes(scope));
    [&family.to_le_bytes()[..], &address.port().to_le_bytes(), &ip, &flow, &scope].concat()
}

fn decoded(bytes: &[u8]) -> SocketAddr {
    let port = u16::from_le_bytes([bytes[2], bytes[3]]);
    match bytes[0] {
        4 => SocketAddr::new(<[u8; 4]>::try_from(&bytes[4..8]).unwrap().into(), port),
        6 => SocketAddr::new(<[u8; 16]>::try_from(&bytes[4..20]).unwrap().into(), port),
        other => panic!("no family {other}"),
    }
}

/// Makes a call until it is done.
fn awaited(guest: &mut Guest, call: Call, words: &[u64], input: &[u8]) -> Result<Vec<u8>, Errno> {
    let began = Instant::now();
    loop {
        match guest.try_call(call, words, input) {
            Reply::Again { .. } => assert!(began.elapsed() < Duration::from_secs(300), "nothing comes"),
            Reply::Done(Errno::Success) => return Ok(guest.out.bytes.clone()),
            Reply::Done(errno) => return Err(errno),
            Reply::Exit(_) | Reply::Refused => panic!("nobody exits"),
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl Guest {
    fn ask(&mut self, operation: u8, argument: u32, fd: u64, input: &[u8]) -> Result<u64, Errno> {
        let words = [FD, input.len() as u64, offset(operation, argument, fd as u32)];
        awaited(self, Call::fd_pwrite, &words, input).map(|out| u64::from(u32_at(&out, 0)))
    }

    fn fetch(&mut self, operation: u8, argument: u32, fd: u64, room: u64) -> Result<Vec<u8>, Errno> {
        let words = [FD, room, offset(operation, argument, fd as u32)];
        awaited(self, Call::fd_pread, &words, b"").map(|out| {
            assert_eq!(u32_at(&out, 0) as usize, out.len() - 4);
            out[4..].to_vec()
        })
    }

    fn connect(&mut self, address: &[u8], timeout: u64) -> Result<u64, Errno> {
        self.ask(ask::TCP_CONNECT, 0, 0, &[address, &timeout.to_le_bytes()].concat())
    }

    fn local(&mut self, fd: u64) -> SocketAddr {
        decoded(&self.fetch(fetch::LOCAL_ADDRESS, 0, fd, 28).unwrap())
    }

    fn look_up(&mut self, name: &str) -> Result<Vec<SocketAddr>, Errno> {
        let reply = self.ask(ask::LOOK_UP, 0, 0, &[&80u16.to_le_bytes()[..], name.as_bytes()].concat())?;
        let bytes = self.fetch(fetch::REPLY, 0, reply, 4096)?;
        assert_eq!(self.fetch(fetch::REPLY, 0, reply, 4096), Err(Errno::Noent), "a reply can be fetched once");
        Ok(bytes.chunks(ADDRESS_BYTES).map(decoded).collect())
    }

    fn set(&mut self, fd: u64, option: u32, value: u64) -> Result<u64, Errno> {
        self.ask(ask::SET_OPTION, option, fd, &value.to_le_bytes())
    }

    fn option(&mut self, fd: u64, option: u32) -> Result<u64, Errno> {
        self.fetch(fetch::OPTION, option, fd, 8).map(|bytes| u64_at(&bytes, 0))
    }
}

#[test]
fn a_guest_connects_and_both_ends_hear_each_other() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let mut guest = guest(&[&format!("connect={at}")]);
    let fd = guest.connect(&encoded(at), 0).unwrap();
    let (mut ours, from) = listener.accept().unwrap();
    assert_eq!(guest.local(fd), from);
    assert_eq!(decoded(&guest.fetch(fetch::PEER_ADDRESS, 0, fd, 28).unwrap()), at);
    assert_eq!(guest.write(fd, b"question"), Ok(8));
    let mut bytes = [0; 8];
    ours.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"question");
    ours.write_all(b"answer").unwrap();
    assert_eq!(awaited(&mut guest, Call::fd_read, &[fd, 9], b"").unwrap()[4..], *b"answer");

    // Another descriptor of the same socket; what one is told, both know.
    let other = guest.ask(ask::DUPLICATE, 0, fd, b"").unwrap();
    assert_ne!(other, fd);
    guest.call(Call::fd_fdstat_set_flags, &[other, NONBLOCK], b"").unwrap();
    assert_eq!(guest.read(fd, 1), Err(Errno::Again));
    guest.close(fd).unwrap();
    assert_eq!(guest.write(other, b"!"), Ok(1), "the socket lives as long as one of its descriptors");
    guest.close(other).unwrap();
    assert_eq!(ours.read_to_end(&mut Vec::new()).unwrap(), 1);
}

#[test]
fn a_guest_listens_and_accepts() {
    let mut guest = guest(&["listen=127.0.0.1:0"]);
    let listener = guest.ask(ask::TCP_LISTEN, 0, 0, &address("127.0.0.1:0")).unwrap();
    let mut ours = TcpStream::connect(guest.local(listener)).unwrap();
    ours.write_all(b"hello").unwrap();
    let accepted = awaited(&mut guest, Call::sock_accept, &[listener, 0], b"").unwrap();
    let fd = u64::from(u32_at(&accepted, 0));
    let peer = decoded(&guest.fetch(fetch::PEER_ADDRESS, 0, fd, 28).unwrap());
    assert_eq!(peer, ours.local_addr().unwrap());
    assert_eq!(awaited(&mut guest, Call::fd_read, &[fd, 9], b"").unwrap()[4..], *b"hello");
}

#[test]
fn datagrams_go_both_ways() {
    let ours = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = ours.local_addr().unwrap();
    let mut guest = guest(&[&format!("connect={at}"), "listen=127.0.0.1:0"]);
    let fd = guest.ask(ask::UDP_BIND, 0, 0, &address("127.0.0.1:0")).unwrap();
    assert_eq!(guest.fdstat(fd).unwrap().kind, 5);
    assert_eq!(guest.ask(ask::UDP_SEND_TO, 0, fd, &[&encoded(at)[..], b"ping"].concat()), Ok(4));
    let mut bytes = [0; 9];
    let (count, from) = ours.recv_from(&mut bytes).unwrap();
    assert_eq!((&bytes[..count], from), (&b"ping"[..], guest.local(fd)));
    ours.send_to(b"pong", from).unwrap();
    for argument in [1, 0] {
        let received = guest.fetch(fetch::RECEIVE_FROM, argument, fd, 28 + 3).unwrap();
        assert_eq!((decoded(&received), &received[28..]), (at, &b"pon"[..]), "cut to the room there is");
    }
    guest.ask(ask::UDP_CONNECT, 0, fd, &encoded(at)).unwrap();
    assert_eq!(guest.write(fd, b"again"), Ok(5));
    assert_eq!(ours.recv(&mut bytes).unwrap(), 5);
    assert_eq!(guest.fetch(fetch::RECEIVE_FROM, 0, fd, 27), Err(Errno::Inval), "no room for the address");
}

#[test]
fn a_client_hears_only_whom_it_may_send_to() {
    let (friend, stranger) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    let mut guest = guest(&[&format!("connect={}", friend.local_addr().unwrap())]);
    for bound in ["127.0.0.1:0", "0.0.0.0:9999", "[::1]:0"] {
        assert_eq!(guest.ask(ask::UDP_BIND, 0, 0, &address(bound)), Err(Errno::Acces), "{bound}");
    }
    let fd = guest.ask(ask::UDP_BIND, 0, 0, &address("0.0.0.0:0")).unwrap();
    let at = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), guest.local(fd).port());
    let mut readable = [0; 48];
    readable[8] = 1;
    readable[16] = fd as u8;
    for _ in 0..200 {
        stranger.send_to(b"stranger", at).unwrap();
    }
    let poll = guest.try_call(Call::poll_oneoff, &[48, 32], &readable);
    assert!(matches!(poll, Reply::Again { .. }), "a stranger's datagram is no reason to read: {poll:?}");
    friend.send_to(b"friend", at).unwrap();
    stranger.send_to(b"stranger", at).unwrap();
    awaited(&mut guest, Call::poll_oneoff, &[48, 32], &readable).unwrap();
    assert_eq!(awaited(&mut guest, Call::fd_read, &[fd, 99], b"").unwrap()[4..], *b"friend");
    let recv = guest.try_call(Call::sock_recv, &[fd, 99, 1], b"");
    assert!(matches!(recv, Reply::Again { .. }), "{recv:?}");
    assert_eq!(
        guest.ask(ask::UDP_SEND_TO, 0, fd, &[&encoded(stranger.local_addr().unwrap())[..], b"x"].concat()),
        Err(Errno::Acces)
    );
    assert_eq!(guest.ask(ask::UDP_CONNECT, 0, fd, &encoded(stranger.local_addr().unwrap())), Err(Errno::Acces));
}

#[test]
fn waiting_ends_when_the_guest_wants_it_to() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut guest = guest(ALL);
    let fd = guest.connect(&encoded(listener.local_addr().unwrap()), 0).unwrap();
    let wait = Duration::from_millis(30);
    for (name, value) in [(option::READ_TIMEOUT, wait), (option::WRITE_TIMEOUT, wait)] {
        guest.set(fd, name, value.as_nanos() as u64).unwrap();
        assert_eq!(guest.option(fd, name), Ok(value.as_nanos() as u64));
    }
    for (call, words) in [(Call::fd_read, &[fd, 1][..]), (Call::sock_recv, &[fd, 1, 0])] {
        for _ in 0..2 {
            let began = Instant::now();
            assert_eq!(awaited(&mut guest, call, words, b""), Err(Errno::Again));
            assert!(began.elapsed() >= wait);
        }
    }
    // Until the connection is full.
    let began = Instant::now();
    let full = loop {
        if let Err(errno) = awaited(&mut guest, Call::fd_write, &[fd, 65536], &[0; 65536]) {
            break errno;
        }
    };
    assert!(full == Errno::Again && began.elapsed() >= wait);

    let udp = guest.ask(ask::UDP_BIND, 0, 0, &address("127.0.0.1:0")).unwrap();
    guest.set(udp, option::READ_TIMEOUT, wait.as_nanos() as u64).unwrap();
    assert_eq!(guest.fetch(fetch::RECEIVE_FROM, 0, udp, 100), Err(Errno::Again));
}

/// As natively: what one thread sets is for the calls that begin later, not for those that wait.
#[test]
fn a_call_that_waits_keeps_the_timeout_and_mode_that_it_began_with() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut guest = guest(ALL);
    let fd = guest.connect(&encoded(listener.local_addr().unwrap()), 0).unwrap();
    let (mut peer, _) = listener.accept().unwrap();
    let words = [fd, 1];
    let (mut early, mut late) = (None, None);
    let read = |guest: &mut Guest, caller: &mut Option<_>| {
        guest.context.call_of(caller, Call::fd_read, &words, b"", &mut guest.out)
    };
    assert_eq!(read(&mut guest, &mut early), Reply::Again { at: None });
    guest.set(fd, option::READ_TIMEOUT, 1_000_000).unwrap();
    assert!(matches!(read(&mut guest, &mut late), Reply::Again { at: Some(_) }));
    std::thread::sleep(Duration::from_millis(2));
    assert_eq!(read(&mut guest, &mut early), Reply::Again { at: None });
    guest.set(fd, option::READ_TIMEOUT, 0).unwrap();
    assert_eq!(read(&mut guest, &mut late), Reply::Done(Errno::Again), "it was to wait for a millisecond");
    guest.call(Call::fd_fdstat_set_flags, &[fd, NONBLOCK], b"").unwrap();
    assert_eq!(read(&mut guest, &mut late), Reply::Done(Errno::Again));
    assert_eq!(read(&mut guest, &mut early), Reply::Again { at: None });
    peer.write_all(b"a").unwrap();
    while let Reply::Again { .. } = read(&mut guest, &mut early) {}
    assert_eq!(&guest.out.bytes[4..], b"a");
}

/// A listener whose queue is full does not answer.
#[test]
fn connecting_ends_when_the_guest_wants_it_to() {
    use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
    let fd = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&fd, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    listen(&fd, 0).unwrap();
    let at: SocketAddr = getsockname(&fd).unwrap().try_into().unwrap();
    let mut guest = guest(ALL);
    let wait = Duration::from_millis(100);
    let ended = (0..8).find_map(|_| {
        let began = Instant::now();
        let result = guest.connect(&encoded(at), wait.as_nanos() as u64);
        result.err().map(|errno| (errno, began.elapsed()))
    });
    let (errno, waited) = ended.expect("the queue is full at some time");
    assert!(errno == Errno::Timedout && waited >= wait, "{errno:?} after {waited:?}");
}

#[test]
fn a_refused_connection_says_so() {
    let at = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut guest = guest(ALL);
    assert_eq!(guest.connect(&encoded(at), 0), Err(Errno::Connrefused));
}

#[test]
fn without_a_rule_nothing_is_opened_or_looked_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let mut guest = guest(&[]);
    assert_eq!(guest.connect(&encoded(at), 0), Err(Errno::Acces));
    for operation in [ask::TCP_LISTEN, ask::UDP_BIND] {
        for bound in ["127.0.0.1:0", "0.0.0.0:0", "[::]:0"] {
            assert_eq!(guest.ask(operation, 0, 0, &address(bound)), Err(Errno::Acces));
        }
    }
    assert_eq!(guest.look_up("localhost"), Err(Errno::Acces));
    assert_eq!(guest.ask(ask::PARALLELISM, 0, 0, b""), Ok(1));
    let mut other = Guest::with(Null, |builder| _ = builder.parallelism(640));
    assert_eq!(other.ask(ask::PARALLELISM, 0, 0, b""), Ok(640));
}

#[test]
fn no_trick_leads_around_a_rule() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut elsewhere = guest(&[&format!("connect=10.0.0.1:{port}"), "listen=127.0.0.1:*"]);
    for trick in ["127.0.0.1", "0.0.0.0", "[::ffff:127.0.0.1]", "[::ffff:0.0.0.0]", "[::1]", "[::]", "[::1%1]"] {
        let result = elsewhere.connect(&address(&format!("{trick}:{port}")), 0);
        assert_eq!(result, Err(Errno::Acces), "{trick}");
    }
    for bound in ["0.0.0.0:0", "[::]:0", "[::ffff:0.0.0.0]:0", "127.0.0.2:0"] {
        assert_eq!(elsewhere.ask(ask::TCP_LISTEN, 0, 0, &address(bound)), Err(Errno::Acces), "{bound}");
    }
    for name in ["localhost", "0x7f.1", "2130706433", "127.1"] {
        assert_eq!(elsewhere.look_up(name), Err(Errno::Acces), "{name}");
    }
    // What is the same is allowed.
    let mut here = guest(&[&format!("connect=127.0.0.1:{port}")]);
    for same in ["127.0.0.1", "0.0.0.0", "[::ffff:127.0.0.1]", "[::ffff:0.0.0.0]"] {
        assert!(here.connect(&address(&format!("{same}:{port}")), 0).is_ok(), "{same}");
    }
}

#[test]
fn a_name_is_looked_up_by_the_host_and_leads_to_its_addresses() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut guest = guest(&[&format!("connect=LocalHost:{port}")]);
    let at = address(&format!("127.0.0.1:{port}"));
    assert_eq!(guest.connect(&at, 0), Err(Errno::Acces), "nobody has looked it up");
    let found = guest.look_up("localhost.").unwrap();
    assert!(found.contains(&"127.0.0.1:80".parse().unwrap()), "{found:?}");
    assert!(guest.connect(&at, 0).is_ok());
    assert_eq!(guest.connect(&address("127.0.0.1:1"), 0), Err(Errno::Acces), "another port");
    assert_eq!(guest.connect(&address(&format!("127.0.0.2:{port}")), 0), Err(Errno::Acces));
    assert_eq!(guest.look_up("::1"), Ok(vec!["[::1]:80".parse().unwrap()]), "an address is not looked up");
}

#[test]
fn a_name_that_nobody_has_is_noent() {
    let mut guest = guest(&["connect=*:80"]);
    assert_eq!(guest.look_up("a..b"), Err(Errno::Noent));
}

/// Threads share a context; each gets an answer of its own to the same question.
#[test]
fn callers_that_ask_for_the_same_do_not_get_in_each_others_way() {
    let mut guest = guest(&["connect=localhost:80"]);
    let input = b"\x50\0localhost";
    let words = [FD, input.len() as u64, offset(ask::LOOK_UP, 0, 0)];
    let mut callers = [(None, None); 20];
    while callers.iter().any(|(_, reply)| reply.is_none()) {
        for (since, reply) in callers.iter_mut().filter(|(_, reply)| reply.is_none()) {
            match guest.context.call_of(since, Call::fd_pwrite, &words, input, &mut guest.out) {
                Reply::Again { .. } => std::thread::sleep(Duration::from_millis(1)),
                done => {
                    assert_eq!(done, Reply::Done(Errno::Success));
                    *reply = Some(u32_at(&guest.out.bytes, 0));
                }
            }
        }
    }
    for (_, reply) in callers {
        assert!(!guest.fetch(fetch::REPLY, 0, reply.unwrap().into(), 4096).unwrap().is_empty());
    }
}

#[test]
fn an_instance_can_have_so_many_sockets_and_no_more() {
    const MOST: usize = 4096;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    if limit < MOST as u64 + 256 {
        eprintln!("skipped: this process may have only {limit} descriptors");
        return;
    }
    let mut guest = guest(&["connect=*:*"]);
    let sockets: Vec<_> = (0..MOST).map(|_| guest.ask(ask::UDP_BIND, 0, 0, &address("0.0.0.0:0")).unwrap()).collect();
    assert_eq!(guest.ask(ask::UDP_BIND, 0, 0, &address("0.0.0.0:0")), Err(Errno::Mfile));
    guest.close(sockets[7]).unwrap();
    assert_eq!(guest.ask(ask::UDP_BIND, 0, 0, &address("0.0.0.0:0")), Ok(sockets[7]));
}

#[test]
fn options_are_kept() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut guest = guest(ALL);
    let tcp = guest.connect(&encoded(listener.local_addr().unwrap()), 0).unwrap();
    let udp = guest.ask(ask::UDP_BIND, 0, 0, &address("0.0.0.0:0")).unwrap();
    for (fd, name, value) in [
        (tcp, option::TTL, 42),
        (tcp, option::NODELAY, 1),
        (tcp, option::NODELAY, 0),
        (tcp, option::LINGER, 5_000_000_001),
        (tcp, option::LINGER, 1),
        (tcp, option::LINGER, 0),
        (udp, option::BROADCAST, 1),
        (udp, option::MULTICAST_LOOP_V4, 0),
        (udp, option::MULTICAST_TTL_V4, 7),
    ] {
        guest.set(fd, name, value).unwrap();
        assert_eq!(guest.option(fd, name), Ok(value), "option {name}");
    }
    assert_eq!(guest.option(tcp, option::ERROR), Ok(0));
    assert_eq!(guest.set(tcp, option::ERROR, 0), Err(Errno::Noprotoopt));
    for value in [0, 256, 1 << 32] {
        assert_eq!(guest.set(tcp, option::TTL, value), Err(Errno::Inval));
    }
    assert!(guest.set(tcp, option::TTL, u32::MAX.into()).is_ok() && guest.option(tcp, option::TTL).unwrap() <= 255);
    assert_eq!(guest.set(tcp, 99, 0), Err(Errno::Noprotoopt));
    assert_eq!(guest.set(1, option::TTL, 1), Err(Errno::Notsock));
    assert_eq!(guest.ask(ask::UDP_CONNECT, 0, tcp, &address("127.0.0.1:1")), Err(Errno::Notsup));
}

/// A linger time must not make the host wait when a socket is closed.
#[test]
fn closing_never_waits() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut guest = guest(ALL);
    let fd = guest.connect(&encoded(listener.local_addr().unwrap()), 0).unwrap();
    guest.set(fd, option::LINGER, 60_000_000_001).unwrap();
    guest.call(Call::fd_fdstat_set_flags, &[fd, NONBLOCK], b"").unwrap();
    while guest.write(fd, &[0; 65536]).is_ok() {}
    let began = Instant::now();
    guest.close(fd).unwrap();
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn groups_need_a_rule_to_listen() {
    let group = |ip: &str| [&address(&format!("{ip}:0"))[..], &[127, 0, 0, 1]].concat();
    let mut denied = guest(&["connect=*:*", "listen=127.0.0.1:0"]);
    let fd = denied.ask(ask::UDP_BIND, 0, 0, &address("127.0.0.1:0")).unwrap();
    assert_eq!(denied.ask(ask::MULTICAST, 1, fd, &group("224.0.0.251")), Err(Errno::Acces));
    let mut allowed = guest(&["listen=127.0.0.1:0", "listen=224.0.0.251:*"]);
    let fd = allowed.ask(ask::UDP_BIND, 0, 0, &address("127.0.0.1:0")).unwrap();
    assert_ne!(allowed.ask(ask::MULTICAST, 1, fd, &group("224.0.0.251")), Err(Errno::Acces));
    assert_eq!(allowed.ask(ask::MULTICAST, 1, fd, &group("224.0.0.252")), Err(Errno::Acces));
}

#[test]
fn a_group_of_a_link_is_allowed_on_the_interface_of_the_rule() {
    let group = |interface: u32| [&address("[ff02::fb]:0")[..], &interface.to_le_bytes()].concat();
    for (rule, allowed, denied) in [("[ff02::fb%1]", 1, [0, 2]), ("[ff02::fb]", 0, [1, 2])] {
        let mut guest = guest(&["listen=[::1]:0", &format!("listen={rule}:*")]);
        let Ok(fd) = guest.ask(ask::UDP_BIND, 0, 0, &address("[::1]:0")) else {
            eprintln!("skipped: this machine has no IPv6");
            return;
        };
        assert_ne!(guest.ask(ask::MULTICAST, 1, fd, &group(allowed)), Err(Errno::Acces), "{rule}");
        for interface in denied {
            assert_eq!(guest.ask(ask::MULTICAST, 1, fd, &group(interface)), Err(Errno::Acces), "{rule}, {interface}");
        }
    }
}

#[test]
fn arbitrary_requests_are_answered() {
    let mut guest = guest(&["connect=127.0.0.1:1", "listen=127.0.0.1:0"]);
    guest.ask(ask::UDP_BIND, 0, 0, &address("127.0.0.1:0")).unwrap();
    guest.ask(ask::TCP_LISTEN, 0, 0, &address("127.0.0.1:0")).unwrap();
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..40_000 {
        let (operation, argument) = (random.u8(..14), random.u32(..14));
        let offset = match random.u8(..3) {
            0 => random.u64(..),
            _ => offset(operation, argument, random.u32(..8)),
        };
        let mut input: Vec<u8> = (0..random.usize(..50)).map(|_| random.u8(..)).collect();
        if random.bool() {
            let mut bytes = address("127.0.0.1:1");
            bytes.append(&mut input);
            bytes.truncate(random.usize(28..80));
            input = bytes;
        }
        if random.bool() {
            guest.try_call(Call::fd_pwrite, &[FD, input.len() as u64, offset], &input);
        } else {
            let room = random.choice([0, 1, 27, 28, 100, u64::MAX]).unwrap();
            guest.try_call(Call::fd_pread, &[FD, room, offset], b"");
        }
    }
    assert!(guest.out.bytes.capacity() < 4 << 20);
}

#[test]
fn a_request_of_the_wrong_form_is_refused() {
    let mut guest = guest(ALL);
    for (operation, input, errno) in [
        (ask::TCP_CONNECT, address("127.0.0.1:1"), Errno::Inval),
        (ask::TCP_LISTEN, [address("127.0.0.1:0"), vec![0]].concat(), Errno::Inval),
        (ask::UDP_BIND, vec![5; 28], Errno::Afnosupport),
        (ask::LOOK_UP, vec![0], Errno::Inval),
        (ask::LOOK_UP, vec![0, 0], Errno::Inval),
        (ask::LOOK_UP, b"\0\0a\0b".to_vec(), Errno::Inval),
        (ask::LOOK_UP, vec![0, 0, 0xff], Errno::Ilseq),
        (ask::LOOK_UP, vec![b'a'; 300], Errno::Inval),
        (0, vec![], Errno::Nosys),
        (200, vec![], Errno::Nosys),
    ] {
        assert_eq!(guest.ask(operation, 0, 0, &input), Err(errno), "operation {operation}");
    }
    assert_eq!(guest.fetch(0, 0, 0, 1), Err(Errno::Nosys));
    // An argument where there is none.
    let fd = guest.ask(ask::UDP_BIND, 0, 0, &address("127.0.0.1:0")).unwrap();
    assert_eq!(guest.ask(ask::UDP_CONNECT, 1, fd, &address("127.0.0.1:1")), Err(Errno::Inval));
    assert_eq!(guest.ask(ask::PARALLELISM, 1, 0, b""), Err(Errno::Inval));
    assert_eq!(guest.ask(200, 1, 0, b""), Err(Errno::Nosys));
    assert_eq!(guest.fetch(fetch::LOCAL_ADDRESS, 1, fd, 28), Err(Errno::Inval));
    assert_eq!(guest.fetch(fetch::PEER_ADDRESS, 7, fd, 28), Err(Errno::Inval));
    assert_eq!(guest.fetch(200, 1, 0, 1), Err(Errno::Nosys));
    assert_eq!(guest.fetch(fetch::REPLY, 0, 9, 1), Err(Errno::Noent));
    // Other calls do not know the descriptor.
    assert_eq!(guest.read(FD, 1), Err(Errno::Badf));
    assert_eq!(guest.write(FD, b""), Err(Errno::Badf));
    assert_eq!(guest.close(FD), Err(Errno::Badf));
}
