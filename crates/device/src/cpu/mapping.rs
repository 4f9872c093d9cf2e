//! Pages from the system: for device memory, code and stacks.

use crate::fault::Lost;
use crate::memory::Backing;
use crate::{Error, Result};
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect, munmap};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

pub(super) const PAGE: usize = 4096;
const LARGE_PAGE: usize = 2 << 20;
/// Zeroing at least this many bytes returns the pages to the system instead of writing to them.
const DISCARD: usize = 16 * PAGE;

/// A private mapping; unmapped when dropped. Pages cost memory only once they are touched.
#[derive(Debug)]
pub(super) struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping is plain memory, reachable from every thread.
unsafe impl Send for Mapping {}
// SAFETY: `&Mapping` only returns addresses; code that writes through them gives its own reason.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps zeroed memory to read and write.
    pub(super) fn new(bytes: u64) -> Result<Self> {
        Self::with(bytes, ProtFlags::READ | ProtFlags::WRITE)
    }

    /// Reserves addresses that nothing may touch yet.
    pub(super) fn reserve(bytes: u64) -> Result<Self> {
        Self::with(bytes, ProtFlags::empty())
    }

    fn with(bytes: u64, protection: ProtFlags) -> Result<Self> {
        let wanted = bytes;
        let len = usize::try_from(bytes).ok().and_then(|n| n.max(1).checked_next_multiple_of(PAGE));
        let len = len.ok_or(Error::OutOfMemory { wanted })?;
        // SAFETY: a new private mapping at an address the system chooses replaces nothing.
        let base = unsafe { mmap_anonymous(null_mut(), len, protection, MapFlags::PRIVATE | MapFlags::NORESERVE) };
        let base = base.ok().and_then(|p| NonNull::new(p.cast())).ok_or(Error::OutOfMemory { wanted })?;
        Ok(Self { base, len })
    }

    pub(super) fn base(&self) -> NonNull<u8> {
        self.base
    }
    pub(super) fn address(&self) -> u64 {
        self.base.as_ptr() as u64
    }

    /// Asks the system for large pages if the mapping is large enough: filling it then takes a few page faults instead
    /// of thousands.
    pub(super) fn prefer_large_pages(&mut self) {
        if self.len >= LARGE_PAGE {
            // SAFETY: the range is this mapping's, and its content stays the same. A system without large pages
            // refuses, which does no harm.
            let _ = unsafe { madvise(self.base.as_ptr().cast(), self.len, Advice::LinuxHugepage) };
        }
    }

    /// Makes the mapping executable and read-only from the page at `at` on. The pages before go back to the system and
    /// read as zero.
    pub(super) fn make_executable_from(&mut self, at: usize) -> Result<()> {
        assert!(at.is_multiple_of(PAGE) && at <= self.len, "code begins with a page of the mapping");
        // SAFETY: the range is this mapping's, and `at` is the start of a page in it; `&mut` ensures that nobody writes
        // to it.
        unsafe {
            mprotect(self.base.as_ptr().add(at).cast(), self.len - at, MprotectFlags::READ | MprotectFlags::EXEC)
        }
        .map_err(|e| Error::Codegen(format!("the system refuses to make code executable: {e}")))?;
        if at > 0 {
            // SAFETY: whole pages of this private mapping, which nobody reads any more. If this fails, the pages merely
            // stay.
            unsafe { discard(self.base.as_ptr() as usize, at) };
        }
        Ok(())
    }

    /// The bytes of the mapping, to be filled before anyone else knows of them.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: readable and writable pages of this mapping (`new`), borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped; nobody holds a reference into it any more. A failure only leaks.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// Memory for machine code that is about to be loaded, aligned to a page: `cpu` runs the code in place.
#[derive(Debug)]
pub struct Pages(pub(super) Mapping);

impl Pages {
    pub fn new(bytes: usize) -> Result<Self> {
        let mut mapping = Mapping::new(bytes as u64)?;
        mapping.prefer_large_pages();
        Ok(Self(mapping))
    }
}

impl AsRef<[u8]> for Pages {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: readable and writable pages of this mapping (`new`); writing to them takes `&mut self`.
        unsafe { std::slice::from_raw_parts(self.0.base.as_ptr(), self.0.len) }
    }
}

impl AsMut<[u8]> for Pages {
    fn as_mut(&mut self) -> &mut [u8] {
        self.0.bytes_mut()
    }
}

/// Makes pages of a mapping readable and writable.
///
/// # Safety
/// `at..at + len` is whole pages of one mapping that the caller owns.
pub(super) unsafe fn commit(at: usize, len: usize) -> Result<()> {
    // SAFETY: promised by the caller.
    unsafe { mprotect(at as *mut _, len, MprotectFlags::READ | MprotectFlags::WRITE) }
        .map_err(|_| Error::OutOfMemory { wanted: len as u64 })
}

/// Returns pages to the system; they read as zero afterwards. Returns whether that worked.
///
/// # Safety
/// `at..at + len` is whole pages of a private mapping whose content nobody needs any more.
pub(super) unsafe fn discard(at: usize, len: usize) -> bool {
    // SAFETY: promised by the caller.
    unsafe { madvise(at as *mut _, len, Advice::LinuxDontNeed) }.is_ok()
}

/// Device memory: a mapping that kernels may read and write at any time, so the host copies through raw pointers.
#[derive(Debug)]
pub(super) struct DeviceMemory {
    pub(super) mapping: Mapping,
    pub(super) len: u64,
    pub(super) lost: Arc<Lost>,
}

impl Backing for DeviceMemory {
    fn address(&self) -> u64 {
        self.mapping.address()
    }
    fn len(&self) -> u64 {
        self.len
    }
    unsafe fn write(&self, at: u64, from: *const u8, len: usize) -> Result<()> {
        self.lost.check()?;
        // SAFETY: `at + len <= self.len`, which the mapping covers; the rest is promised by the caller.
        unsafe { self.mapping.base.as_ptr().add(at as usize).copy_from(from, len) };
        Ok(())
    }
    unsafe fn read(&self, at: u64, to: *mut u8, len: usize) -> Result<()> {
        self.lost.check()?;
        // SAFETY: as above.
        unsafe { self.mapping.base.as_ptr().add(at as usize).copy_to(to, len) };
        Ok(())
    }
    fn device(&self) -> usize {
        Arc::as_ptr(&self.lost).addr()
    }
    unsafe fn copy(&self, at: u64, from: u64, len: usize) -> Result<()> {
        // SAFETY: addresses of the device are addresses of the process; the rest is promised by the caller.
        unsafe { self.write(at, from as *const u8, len) }
    }
    fn zero(&self, at: u64, len: u64) -> Result<()> {
        self.lost.check()?;
        let start = self.mapping.base.as_ptr() as usize + at as usize;
        let end = start + len as usize;
        let (first, last) = (start.next_multiple_of(PAGE), end / PAGE * PAGE);
        if last.saturating_sub(first) >= DISCARD {
            // SAFETY: whole pages within the private mapping, which the caller wants to be zero.
            if unsafe { discard(first, last - first) } {
                fill(start, first);
                fill(last, end);
                return Ok(());
            }
        }
        fill(start, end);
        Ok(())
    }
}

/// Writes zeros to a part of the range of `DeviceMemory::zero`.
fn fill(start: usize, end: usize) {
    // SAFETY: both callers pass a part of the range `zero` was given, which is inside the mapping.
    unsafe { (start as *mut u8).write_bytes(0, end - start) };
}
