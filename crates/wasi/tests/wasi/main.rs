//! Every call, through [`gpu_run_wasi::Context::call`] as the engine makes it.

#![allow(clippy::unwrap_used)] // In a test, that is an assertion.

mod descriptors;
mod directories;
mod files;
mod guest;
mod hostile;
mod net;
mod paths;
mod polling;
mod process;
mod read_only;
mod sandbox;
mod sockets;
mod streams;
