//! The host's side of the rings in memory that host and device share.
//!
//! Every word of a message carries a tag that names the lap of the ring it belongs to (`gpu_run_abi::tagged`). So the
//! message itself tells whether it has arrived, and writing one takes four stores.

use crate::event::Event;
use crate::layout::RING_LINE;
use gpu_run_abi::tagged::{are_tagged, lap_tag};
use gpu_run_device::Shared;

/// Where a ring lies on the bus, and how many messages it holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ring {
    at: u32,
    capacity: u32,
}

impl Ring {
    pub(crate) const fn new(at: u32, capacity: u32) -> Self {
        Self { at, capacity }
    }

    pub(crate) const fn capacity(self) -> u32 {
        self.capacity
    }

    fn line(self, index: u32) -> u64 {
        (self.at + index % self.capacity * RING_LINE) as u64
    }

    /// Writes message number `index`. The caller knows that the line is free: the reader has taken the message of the
    /// lap before.
    pub(crate) fn put(self, bus: &Shared, index: u32, event: &Event) {
        let tag = lap_tag(index, self.capacity);
        for (word, value) in event.pack().into_iter().enumerate() {
            bus.store_u64(self.line(index) + word as u64 * 8, value | tag);
        }
    }

    /// Returns message number `index`, if it has arrived.
    pub(crate) fn get(self, bus: &Shared, index: u32) -> Option<Event> {
        let words = [0, 8, 16, 24].map(|word| bus.load_u64(self.line(index) + word));
        let tag = lap_tag(index, self.capacity);
        are_tagged(&words, tag).then(|| Event::unpack(words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bus() -> Shared {
        gpu_run_device::cpu::open().share(4096).expect("memory")
    }

    fn event(id: u32) -> Event {
        Event { kind: 0x1234, flags: 0x5678, key: !id, a: 0x89AB_CDEF, b: id, id, wait: u32::MAX }
    }

    #[test]
    fn messages_come_out_as_they_went_in_lap_after_lap() {
        let (bus, ring) = (bus(), Ring::new(64, 8));
        for index in 0..40 {
            assert_eq!(ring.get(&bus, index), None);
            ring.put(&bus, index, &event(index));
            assert_eq!(ring.get(&bus, index), Some(event(index)));
        }
        // Where the numbers start again, and where the laps do.
        for index in [u32::MAX, 0xFFFF * 8 - 1, 0xFFFF * 8] {
            ring.put(&bus, index, &event(index));
            assert_eq!(ring.get(&bus, index), Some(event(index)));
        }
    }

    #[test]
    fn a_message_with_one_word_missing_is_not_there() {
        let (bus, ring) = (bus(), Ring::new(0, 8));
        for word in 0..4 {
            ring.put(&bus, 3, &event(1));
            ring.put(&bus, 11, &event(2));
            let old = event(1).pack()[word] | lap_tag(3, 8);
            bus.store_u64(3 * RING_LINE as u64 + word as u64 * 8, old);
            assert_eq!(ring.get(&bus, 11), None);
        }
    }
}
