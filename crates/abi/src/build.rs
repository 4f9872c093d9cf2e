//! How a program is compiled: one of several builds, each with what belongs to that build alone.

use crate::Layout;

/// One way to compile a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    /// Right whatever the guest does. Thread *i* of a launch runs instance *i*.
    Exact(Layout),
    /// The same, but the code may stop an instance where it is not sure. The host then reruns the instance with an exact build.
    Speculative(Placement),
    /// All threads of a launch share one instance's memory, see [`crate::gang`].
    Gang {
        sizes: GangSizes,
        /// Atomic operations order nothing but themselves: fences do.
        relaxed: bool,
    },
}

/// Where a speculative build keeps the memory of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// In slots, one after the other.
    Linear,
    /// In slots, those of a warp side by side.
    Interleaved,
    /// In the thread's local memory, if it begins with no more than so many bytes; otherwise as [`Placement::Interleaved`].
    Local { bytes: u32 },
}

/// How large a gang is. All of it is compiled into its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct GangSizes {
    /// Threads of a workgroup.
    pub threads: u32,
    /// Workgroups.
    pub groups: u32,
    /// Bytes of the image, whole pages.
    pub image_bytes: u64,
    /// Bytes of each thread's shadow stack.
    pub stack_bytes: u64,
    pub bus_bytes: u64,
}

impl Build {
    /// A speculative build with slots in such a layout; interleaved, with as much of a thread's local memory as this.
    pub const fn speculative(layout: Layout, local_bytes: u32) -> Self {
        Self::Speculative(match (layout, local_bytes) {
            (Layout::Linear, _) => Placement::Linear,
            (Layout::Interleaved, 0) => Placement::Interleaved,
            (Layout::Interleaved, bytes) => Placement::Local { bytes },
        })
    }

    /// How slots lie.
    pub const fn layout(&self) -> Layout {
        match self {
            Self::Exact(layout) => *layout,
            Self::Speculative(Placement::Linear) | Self::Gang { .. } => Layout::Linear,
            Self::Speculative(Placement::Interleaved | Placement::Local { .. }) => Layout::Interleaved,
        }
    }

    pub const fn is_speculative(&self) -> bool {
        matches!(self, Self::Speculative(_))
    }

    pub const fn is_gang(&self) -> bool {
        matches!(self, Self::Gang { .. })
    }

    /// The exact build with the same slots. A gang's build is exact already.
    pub const fn exact(&self) -> Self {
        match self {
            Self::Speculative(_) => Self::Exact(self.layout()),
            other => *other,
        }
    }

    /// The same, with the memory of every instance in its slot.
    pub const fn in_slots(&self) -> Self {
        match self {
            Self::Speculative(Placement::Local { .. }) => Self::Speculative(Placement::Interleaved),
            other => *other,
        }
    }

    /// The same, with slots one after the other.
    pub const fn linear(&self) -> Self {
        match self {
            Self::Exact(_) => Self::Exact(Layout::Linear),
            Self::Speculative(_) => Self::Speculative(Placement::Linear),
            gang => *gang,
        }
    }
}
