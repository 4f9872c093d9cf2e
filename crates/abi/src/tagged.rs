//! Tagged words: 48 bits of a message, and a *tag* of 16 bits from which a reader knows whether the word has arrived.
//!
//! All messages between host and device consist of tagged words: the requests and replies of host calls (`bus`), and the
//! messages in the rings of the resident machine. The tag is the lap of the ring or, in a reply, the sequence number of
//! the packet. Because every word has its own tag, the protocol relies on no order between the words of a message, and a
//! reader needs one look to read them all. The machine's device code includes this file unchanged.

/// The position of the tag's lowest bit in a word.
pub const TAG_SHIFT: u32 = 48;
/// The bits of a word below its tag.
pub const LOW: u64 = (1 << TAG_SHIFT) - 1;

/// Returns a word that consists of the tag `number` only.
pub const fn tag(number: u16) -> u64 {
    (number as u64) << TAG_SHIFT
}

/// Returns the tag of the `index`th message of a ring. It is never 0, because the ring's memory begins as zeros, and it
/// differs from the tag of one lap before.
pub const fn lap_tag(index: u32, capacity: u32) -> u64 {
    tag((index / capacity % 0xFFFF + 1) as u16)
}

/// Returns whether all words have this tag.
pub fn are_tagged(words: &[u64], tag: u64) -> bool {
    words.iter().all(|word| word & !LOW == tag)
}
