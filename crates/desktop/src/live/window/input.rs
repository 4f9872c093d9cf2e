//! What the user did, before it is posted. Of moves and turns of the wheel that follow each other, one event is enough.

use crate::event::{self as e, touch};
use gpu_run_machine::Event;
use std::time::{Duration, Instant};

/// The least time between two posts, if all that happened are moves: a mouse may report a thousand a second.
const MOVES: Duration = Duration::from_millis(7);

#[derive(Debug, Default)]
pub(super) struct Input {
    events: Vec<Event>,
    posted: Option<Instant>,
}

impl Input {
    pub(super) fn push(&mut self, event: Event) {
        match self.events.last_mut() {
            Some(last) if is_same_move(last, &event) => *last = event,
            Some(last) if last.kind == e::WHEEL && event.kind == e::WHEEL => {
                last.a = last.a.wrapping_add(event.a);
                last.b = last.b.wrapping_add(event.b);
            }
            _ => self.events.push(event),
        }
    }

    /// How long what happened waits before it is posted; none: nothing happened.
    pub(super) fn due(&self) -> Option<Duration> {
        if self.events.is_empty() {
            return None;
        }
        let may_wait = |event: &Event| matches!(event.kind, e::MOVE | e::WHEEL) || is_moving(event);
        let since = self.posted.map(|posted| posted.elapsed()).filter(|_| self.events.iter().all(may_wait));
        Some(since.map_or(Duration::ZERO, |since| MOVES.saturating_sub(since)))
    }

    /// What happened since the last call.
    pub(super) fn take(&mut self) -> Vec<Event> {
        self.posted = Some(Instant::now());
        std::mem::take(&mut self.events)
    }
}

/// A finger that moves.
fn is_moving(event: &Event) -> bool {
    event.kind == e::TOUCH && event.flags == touch::MOVED
}

fn is_same_move(last: &Event, event: &Event) -> bool {
    let both = |is: fn(&Event) -> bool| is(last) && is(event);
    both(|event| event.kind == e::MOVE) || both(is_moving) && last.key == event.key
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: u16, flags: u16, key: u32, a: u32) -> Event {
        Event { kind, flags, key, a, ..Event::default() }
    }

    #[test]
    fn moves_become_one_and_everything_keeps_its_order() {
        let mut input = Input::default();
        let finger = |flags, key, a| event(e::TOUCH, flags, key, a);
        let all = [
            event(e::MOVE, 0, 0, 1),
            event(e::MOVE, 0, 0, 2),
            event(e::PRESS, 0, 0, 2),
            event(e::MOVE, 0, 0, 3),
            event(e::WHEEL, 0, 0, 256),
            event(e::WHEEL, 0, 0, -512i32 as u32),
            finger(touch::DOWN, 1, 0),
            finger(touch::MOVED, 1, 1),
            finger(touch::MOVED, 1, 2),
            finger(touch::MOVED, 2, 3),
        ];
        all.into_iter().for_each(|event| input.push(event));
        let left = [all[1], all[2], all[3], event(e::WHEEL, 0, 0, -256i32 as u32), all[6], all[8], all[9]];
        assert_eq!(input.take(), left);
    }

    #[test]
    fn only_moves_wait() {
        let mut input = Input::default();
        assert_eq!(input.due(), None);
        input.push(event(e::MOVE, 0, 0, 1));
        assert_eq!(input.due(), Some(Duration::ZERO), "the first one");
        input.take();
        input.push(event(e::MOVE, 0, 0, 2));
        assert!(input.due().unwrap() <= MOVES);
        input.push(event(e::KEY, 0, 1, 0));
        assert_eq!(input.due(), Some(Duration::ZERO));
    }
}
