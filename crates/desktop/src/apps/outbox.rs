//! What an app is sent. A thread writes it, so that an app which does not read holds nobody up; the same thread keeps the app's clock.

use gpu_run_ui::wire::{self, Record};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long an app may leave unread what it was sent.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most bytes that wait for an app.
const MAX_WAITING: usize = 4 << 20;

#[derive(Debug, Default)]
pub(super) struct Outbox {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<u8>,
    /// When the app was sent something, unless it said since then that it waits for more.
    unread: Option<Instant>,
    tick: Option<Instant>,
    is_closed: bool,
}

/// Why an app is sent nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silent {
    /// It closed its end, or ours is closed.
    Closed,
    /// It does not read.
    Hangs,
}

impl Outbox {
    pub(super) fn send(&self, record: Record, following: &[u8]) {
        let mut state = self.state.lock();
        // An app that hangs is ended soon, and hears nothing of this.
        if state.waiting.len() < MAX_WAITING {
            state.waiting.extend(record.to_bytes());
            state.waiting.extend(following);
        }
        state.unread.get_or_insert_with(Instant::now);
        self.changed.notify_all();
    }

    /// The app has read everything, and waits.
    pub(super) fn is_alive(&self) {
        self.state.lock().unread = None;
    }

    pub(super) fn tick_in(&self, time: Duration) {
        self.state.lock().tick = Some(Instant::now() + time);
        self.changed.notify_all();
    }

    pub(super) fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Writes what the app is sent, until one of both ends.
    pub(super) fn write(&self, stream: &UnixStream) -> Silent {
        // A write to an app that does not read ends now and then, to look at the time.
        if stream.set_write_timeout(Some(Duration::from_millis(250))).is_err() {
            return Silent::Closed;
        }
        let mut stream = stream;
        let mut state = self.state.lock();
        loop {
            let now = Instant::now();
            if state.is_closed {
                return Silent::Closed;
            }
            if state.unread.is_some_and(|since| now.duration_since(since) > PATIENCE) {
                return Silent::Hangs;
            }
            if state.tick.is_some_and(|at| at <= now) {
                state.tick = None;
                state.waiting.extend(Record { kind: wire::TICK, ..Record::default() }.to_bytes());
                state.unread.get_or_insert(now);
            }
            if state.waiting.is_empty() {
                let until = state.tick.into_iter().chain(state.unread.map(|since| since + PATIENCE)).min();
                match until {
                    None => self.changed.wait(&mut state),
                    Some(until) => _ = self.changed.wait_until(&mut state, until + Duration::from_micros(50)),
                }
                continue;
            }
            let piece: Vec<u8> = state.waiting.iter().take(1 << 16).copied().collect();
            drop(state);
            let written = match stream.write(&piece) {
                Ok(0) => return Silent::Closed,
                Ok(written) => written,
                Err(error) if is_passing(&error) => 0,
                Err(_) => return Silent::Closed,
            };
            state = self.state.lock();
            state.waiting.drain(..written);
        }
    }
}

fn is_passing(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut | std::io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::sync::Arc;

    #[test]
    fn records_and_ticks_come_in_their_order() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let outbox = Arc::new(Outbox::default());
        let writer = {
            let outbox = outbox.clone();
            std::thread::spawn(move || outbox.write(&ours))
        };
        outbox.send(Record { kind: 1, a: 3, ..Record::default() }, b"abc");
        let began = Instant::now();
        outbox.tick_in(Duration::from_millis(30));
        let mut bytes = [0; wire::BYTES];
        theirs.read_exact(&mut bytes).unwrap();
        assert_eq!(Record::from_bytes(&bytes).kind, 1);
        let mut text = [0; 3];
        theirs.read_exact(&mut text).unwrap();
        theirs.read_exact(&mut bytes).unwrap();
        assert_eq!((&text, Record::from_bytes(&bytes).kind), (b"abc", wire::TICK));
        assert!(began.elapsed() >= Duration::from_millis(30));
        outbox.close();
        assert_eq!(writer.join().unwrap(), Silent::Closed);
    }

    #[test]
    fn an_app_that_says_it_waits_does_not_hang() {
        let outbox = Outbox::default();
        outbox.send(Record::default(), &[]);
        assert!(outbox.state.lock().unread.is_some());
        outbox.is_alive();
        assert!(outbox.state.lock().unread.is_none());
    }

    #[test]
    fn an_app_that_reads_nothing_hangs() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let outbox = Outbox::default();
        outbox.send(Record::default(), &[]);
        outbox.state.lock().unread = Instant::now().checked_sub(2 * PATIENCE);
        assert_eq!(outbox.write(&ours), Silent::Hangs);
    }
}
