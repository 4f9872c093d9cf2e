//! What the device gives: who a thread is, how threads of a warp and of a group meet, memory, clocks, the bus.
//!
//! Everything else in this crate is made of these. For tests on the host there is a second set with the same names (`twin.rs`).

#[cfg(target_arch = "wasm32")]
mod device {
    use core::sync::atomic::{AtomicU32, Ordering};

    #[link(wasm_import_module = "gpu")]
    unsafe extern "C" {
        pub safe fn thread() -> u32;
        pub safe fn threads() -> u32;
        pub safe fn group() -> u32;
        pub safe fn groups() -> u32;
        pub safe fn lane() -> u32;
        pub safe fn barrier();
        pub safe fn ballot(whether: u32) -> u32;
        pub safe fn shuffle(value: u32, lane: u32) -> u32;
        pub safe fn shuffle_up(value: u32, delta: u32) -> u32;
        pub safe fn shuffle_xor(value: u32, mask: u32) -> u32;
        /// Nanoseconds.
        pub safe fn clock() -> u64;
        pub safe fn sleep(nanoseconds: u32);
        /// Orders memory for all threads of the device.
        pub safe fn fence();
        /// And for the host.
        pub safe fn fence_system();
        pub safe fn local_load(offset: u32) -> u32;
        pub safe fn local_store(offset: u32, value: u32);
        pub safe fn bus_load(offset: u32) -> u64;
        /// Orders nothing.
        pub safe fn bus_put(offset: u32, value: u64);
    }

    #[inline(always)]
    fn atomic(at: u32) -> &'static AtomicU32 {
        // SAFETY: an aligned word of the machine's own memory; the compiler that this goes through checks every address.
        unsafe { AtomicU32::from_ptr(at as *mut u32) }
    }
    #[inline(always)]
    pub fn load(at: u32) -> u32 {
        // SAFETY: as above.
        unsafe { core::ptr::read(at as *const u32) }
    }
    #[inline(always)]
    pub fn store(at: u32, value: u32) {
        // SAFETY: as above.
        unsafe { core::ptr::write(at as *mut u32, value) }
    }
    #[inline(always)]
    pub fn load64(at: u32) -> u64 {
        // SAFETY: as above.
        unsafe { core::ptr::read(at as *const u64) }
    }
    #[inline(always)]
    pub fn store64(at: u32, value: u64) {
        // SAFETY: as above.
        unsafe { core::ptr::write(at as *mut u64, value) }
    }
    #[inline(always)]
    pub fn acquire(at: u32) -> u32 {
        atomic(at).load(Ordering::Acquire)
    }
    #[inline(always)]
    pub fn release(at: u32, value: u32) {
        atomic(at).store(value, Ordering::Release);
    }
    #[inline(always)]
    pub fn add(at: u32, value: u32) -> u32 {
        atomic(at).fetch_add(value, Ordering::AcqRel)
    }
    #[inline(always)]
    pub fn or(at: u32, value: u32) -> u32 {
        atomic(at).fetch_or(value, Ordering::AcqRel)
    }
    #[inline(always)]
    pub fn and(at: u32, value: u32) -> u32 {
        atomic(at).fetch_and(value, Ordering::AcqRel)
    }
    /// Whether it was `from` and is `to` now.
    #[inline(always)]
    pub fn swap_if(at: u32, from: u32, to: u32) -> bool {
        atomic(at).compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

#[cfg(target_arch = "wasm32")]
pub use device::*;

#[cfg(not(target_arch = "wasm32"))]
pub use crate::twin::*;

/// Adds to 8 bytes that only one thread writes.
#[inline(always)]
pub fn bump64(at: u32, value: u64) {
    store64(at, load64(at).wrapping_add(value));
}

pub const WARP: u32 = 32;
