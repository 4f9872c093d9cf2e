use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

use crate::guest::*;
use gpu_run_abi::hostcall::Call;
use gpu_run_wasi::stdio::{Buffer, Input, Null, Output, Pipe};
use gpu_run_wasi::{Errno, Reply};

const NOT_YET: Reply = Reply::Again { at: None };

/// Makes the call until it is done.
fn until_done(guest: &mut Guest, call: Call, words: &[u64], input: &[u8]) -> Vec<u8> {
    let start = Instant::now();
    loop {
        match guest.try_call(call, words, input) {
            Reply::Done(Errno::Success) => return guest.out.bytes.clone(),
            Reply::Again { .. } => assert!(start.elapsed() < Duration::from_secs(300), "{call:?} is never done"),
            other => panic!("{call:?}: {other:?}"),
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn output_is_captured_per_instance() {
    let mut guest = Guest::new();
    assert_eq!(guest.write(1, b"hello "), Ok(6));
    assert_eq!(guest.write(2, b"dropped"), Ok(7));
    assert_eq!(guest.write(1, b"world"), Ok(5));
    assert_eq!(guest.write(1, b""), Ok(0));
    assert_eq!(guest.stdout.take(), b"hello world");
    assert_eq!(guest.stdout.take(), b"");
}

#[test]
fn input_from_bytes_ends() {
    let mut guest = Guest::reading(stdin(b"hello"));
    assert_eq!(guest.read(0, 0).unwrap(), b"");
    assert_eq!(guest.read(0, 3).unwrap(), b"hel");
    assert_eq!(guest.read(0, 1 << 40).unwrap(), b"lo");
    assert_eq!(guest.read(0, 3).unwrap(), b"");
}

#[test]
fn a_pipe_is_waited_for_without_blocking() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut guest = Guest::reading(Pipe::new(reader));
    for _ in 0..3 {
        assert_eq!(guest.try_call(Call::fd_read, &[0, 5], b""), NOT_YET);
    }
    writer.write_all(b"hello world").unwrap();
    assert_eq!(until_done(&mut guest, Call::fd_read, &[0, 5], b""), b"\x05\0\0\0hello");
    assert_eq!(guest.read(0, 100).unwrap(), b" world");
    assert_eq!(guest.try_call(Call::fd_read, &[0, 5], b""), NOT_YET);
    drop(writer);
    assert_eq!(until_done(&mut guest, Call::fd_read, &[0, 5], b""), [0; 4]);
    assert_eq!(guest.read(0, 5).unwrap(), b"", "the end stays the end");
}

#[test]
fn a_pipe_that_nobody_asked_keeps_its_bytes() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut other = reader.try_clone().unwrap();
    let mut pipe = Pipe::new(reader);
    writer.write_all(b"for another").unwrap();
    assert!(pipe.ready());
    let mut guest = Guest::reading(pipe);
    assert_eq!(guest.read(0, 0).unwrap(), b"");
    std::thread::sleep(Duration::from_millis(20));
    drop(guest);
    drop(writer);
    assert_eq!(std::io::read_to_string(&mut other).unwrap(), "for another");
}

#[test]
fn instances_share_one_pipe() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let pipe = Pipe::new(reader);
    let (mut a, mut b) = (Guest::reading(pipe.clone()), Guest::reading(pipe));
    writer.write_all(b"ab").unwrap();
    assert_eq!(until_done(&mut a, Call::fd_read, &[0, 1], b"")[4..], *b"a");
    assert_eq!(until_done(&mut b, Call::fd_read, &[0, 1], b"")[4..], *b"b");
}

