//! Words that say by themselves whether they are there: 48 bits of a message, and a *tag* of 16.
//!
//! Both rings between host and device consist of such words, that of host calls (`bus`) and those of the resident machine. The tag is the lap of
//! the ring, or the number of a packet. So a reader knows of every word whether it has arrived: no order between words has to be relied
//! on, and one look brings all. The machine's device code includes this file as it is.

/// Where a word's tag begins.
pub const TAG_SHIFT: u32 = 48;
/// The bits of a word below its tag.
pub const LOW: u64 = (1 << TAG_SHIFT) - 1;

/// The tag in its place.
pub const fn tag(number: u16) -> u64 {
    (number as u64) << TAG_SHIFT
}

/// What the words of the `index`th message of a ring carry: never 0, which is what memory begins with, and another tag than one lap before.
pub const fn lap_tag(index: u32, capacity: u32) -> u64 {
    tag((index / capacity % 0xFFFF + 1) as u16)
}

/// Whether all words carry this tag.
pub fn are_tagged(words: &[u64], tag: u64) -> bool {
    words.iter().all(|word| word & !LOW == tag)
}
