//! Where everything lies: in the machine's memory, and on the bus. Host and device are both compiled with these files.
//!
//! ```text
//! machine's memory   0 ─ constants of the code ─ STATE ─ state ─ STATE_END ─ scratch ─ MEMORY_BYTES
//! bus                0 ─ what the host says ─ what the device says ─ rings ─ BUS_BYTES
//! ```
//!
//! - Below [`STATE`] lies what the linker put there. It belongs to the code and comes anew with each module.
//! - [`STATE`]`..`[`STATE_END`] is the machine's *state* ([`MachineState`]): what is hashed, kept in checkpoints and resumed.
//! - Above it lies *scratch* ([`Scratch`]): what depends on when things happen and not only on which. Checkpoints do not hold it; new code takes it over with the
//!   state, for the positions of the rings and the staged events are in it.
//!
//! Each part is a `#[repr(C)]` struct, and the constants are the places of its fields. Nobody makes a value of these types: code loads and stores words at the constants. Numbers that older
//! files or other code rely on are asserted beside the structs: whoever changes one changes [`VERSION`] or [`INTERFACE`].

// With their paths, because the host's crate includes this file by its path, too.
#[path = "layout/bus.rs"]
mod bus;
#[path = "layout/scratch.rs"]
mod scratch;
#[path = "layout/state.rs"]
mod state;

pub use bus::*;
pub use scratch::*;
pub use state::*;

/// First word of a state: `GPRM`.
pub const MAGIC: u32 = u32::from_le_bytes(*b"GPRM");
/// Of the state's layout and of what ticks do with it.
pub const VERSION: u32 = 1;
/// Of scratch and of the bus: what code of one build leaves to code of another, and says to the host.
pub const INTERFACE: u32 = 1;
/// The custom section of a kernel's module that says which it was built with: [`VERSION`] and [`INTERFACE`], four bytes each.
pub const SECTION: &str = "gpu-run-machine";

/// Bytes of the machine's memory: what it is linked with (.cargo/config.toml).
pub const MEMORY_BYTES: u32 = 19_922_944;
const _: () = assert!(SCRATCH_END <= MEMORY_BYTES && MEMORY_BYTES.is_multiple_of(65536));
