//! The host's view of memory that a device can reach.
//!
//! All of it is addressed by offset, and this module checks every offset and length before anything is touched.

use crate::{Error, Result};
use std::any::Any;
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// How a device frees, reads and writes its own memory.
pub(crate) trait Backing: Send + Sync {
    /// The address that kernels use for byte 0.
    fn address(&self) -> u64;
    fn len(&self) -> u64;
    /// Copies from host memory.
    ///
    /// # Safety
    /// `at + len <= len()` holds, and `from` is valid for reads of `len` bytes until this returns.
    unsafe fn write(&self, at: u64, from: *const u8, len: usize) -> Result<()>;
    /// Copies to host memory.
    ///
    /// # Safety
    /// `at + len <= len()` holds, and `to` is valid for writes of `len` bytes until this returns.
    unsafe fn read(&self, at: u64, to: *mut u8, len: usize) -> Result<()>;
    /// A number that identifies the device: the same for all of its memory.
    fn device(&self) -> usize;
    /// Copies from other memory of the same device; `from` is an address.
    ///
    /// # Safety
    /// `at + len <= len()` holds, and `from` has `len` bytes of memory of the same device until this returns.
    unsafe fn copy(&self, at: u64, from: u64, len: usize) -> Result<()>;
    /// Clears `len` bytes; `at + len <= len()` holds.
    fn zero(&self, at: u64, len: u64) -> Result<()>;
    /// Clears all rows, which lie inside the memory.
    fn zero_rows(&self, rows: Rows) -> Result<()> {
        rows.starts().try_for_each(|at| self.zero(at, rows.len))
    }
}

