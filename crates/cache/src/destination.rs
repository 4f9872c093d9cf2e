//! Memory that the caller provides for a payload.
//!
//! Copying a payload of megabytes to where it is used would cost as much again as reading it, mostly because the system
//! has to hand out pages. So the caller chooses the memory, and the pieces of the entry are unpacked straight into it.

use std::io;

/// Memory for a payload.
pub trait Destination: AsRef<[u8]> + AsMut<[u8]> + Sized {
    /// Allocates at least `bytes` bytes. Their content does not matter.
    fn with_length(bytes: usize) -> io::Result<Self>;
}

impl Destination for Vec<u8> {
    fn with_length(bytes: usize) -> io::Result<Self> {
        Ok(vec![0; bytes])
    }
}
