//! A gang: threads of a device that share one memory. This crate launches them, stops them, and gives them new code.

mod gang;
mod memory;
mod succession;

pub use gang::{Gang, GangOptions, GangProgram, GangTrap, Running, Stopper};
pub use succession::{Seat, Successor};
