use std::io::Write;
use std::time::{Duration, Instant};

use crate::guest::*;
use gpu_run_abi::hostcall::Call;
use gpu_run_wasi::stdio::Pipe;
use gpu_run_wasi::{Errno, Reply};

fn clock(userdata: u64, id: u32, timeout: u64, flags: u16) -> [u8; 48] {
    let mut bytes = [0; 48];
    bytes[..8].copy_from_slice(&userdata.to_le_bytes());
    bytes[16..20].copy_from_slice(&id.to_le_bytes());
    bytes[24..32].copy_from_slice(&timeout.to_le_bytes());
    bytes[40..42].copy_from_slice(&flags.to_le_bytes());
    bytes
}

/// `tag` 1: reading, 2: writing.
fn on(userdata: u64, tag: u8, fd: u64) -> [u8; 48] {
    let mut bytes = [0; 48];
    bytes[..8].copy_from_slice(&userdata.to_le_bytes());
    bytes[8] = tag;
    bytes[16..20].copy_from_slice(&(fd as u32).to_le_bytes());
    bytes
}

fn poll(guest: &mut Guest, subscriptions: &[[u8; 48]]) -> Reply {
    let input = subscriptions.concat();
    guest.try_call(Call::poll_oneoff, &[input.len() as u64, subscriptions.len() as u64 * 32], &input)
}

/// userdata, type, bytes, flags
fn events(guest: &Guest) -> Vec<(u64, u8, u64, u16)> {
    let out = &guest.out.bytes;
    assert_eq!(out.len(), 4 + 32 * u32_at(out, 0) as usize);
    out[4..].chunks(32).map(|e| (u64_at(e, 0), e[10], u64_at(e, 16), u64_at(e, 24) as u16)).collect()
}

const DONE: Reply = Reply::Done(Errno::Success);
const SECOND: u64 = 1_000_000_000;
const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn a_relative_sleep_counts_from_its_first_call() {
    let mut guest = Guest::new();
    let began = Instant::now();
    let long = [clock(7, 1, 3600 * SECOND, 0)];
    let Reply::Again { at: Some(first) } = poll(&mut guest, &long) else { panic!("not asleep") };
    assert!(first >= began + HOUR && first <= Instant::now() + HOUR);
    std::thread::sleep(Duration::from_millis(10));
    assert_eq!(poll(&mut guest, &long), Reply::Again { at: Some(first) }, "the deadline does not move");

    let mut guest = Guest::new();
    let short = [clock(7, 1, 30_000_000, 0)];
    let Reply::Again { at: Some(first) } = poll(&mut guest, &short) else { panic!("not asleep") };
    std::thread::sleep(first.saturating_duration_since(Instant::now()));
    assert_eq!(poll(&mut guest, &short), DONE);
    assert_eq!(events(&guest), [(7, 0, 0, 0)]);
    let Reply::Again { at: Some(second) } = poll(&mut guest, &short) else { panic!("not asleep") };
    assert!(second >= first + Duration::from_millis(30), "the next sleep is a new one");
}

#[test]
fn absolute_times_on_both_clocks() {
    let mut guest = Guest::new();
    for id in [0, 1] {
        let began = Instant::now();
        let now = u64_at(guest.call(Call::clock_time_get, &[u64::from(id), 0], b"").unwrap(), 0);
        assert_eq!(poll(&mut guest, &[clock(1, id, now, 1)]), DONE);
        assert_eq!(poll(&mut guest, &[clock(1, id, 0, 1)]), DONE);
        let Reply::Again { at: Some(at) } = poll(&mut guest, &[clock(1, id, now + 3600 * SECOND, 1)]) else { panic!() };
        // The two clocks need not go at the same pace.
        let second = Duration::from_secs(1);
        assert!(at >= began + HOUR - second && at <= Instant::now() + HOUR + second);
    }
}

