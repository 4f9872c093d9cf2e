//! The engine's public types.

use gpu_run_abi::{Layout, TrapCode};
use gpu_run_device::Device;
use gpu_run_wasi::Context;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a module cannot be run for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not a module, or an invalid one: what, and at which offset of the file.
    #[error("{0}")]
    Module(String),
    #[error("{0}")]
    Device(#[from] gpu_run_device::Error),
    /// A missing export, a wrong number of arguments: what was asked does not fit the module.
    #[error("{0}")]
    Usage(String),
    /// A limit: more memory than `--max-memory` or the device allows.
    #[error("{0}")]
    Limit(String),
    #[error("internal error: {0}")]
    Internal(String),
}

/// Which functions of the module the host will call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A command: `_start`.
    Start,
    /// One exported function.
    Function(String),
    /// Every exported function.
    Exports,
}

#[derive(Clone, Debug)]
pub struct CompileOptions {
    pub layout: Layout,
    /// PTX target, as in `sm_75`: 75.
    pub sm: u32,
    pub entry: Entry,
}

/// A module compiled to PTX; knows nothing of devices yet.
#[derive(Debug)]
pub struct Compiled {}

impl Compiled {
    /// Decodes, validates and compiles.
    pub fn new(_wasm: &[u8], _options: &CompileOptions) -> Result<Self, Error> {
        Err(Error::Internal("not built yet".into()))
    }
    pub fn ptx(&self) -> &str {
        ""
    }
    /// How long each step took, in order: decode, translate, optimize, emit.
    pub fn timings(&self) -> &[(&'static str, Duration)] {
        &[]
    }
}

/// One function as it passes through the compiler, for `gpu-run explain` and `gpu-run compile -o out.clif`.
#[derive(Clone, Debug)]
pub struct Explained {
    pub index: u32,
    /// Demangled, where there is a name.
    pub name: String,
    /// (offset in the file, instruction text)
    pub wasm: Vec<(u32, String)>,
    /// Optimised CLIF, as text; lines carry `@offset` source locations.
    pub clif: String,
    pub ptx: String,
}

/// Explains the functions whose name or index matches `filter` (all, if `None`).
pub fn explain(_wasm: &[u8], _options: &CompileOptions, _filter: Option<&str>) -> Result<Vec<Explained>, Error> {
    Err(Error::Internal("not built yet".into()))
}

/// A compiled module loaded on a device.
#[derive(Debug)]
pub struct Program {}

/// A wasm value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    I32(i32),
    I64(i64),
    /// The bits.
    F32(u32),
    /// The bits.
    F64(u64),
    /// `None` is null; a function's index.
    FuncRef(Option<u32>),
    /// `None` is null; the host's number.
    ExternRef(Option<u32>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    I32,
    I64,
    F32,
    F64,
    FuncRef,
    ExternRef,
}

#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// When the run as a whole is to be ended.
    pub deadline: Option<Instant>,
    /// Bytes of linear memory an instance may have at most.
    pub max_memory: Option<u64>,
}

/// What became of one instance.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub end: End,
    /// Results of the entry function, if it returned.
    pub results: Vec<Value>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum End {
    Returned,
    Exited(u32),
    Trapped(Trap),
}

/// A trap, with what is known of its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Trap {
    pub code: TrapCode,
    /// Index in the module's function space.
    pub function: Option<u32>,
    /// Demangled.
    pub name: Option<String>,
    /// Offset in the .wasm file.
    pub offset: u32,
    /// From DWARF: file, line.
    pub source: Option<(String, u32)>,
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code.message())?;
        if let Some(index) = self.function {
            match &self.name {
                Some(name) => write!(f, "\n  in {name} (function {index}), at offset {:#x}", self.offset)?,
                None => write!(f, "\n  in function {index}, at offset {:#x}", self.offset)?,
            }
        }
        if let Some((file, line)) = &self.source {
            write!(f, "\n  at {file}:{line}")?;
        }
        Ok(())
    }
}

/// What a run did, for `--stats`.
#[derive(Clone, Debug, Default)]
pub struct RunStats {
    pub instances: u64,
    pub launches: u64,
    pub hostcalls: u64,
    /// Bytes of device memory in use.
    pub device_bytes: u64,
    /// Setting slots up.
    pub setup: Duration,
    /// The kernel.
    pub run: Duration,
}

impl Program {
    /// Compiles the PTX for a device.
    pub fn load(_device: Arc<dyn Device>, _compiled: Arc<Compiled>) -> Result<Self, Error> {
        Err(Error::Internal("not built yet".into()))
    }

    /// Parameters and results of an exported function.
    pub fn signature(&self, _function: &str) -> Option<(Vec<ValueType>, Vec<ValueType>)> {
        None
    }

    /// Runs one instance for each context (arguments, environment, descriptors), all of them at once: instantiates, calls `function` with `args` (the start
    /// function before it), and says what became of each, in order.
    pub fn run(
        &self,
        _function: &str,
        _args: &[Value],
        _contexts: Vec<Context>,
        _options: &RunOptions,
    ) -> Result<(Vec<Outcome>, RunStats), Error> {
        Err(Error::Internal("not built yet".into()))
    }
}
