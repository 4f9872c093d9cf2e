//! Everything that measures: the measurements of `gpu-run bench`, and `cargo bench`.
//!
//! ```text
//! set       a set of programs, on the device and on Wasmtime on all cores
//! own       the user's own program and records: is the device worth it?
//! desktop   how long frames of a desktop take, phase by phase
//! machine   how long ticks, events, allocations and loads of new code take on the resident machine
//! processes how long it takes to start a process on the device, and on the host
//! threads   what starting, locking, waking and sleeping take threads of the device, and threads of the host
//! ```
//!
//! Sides that are compared take turns in one run, so that both measure the same computer in the same state. `set` and
//! `own` need the feature `wasmtime`.

#![cfg_attr(test, allow(clippy::unwrap_used))] // In a test, `unwrap` is an assertion.

#[cfg(feature = "wasmtime")]
mod compare;
pub mod desktop;
pub mod machine;
mod percentile;
pub mod processes;
mod sheet;
pub mod threads;

#[cfg(feature = "wasmtime")]
pub use compare::{HOST_CALLS, Options, Program, own, set};
use percentile::percentile;
pub use sheet::Sheet;
