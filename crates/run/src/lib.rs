//! Runs instances of a program on a device: slots, launches, host calls, endings.
//!
//! [`run`] runs one instance per context. An [`Instance`] stays in its slot between calls. A [`Linker`] holds instances
//! that share memories, tables, globals or functions. `gpu-run-map` runs many more instances, on the modules that are
//! public here.

#![allow(missing_debug_implementations)] // public modules are parts for `gpu-run-map`; most hold device memory

pub mod allowance;
pub mod bus;
pub mod common;
mod core_dump;
pub mod inputs;
mod instance;
mod instances;
pub mod launcher;
mod linker;
pub mod outbox;
pub mod outcome;
mod own_calls;
mod process;
mod remains;
mod seen;
pub mod slots;
mod source;
pub mod stage;
mod thread_name;
mod threads;
pub mod transcript;
pub mod value_text;
mod watchdog;

pub use allowance::{Allowance, Denied, Limits};
pub use common::{Common, CommonMemory, Picture};
pub use core_dump::{DumpError, WrittenDump};
pub use inputs::{INSTANCE, Job};
pub use instance::Instance;
pub use instances::run;
pub use launcher::Watch;
pub use linker::{InstanceId, Linker, Prepared, Settings};
pub use outcome::{End, Outcome, RunOptions, RunStats};
pub use process::{
    Loaded, Loader, MakeOnlooker, ProcessInfo, ProcessOnlooker, ProcessSettings, ProcessState, ProcessStats, Processes,
};
pub use remains::{Examiner, Remains, Whose};
pub use seen::{Onlooker, SeenThreads, ThreadGroup, ThreadLabel, ThreadState};
pub use source::Source;
pub use stage::Extent;
pub use threads::{ThreadPlacement, ThreadStats, programs_at_once, run_threads};
pub use watchdog::{Held, Watchdog};
