//! The primitives of the device: a thread's numbers, exchange within a warp, barriers of a workgroup, memory, the clock,
//! the bus.
//!
//! The rest of this crate is built on these functions. For tests on the host, `twin.rs` has functions of the same names.

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
        /// Returns the device's clock, in nanoseconds.
        pub safe fn clock() -> u64;
        pub safe fn sleep(nanoseconds: u32);
        /// Orders this thread's memory accesses, as all threads of the device see them.
        pub safe fn fence();
        /// Orders this thread's memory accesses, as all threads of the device and the host see them.
        pub safe fn fence_system();
        /// Loads a word of the workgroup's shared memory.
        pub safe fn local_load(offset: u32) -> u32;
        pub safe fn local_store(offset: u32, value: u32);
        pub safe fn bus_load(offset: u32) -> u64;
        /// Stores a word on the bus, without ordering it against any other access.
        pub safe fn bus_put(offset: u32, value: u64);
    }

    #[inline(always)]
    fn atomic(at: u32) -> &'static AtomicU32 {
        // SAFETY: `at` is an aligned word of the machine's own memory. gpu-run's compiler, which compiles this module for
        // the device, checks every address.
        unsafe { AtomicU32::from_ptr(at as *mut u32) }
    }
    #[inline(always)]
    pub fn load(at: u32) -> u32 {
        // SAFETY: as above.
        unsafe { core::ptr::read(at as *const u32) }
    }
    /// Loads words that follow each other, two at a time, from an address that is a multiple of 8. The address is checked once for all.
    #[inline(always)]
    pub fn load_all<const N: usize>(at: u32) -> [u32; N] {
        let mut words = [0; N];
        let mut i = 0;
        while i < N {
            // SAFETY: as above.
            let pair = unsafe { core::ptr::read((at as *const u64).add(i / 2)) };
            words[i] = pair as u32;
            if i + 1 < N {
                words[i + 1] = (pair >> 32) as u32;
            }
            i += 2;
        }
        words
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
    /// Replaces `from` by `to`; returns false, and changes nothing, if the word was not `from`.
    #[inline(always)]
    pub fn swap_if(at: u32, from: u32, to: u32) -> bool {
        atomic(at).compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

#[cfg(target_arch = "wasm32")]
pub use device::*;

#[cfg(not(target_arch = "wasm32"))]
pub use crate::twin::*;

/// Adds to a word of 8 bytes. Not atomic: only one thread may write the word.
#[inline(always)]
pub fn bump64(at: u32, value: u64) {
    store64(at, load64(at).wrapping_add(value));
}

pub const WARP: u32 = 32;
