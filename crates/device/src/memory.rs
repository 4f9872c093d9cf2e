//! Memory a device can reach, as the host sees it.
//!
//! Both kinds are addressed by offset, and every offset and length is checked here before anything is touched.

use crate::{Error, Result};
use std::any::Any;
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// How a device frees, reads and writes its own memory.
pub(crate) trait Backing: Send + Sync {
    /// The address a kernel uses for byte 0.
    fn address(&self) -> u64;
    fn len(&self) -> u64;
    /// Copies from memory of the host.
    ///
    /// # Safety
    /// `at + len <= len()` holds, and `from` is valid for reads of `len` bytes until this returns.
    unsafe fn write(&self, at: u64, from: *const u8, len: usize) -> Result<()>;
    /// Copies to memory of the host.
    ///
    /// # Safety
    /// `at + len <= len()` holds, and `to` is valid for writes of `len` bytes until this returns.
    unsafe fn read(&self, at: u64, to: *mut u8, len: usize) -> Result<()>;
    /// What is the same for all memory of one device.
    fn device(&self) -> usize;
    /// Copies from other memory of the same device, at this address.
    ///
    /// # Safety
    /// `at + len <= len()` holds, and `from` has `len` bytes of memory of the same device until this returns.
    unsafe fn copy(&self, at: u64, from: u64, len: usize) -> Result<()>;
    /// `at + len <= len()` holds.
    fn zero(&self, at: u64, len: u64) -> Result<()>;
    /// The same for all of them.
    fn zero_rows(&self, rows: Rows) -> Result<()> {
        rows.starts().try_for_each(|at| self.zero(at, rows.len))
    }
}

/// Parts of a memory, each of the same length and as far from the next.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// Where the first begins.
    pub at: u64,
    pub len: u64,
    pub pitch: u64,
    pub count: u64,
}

impl Rows {
    pub(crate) fn starts(self) -> impl Iterator<Item = u64> {
        (0..self.count).map(move |row| self.at + row * self.pitch)
    }
}

/// Device memory; freed when dropped.
pub struct Buffer {
    backing: Box<dyn Backing>,
}

impl Buffer {
    pub(crate) fn new(backing: impl Backing + 'static) -> Self {
        Self { backing: Box::new(backing) }
    }
    pub(crate) fn into_backing(self) -> Box<dyn Backing> {
        self.backing
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
        // SAFETY: checked; the slice is borrowed until this returns.
        unsafe { self.backing.write(at, bytes.as_ptr(), bytes.len()) }
    }
    /// The same from shared memory, which a GPU fetches by itself: the fastest way in.
    ///
    /// # Panics
    /// If one of the ranges is not inside its memory.
    pub fn write_from(&self, at: u64, shared: &Shared, from: u64, len: u64) -> Result<()> {
        self.check(at, len);
        shared.check(from, len, 1);
        // SAFETY: both ranges were checked; `shared` is borrowed until this returns. Copying is no reference: what a kernel writes meanwhile
        // may or may not be in the copy.
        unsafe { self.backing.write(at, shared.pointer.as_ptr().add(from as usize), len as usize) }
    }
    /// The same from other memory of the same device: nothing of it goes through the host.
    ///
    /// # Panics
    /// If one of the ranges is not inside its memory.
    pub fn copy_from(&self, at: u64, other: &Buffer, from: u64, len: u64) -> Result<()> {
        self.check(at, len);
        other.check(from, len);
        if self.backing.device() != other.backing.device() {
            return Err(Error::Unavailable("memory of one device cannot be copied to another".into()));
        }
        // SAFETY: both ranges were checked, the device is the same, and `other` is borrowed until this returns.
        unsafe { self.backing.copy(at, other.address() + from, len as usize) }
    }
    /// # Panics
    /// If the range is not inside the buffer.
    pub fn read(&self, at: u64, bytes: &mut [u8]) -> Result<()> {
        self.check(at, bytes.len() as u64);
        // SAFETY: checked; the slice is borrowed until this returns.
        unsafe { self.backing.read(at, bytes.as_mut_ptr(), bytes.len()) }
    }
    /// The same to shared memory, where a GPU puts it by itself: the fastest way out.
    ///
    /// # Panics
    /// If one of the ranges is not inside its memory.
    pub fn read_to(&self, at: u64, shared: &Shared, to: u64, len: u64) -> Result<()> {
        self.check(at, len);
        shared.check(to, len, 1);
        // SAFETY: both ranges were checked; `shared` is borrowed until this returns, and there are no references into it.
        unsafe { self.backing.read(at, shared.pointer.as_ptr().add(to as usize), len as usize) }
    }
    /// # Panics
    /// If the range is not inside the buffer.
    pub fn zero(&self, at: u64, len: u64) -> Result<()> {
        self.check(at, len);
        self.backing.zero(at, len)
    }
    /// # Panics
    /// If they are not inside the buffer.
    pub fn zero_rows(&self, rows: Rows) -> Result<()> {
        let Some(last) = rows.starts().last() else { return Ok(()) };
        self.check(last, rows.len);
        self.backing.zero_rows(rows)
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

/// Memory of the host to which a device copies its own: the fastest way out. Nothing else writes there, so it is read like any other.
///
/// A GPU frees one when no kernel runs. Whoever serves a kernel must have it before.
pub struct Tray {
    backing: Box<dyn TrayBacking>,
}

/// How a device fills it.
pub(crate) trait TrayBacking: Send {
    fn bytes(&self) -> &[u8];
    /// # Safety
    /// `from` has `len` bytes at `at`, and there are as many here.
    unsafe fn fetch(&mut self, from: &dyn Backing, at: u64, len: usize) -> Result<()>;
}

/// Of a device whose memory is the host's.
impl TrayBacking for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }
    unsafe fn fetch(&mut self, from: &dyn Backing, at: u64, len: usize) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { from.read(at, self.as_mut_ptr(), len) }
    }
}

