//! Giving a machine events for particular ticks: to replay a log, or to redo ticks after a restart.
//!
//! A mark in the ring holds the events behind it back until its tick, and the machine's tick limit keeps it from
//! beginning a tick whose events are not all in the ring yet.

use crate::event::{self, Event};
use std::collections::VecDeque;

pub(crate) type Ticks = Vec<(u64, Vec<Event>)>;

/// Events with their ticks, in order.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    ticks: Ticks,
    /// How many ticks have all their messages in the ring, and how many messages of the next tick are.
    done: usize,
    sent: usize,
    /// The tick that the machine is to reach.
    pub(crate) end: u64,
    /// Whether the machine then continues by itself.
    pub(crate) then_free: bool,
    /// Whether another feed follows. If so, callers cannot post in between.
    pub(crate) more: bool,
    /// Whether these events are in the log already.
    pub(crate) recorded: bool,
    /// Events that were posted for no particular tick, to follow all others; `true` for one that is in the log already.
    pub(crate) then: VecDeque<(Event, bool)>,
}

impl Feed {
    /// Makes a feed of the events in `ticks` that are for the tick `from` or later.
    pub(crate) fn new(ticks: impl IntoIterator<Item = (u64, Vec<Event>)>, from: u64, end: u64) -> Self {
        let ticks = ticks.into_iter().filter(|(tick, _)| *tick >= from).collect();
        Self { ticks, end, ..Self::default() }
    }

    /// Starts the feed over from an earlier tick, with the events in `since` that ticks took since then.
    pub(crate) fn again(self, since: impl IntoIterator<Item = (u64, Vec<Event>)>) -> Self {
        let first = self.ticks.first().map_or(self.end, |(tick, _)| *tick);
        let mut ticks: Ticks = since.into_iter().filter(|(tick, _)| *tick < first).collect();
        ticks.extend(self.ticks);
        Self { ticks, done: 0, sent: 0, ..self }
    }

    /// Hands `put` marks and events, at most `room` of them; the flag is `true` for an event. Returns the tick limit:
    /// ticks below it may begin.
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

    /// Whether all events for particular ticks were handed out.
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
