use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::time::{Duration, Instant};

use crate::guest::*;
use gpu_run_abi::hostcall::Call;
use gpu_run_wasi::stdio::Null;
use gpu_run_wasi::{Errno, Reply};

const NOT_YET: Reply = Reply::Again { at: None };
const PEEK: u64 = 1;
const WAITALL: u64 = 2;
/// The first socket, after the directory.
const SOCKET: u64 = 4;

fn listening() -> (Guest, std::net::SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let guest = Guest::with(Null, |builder| {
        builder.preopen_socket(listener).unwrap();
    });
    (guest, address)
}

/// A guest with one end of a connection, and the other end.
fn connected() -> (Guest, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let guest = Guest::with(Null, |builder| {
        builder.preopen_socket(theirs).unwrap();
    });
    (guest, ours)
}

fn accept(guest: &mut Guest) -> Result<u64, Errno> {
    guest.call(Call::sock_accept, &[SOCKET, 0], b"").map(|out| u64::from(u32_at(out, 0)))
}

/// Makes a call until it is done.
fn awaited(mut call: impl FnMut() -> Reply) -> Reply {
    let began = Instant::now();
    loop {
        match call() {
            Reply::Again { .. } => assert!(began.elapsed() < Duration::from_secs(300), "nothing comes"),
            done => return done,
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until there is something to read, or somebody to accept.
fn until_ready(guest: &mut Guest, fd: u64) {
    let mut subscription = [0; 48];
    subscription[8] = 1; // reading
    subscription[16..20].copy_from_slice(&(fd as u32).to_le_bytes());
    assert_eq!(awaited(|| guest.try_call(Call::poll_oneoff, &[48, 32], &subscription)), Reply::Done(Errno::Success));
}

fn recv(guest: &mut Guest, fd: u64, room: u64, flags: u64) -> Result<(Vec<u8>, u16), Errno> {
    guest.call(Call::sock_recv, &[fd, room, flags], b"").map(|out| {
        assert_eq!(u32_at(out, 0) as usize, out.len() - 6);
        (out[6..].to_vec(), u16::from_le_bytes([out[4], out[5]]))
    })
}

#[test]
fn a_server_accepts_and_answers() {
    let (mut guest, address) = listening();
    assert_eq!(guest.try_call(Call::sock_accept, &[SOCKET, 0], b""), NOT_YET);
    let mut client = TcpStream::connect(address).unwrap();
    until_ready(&mut guest, SOCKET);
    let fd = accept(&mut guest).unwrap();
    assert_eq!(fd, SOCKET + 1);
    assert_eq!(guest.try_call(Call::fd_read, &[fd, 100], b""), NOT_YET);
    client.write_all(b"question").unwrap();
    until_ready(&mut guest, fd);
    assert_eq!(guest.read(fd, 100).unwrap(), b"question");
    assert_eq!(guest.write(fd, b"ans"), Ok(3));
    let sent = guest.call(Call::sock_send, &[fd, 3, 0], b"wer").unwrap();
    assert_eq!(sent, 3u32.to_le_bytes());
    guest.close(fd).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "answer");
}

#[test]
fn a_unix_listener_works_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let mut guest = Guest::with(Null, |builder| {
        builder.preopen_socket(listener).unwrap();
    });
    let mut client = UnixStream::connect(path).unwrap();
    client.write_all(b"hi").unwrap();
    let fd = accept(&mut guest).unwrap();
    assert_eq!(recv(&mut guest, fd, 9, 0).unwrap(), (b"hi".to_vec(), 0));
}

#[test]
fn peek_leaves_the_bytes() {
    let (mut guest, mut ours) = connected();
    ours.write_all(b"hello").unwrap();
    assert_eq!(recv(&mut guest, SOCKET, 3, PEEK).unwrap().0, b"hel");
    assert_eq!(recv(&mut guest, SOCKET, 9, PEEK).unwrap().0, b"hello");
    assert_eq!(recv(&mut guest, SOCKET, 2, 0).unwrap().0, b"he");
    assert_eq!(recv(&mut guest, SOCKET, 9, 0).unwrap().0, b"llo");
}

#[test]
fn a_read_of_nothing_waits_for_nothing() {
    let (mut guest, _ours) = connected();
    assert_eq!(guest.read(SOCKET, 0).unwrap(), b"");
    assert_eq!(recv(&mut guest, SOCKET, 0, 0).unwrap().0, b"");
    assert_eq!(guest.try_call(Call::fd_read, &[SOCKET, 1], b""), NOT_YET);
    // It is no datagram, and no connection.
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    let mut guest = Guest::with(Null, |builder| {
        builder.preopen_socket(theirs).unwrap();
    });
    assert_eq!(guest.try_call(Call::sock_recv, &[SOCKET, 0, 0], b""), NOT_YET);
    ours.send(b"gone").unwrap();
    assert_eq!(recv(&mut guest, SOCKET, 0, 0).unwrap(), (b"".to_vec(), 1));
    assert_eq!(guest.try_call(Call::sock_recv, &[SOCKET, 0, 0], b""), NOT_YET);
}

#[test]
fn waitall_waits_for_all_or_for_the_end() {
    let (mut guest, mut ours) = connected();
    let words = [SOCKET, 6, WAITALL];
    ours.write_all(b"abc").unwrap();
    assert_eq!(guest.try_call(Call::sock_recv, &words, b""), NOT_YET);
    ours.write_all(b"defgh").unwrap();
    assert_eq!(recv(&mut guest, SOCKET, 6, WAITALL | PEEK).unwrap().0, b"abcdef");
    assert_eq!(recv(&mut guest, SOCKET, 6, WAITALL).unwrap().0, b"abcdef");
    assert_eq!(guest.try_call(Call::sock_recv, &words, b""), NOT_YET);
    assert_eq!(recv(&mut guest, SOCKET, 1, 0).unwrap().0, b"g", "what was held is not lost");
    ours.shutdown(Shutdown::Write).unwrap();
    assert_eq!(recv(&mut guest, SOCKET, 6, WAITALL).unwrap().0, b"h");
    assert_eq!(recv(&mut guest, SOCKET, 6, WAITALL).unwrap().0, b"");
}

#[test]
fn a_datagram_that_is_too_long_is_truncated_and_says_so() {
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    let mut guest = Guest::with(Null, |builder| {
        builder.preopen_socket(theirs).unwrap();
    });
    ours.send(b"a long message").unwrap();
    ours.send(b"short").unwrap();
    assert_eq!(recv(&mut guest, SOCKET, 6, 0).unwrap(), (b"a long".to_vec(), 1));
    assert_eq!(recv(&mut guest, SOCKET, 6, 0).unwrap(), (b"short".to_vec(), 0));
    assert_eq!(guest.fdstat(SOCKET).unwrap().kind, 5);
}

#[test]
fn nonblocking_sockets_say_again_themselves() {
    let (mut guest, address) = listening();
    guest.call(Call::fd_fdstat_set_flags, &[SOCKET, NONBLOCK], b"").unwrap();
    assert_eq!(accept(&mut guest), Err(Errno::Again));
    let _client = TcpStream::connect(address).unwrap();
    until_ready(&mut guest, SOCKET);
    let fd = u64::from(u32_at(guest.call(Call::sock_accept, &[SOCKET, NONBLOCK], b"").unwrap(), 0));
    assert_eq!(recv(&mut guest, fd, 1, 0), Err(Errno::Again));
    assert_eq!(recv(&mut guest, fd, 1, WAITALL), Err(Errno::Again));
    assert_eq!(guest.fdstat(fd).unwrap().flags, NONBLOCK as u8);
}

#[test]
fn a_full_connection_is_waited_for() {
    let (mut guest, ours) = connected();
    let full = loop {
        match guest.try_call(Call::sock_send, &[SOCKET, 4096, 0], &[0; 4096]) {
            Reply::Done(Errno::Success) => {}
            other => break other,
        }
    };
    assert_eq!(full, NOT_YET);
    drop(ours);
    assert_eq!(guest.call(Call::sock_send, &[SOCKET, 1, 0], b"x"), Err(Errno::Pipe));
}

#[test]
fn shutdown_ends_one_way_or_both() {
    let (mut guest, mut ours) = connected();
    assert_eq!(guest.call(Call::sock_shutdown, &[SOCKET, 0], b""), Err(Errno::Inval));
    assert_eq!(guest.call(Call::sock_shutdown, &[SOCKET, 4], b""), Err(Errno::Inval));
    guest.call(Call::sock_shutdown, &[SOCKET, 2], b"").unwrap();
    assert_eq!(ours.read(&mut [0; 1]).unwrap(), 0);
    assert_eq!(guest.write(SOCKET, b"x"), Err(Errno::Pipe));
    ours.write_all(b"y").unwrap();
    assert_eq!(guest.read(SOCKET, 1).unwrap(), b"y");
}

#[test]
fn only_sockets_are_sockets() {
    let mut guest = Guest::new();
    let file = guest.file("a", "");
    for fd in [0, 1, ROOT, file] {
        assert_eq!(guest.call(Call::sock_accept, &[fd, 0], b""), Err(Errno::Notsock));
        assert_eq!(guest.call(Call::sock_recv, &[fd, 1, 0], b""), Err(Errno::Notsock));
        assert_eq!(guest.call(Call::sock_send, &[fd, 1, 0], b"x"), Err(Errno::Notsock));
        assert_eq!(guest.call(Call::sock_shutdown, &[fd, 1], b""), Err(Errno::Notsock));
    }
    assert_eq!(guest.call(Call::sock_accept, &[99, 0], b""), Err(Errno::Badf));
    assert_eq!(guest.call(Call::sock_shutdown, &[99, 1], b""), Err(Errno::Badf));
}

#[test]
fn sockets_are_described() {
    let (mut guest, _) = listening();
    let stat = guest.fdstat(SOCKET).unwrap();
    assert_eq!((stat.kind, stat.flags), (6, 0));
    assert_ne!(stat.base & (1 << 29), 0, "a listener may accept");
    assert_eq!(guest.filestat(SOCKET).unwrap().kind, 6);
    assert_eq!(guest.seek(SOCKET, 0, 0), Err(Errno::Spipe));
    assert_eq!(guest.pread(SOCKET, 1, 0), Err(Errno::Spipe));
    assert_eq!(guest.call(Call::fd_prestat_get, &[SOCKET], b""), Err(Errno::Badf));
    assert_eq!(recv(&mut guest, SOCKET, 1, 0), Err(Errno::Notconn));
}

#[test]
fn poll_sees_connections_and_bytes() {
    let mut subscription = [0; 48];
    subscription[8] = 1;
    subscription[16] = SOCKET as u8;
    let (mut guest, address) = listening();
    assert_eq!(guest.try_call(Call::poll_oneoff, &[48, 32], &subscription), NOT_YET);
    let _client = TcpStream::connect(address).unwrap();
    until_ready(&mut guest, SOCKET);
    guest.call(Call::poll_oneoff, &[48, 32], &subscription).unwrap();

    let (mut guest, mut ours) = connected();
    assert_eq!(guest.try_call(Call::poll_oneoff, &[48, 32], &subscription), NOT_YET);
    ours.write_all(b"four").unwrap();
    let out = guest.call(Call::poll_oneoff, &[48, 32], &subscription).unwrap();
    assert_eq!((u64_at(out, 4 + 16), out[4 + 24]), (4, 0));
    guest.read(SOCKET, 9).unwrap();
    drop(ours);
    let out = guest.call(Call::poll_oneoff, &[48, 32], &subscription).unwrap();
    assert_eq!((u64_at(out, 4 + 16), out[4 + 24]), (0, 1), "hung up");
    subscription[8] = 2;
    guest.call(Call::poll_oneoff, &[48, 32], &subscription).unwrap();
}

#[test]
fn instances_share_a_listener() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut builder = gpu_run_wasi::Builder::new();
    builder.preopen_socket(listener).unwrap();
    let mut contexts: Vec<_> = (0..4).map(|_| builder.build(gpu_run_wasi::Stdio::null())).collect();
    let mut out = gpu_run_wasi::Out::default();
    for context in &mut contexts {
        let _client = TcpStream::connect(address).unwrap();
        let accepted = awaited(|| context.call(Call::sock_accept, &[3, 0], b"", &mut out));
        assert_eq!(accepted, Reply::Done(Errno::Success));
        assert_eq!(context.call(Call::sock_accept, &[3, 0], b"", &mut out), NOT_YET);
    }
}