impl Tray {
    pub(crate) fn new(backing: impl TrayBacking + 'static) -> Self {
        Self { backing: Box::new(backing) }
    }
    pub fn len(&self) -> u64 {
        self.backing.bytes().len() as u64
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Copies from memory of the device, in place of what was here.
    ///
    /// # Panics
    /// If the range is not inside the buffer, or longer than this.
    pub fn fetch(&mut self, buffer: &Buffer, at: u64, len: u64) -> Result<&[u8]> {
        buffer.check(at, len);
        assert!(len <= self.len(), "{len} bytes do not fit on {self:?}");
        // SAFETY: both were checked.
        unsafe { self.backing.fetch(&*buffer.backing, at, len as usize) }?;
        Ok(&self.backing.bytes()[..len as usize])
    }
    /// What was copied last, and whatever is behind it.
    pub fn bytes(&self) -> &[u8] {
        self.backing.bytes()
    }
}

impl fmt::Debug for Tray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tray({} bytes)", self.len())
    }
}

/// Memory that host and device both see; freed when dropped.
///
/// A kernel may write any of it at any time, so everything here goes by atomics: words with acquire and release, which order
/// what is around them, bytes relaxed.
pub struct Shared {
    pointer: NonNull<u8>,
    len: u64,
    address: u64,
    /// Frees the memory.
    _owner: Box<dyn Any + Send + Sync>,
}

