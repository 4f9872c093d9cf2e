//! How gpu-run talks to people: failures with a hint and an exit code, escaped text, progress, units, and the standard streams.

#![cfg_attr(test, allow(clippy::unwrap_used))] // In a test, `unwrap` is an assertion.

pub mod failure;
pub mod output;
pub mod progress;
pub mod spill;
pub mod terminal;
pub mod units;
