//! The layout of the machine's memory and of the bus. Host and device are both compiled with these files.
//!
//! ```text
//! machine's memory   0 ─ constants of the code ─ STATE ─ state ─ STATE_END ─ scratch ─ MEMORY_BYTES
//! bus                0 ─ words of the host ─ words of the device ─ rings ─ BUS_BYTES
//! ```
//!
//! - Below [`STATE`], the linker puts the constants of the code. They belong to the code: each module brings its own.
//! - [`STATE`]`..`[`STATE_END`] is the machine's *state* ([`MachineState`]). The host hashes it, keeps it in checkpoints
//!   and resumes from it.
//! - Above the state lies *scratch* ([`Scratch`]): everything that depends on when events happen, and not only on which
//!   events happen. Checkpoints do not contain scratch. New code takes it over together with the state, because scratch
//!   has the positions of the rings and the staged events.
//!
//! Each part is a `#[repr(C)]` struct, and the constants are the addresses and offsets of its fields. No code makes a
//! value of these types: code loads and stores words at the constants. Beside the structs, the numbers that existing
//! files or other builds rely on are asserted: whoever changes one of them must also change [`VERSION`] or [`INTERFACE`].

// The paths are explicit because the host's crate also includes this file by its path.
#[path = "layout/bus.rs"]
mod bus;
#[path = "layout/scratch.rs"]
mod scratch;
#[path = "layout/state.rs"]
mod state;

pub use bus::*;
pub use scratch::*;
pub use state::*;

/// The first word of a state: `GPRM`.
pub const MAGIC: u32 = u32::from_le_bytes(*b"GPRM");
/// The version of the state's layout and of what ticks do with the state.
pub const VERSION: u32 = 1;
/// The version of scratch and of the bus: what one build of the kernel leaves to another, and what it exchanges with the
/// host.
pub const INTERFACE: u32 = 1;
/// The custom section of a kernel's module that holds the [`VERSION`] and [`INTERFACE`] it was built with, four bytes
/// each.
pub const SECTION: &str = "gpu-run-machine";

/// Bytes of the machine's memory: the size that the module is linked with (.cargo/config.toml).
pub const MEMORY_BYTES: u32 = 19_922_944;
const _: () = assert!(SCRATCH_END <= MEMORY_BYTES && MEMORY_BYTES.is_multiple_of(65536));
