//! `poll_oneoff` without blocking.
//!
//! Each call checks every subscription once. If something happened, the call reports it. If not, the call returns the
//! next moment at which a clock fires, and the caller repeats it. A relative timeout counts from the first of these
//! calls.

use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use crate::Errno;
use crate::clock;
use crate::descriptor::{Descriptor, Table};
use crate::encode::{Out, Result, Stop, flags};
use crate::stdio::is_ready;
use crate::watch::Awaited;

const SUBSCRIPTION: usize = 48;
const EVENT: usize = 32;
const ABSOLUTE: u64 = 1;
const HANGUP: u16 = 1;
/// The most subscriptions in one call. Each may cost a system call, and other instances wait meanwhile.
const MAX_SUBSCRIPTIONS: usize = 1 << 16;

/// `poll_oneoff`. `since` is when this call was first made.
pub(crate) fn oneoff(
    table: &mut Table,
    subscriptions: &[u8],
    room: u64,
    since: &mut Option<Instant>,
    out: &mut Out,
) -> Result {
    let (subscriptions, rest) = subscriptions.as_chunks::<SUBSCRIPTION>();
    if subscriptions.is_empty() || !rest.is_empty() || room < (subscriptions.len() * EVENT) as u64 {
        return Err(Errno::Inval.into());
    }
    if subscriptions.len() > MAX_SUBSCRIPTIONS {
        return Err(Errno::Nomem.into());
    }
    let now = Instant::now();
    let start = since.unwrap_or(now);
    let mut next: Option<Instant> = None;
    out.put_u32(0);
    let mut count = 0u32;
    for bytes in subscriptions {
        let subscription = Subscription::decode(bytes)?;
        match subscription.look(table, start, now)? {
            State::Happened { bytes, flags } => {
                subscription.put_event(bytes, flags, out);
                count += 1;
            }
            State::At(at) => next = Some(next.map_or(at, |next| next.min(at))),
            State::Sometime => {}
        }
    }
    if count == 0 {
        *since = Some(start);
        return Err(Stop::Again(next));
    }
    out.bytes[..4].copy_from_slice(&count.to_le_bytes());
    Ok(())
}

/// Adds the sockets among the subscriptions.
pub(crate) fn awaited(table: &mut Table, subscriptions: &[u8], awaited: &mut Vec<Awaited>) {
    for bytes in subscriptions.as_chunks::<SUBSCRIPTION>().0 {
        let (fd, reads) = match Subscription::decode(bytes).map(|subscription| subscription.to) {
            Ok(Subject::Read(fd)) => (fd, true),
            Ok(Subject::Write(fd)) => (fd, false),
            _ => continue,
        };
        awaited.extend(table.socket(fd).ok().map(|socket| socket.awaited(reads)));
    }
}

struct Subscription {
    userdata: u64,
    to: Subject,
}

enum Subject {
    Clock { id: u64, timeout: u64, absolute: bool },
    Read(u64),
    Write(u64),
}

enum State {
    Happened { bytes: u64, flags: u16 },
    At(Instant),
    Sometime,
}

impl Subscription {
    /// `userdata: u64; tag: u8` and, from byte 16, `id: u32; timeout: u64; precision: u64; flags: u16` or `fd: u32`.
    fn decode(bytes: &[u8; SUBSCRIPTION]) -> Result<Self> {
        let field = |at: usize, size: usize| {
            let mut word = [0; 8];
            word[..size].copy_from_slice(&bytes[at..at + size]);
            u64::from_le_bytes(word)
        };
        let to = match bytes[8] {
            0 => Subject::Clock {
                id: field(16, 4),
                timeout: field(24, 8),
                absolute: flags(field(40, 2), ABSOLUTE)? != 0,
            },
            1 => Subject::Read(field(16, 4)),
            2 => Subject::Write(field(16, 4)),
            _ => return Err(Errno::Inval.into()),
        };
        Ok(Self { userdata: field(0, 8), to })
    }

