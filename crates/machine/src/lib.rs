//! The resident machine, from the host's side.
//!
//! A [`Machine`] is a kernel on a device (`crates/kernel`, compiled by gpu-run itself) that owns its state and ticks by
//! itself. Host and machine talk through shared memory: [`Machine::post`] writes an event into a ring, and
//! [`Machine::take_events`] reads the machine's answers; neither launches nor waits for anything. One host thread
//! ([`service`](self)) checks on the machine a few hundred times a second: it launches kernels if the [`Strategy`]
//! needs more than one launch, records events, takes checkpoints, and restarts the machine from the last checkpoint if
//! the heartbeat stops.
//!
//! The state is one flat range of memory. The same log of events gives the same state, bit for bit, on every device,
//! under every strategy and with any number of threads: see [`Checkpoint`] and [`Log`].

#![cfg_attr(test, allow(clippy::unwrap_used))] // In a test, `unwrap` is an assertion.

pub mod boot;
mod checkpoint;
mod error;
mod exchange;
mod feed;
mod kernel;
mod log;
mod machine;
mod place;
mod restart;
mod ring;
mod service;
mod status;
mod strategy;
mod workload;

use gpu_run_abi::tagged;
/// The events that host and device exchange: the same source file as the kernel's.
#[path = "../../kernel/src/event.rs"]
pub mod event;
/// The layout of the machine's memory and of the bus: the same source file as the kernel's.
#[path = "../../kernel/src/layout.rs"]
pub mod layout;

pub use boot::{GridSize, Options, Start, kernel_ptx};
pub use checkpoint::{Checkpoint, Hash};
pub use error::{Error, Result};
pub use event::Event;
pub use exchange::Loaded;
pub use kernel::Kernel;
pub use log::{Log, Recorder};
pub use machine::{Ended, Machine};
pub use place::{Place, Room};
pub use status::{Phase, Status};
pub use strategy::Strategy;
pub use workload::Workload;

/// The kernel that machines run, prebuilt and kept in the repository.
pub const KERNEL: &[u8] = include_bytes!("../kernel.wasm");
/// The same kernel with extra entries for measurements: the round trip of one word, and a storm of allocations.
pub const KERNEL_MEASURE: &[u8] = include_bytes!("../kernel-measure.wasm");
/// For tests: the same kernel with debug messages from the device and injected faults.
#[cfg(any(test, feature = "faults"))]
pub const KERNEL_DEBUG: &[u8] = include_bytes!("../kernel-debug.wasm");