/// Parts of a memory, of the same length and at equal distances.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// Where the first row begins; `pitch` is the distance from one row to the next.
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
    /// The address that kernels use.
    pub fn address(&self) -> u64 {
        self.backing.address()
    }
    pub fn len(&self) -> u64 {
        self.backing.len()
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Copies `bytes` into the buffer.
    ///
    /// # Panics
    /// If the range is not inside the buffer.
    pub fn write(&self, at: u64, bytes: &[u8]) -> Result<()> {
        self.check(at, bytes.len() as u64);
        // SAFETY: the range was checked; the slice is borrowed until this returns.
        unsafe { self.backing.write(at, bytes.as_ptr(), bytes.len()) }
    }
    /// Copies from shared memory, which a GPU fetches by itself: the fastest way in.
    ///
    /// # Panics
    /// If one of the ranges is not inside its memory.
    pub fn write_from(&self, at: u64, shared: &Shared, from: u64, len: u64) -> Result<()> {
        self.check(at, len);
        shared.check(from, len, 1);
        // SAFETY: both ranges were checked; `shared` is borrowed until this returns. The copy makes no reference into
        // `shared`: what a kernel writes there meanwhile may or may not be copied.
        unsafe { self.backing.write(at, shared.pointer.as_ptr().add(from as usize), len as usize) }
    }
    /// Copies from other memory of the same device, without going through the host.
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
    /// Copies out of the buffer into `bytes`.
    ///
    /// # Panics
    /// If the range is not inside the buffer.
    pub fn read(&self, at: u64, bytes: &mut [u8]) -> Result<()> {
        self.check(at, bytes.len() as u64);
        // SAFETY: the range was checked; the slice is borrowed until this returns.
        unsafe { self.backing.read(at, bytes.as_mut_ptr(), bytes.len()) }
    }
    /// Copies to shared memory, which a GPU writes by itself: the fastest way out.
    ///
    /// # Panics
    /// If one of the ranges is not inside its memory.
    pub fn read_to(&self, at: u64, shared: &Shared, to: u64, len: u64) -> Result<()> {
        self.check(at, len);
        shared.check(to, len, 1);
        // SAFETY: both ranges were checked; `shared` is borrowed until this returns, and there are no references into it.
        unsafe { self.backing.read(at, shared.pointer.as_ptr().add(to as usize), len as usize) }
    }
    /// Clears a range.
    ///
    /// # Panics
    /// If the range is not inside the buffer.
    pub fn zero(&self, at: u64, len: u64) -> Result<()> {
        self.check(at, len);
        self.backing.zero(at, len)
    }
    /// Clears all rows.
    ///
    /// # Panics
    /// If the last row is not inside the buffer.
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

/// Host memory that a device copies its own memory to: the fastest way out. Nothing else writes there, so the host
/// reads it like ordinary memory.
///
/// Dropping a tray of a GPU waits until no kernel runs. Code that serves a kernel must get its tray before the launch.
pub struct Tray {
    backing: Box<dyn TrayBacking>,
}

/// How a device fills a tray.
pub(crate) trait TrayBacking: Send {
    fn bytes(&self) -> &[u8];
    /// # Safety
    /// `from` has `len` bytes at `at`, and the tray has at least `len` bytes.
    unsafe fn fetch(&mut self, from: &dyn Backing, at: u64, len: usize) -> Result<()>;
}

/// For devices whose memory is the host's.
impl TrayBacking for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }
    unsafe fn fetch(&mut self, from: &dyn Backing, at: u64, len: usize) -> Result<()> {
        // SAFETY: promised by the caller.
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
    /// Copies device memory to the start of the tray, and returns the copy.
    ///
    /// # Panics
    /// If the range is not inside the buffer, or longer than the tray.
    pub fn fetch(&mut self, buffer: &Buffer, at: u64, len: u64) -> Result<&[u8]> {
        buffer.check(at, len);
        assert!(len <= self.len(), "{len} bytes do not fit on {self:?}");
        // SAFETY: the range in the buffer and the tray's length were checked.
        unsafe { self.backing.fetch(&*buffer.backing, at, len as usize) }?;
        Ok(&self.backing.bytes()[..len as usize])
    }
    /// All bytes of the tray: those copied last come first, the rest is older.
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
/// A kernel may write any of it at any time, so every access here is atomic. Words use acquire and release, which order
/// the accesses around them; bytes are relaxed.
pub struct Shared {
    pointer: NonNull<u8>,
    len: u64,
    address: u64,
    /// Frees the memory when dropped.
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
    /// The address that kernels use.
    pub fn address(&self) -> u64 {
        self.address
    }
    pub fn len(&self) -> u64 {
        self.len
    }
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Loads a word with acquire: everything the device wrote before it released this word is visible afterwards.
    ///
    /// # Panics
    /// If `at` is not a multiple of 4 inside the memory. The other word accesses panic alike; 64-bit ones need a
    /// multiple of 8.
    #[inline]
    pub fn load_u32(&self, at: u64) -> u32 {
        self.word32(at).load(Ordering::Acquire)
    }
    #[inline]
    pub fn load_u64(&self, at: u64) -> u64 {
        self.word64(at).load(Ordering::Acquire)
    }
    /// Stores a word with release: a device that acquires this word sees everything written before.
    #[inline]
    pub fn store_u32(&self, at: u64, value: u32) {
        self.word32(at).store(value, Ordering::Release);
    }
    #[inline]
    pub fn store_u64(&self, at: u64, value: u64) {
        self.word64(at).store(value, Ordering::Release);
    }
    /// Copies bytes out, in words of 8 if `at` is a multiple of 8. To order the copy, do a [`Shared::load_u32`] before
    /// it.
    ///
    /// # Panics
    /// If the range is not inside the memory.
    pub fn read(&self, at: u64, bytes: &mut [u8]) {
        self.check(at, bytes.len() as u64, 1);
        let words = if at.is_multiple_of(8) { bytes.len() / 8 } else { 0 };
        let (whole, rest) = bytes.split_at_mut(words * 8);
        for (word, chunk) in (at..).step_by(8).zip(whole.chunks_exact_mut(8)) {
            // SAFETY: the range was checked; `word` is a multiple of 8 with 8 bytes of the range behind it.
            let word = unsafe { AtomicU64::from_ptr(self.pointer.as_ptr().add(word as usize).cast()) };
            chunk.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
        }
        for (byte, slot) in (at + words as u64 * 8..).zip(rest) {
            *slot = self.byte(byte).load(Ordering::Relaxed);
        }
    }
    /// Copies bytes in, in words of 8 if `at` is a multiple of 8. To order the copy, do a [`Shared::store_u32`] after
    /// it.
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
            // SAFETY: the range was checked; `word` is a multiple of 8 with 8 bytes of the range behind it.
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