    fn look(&self, table: &mut Table, start: Instant, now: Instant) -> Result<State> {
        match self.to {
            Subject::Clock { id, timeout, absolute } => clock_state(id, timeout, absolute, start, now),
            Subject::Read(fd) => read_state(table.get(fd)?),
            Subject::Write(fd) => write_state(table.get(fd)?),
        }
    }

    /// `userdata: u64; error: u16; type: u8; _; nbytes: u64; flags: u16; _`
    fn put_event(&self, bytes: u64, flags: u16, out: &mut Out) {
        let kind = match self.to {
            Subject::Clock { .. } => 0,
            Subject::Read(_) => 1,
            Subject::Write(_) => 2,
        };
        out.put_u64(self.userdata);
        out.put(&[0, 0, kind, 0, 0, 0, 0, 0]);
        out.put_u64(bytes);
        out.put_u64(u64::from(flags));
    }
}

fn happened_if(happened: bool, bytes: u64) -> State {
    if happened { State::Happened { bytes, flags: 0 } } else { State::Sometime }
}

fn clock_state(id: u64, timeout: u64, absolute: bool, start: Instant, now: Instant) -> Result<State> {
    if !matches!(id, clock::REALTIME | clock::MONOTONIC) {
        return Err(Errno::Inval.into());
    }
    let at = if absolute {
        now.checked_add(Duration::from_nanos(timeout.saturating_sub(clock::now(id)?)))
    } else {
        start.checked_add(Duration::from_nanos(timeout))
    };
    Ok(match at {
        Some(at) if at <= now => State::Happened { bytes: 0, flags: 0 },
        Some(at) => State::At(at),
        None => State::Sometime,
    })
}

/// If the number of readable bytes is not known, it is reported as 1.
fn read_state(descriptor: &mut Descriptor) -> Result<State> {
    match descriptor {
        Descriptor::Input(input) => Ok(happened_if(input.lock().ready(), 1)),
        Descriptor::Pipe(end) if end.reads => {
            let (bytes, ready) = end.readable();
            let flags = if end.has_peer() { 0 } else { HANGUP };
            Ok(if ready { State::Happened { bytes: bytes as u64, flags } } else { State::Sometime })
        }
        Descriptor::File(file) if file.stream => Ok(happened_if(is_ready(&*file.file, PollFlags::IN), 1)),
        Descriptor::File(file) => {
            let bytes = file.size()?.saturating_sub(file.position());
            Ok(State::Happened { bytes: bytes.max(1), flags: if bytes == 0 { HANGUP } else { 0 } })
        }
        Descriptor::Socket(socket) if socket.listening => Ok(happened_if(socket.readable(), 1)),
        Descriptor::Socket(socket) if socket.readable() => {
            let bytes = socket.available();
            Ok(State::Happened { bytes, flags: if bytes == 0 { HANGUP } else { 0 } })
        }
        Descriptor::Socket(_) => Ok(State::Sometime),
        Descriptor::Output(_) | Descriptor::Directory(_) | Descriptor::Pipe(_) => Err(Errno::Badf.into()),
    }
}

fn write_state(descriptor: &mut Descriptor) -> Result<State> {
    match descriptor {
        Descriptor::Output(output) => Ok(happened_if(output.lock().ready(), 1)),
        Descriptor::File(file) if file.stream => Ok(happened_if(is_ready(&*file.file, PollFlags::OUT), 1)),
        Descriptor::File(_) => Ok(happened_if(true, 1)),
        Descriptor::Socket(socket) => Ok(happened_if(socket.writable(), 1)),
        Descriptor::Pipe(end) if !end.reads => Ok(happened_if(end.writable(), 1)),
        Descriptor::Input(_) | Descriptor::Directory(_) | Descriptor::Pipe(_) => Err(Errno::Badf.into()),
    }
}
