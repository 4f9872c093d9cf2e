//! What the caller hands over: a program as CLIF, and what it is compiled for.

use cranelift_codegen::ir;
use gpu_run_abi::Layout;

/// Everything that becomes one PTX module.
#[derive(Debug)]
pub struct Program {
    pub functions: Vec<Function>,
    pub layout: Layout,
    /// Indices of wasm functions (namespace `WASM`) that may be called by address.
    pub function_table: Vec<Option<u32>>,
    pub memory: Memory,
    /// The guest's read-only data; only speculative builds use it.
    pub fixed: Fixed,
    pub checks: Checks,
    pub atomics: Atomics,
}

impl Program {
    /// The threads of a launch share one memory.
    pub(crate) fn is_gang(&self) -> bool {
        self.memory.region > 0
    }

    /// Instances stop where they are not sure, and the host reruns them with an exact build.
    pub(crate) fn is_speculative(&self) -> bool {
        self.checks == Checks::Fast
    }

    /// The bytes of guest memory lie one after the other.
    pub(crate) fn is_flat(&self) -> bool {
        self.memory.own || self.layout.spread() == 1
    }

    /// The size of one access to the device for a guest value of so many bytes.
    pub(crate) fn unit(&self, bytes: u32) -> u64 {
        if self.is_flat() { bytes.into() } else { u64::from(bytes).min(self.layout.cell()) }
    }
}

/// How far atomic operations reach, and what they order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Atomics {
    /// The host takes part.
    #[default]
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
    /// It is the thread's local memory (`.local`); its address is in the header, in
    /// [`gpu_run_abi::layout::field::MEMORY_AT`].
    pub own: bool,
    /// Bytes of a gang's region, 0 if there is none: see [`gpu_run_abi::gang`]. The memory begins behind the region and
    /// always has `least` bytes.
    pub region: u64,
}

impl Memory {
    /// From the instance to guest byte 0.
    pub(crate) fn offset(&self, layout: Layout) -> i64 {
        layout.offset(self.at) as i64 - (self.low * layout.spread()) as i64
    }
}

/// Read-only data: bytes of guest memory that a guest is expected never to write, as compilers' constants are.
#[derive(Clone, Debug, Default)]
pub struct Fixed {
    /// The first byte's guest address.
    pub at: u64,
    pub bytes: Vec<u8>,
}

impl Fixed {
    pub(crate) fn end(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }
}

/// How guest accesses are checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Checks {
    /// The exact build: to the byte, any alignment.
    #[default]
    Exact,
    /// The speculative build: an access that is not certainly in order stops the instance, which stays
    /// [`gpu_run_abi::Status::Running`].
    Fast,
}
