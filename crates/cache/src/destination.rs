//! Where a payload is put.
//!
//! A payload of megabytes that is copied to where it is used costs as much again as reading it: most of that is the system giving out pages. So whoever
//! asks says what it shall lie in, and pieces of the entry are unpacked there.

use std::io;

/// Memory for a payload.
pub trait Destination: AsRef<[u8]> + AsMut<[u8]> + Sized {
    /// With so many bytes, or more. What is in them does not matter.
    fn with_length(bytes: usize) -> io::Result<Self>;
}

impl Destination for Vec<u8> {
    fn with_length(bytes: usize) -> io::Result<Self> {
        Ok(vec![0; bytes])
    }
}
