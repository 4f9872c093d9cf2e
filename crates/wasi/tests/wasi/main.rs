//! Every call, through [`gpu_run_wasi::Context::call`] as the engine makes it.

mod descriptors;
mod directories;
mod files;
mod guest;
mod hostile;
mod paths;
mod polling;
mod process;
mod sandbox;
mod sockets;
mod streams;