#[test]
fn asking_again_while_the_pipe_is_read_finds_nothing_yet() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut guest = Guest::reading(Pipe::new(reader));
    writer.write_all(b"first").unwrap();
    assert_eq!(until_done(&mut guest, Call::fd_read, &[0, 9], b"")[4..], *b"first");
    for _ in 0..20 {
        assert_eq!(guest.try_call(Call::fd_read, &[0, 9], b""), NOT_YET);
        std::thread::sleep(Duration::from_millis(1));
    }
    writer.write_all(b"then").unwrap();
    assert_eq!(until_done(&mut guest, Call::fd_read, &[0, 9], b"")[4..], *b"then");
}

fn fifo(guest: &Guest, name: &str) {
    let path = guest.host(name);
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
}

#[test]
fn a_fifo_is_opened_and_read_without_blocking() {
    let mut guest = Guest::new();
    fifo(&guest, "fifo");
    let fd = guest.open("fifo", 0, READ).unwrap();
    assert_eq!(guest.try_call(Call::fd_read, &[fd, 5], b""), NOT_YET, "no writer yet is not the end");
    let mut writer = std::fs::OpenOptions::new().write(true).open(guest.host("fifo")).unwrap();
    assert_eq!(guest.try_call(Call::fd_read, &[fd, 5], b""), NOT_YET);
    writer.write_all(b"hello").unwrap();
    assert_eq!(guest.read(fd, 9).unwrap(), b"hello");
    guest.call(Call::fd_fdstat_set_flags, &[fd, NONBLOCK], b"").unwrap();
    assert_eq!(guest.read(fd, 9), Err(Errno::Again));
    drop(writer);
    assert_eq!(guest.read(fd, 9).unwrap(), b"");
    assert_eq!(guest.seek(fd, 0, 0), Err(Errno::Spipe));
    assert_eq!(guest.pread(fd, 1, 0), Err(Errno::Spipe));
    assert_eq!(guest.fdstat(fd).unwrap().kind, 0);
}

#[test]
fn a_fifo_without_a_reader_is_waited_for() {
    let mut guest = Guest::new();
    fifo(&guest, "fifo");
    let words = [ROOT, FOLLOW, 4, 0, WRITE, 0, 0];
    assert_eq!(guest.try_call(Call::path_open, &words, b"fifo"), NOT_YET);
    assert_eq!(guest.open_at(ROOT, "fifo", FOLLOW, 0, WRITE, NONBLOCK), Err(Errno::Again));
    let nonblock = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let reader = std::fs::OpenOptions::new().read(true).custom_flags(nonblock).open(guest.host("fifo")).unwrap();
    let fd = guest.open("fifo", 0, WRITE).unwrap();
    let full = loop {
        match guest.try_call(Call::fd_write, &[fd, 4096], &[0; 4096]) {
            Reply::Done(Errno::Success) => {}
            other => break other,
        }
    };
    assert_eq!(full, NOT_YET);
    drop(reader);
    assert_eq!(guest.write(fd, b"x"), Err(Errno::Pipe));
}

#[test]
fn times_of_a_fifo_are_set_without_blocking() {
    let mut guest = Guest::new();
    fifo(&guest, "fifo");
    guest.call(Call::path_filestat_set_times, &[ROOT, FOLLOW, 4, 0, 44, 4], b"fifo").unwrap();
    assert_eq!(guest.path_filestat("fifo", 0).unwrap().modified, 44);
}

struct Full;

impl Output for Full {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::WouldBlock.into())
    }
    fn ready(&mut self) -> bool {
        false
    }
    fn is_terminal(&self) -> bool {
        true
    }
}

#[test]
fn an_output_that_is_full_is_waited_for() {
    let stdio = gpu_run_wasi::Stdio { stdin: Box::new(Null), stdout: Box::new(Full), stderr: Box::new(Buffer::new()) };
    let mut context = gpu_run_wasi::Builder::new().build(stdio);
    let mut out = gpu_run_wasi::Out::default();
    assert_eq!(context.call(Call::fd_write, &[1, 1], b"x", &mut out), NOT_YET);
    context.call(Call::fd_fdstat_get, &[1], b"", &mut out);
    assert_eq!(out.bytes[0], 2, "a terminal is a character device");
}
