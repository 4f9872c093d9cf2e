//! A hash of a stream that another process can go on with.
//!
//! What is hashed is cut into blocks; a block's hash begins with the one before it. So it depends on the bytes alone, however they come, and from an
//! [`Anchor`], the border of a block, it can be gone on with.

use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// Bytes of a block.
const BLOCK_BYTES: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct Chain {
    /// Where the present block begins.
    anchor: Anchor,
    /// Of the anchor's hash and what is in the block so far.
    block: blake3::Hasher,
    filled: u64,
}

/// The border of a block, and what all before it hash to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Anchor {
    pub(crate) offset: u64,
    hash: [u8; 32],
}

impl Anchor {
    /// The stream's beginning.
    pub(crate) fn start() -> Self {
        Self { offset: 0, hash: [0; 32] }
    }
}

impl Chain {
    pub(crate) fn new() -> Self {
        Self::from(Anchor::start())
    }

    pub(crate) fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let count = bytes.len().min((BLOCK_BYTES - self.filled) as usize);
            let (now, later) = bytes.split_at(count);
            self.block.update(now);
            self.filled += count as u64;
            bytes = later;
            if self.filled == BLOCK_BYTES {
                let offset = self.anchor.offset + BLOCK_BYTES;
                *self = Self::from(Anchor { offset, hash: *self.block.finalize().as_bytes() });
            }
        }
    }

    /// What the bytes so far hash to.
    pub(crate) fn seen(&self) -> String {
        self.block.finalize().to_hex().to_string()
    }

    /// From where another can go on, if it has the bytes since.
    pub(crate) fn anchor(&self) -> &Anchor {
        &self.anchor
    }
}

impl From<Anchor> for Chain {
    fn from(anchor: Anchor) -> Self {
        let mut block = blake3::Hasher::new();
        block.update(&anchor.hash);
        Self { anchor, block, filled: 0 }
    }
}

impl Write for Chain {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_depends_on_the_bytes_alone_and_goes_on_from_an_anchor() {
        let bytes: Vec<u8> = (0..3 * BLOCK_BYTES as u32 + 12_345).map(|i| ((i * 31) >> 7) as u8).collect();
        let mut whole = Chain::new();
        whole.update(&bytes);
        let mut pieces = Chain::new();
        bytes.chunks(99_991).for_each(|piece| pieces.update(piece));
        assert_eq!(whole.seen(), pieces.seen());
        assert_eq!(whole.anchor().offset, 3 * BLOCK_BYTES);
        let mut half = Chain::new();
        half.update(&bytes[..2 * BLOCK_BYTES as usize + 5]);
        let anchor = half.anchor().clone();
        let mut rest = Chain::from(anchor.clone());
        rest.update(&bytes[anchor.offset as usize..]);
        assert_eq!((rest.seen(), rest.anchor()), (whole.seen(), whole.anchor()));
        rest.update(b"x");
        assert_ne!(rest.seen(), whole.seen());
    }
}