#[test]
fn no_time_at_all_is_now_and_the_longest_is_never() {
    let mut guest = Guest::new();
    assert_eq!(poll(&mut guest, &[clock(1, 0, 0, 0)]), DONE);
    assert!(matches!(poll(&mut guest, &[clock(1, 1, u64::MAX, 0)]), Reply::Again { .. }));
    assert!(matches!(poll(&mut guest, &[clock(1, 0, u64::MAX, 1)]), Reply::Again { .. }));
}

#[test]
fn the_earliest_of_several_clocks_decides() {
    let mut guest = Guest::new();
    let subscriptions = [clock(1, 1, 50 * SECOND, 0), clock(2, 1, 5 * SECOND, 0), clock(3, 0, 500 * SECOND, 0)];
    let Reply::Again { at: Some(at) } = poll(&mut guest, &subscriptions) else { panic!() };
    assert!(at <= Instant::now() + Duration::from_secs(5));
    let subscriptions = [clock(1, 1, SECOND, 0), clock(2, 1, 0, 0), clock(3, 1, 0, 0)];
    assert_eq!(poll(&mut guest, &subscriptions), DONE);
    assert_eq!(events(&guest), [(2, 0, 0, 0), (3, 0, 0, 0)]);
}

#[test]
fn files_are_always_ready() {
    let mut guest = Guest::new();
    let fd = guest.file("a", "hello");
    let subscriptions = [on(1, 1, fd), on(2, 2, fd), clock(3, 1, SECOND, 0), on(4, 2, 1)];
    assert_eq!(poll(&mut guest, &subscriptions), DONE);
    assert_eq!(events(&guest), [(1, 1, 5, 0), (2, 2, 1, 0), (4, 2, 1, 0)]);
    guest.seek(fd, 0, 2).unwrap();
    assert_eq!(poll(&mut guest, &[on(1, 1, fd)]), DONE);
    assert_eq!(events(&guest), [(1, 1, 1, 1)], "at its end, it hangs up");
}

#[test]
fn standard_input_is_ready_when_something_is_there() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut guest = Guest::reading(Pipe::new(reader));
    let subscriptions = [on(1, 1, 0), clock(2, 1, 60 * SECOND, 0)];
    assert!(matches!(poll(&mut guest, &subscriptions), Reply::Again { at: Some(_) }));
    assert_eq!(poll(&mut guest, &[on(1, 1, 0)]), Reply::Again { at: None });
    writer.write_all(b"x").unwrap();
    assert_eq!(poll(&mut guest, &subscriptions), DONE);
    assert_eq!(events(&guest), [(1, 1, 1, 0)]);
    drop(writer);
    while guest.try_call(Call::fd_read, &[0, 1], b"") != DONE {
        std::thread::yield_now();
    }
    assert_eq!(poll(&mut guest, &[on(1, 1, 0)]), DONE, "the end can be read too");
}

#[test]
fn polling_refuses_what_makes_no_sense() {
    let mut guest = Guest::new();
    let inval = Reply::Done(Errno::Inval);
    let badf = Reply::Done(Errno::Badf);
    assert_eq!(poll(&mut guest, &[]), inval);
    assert_eq!(poll(&mut guest, &[clock(1, 2, 0, 0)]), inval);
    assert_eq!(poll(&mut guest, &[clock(1, 9, 0, 0)]), inval);
    assert_eq!(poll(&mut guest, &[clock(1, 1, 0, 2)]), inval);
    assert_eq!(poll(&mut guest, &[on(1, 3, 0)]), inval);
    assert_eq!(poll(&mut guest, &[on(1, 1, 99)]), badf);
    assert_eq!(poll(&mut guest, &[clock(1, 1, 0, 0), on(1, 1, 99)]), badf, "one bad descriptor fails all");
    assert_eq!(poll(&mut guest, &[on(1, 1, 1)]), badf);
    assert_eq!(poll(&mut guest, &[on(1, 2, 0)]), badf);
    assert_eq!(poll(&mut guest, &[on(1, 1, ROOT)]), badf);
    assert_eq!(guest.try_call(Call::poll_oneoff, &[47, 32], &[0; 47]), inval);
    assert_eq!(guest.try_call(Call::poll_oneoff, &[48, 31], &[0; 48]), inval);
}
