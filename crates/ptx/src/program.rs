//! What the caller hands over: a program as CLIF, and what it is compiled for.

use cranelift_codegen::ir;
use gpu_run_abi::Layout;

/// Everything that becomes one PTX module.
#[derive(Debug)]
pub struct Program {
    pub functions: Vec<Function>,
    /// Indices of wasm functions (namespace `WASM`) that may be called by address.
    pub function_table: Vec<Option<u32>>,
    pub memory: Memory,
    pub build: Build,
}

/// What of [`gpu_run_abi::Build`] matters here, and where guest memory came to be.
#[derive(Clone, Debug)]
pub enum Build {
    /// Guest accesses are right to the byte, with any alignment.
    Exact(Layout),
    /// A guest access that is not certainly in order stops the instance, which stays [`gpu_run_abi::Status::Running`].
    Speculative { home: Home, read_only: ReadOnly },
    /// The threads of a launch share one memory, see [`gpu_run_abi::gang`]. The memory begins behind the region, which has so many bytes, and
    /// always has [`Memory::least`] bytes.
    Gang {
        region: u64,
        /// Atomic operations order nothing but themselves; fences order the rest.
        relaxed: bool,
    },
}

/// Where guest memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// In slots.
    Slots(Layout),
    /// In the thread's local memory (`.local`); its address is in the header, in [`gpu_run_abi::layout::field::MEMORY_AT`]. Slots interleave.
    Local,
}

impl Program {
    /// How slots lie.
    pub(crate) fn layout(&self) -> Layout {
        match self.build {
            Build::Exact(layout) | Build::Speculative { home: Home::Slots(layout), .. } => layout,
            Build::Speculative { home: Home::Local, .. } => Layout::Interleaved,
            Build::Gang { .. } => Layout::Linear,
        }
    }

    /// Bytes of a gang's region.
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

    /// Instances stop where they are not sure, and the host reruns them with an exact build.
    pub(crate) fn is_speculative(&self) -> bool {
        matches!(self.build, Build::Speculative { .. })
    }

    /// Guest memory is the thread's local memory.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self.build, Build::Speculative { home: Home::Local, .. })
    }

    /// The guest's read-only data, if the build uses it; otherwise none of it.
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
            Build::Gang { relaxed: false, .. } => Atomics::Device,
            _ => Atomics::System,
        }
    }

    /// The bytes of guest memory lie one after the other.
    pub(crate) fn is_flat(&self) -> bool {
        self.is_local() || self.layout().spread() == 1
    }

    /// The size of one access to the device for a guest value of so many bytes.
    pub(crate) fn unit(&self, bytes: u32) -> u64 {
        if self.is_flat() { bytes.into() } else { u64::from(bytes).min(self.layout().cell()) }
    }
}

/// How far atomic operations reach, and what they order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Atomics {
    /// The host takes part.
    System,
    /// The threads of the device.
    Device,
    /// The threads of the device. Atomic operations order nothing but themselves; fences order the rest.
    Relaxed,
}

#[derive(Debug)]
pub struct Function {
    /// A PTX identifier, different from all others.
    pub symbol: String,
    /// What trap records call this function.
    pub trap_id: u32,
    /// Functions with the same number call each other in a circle.
    pub cycle: Option<u32>,
    /// Its name is `UserFuncName::user(namespace, index)`, with the namespaces of
    /// [`gpu_run_abi::intrinsic::namespace`].
    pub clif: ir::Function,
    pub kind: Kind,
    /// Printed above the function, for people: its demangled name, for instance.
    pub comment: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Called by other functions.
    Device,
    /// Launched by the host: parameters are i32 or i64, and there is no result.
    Kernel,
}

/// What the PTX is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The oldest GPU that takes it: 75 for `sm_75`. At least 70.
    pub sm: u32,
    /// Version of the PTX language.
    pub version: (u32, u32),
}

impl Target {
    /// The oldest version of the language that knows the GPU, so that the oldest drivers for it take the text.
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

/// One function's text, and where its lines come from.
#[derive(Clone, Debug)]
pub struct Listing {
    pub text: String,
    /// From which line of the text on (counted from 0) code belongs to which source offset; 0 is "nowhere".
    pub sources: Vec<(usize, u32)>,
}

/// What is known of guest memory at compile time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    /// Where in a slot it begins, before [`gpu_run_abi::Layout::offset`].
    pub at: u64,
    /// Bytes it never has fewer of.
    pub least: u64,
    /// The guest address that has this place; lower addresses have none. 0 in exact builds.
    pub low: u64,
}

impl Memory {
    /// From the instance to guest byte 0.
    pub(crate) fn offset(&self, layout: Layout) -> i64 {
        layout.offset(self.at) as i64 - (self.low * layout.spread()) as i64
    }
}

/// Read-only data: bytes of guest memory that a guest is expected never to write, as compilers' constants are.
#[derive(Clone, Debug, Default)]
pub struct ReadOnly {
    /// The first byte's guest address.
    pub at: u64,
    pub bytes: Vec<u8>,
}

impl ReadOnly {
    pub(crate) fn end(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }
}
