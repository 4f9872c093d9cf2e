//! A hash of a stream that another process can continue.
//!
//! The stream is cut into blocks, and the hash of a block begins with the hash of the block before it. So the result
//! depends on the bytes alone, not on how they arrive, and can be continued from an [`Anchor`], the border between two
//! blocks.

use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// Bytes of a block.
const BLOCK_BYTES: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct Chain {
    /// Where the present block begins.
    anchor: Anchor,
    /// Hashes the anchor's hash and the present block's bytes so far.
    block: blake3::Hasher,
    filled: u64,
}

/// The border between two blocks, and the hash of everything before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Anchor {
    pub(crate) offset: u64,
    hash: [u8; 32],
}

impl Anchor {
    /// The beginning of the stream.
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

    /// Returns the hash of the bytes so far.
    pub(crate) fn seen(&self) -> String {
        self.block.finalize().to_hex().to_string()
    }

    /// Returns where another process can continue, if it has the bytes since then.
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
