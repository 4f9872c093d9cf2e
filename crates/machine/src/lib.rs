//! The resident machine, from the host's side.
//!
//! A [`Machine`] is a kernel on a device (`crates/kernel`, compiled by gpu-run itself) that owns its state and ticks by itself. The host talks to it through memory that
//! both see: [`Machine::post`] writes an event into a ring, [`Machine::take_events`] reads what came back; neither launches nor waits for anything. One thread of
//! the host's looks after it a few hundred times a second ([`service`](self)): it launches, where the [`Strategy`] asks for that, records, keeps checkpoints, and starts the
//! machine again from the last of them if it falls silent.
//!
//! The state is one flat range of memory, and the same log of events gives the same state, bit for bit, on every device, under every strategy and with any number of
//! threads: see [`Checkpoint`] and [`Log`].

#![cfg_attr(test, allow(clippy::unwrap_used))] // In a test, that is an assertion.

pub mod boot;
mod checkpoint;
mod error;
mod exchange;
mod feed;
mod image;
mod load;
mod log;
mod machine;
mod restart;
mod ring;
mod service;
mod status;
mod strategy;

use gpu_run_abi::tagged;
/// What host and device agree on, as the kernel has it.
#[path = "../../kernel/src/event.rs"]
pub mod event;
#[path = "../../kernel/src/layout.rs"]
pub mod layout;

pub use boot::{GridSize, Options, Start, kernel_ptx};
pub use checkpoint::{Checkpoint, Hash};
pub use error::{Error, Result};
pub use event::Event;
pub use exchange::Loaded;
pub use image::Image;
pub use load::Load;
pub use log::{Log, Recorder};
pub use machine::{Ended, Machine};
pub use status::{Phase, State};
pub use strategy::Strategy;

/// The kernel, as it is kept in the repository: what runs.
pub const KERNEL: &[u8] = include_bytes!("../kernel.wasm");
/// The same with entries for measurements: one word there and back, a storm of allocations.
pub const KERNEL_MEASURE: &[u8] = include_bytes!("../kernel-measure.wasm");
/// For tests: the same with messages from the device, and with faults.
#[cfg(any(test, feature = "faults"))]
pub const KERNEL_DEBUG: &[u8] = include_bytes!("../kernel-debug.wasm");
