//! The input of this crate: a program as CLIF, and the build and the GPU it is compiled for.

use cranelift_codegen::ir;
use gpu_run_abi::Layout;
use gpu_run_abi::threads::HotWord;

/// Everything that is compiled to one PTX module.
#[derive(Debug)]
pub struct Program {
    pub functions: Vec<Function>,
    /// Indices of the wasm functions (namespace `WASM`) that may be called by address; `None` is an absent entry.
    pub function_table: Vec<Option<u32>>,
    pub memory: Memory,
    pub build: Build,
}

/// The part of [`gpu_run_abi::Build`] that this crate needs, and the placement of guest memory.
#[derive(Clone, Debug)]
pub enum Build {
    /// Guest accesses are right to the byte, with any alignment.
    Exact(Layout),
    /// A guest access that is not surely in bounds and aligned stops the instance. Its status stays
    /// [`gpu_run_abi::Status::Running`], so that the host reruns it.
    Speculative { home: Home, read_only: ReadOnly },
    /// Exact, with linear slots and a memory that all slots share, see [`gpu_run_abi::threads`]. The header field
    /// [`gpu_run_abi::layout::field::MEMORY_AT`] holds the memory's address.
    Threads { hot_words: Vec<HotWord> },
    /// The threads of a launch share one memory, see [`gpu_run_abi::gang`]. The memory begins where the region ends and
    /// always has [`Memory::least`] bytes.
    Gang {
        /// The size of the region, in bytes.
        region: u64,
        /// Atomic operations order nothing but themselves; fences order the rest.
        relaxed: bool,
    },
}

/// The placement of guest memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// In slots.
    Slots(Layout),
    /// In the thread's local memory (`.local`); the header field [`gpu_run_abi::layout::field::MEMORY_AT`] holds its
    /// address. The slots are interleaved.
    Local,
}

impl Program {
    /// Returns the layout of the slots.
    pub(crate) fn layout(&self) -> Layout {
        match self.build {
            Build::Exact(layout) | Build::Speculative { home: Home::Slots(layout), .. } => layout,
            Build::Speculative { home: Home::Local, .. } => Layout::Interleaved,
            Build::Threads { .. } | Build::Gang { .. } => Layout::Linear,
        }
    }

    /// Returns the size in bytes of a gang's region; `None` in other builds.
    pub(crate) fn gang_region(&self) -> Option<u64> {
        match self.build {
            Build::Gang { region, .. } => Some(region),
            _ => None,
        }
    }

    /// The threads of a launch share one memory.
    pub(crate) fn is_gang(&self) -> bool {
        self.gang_region().is_some()
    }

    /// Whether the threads of a program share one memory.
    pub(crate) fn is_threads(&self) -> bool {
        matches!(self.build, Build::Threads { .. })
    }

    /// Returns the words of a slot that a thread keeps in shared memory while it runs.
    pub(crate) fn hot_words(&self) -> &[HotWord] {
        match &self.build {
            Build::Threads { hot_words } => hot_words,
            _ => &[],
        }
    }

    /// Whether instances stop where the code is not sure, so that the host reruns them with an exact build.
    pub(crate) fn is_speculative(&self) -> bool {
        matches!(self.build, Build::Speculative { .. })
    }

    /// Whether guest memory is in the thread's local memory.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self.build, Build::Speculative { home: Home::Local, .. })
    }

    /// Returns the guest's read-only data; empty data if the build does not use it.
    pub(crate) fn read_only(&self) -> &ReadOnly {
        static NONE: ReadOnly = ReadOnly { at: 0, bytes: Vec::new() };
        match &self.build {
            Build::Speculative { read_only, .. } => read_only,
            _ => &NONE,
        }
    }

    pub(crate) fn atomics(&self) -> Atomics {
        match self.build {
            Build::Gang { relaxed: true, .. } => Atomics::Relaxed,
            Build::Threads { .. } | Build::Gang { relaxed: false, .. } => Atomics::Device,
            _ => Atomics::System,
        }
    }

    /// Whether the bytes of guest memory lie one after the other.
    pub(crate) fn is_flat(&self) -> bool {
        self.is_local() || self.layout().spread() == 1
    }

    /// Returns the size in bytes of one device access to a guest value of `bytes` bytes.
    pub(crate) fn unit(&self, bytes: u32) -> u64 {
        if self.is_flat() { bytes.into() } else { u64::from(bytes).min(self.layout().cell()) }
    }
}

/// Which threads atomic operations synchronise with, and what they order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Atomics {
    /// With the threads of the device and with the host.
    System,
    /// The threads of the device.
    Device,
    /// The threads of the device. Atomic operations order nothing but themselves; fences order the rest.
    Relaxed,
}

#[derive(Debug)]
pub struct Function {
    /// A PTX identifier, unique in the program.
    pub symbol: String,
    /// The function's number in trap records.
    pub trap_id: u32,
    /// The function's call cycle, if it is recursive: functions with the same number can call each other in a circle.
    pub cycle: Option<u32>,
    /// The function in CLIF. Its name is `UserFuncName::user(namespace, index)`, with the namespaces of
    /// [`gpu_run_abi::intrinsic::namespace`].
    pub clif: ir::Function,
    pub kind: Kind,
    /// A comment printed above the function for human readers: the demangled name, for instance.
    pub comment: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Called by other functions.
    Device,
    /// Launched by the host: parameters are i32 or i64, and there is no result.
    Kernel,
}

/// The GPU and the version of PTX that the text is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The oldest GPU that runs the code: 75 for `sm_75`. At least 70.
    pub sm: u32,
    /// Version of the PTX language.
    pub version: (u32, u32),
}

impl Target {
    /// Returns the target with the oldest version of PTX that knows the GPU, so that the GPU's oldest drivers accept
    /// the text.
    pub fn for_sm(sm: u32) -> Target {
        let version = match sm {
            0..=90 => (7, 8),
            100 | 101 | 120 => (8, 7),
            103 | 121 => (8, 8),
            _ => (9, 0),
        };
        Target { sm, version }
    }
}

/// The text of one function, and the source offsets of its lines.
#[derive(Clone, Debug)]
pub struct Listing {
    pub text: String,
    /// Pairs of a line of the text, counted from 0, and the source offset of the code from that line on; offset 0 is
    /// "nowhere".
    pub sources: Vec<(usize, u32)>,
}

/// The facts about guest memory that are known at compile time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    /// Offset in bytes from the start of a slot to guest memory, before [`gpu_run_abi::Layout::offset`] is applied.
    pub at: u64,
    /// The minimum length of guest memory, in bytes.
    pub least: u64,
    /// The guest address of the byte at `at`; bytes at lower guest addresses are not in the slot. 0 in exact builds.
    pub low: u64,
}

impl Memory {
    /// Returns the offset from the instance pointer to guest byte 0. Negative if `low` is large enough: the byte itself
    /// is then not in the slot.
    pub(crate) fn offset(&self, layout: Layout) -> i64 {
        layout.offset(self.at) as i64 - (self.low * layout.spread()) as i64
    }
}

/// Read-only data: bytes of guest memory that a guest is expected never to write, such as a compiler's constants.
#[derive(Clone, Debug, Default)]
pub struct ReadOnly {
    /// The guest address of the first byte.
    pub at: u64,
    pub bytes: Vec<u8>,
}

impl ReadOnly {
    pub(crate) fn end(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }
}
