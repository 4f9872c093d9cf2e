//! The builds: the ways to compile a program, each with the settings that belong to that build alone.

use crate::Layout;

/// One way to compile a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    /// Right whatever the guest does. Thread *i* of a launch runs instance *i*.
    Exact(Layout),
    /// Like an exact build, but the code may stop an instance where it is not sure. The host then reruns the instance
    /// with an exact build.
    Speculative(Placement),
    /// Each thread of a program is an instance, and all of them share one memory, see [`crate::threads`]. Exact, with
    /// linear slots.
    Threads,
    /// All threads of a launch share one instance's memory, see [`crate::gang`].
    Gang {
        sizes: GangSizes,
        /// Whether the guest's atomic operations are relaxed: then they order no other access, and only fences do.
        relaxed: bool,
    },
}

/// Where a speculative build keeps the memory of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// In linear slots: one after the other.
    Linear,
    /// In interleaved slots: those of a warp side by side.
    Interleaved,
    /// In `bytes` of the thread's local memory, if the instance has one unshared memory whose initial contents (without
    /// the far end of the stack) fit there; otherwise as [`Placement::Interleaved`].
    Local { bytes: u32 },
}

/// The sizes of a gang. All of them are constants of its compiled code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct GangSizes {
    /// Threads in a workgroup.
    pub threads: u32,
    /// Number of workgroups.
    pub groups: u32,
    /// Bytes of the image: a whole number of wasm pages.
    pub image_bytes: u64,
    /// Bytes of each thread's shadow stack.
    pub stack_bytes: u64,
    pub bus_bytes: u64,
}

impl Build {
    /// Returns the speculative build with slots in `layout`. With interleaved slots, up to `local_bytes` of a thread's
    /// local memory may hold an instance's memory; 0 means none.
    pub const fn speculative(layout: Layout, local_bytes: u32) -> Self {
        Self::Speculative(match (layout, local_bytes) {
            (Layout::Linear, _) => Placement::Linear,
            (Layout::Interleaved, 0) => Placement::Interleaved,
            (Layout::Interleaved, bytes) => Placement::Local { bytes },
        })
    }

    /// Returns how the build's slots lie.
    pub const fn layout(&self) -> Layout {
        match self {
            Self::Exact(layout) => *layout,
            Self::Speculative(Placement::Linear) | Self::Threads | Self::Gang { .. } => Layout::Linear,
            Self::Speculative(Placement::Interleaved | Placement::Local { .. }) => Layout::Interleaved,
        }
    }

    pub const fn is_speculative(&self) -> bool {
        matches!(self, Self::Speculative(_))
    }

    pub const fn is_gang(&self) -> bool {
        matches!(self, Self::Gang { .. })
    }

    pub const fn is_threads(&self) -> bool {
        matches!(self, Self::Threads)
    }

    /// Returns the exact build with the same slots. The builds of threads and gangs are exact already.
    pub const fn exact(&self) -> Self {
        match self {
            Self::Speculative(_) => Self::Exact(self.layout()),
            other => *other,
        }
    }

    /// Returns the same build with every instance's memory in its slot, never in local memory.
    pub const fn in_slots(&self) -> Self {
        match self {
            Self::Speculative(Placement::Local { .. }) => Self::Speculative(Placement::Interleaved),
            other => *other,
        }
    }

    /// Returns the same build with linear slots.
    pub const fn linear(&self) -> Self {
        match self {
            Self::Exact(_) => Self::Exact(Layout::Linear),
            Self::Speculative(_) => Self::Speculative(Placement::Linear),
            other => *other,
        }
    }
}
