//! A test load: events that keep a machine busy, the same for the same seed.
//!
//! The events create, write, work on, read and destroy objects, some with a delay. At most `KEYS` objects exist at a
//! time, so that the heap does not fill up.

use crate::event::{self, Event};

/// How many objects exist at most.
const KEYS: u32 = 1024;

/// An endless iterator of events.
#[derive(Clone, Debug)]
pub struct Workload {
    random: u64,
    posted: u32,
}

impl Workload {
    pub fn new(seed: u64) -> Self {
        Self { random: seed ^ 0x9E37_79B9_7F4A_7C15, posted: 0 }
    }

    fn below(&mut self, limit: u32) -> u32 {
        // SplitMix64.
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.random;
        x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((x ^ x >> 31) >> 32) as u32 % limit
    }

    /// Returns the events that destroy every object, so that nothing is left.
    pub fn farewell() -> impl Iterator<Item = Event> {
        (0..KEYS).map(|key| Event { kind: event::DESTROY, key, ..Event::default() })
    }
}

impl Iterator for Workload {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let key = self.below(KEYS);
        let limit = 64 << self.below(7);
        let wait = if self.below(16) == 0 { 1 + self.below(20) } else { 0 };
        let (kind, a, b) = match self.below(10) {
            0..3 => (event::CREATE, 4 + self.below(limit), 0),
            3..5 => (event::DESTROY, 0, 0),
            5..7 => (event::WRITE, self.below(16) * 4, self.below(u32::MAX)),
            7..9 => (event::WORK, self.below(u32::MAX), 1 + self.below(4)),
            _ => (event::READ, 0, 0),
        };
        self.posted = self.posted.wrapping_add(1);
        let flags = if self.posted.is_multiple_of(8) { event::ANSWER } else { 0 };
        Some(Event { kind, flags, key, a, b, id: self.posted, wait })
    }
}
