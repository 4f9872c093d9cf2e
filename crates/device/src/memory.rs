//! Memory a device can reach, as the host sees it.
//!
//! Both kinds are addressed by offset, and every offset and length is checked here before anything is touched.

use crate::Result;
use std::fmt;

/// How a device frees, reads and writes its own memory.
pub(crate) trait Backing: Send + Sync {
    /// The address a kernel uses for byte 0.
    fn address(&self) -> u64;
    fn len(&self) -> u64;
    /// `at + bytes.len() <= len()` holds.
    fn write(&self, at: u64, bytes: &[u8]) -> Result<()>;
    /// `at + bytes.len() <= len()` holds.
    fn read(&self, at: u64, bytes: &mut [u8]) -> Result<()>;
    /// `at + len <= len()` holds.
    fn zero(&self, at: u64, len: u64) -> Result<()>;
}

/// Device memory; freed when dropped.
pub struct Buffer {
    backing: Box<dyn Backing>,
}

impl Buffer {
    pub(crate) fn new(backing: impl Backing + 'static) -> Self {
        Self { backing: Box::new(backing) }
    }
    /// What kernels know it by.
    pub fn address(&self) -> u64 {
        self.backing.address()
    }
    pub fn len(&self) -> u64 {
        self.backing.len()
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// # Panics
    /// If the range is not inside the buffer.
    pub fn write(&self, at: u64, bytes: &[u8]) -> Result<()> {
        self.check(at, bytes.len() as u64);
        self.backing.write(at, bytes)
    }
    /// # Panics
    /// If the range is not inside the buffer.
    pub fn read(&self, at: u64, bytes: &mut [u8]) -> Result<()> {
        self.check(at, bytes.len() as u64);
        self.backing.read(at, bytes)
    }
    /// # Panics
    /// If the range is not inside the buffer.
    pub fn zero(&self, at: u64, len: u64) -> Result<()> {
        self.check(at, len);
        self.backing.zero(at, len)
    }
    fn check(&self, at: u64, len: u64) {
        assert!(at.checked_add(len).is_some_and(|end| end <= self.len()), "{at}+{len} is outside {self:?}");
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({:#x}, {} bytes)", self.address(), self.len())
    }
}
