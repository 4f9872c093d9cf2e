//! How gpu-run talks to people: failures with a hint and an exit code, escaped text, progress, units, and the standard streams.

pub mod failure;
pub mod output;
pub mod progress;
pub mod spill;
pub mod terminal;
pub mod units;
