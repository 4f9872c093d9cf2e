//! Memory of the GPU, and host memory that the GPU sees.

use super::context::Context;
use super::driver::{HOST_DEVICEMAP, HOST_PORTABLE};
use crate::memory::{Backing, Rows, TrayBacking};
use crate::{Error, Result, Shared, Tray};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

/// Rows that are further apart than this are cleared one by one.
const MAX_PITCH: u64 = (2 << 30) - 1;

/// Device memory; freed when dropped.
///
/// The driver frees memory only when no kernel runs in the context: a drop waits for that.
#[derive(Debug)]
pub(super) struct DeviceMemory {
    context: Arc<Context>,
    address: u64,
    len: u64,
}

impl DeviceMemory {
    /// Allocates zeroed memory.
    pub(super) fn new(context: &Arc<Context>, len: u64) -> Result<Self> {
        let memory = Self::uncleared(context, len)?;
        memory.zero(0, len)?;
        Ok(memory)
    }

    pub(super) fn uncleared(context: &Arc<Context>, len: u64) -> Result<Self> {
        let bytes = usize::try_from(len).map_err(|_| Error::OutOfMemory { wanted: len })?;
        let address = context.with_room(|| {
            let mut address = 0;
            // SAFETY: entered; one address is written. At least one byte, because the driver refuses to allocate none.
            unsafe { context.enter()?.cuMemAlloc_v2(&mut address, bytes.max(1)) }.map_err(|e| e.taking(len))?;
            Ok(address)
        })?;
        Ok(Self { context: context.clone(), address, len })
    }
}

impl Backing for DeviceMemory {
    fn address(&self) -> u64 {
        self.address
    }
    fn len(&self) -> u64 {
        self.len
    }
    unsafe fn write(&self, at: u64, from: *const u8, len: usize) -> Result<()> {
        let to = self.address + at;
        // SAFETY: entered; the rest is promised by the caller, and `transfer` waits for the copy.
        self.context.transfer(|driver, stream| unsafe { driver.cuMemcpyHtoDAsync_v2(to, from.cast(), len, stream) })
    }
    unsafe fn read(&self, at: u64, to: *mut u8, len: usize) -> Result<()> {
        let from = self.address + at;
        // SAFETY: entered; the rest is promised by the caller, and `transfer` waits for the copy.
        self.context.transfer(|driver, stream| unsafe { driver.cuMemcpyDtoHAsync_v2(to.cast(), from, len, stream) })
    }
    fn device(&self) -> usize {
        Arc::as_ptr(&self.context).addr()
    }
    unsafe fn copy(&self, at: u64, from: u64, len: usize) -> Result<()> {
        let to = self.address + at;
        // SAFETY: entered; the rest is promised by the caller, and `transfer` waits for the copy.
        self.context.transfer(|driver, stream| unsafe { driver.cuMemcpyDtoDAsync_v2(to, from, len, stream) })
    }
    fn zero(&self, at: u64, len: u64) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        let to = self.address + at;
        // SAFETY: entered; `at + len <= self.len`.
        self.context.transfer(|driver, stream| unsafe { driver.cuMemsetD8Async(to, 0, len as usize, stream) })
    }
    fn zero_rows(&self, rows: Rows) -> Result<()> {
        let Rows { at, len, pitch, count } = rows;
        if pitch > MAX_PITCH || [at, len, pitch].iter().any(|bytes| bytes % 4 != 0) {
            return rows.starts().try_for_each(|at| self.zero(at, len));
        }
        let (to, [pitch, words, count]) = (self.address + at, [pitch, len / 4, count].map(|size| size as usize));
        // SAFETY: entered; all rows are inside the memory.
        self.context.transfer(|driver, stream| unsafe { driver.cuMemsetD2D32Async(to, pitch, 0, words, count, stream) })
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        let _alone = self.context.alone();
        if let Ok(driver) = self.context.enter() {
            // SAFETY: entered; allocated in `uncleared` and freed only here. After a fault this fails, and the memory
            // goes with the context.
            let _ = unsafe { driver.cuMemFree_v2(self.address) };
        }
    }
}

