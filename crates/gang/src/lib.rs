//! A gang: threads of a device that share one memory, launched and let go.

mod gang;
mod memory;
mod succession;

pub use gang::{Gang, GangOptions, GangProgram, GangTrap, Running, Stopper};
pub use succession::{Seat, Successor};
