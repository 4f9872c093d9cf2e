//! Runs ordinary Rust programs, compiled to WebAssembly, on the GPU.
//!
//! The parts have the shape that users of Wasmtime know:
//!
//! - an [`Engine`] is a device and the cache of what was compiled for it;
//! - a [`Module`] is a validated WebAssembly module;
//! - a [`Command`] runs a program from `main` to its end, one instance or many at once;
//! - a [`Mapper`] runs one instance for each of many records, from an iterator or a stream, or calls a function for each of many rows;
//! - a [`FileMap`](files::FileMap) does so for an input of any length, with a journal: what the command `gpu-run map` does;
//! - a [`Service`] does so for records that many threads and tasks send;
//! - a [`Store`] holds instances that stay, whose functions are called again and again;
//! - a [`Linker`] has functions of your own that guests can import.
//!
//! Where there is no GPU, the device `cpu` executes the same code.
//!
//! ```no_run
//! use gpu_run::{Config, Engine, Mapper, Module};
//!
//! let engine = Engine::new(&Config::new())?;
//! let module = Module::from_file(&engine, "app.wasm")?;
//! let mut mapper = Mapper::builder(&module).arg("app").build()?;
//! for output in mapper.map((0..1_000_000).map(|i| format!("record {i}"))) {
//!     println!("{}", String::from_utf8_lossy(&output?.stdout));
//! }
//! # Ok::<(), gpu_run::Error>(())
//! ```
//!
//! Nothing here prints, and there is no global state.
//!
//! What only the command `gpu-run` has: child processes, core dumps, pictures and buffers that instances share, the choice of a build
//! (`tune`, `--layout`, `--checks`), a look into the cache, Rust sources as programs, the resident machine and the desktop.

#![cfg_attr(test, allow(clippy::unwrap_used))] // In a test, `unwrap` is an assertion.

#[cfg(feature = "arrow")]
pub mod arrow;
mod columns;
mod command;
mod engine;
mod error;
pub mod files;
mod function;
mod given;
mod interrupt;
mod linker;
mod mapper;
mod module;
mod service;
mod statistics;
mod store;
mod value;
mod wasi;

pub use columns::{FunctionMapper, Rows, Words};
pub use command::{Command, Output, Status};
pub use engine::{Config, DeviceInfo, Engine};
pub use error::{AnyError, Error, Result};
pub use function::{Answer, Argument, Caller, IntoFunction};
pub use gpu_run_abi::TrapCode;
pub use gpu_run_compiler::{FunctionType, Trap, Value, ValueType};
pub use interrupt::Interrupt;
pub use linker::Linker;
pub use mapper::{Mapper, MapperBuilder, Outputs};
pub use module::{Function, Module};
pub use service::Service;
pub use statistics::{DeviceShare, Statistics};
pub use store::{Instance, Store, TypedFunction};
pub use value::{Parameters, ResultWords, Results, RowWords, Scalar};
pub use wasi::{Access, NetRule, OutputBuffer, Wasi};