/// Page-locked host memory, mapped into the GPU's address space; freed when dropped.
#[derive(Debug)]
struct HostMemory {
    context: Arc<Context>,
    pointer: NonNull<u8>,
}

// SAFETY: the pointer is used only to free the memory, from whichever thread drops it, and by owners who synchronise
// their own accesses.
unsafe impl Send for HostMemory {}
// SAFETY: `&HostMemory` itself accesses nothing.
unsafe impl Sync for HostMemory {}

impl Drop for HostMemory {
    fn drop(&mut self) {
        let _alone = self.context.alone();
        if let Ok(driver) = self.context.enter() {
            // SAFETY: entered; allocated in `new` and freed only here.
            let _ = unsafe { driver.cuMemFreeHost(self.pointer.as_ptr().cast()) };
        }
    }
}

impl HostMemory {
    /// Allocates zeroed memory, at least one byte.
    fn new(context: &Arc<Context>, len: u64) -> Result<Self> {
        let out_of_memory = || Error::OutOfMemory { wanted: len };
        let bytes = usize::try_from(len).map_err(|_| out_of_memory())?.max(1);
        let driver = context.enter()?;
        let mut pointer = null_mut();
        // SAFETY: entered; one pointer is written.
        unsafe { driver.cuMemHostAlloc(&mut pointer, bytes, HOST_PORTABLE | HOST_DEVICEMAP) }
            .map_err(|e| e.taking(len))?;
        let pointer = NonNull::new(pointer.cast::<u8>()).ok_or_else(out_of_memory)?;
        let memory = Self { context: context.clone(), pointer };
        // SAFETY: `bytes` bytes were just allocated, and nobody else knows of them.
        unsafe { pointer.write_bytes(0, bytes) };
        Ok(memory)
    }
}

/// Allocates memory that host and GPU both see, zeroed.
pub(super) fn share(context: &Arc<Context>, len: u64) -> Result<Shared> {
    let owner = HostMemory::new(context, len)?;
    let (driver, pointer) = (context.enter()?, owner.pointer);
    let mut address = 0;
    // SAFETY: entered; allocated above with `HOST_DEVICEMAP`, and one address is written.
    unsafe { driver.cuMemHostGetDevicePointer_v2(&mut address, pointer.as_ptr().cast(), 0) }?;
    // SAFETY: at least `len` bytes, in whole pages, that live as long as the owner; no reference into them exists.
    Ok(unsafe { Shared::new(pointer, len, address, owner) })
}

/// The memory of a [`crate::Tray`]: the GPU writes to it only in `fetch`.
struct HostTray {
    memory: HostMemory,
    len: usize,
}

impl TrayBacking for HostTray {
    fn bytes(&self) -> &[u8] {
        // SAFETY: `len` bytes, zeroed when they were allocated, that live as long as `self`. `fetch`, which writes
        // there, has `&mut self` and waits until the copy is done.
        unsafe { std::slice::from_raw_parts(self.memory.pointer.as_ptr(), self.len) }
    }
    unsafe fn fetch(&mut self, from: &dyn Backing, at: u64, len: usize) -> Result<()> {
        if from.device() != Arc::as_ptr(&self.memory.context).addr() {
            return Err(Error::Unavailable("memory of one device cannot be copied by another".into()));
        }
        let _copying = self.memory.context.copying();
        // SAFETY: promised by the caller.
        unsafe { from.read(at, self.memory.pointer.as_ptr(), len) }
    }
}

pub(super) fn tray(context: &Arc<Context>, len: u64) -> Result<Tray> {
    Ok(Tray::new(HostTray { memory: HostMemory::new(context, len)?, len: len as usize }))
}
