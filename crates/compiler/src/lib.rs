//! From the bytes of a wasm module to a program on a device.
//!
//! ```text
//! compile:  wasm::decode ▶ wasm::translate ▶ ptx::emit          Compiled
//! load:     Device::compile ▶ Device::load_code                 Program
//! ```
//!
//! [`Compiler`] does both through the cache: a program that was compiled once is loaded from there. The cache's key
//! covers this crate and the crates it compiles with, and nothing else, see `build.rs`.

mod adapter;
mod backtrace;
mod cached;
mod compile;
mod content;
mod dwarf;
mod error;
mod explain;
mod image;
mod interface;
mod limit;
mod own_calls;
mod place;
mod program;
mod stack;
mod stored;
mod symbols;
mod value;

pub use adapter::Adapter;
pub use backtrace::{Backtrace, Calls, Chain, Detail, NotedCalls};
pub use cached::{Compiler, Report, Request, Unloaded, compilations};
pub use compile::{
    APART_LANES, APART_REGISTERS, CompileOptions, Compiled, DEFAULT_TARGET, Entry, EntryFunction, ExportedGlobal,
    Sibling,
};
pub use error::Error;
pub use explain::{Explained, explain, explain_within};
pub use gpu_run_abi::{Build, Layout, Placement};
pub use gpu_run_wasm::link::ADAPTED;
pub use gpu_run_wasm::{EmbedderFunction, EmbedderFunctions, Parameter, WasmFeatures, printable};
pub use image::{Initial, InitialMemory, InitialPiece, State};
pub use interface::{FunctionType, Interface, Item, Memories, Unprovided};
pub use own_calls::PlacedFunction;
pub use place::Place;
pub use program::{Program, Trap, stack_limit};
pub use stack::StackFrame;
pub use value::{Value, ValueType};
