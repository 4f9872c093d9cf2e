//! Everything that measures: what `gpu-run bench` finds out, and `cargo bench`.
//!
//! ```text
//! set       a set of programs, on the device and under Wasmtime on all cores
//! own       the user's own program and records: is the device worth it?
//! machine   what ticks, events, allocations and new code take of the resident machine
//! ```
//!
//! Sides that are compared take turns in one run, so that both see the same machine. `set` and `own` need the feature `wasmtime`.

#![cfg_attr(test, allow(clippy::unwrap_used))] // In a test, that is an assertion.

#[cfg(feature = "wasmtime")]
mod compare;
pub mod machine;
mod sheet;

#[cfg(feature = "wasmtime")]
pub use compare::{HOST_CALLS, Options, Program, own, set};
pub use sheet::Sheet;
