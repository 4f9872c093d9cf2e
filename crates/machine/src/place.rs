//! Where a kernel's state lies. A kernel that is built on the machine's (`crates/desktop/kernel`) has more state than the machine: a
//! *room*, which lies behind the machine's scratch, and scratch of its own behind that. The kernel's section says so.
//!
//! ```text
//! constants ─ STATE ─ the machine's state ─ STATE_END ─ scratch ─ room ─ scratch ─ memory
//! ```

use crate::layout::{INTERFACE, MEMORY_BYTES, STATE, STATE_END, VERSION};
use std::ops::Range;

/// Stack bytes per thread, for what the compiler could not keep in registers.
const STACK_BYTES: u32 = 4 << 10;
/// The same for a kernel with a room, whose functions may call themselves.
const ROOM_STACK_BYTES: u32 = 16 << 10;
/// The largest memory that a kernel may have.
const MAX_MEMORY: u32 = 1 << 30;

/// The memory of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    room: Option<Room>,
}

/// The state that a kernel has beside the machine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// The first two words of the room.
    pub magic: u32,
    pub version: u32,
    pub start: u32,
    pub end: u32,
    /// Bytes of the kernel's memory.
    pub memory: u32,
}

impl Place {
    /// The place of the machine's own kernel.
    pub(crate) const MACHINE: Self = Self { room: None };

    /// Reads the section of a kernel's module: the version and the interface it was built with, and its place. Fails with the reason.
    pub(crate) fn read(section: &[u8]) -> Result<(u32, u32, Self), String> {
        let (words, rest) = section.as_chunks::<4>();
        let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let room = match (words.as_slice(), rest) {
            ([_, _], []) => None,
            (&[_, _, magic, version, start, end, memory], []) => Some(Room { magic, version, start, end, memory }),
            _ => return Err(format!("its section has {} bytes, and not 8 or 28", section.len())),
        };
        if let Some(room) = room {
            let inside = MEMORY_BYTES <= room.start && room.start < room.end && room.end <= room.memory;
            let aligned =
                room.start.is_multiple_of(8) && room.end.is_multiple_of(8) && room.memory.is_multiple_of(65536);
            if !inside || !aligned || room.memory > MAX_MEMORY {
                return Err(format!(
                    "its room from byte {} to byte {} of {} is not behind the machine's memory, which ends at byte {MEMORY_BYTES}",
                    room.start, room.end, room.memory
                ));
            }
        }
        Ok((words[0], words[1], Self { room }))
    }

    pub fn room(&self) -> Option<Room> {
        self.room
    }

    pub(crate) fn memory(&self) -> u32 {
        self.room.map_or(MEMORY_BYTES, |room| room.memory)
    }

    pub(crate) fn stack(&self) -> u32 {
        if self.room.is_some() { ROOM_STACK_BYTES } else { STACK_BYTES }
    }

    /// The parts of the memory that are state, in the order in which a checkpoint has them.
    pub(crate) fn state(&self) -> impl Iterator<Item = Range<u32>> + use<> {
        std::iter::once(STATE..STATE_END).chain(self.room.map(|room| room.start..room.end))
    }

    /// The parts behind the constants that are not state.
    pub(crate) fn scratch(&self) -> impl Iterator<Item = Range<u32>> + use<> {
        let (first, second) = match self.room {
            None => (STATE_END..MEMORY_BYTES, None),
            Some(room) => (STATE_END..room.start, Some(room.end..room.memory)),
        };
        std::iter::once(first).chain(second)
    }

    pub(crate) fn state_bytes(&self) -> usize {
        self.state().map(|part| part.len()).sum()
    }

    /// Whether these are the versions that this gpu-run works with.
    pub(crate) fn is_ours(version: u32, interface: u32) -> bool {
        (version, interface) == (VERSION, INTERFACE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn a_room_lies_behind_the_machines_memory() {
        let (start, memory) = (MEMORY_BYTES, MEMORY_BYTES + (1 << 20));
        let (_, _, place) = Place::read(&section(&[1, 1, 7, 3, start, start + 4096, memory])).unwrap();
        assert_eq!(place.room().map(|room| (room.magic, room.version)), Some((7, 3)));
        assert_eq!(place.state_bytes(), (STATE_END - STATE) as usize + 4096);
        let all: u32 = place.state().chain(place.scratch()).map(|part| part.len() as u32).sum();
        assert_eq!(all, memory - STATE);
        for wrong in [
            [start - 8, start, memory],
            [start, start, memory],
            [start, memory + 8, memory],
            [start, memory, memory - 8],
        ] {
            let [from, to, memory] = wrong;
            assert!(Place::read(&section(&[1, 1, 7, 3, from, to, memory])).is_err(), "{wrong:?}");
        }
        assert!(Place::read(&section(&[1, 1, 7])).is_err());
    }
}
