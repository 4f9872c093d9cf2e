//! Giving a machine events for certain ticks: a log that is replayed, or what has to be done again after a restart.
//!
//! A mark in the ring keeps what is behind it for its tick, and the machine's limit keeps it from beginning a tick whose events are not all there yet.

use crate::event::{self, Event};
use std::collections::VecDeque;

pub(crate) type Ticks = Vec<(u64, Vec<Event>)>;

/// Events with their ticks, in order.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    ticks: Ticks,
    /// Ticks whose messages are in the ring, and how many of the next one's are.
    done: usize,
    sent: usize,
    /// Where the machine shall come to.
    pub(crate) end: u64,
    /// Whether it then goes on by itself.
    pub(crate) then_free: bool,
    /// Whether another feed follows: nothing can be posted in between.
    pub(crate) more: bool,
    /// Whether these events are in the log already.
    pub(crate) recorded: bool,
    /// What was posted for no tick in particular, and whether it is in the log: behind all others.
    pub(crate) then: VecDeque<(Event, bool)>,
}

impl Feed {
    /// What of `ticks` is for the tick `from` or later.
    pub(crate) fn new(ticks: impl IntoIterator<Item = (u64, Vec<Event>)>, from: u64, end: u64) -> Self {
        let ticks = ticks.into_iter().filter(|(tick, _)| *tick >= from).collect();
        Self { ticks, end, ..Self::default() }
    }

    /// The same from an earlier tick on, with what was taken since.
    pub(crate) fn again(self, since: impl IntoIterator<Item = (u64, Vec<Event>)>) -> Self {
        let first = self.ticks.first().map_or(self.end, |(tick, _)| *tick);
        let mut ticks: Ticks = since.into_iter().filter(|(tick, _)| *tick < first).collect();
        ticks.extend(self.ticks);
        Self { ticks, done: 0, sent: 0, ..self }
    }

    /// Hands out messages while there is room for them, marks and events; `true` of those that are events. Returns the ticks that may begin: those below.
    pub(crate) fn step(&mut self, mut room: u32, mut put: impl FnMut(&Event, bool)) -> u64 {
        while let Some((tick, events)) = self.ticks.get(self.done) {
            let mark = Event { kind: event::MARK, a: *tick as u32, ..Event::default() };
            let messages = std::iter::once((&mark, false)).chain(events.iter().map(|event| (event, true)));
            for (message, is_event) in messages.skip(self.sent) {
                if room == 0 {
                    return *tick;
                }
                put(message, is_event);
                room -= 1;
                self.sent += 1;
            }
            self.done += 1;
            self.sent = 0;
        }
        self.end
    }

    /// Whether all that is for certain ticks was handed out.
    pub(crate) fn is_sent(&self) -> bool {
        self.done == self.ticks.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: u32) -> Event {
        Event { kind: event::WRITE, id, ..Event::default() }
    }

    #[test]
    fn a_tick_may_begin_when_all_its_events_are_there() {
        let ticks = [(1, vec![event(0)]), (3, vec![event(1), event(2)]), (7, vec![event(3)])];
        let mut feed = Feed::new(ticks, 2, 9);
        let mut got = Vec::new();
        let mut step = |feed: &mut Feed, room| {
            feed.step(room, |event, is_event| got.push(if is_event { event.id } else { 100 + event.a }))
        };
        assert_eq!(step(&mut feed, 0), 3);
        assert_eq!(step(&mut feed, 2), 3);
        assert_eq!(step(&mut feed, 1), 7);
        assert!(!feed.is_sent());
        assert_eq!(step(&mut feed, 100), 9);
        assert!(feed.is_sent());
        assert_eq!(got, [103, 1, 2, 107, 3]);
    }

    #[test]
    fn after_a_restart_it_begins_again_with_what_was_taken_since() {
        let mut feed = Feed::new([(5, vec![event(5)]), (6, vec![event(6)])], 5, 8);
        feed.step(100, |_, _| {});
        let mut feed = feed.again([(3, vec![event(3)]), (5, vec![event(5)])]);
        let mut got = Vec::new();
        assert_eq!(feed.step(100, |event, is_event| got.extend(is_event.then_some(event.id))), 8);
        assert_eq!(got, [3, 5, 6]);
    }
}
