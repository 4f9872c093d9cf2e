//! Counts the bytes that are in use.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

pub struct Counting {
    live: AtomicUsize,
    most: AtomicUsize,
}

impl Counting {
    pub const fn new() -> Self {
        Self { live: AtomicUsize::new(0), most: AtomicUsize::new(0) }
    }

    pub fn live(&self) -> usize {
        self.live.load(Relaxed)
    }

    /// The most bytes that were in use at once.
    pub fn most(&self) -> usize {
        self.most.load(Relaxed)
    }
}

// SAFETY: all work is the system's allocator's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = self.live.fetch_add(layout.size(), Relaxed) + layout.size();
        self.most.fetch_max(live, Relaxed);
        // SAFETY: the caller's promises are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        self.live.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promises are the same.
        unsafe { System.dealloc(at, layout) }
    }
}

/// Returns the pages that the memory has, with the stacks of threads; 0 where there is no such memory.
pub fn pages() -> usize {
    #[cfg(target_family = "wasm")]
    return core::arch::wasm32::memory_size(0);
    #[cfg(not(target_family = "wasm"))]
    0
}
