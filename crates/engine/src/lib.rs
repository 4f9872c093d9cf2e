//! From the bytes of a wasm module to its results, on any device.
//!
//! ```text
//! compile:  wasm::decode ▶ wasm::translate ▶ ptx::emit          Compiled
//! load:     Device::load                                        Program
//! run:      slots, bus, launch, service, outcomes               Vec<Outcome>
//! ```
//!
//! [`Compiler`] does the first two through the cache: what was compiled once is loaded from there.

mod allowance;
mod batch;
mod bus;
mod compile;
mod compiler;
mod content;
mod error;
mod explain;
mod frame;
mod gang;
mod initial;
mod inputs;
mod instance;
mod journal;
mod limit;
mod line;
mod linker;
mod map;
mod outbox;
mod probation;
mod program;
mod results;
mod room;
mod stage;
mod succession;
mod symbols;
mod tune;
mod value;
pub mod wast;
mod wave;
mod written;

pub use allowance::{Allowance, Denied, Limits};
pub use compile::{CompileOptions, Compiled, Entry};
pub use compiler::{Compiler, Report, Request, compilations};
pub use error::Error;
pub use explain::{Explained, explain};
pub use gang::{Gang, GangOptions, GangProgram, GangTrap, Running, Stopper};
pub use gpu_run_cache as cache;
pub use gpu_run_ptx::Checks;
pub use gpu_run_wasm::{Shape, WasmFeatures, printable};
pub use instance::Instance;
pub use line::Watch;
pub use linker::{InstanceId, Linker, Settings};
pub use map::{Extent, Job, Mapper, Pending};
pub use probation::{SLOW, Slow};
pub use program::{End, Outcome, Program, RunOptions, RunStats, Trap};
pub use results::{Done, Results};
pub use succession::{Seat, Successor};
pub use tune::{Trial, Tuning, Variant, measure, variants};
pub use value::{Value, ValueType};