// SAFETY: the memory belongs to `_owner`, which may be sent and shared, and is touched through atomics only.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// # Safety
    /// `pointer` is valid for reads and writes of `len` bytes and aligned to 8 for as long as `owner` lives, and Rust holds no
    /// reference to any of them.
    pub(crate) unsafe fn new(
        pointer: NonNull<u8>,
        len: u64,
        address: u64,
        owner: impl Any + Send + Sync + 'static,
    ) -> Self {
        debug_assert_eq!(pointer.as_ptr() as usize % 8, 0);
        Self { pointer, len, address, _owner: Box::new(owner) }
    }
    /// What kernels know it by.
    pub fn address(&self) -> u64 {
        self.address
    }
    pub fn len(&self) -> u64 {
        self.len
    }
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Acquire: what the device wrote before it released this word is visible after.
    ///
    /// # Panics
    /// If `at` is not a multiple of 4 inside the memory. The same for the other words.
    #[inline]
    pub fn load_u32(&self, at: u64) -> u32 {
        self.word32(at).load(Ordering::Acquire)
    }
    #[inline]
    pub fn load_u64(&self, at: u64) -> u64 {
        self.word64(at).load(Ordering::Acquire)
    }
    /// Release: a device that acquires this word sees what was written before.
    #[inline]
    pub fn store_u32(&self, at: u64, value: u32) {
        self.word32(at).store(value, Ordering::Release);
    }
    #[inline]
    pub fn store_u64(&self, at: u64, value: u64) {
        self.word64(at).store(value, Ordering::Release);
    }
    /// Copies bytes out, word by word where `at` is aligned. Order it with a [`Shared::load_u32`] before.
    ///
    /// # Panics
    /// If the range is not inside the memory.
    pub fn read(&self, at: u64, bytes: &mut [u8]) {
        self.check(at, bytes.len() as u64, 1);
        let words = if at.is_multiple_of(8) { bytes.len() / 8 } else { 0 };
        let (whole, rest) = bytes.split_at_mut(words * 8);
        for (word, chunk) in (at..).step_by(8).zip(whole.chunks_exact_mut(8)) {
            // SAFETY: the range was checked, and `word` is a multiple of 8 in it with 8 bytes behind.
            let word = unsafe { AtomicU64::from_ptr(self.pointer.as_ptr().add(word as usize).cast()) };
            chunk.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
        }
        for (byte, slot) in (at + words as u64 * 8..).zip(rest) {
            *slot = self.byte(byte).load(Ordering::Relaxed);
        }
    }
    /// Copies bytes in; order it with a [`Shared::store_u32`] after.
    ///
    /// # Panics
    /// If the range is not inside the memory.
    pub fn write(&self, at: u64, bytes: &[u8]) {
        self.check(at, bytes.len() as u64, 1);
        let words = if at.is_multiple_of(8) { bytes.len() / 8 } else { 0 };
        let (whole, rest) = bytes.split_at(words * 8);
        let mut chunk = [0; 8];
        for (word, from) in (at..).step_by(8).zip(whole.chunks_exact(8)) {
            chunk.copy_from_slice(from);
            // SAFETY: the range was checked, and `word` is a multiple of 8 in it with 8 bytes behind.
            let word = unsafe { AtomicU64::from_ptr(self.pointer.as_ptr().add(word as usize).cast()) };
            word.store(u64::from_ne_bytes(chunk), Ordering::Relaxed);
        }
        for (byte, value) in (at + words as u64 * 8..).zip(rest) {
            self.byte(byte).store(*value, Ordering::Relaxed);
        }
    }
    #[inline]
    fn check(&self, at: u64, len: u64, align: u64) {
        assert!(
            at.checked_add(len).is_some_and(|end| end <= self.len) && at.is_multiple_of(align),
            "{at}+{len} is outside {self:?}, or not aligned"
        );
    }
    #[inline]
    fn byte(&self, at: u64) -> &AtomicU8 {
        self.check(at, 1, 1);
        // SAFETY: `at` was checked; `new`'s contract makes the memory valid while `self` lives.
        unsafe { AtomicU8::from_ptr(self.pointer.as_ptr().add(at as usize)) }
    }
    #[inline]
    fn word32(&self, at: u64) -> &AtomicU32 {
        self.check(at, 4, 4);
        // SAFETY: range and alignment were checked; `new`'s contract makes the memory valid while `self` lives.
        unsafe { AtomicU32::from_ptr(self.pointer.as_ptr().add(at as usize).cast()) }
    }
    #[inline]
    fn word64(&self, at: u64) -> &AtomicU64 {
        self.check(at, 8, 8);
        // SAFETY: range and alignment were checked; `new`'s contract makes the memory valid while `self` lives.
        unsafe { AtomicU64::from_ptr(self.pointer.as_ptr().add(at as usize).cast()) }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shared({:#x}, {} bytes)", self.address, self.len)
    }
}
