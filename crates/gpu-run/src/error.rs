//! Why something could not be done.

use gpu_run_compiler::{Error as CompilerError, Trap, Unprovided};
use gpu_run_map::FunctionError;
use std::io;
use std::time::Duration;

/// An error of any kind, as a function of the embedder may return.
pub type AnyError = Box<dyn std::error::Error + Send + Sync>;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such device, or it failed.
    #[error("{0}")]
    Device(String),
    /// A remote cache cannot be used as it was asked for.
    #[error("{0}")]
    Cache(String),
    /// The bytes are no module, or the module is invalid or uses a feature that is not supported.
    #[error("{name}: {message}")]
    Module { name: String, message: String },
    /// The module imports what neither gpu-run nor the linker provides.
    #[error("{name} imports `{module}.{import}` ({what}), which nothing provides")]
    UnknownImport { name: String, module: String, import: String, what: String },
    /// The module imports a function with another type than the linker's function has.
    #[error("{name} imports `{module}.{import}` with type {wanted}, but its type is {found}")]
    ImportType { name: String, module: String, import: String, wanted: String, found: String },
    /// The module exports no such function.
    #[error("{0}")]
    MissingExport(String),
    /// A function has other parameters or results than it was called with.
    #[error("`{function}` has type {expected}, but was called as {found}")]
    Signature { function: String, expected: String, found: String },
    /// The linker has a function of this name already, or a function cannot be provided.
    #[error("`{module}.{name}` {why}")]
    Define { module: String, name: String, why: String },
    /// The guest trapped.
    #[error("{0}")]
    Trap(Box<Trap>),
    /// The guest called `exit`, or `proc_exit` of WASI.
    #[error("the program exited with code {0}")]
    Exit(u32),
    /// The guest did not finish in time.
    #[error("the program did not finish within {0:?}")]
    Timeout(Duration),
    /// A function of the embedder returned an error.
    #[error("`{function}` failed: {source}")]
    Function { function: String, source: AnyError },
    /// Columns cannot be given to a function, or it refuses them, or what it returned cannot be used.
    #[error("`{function}`: {source}")]
    Arrow { function: String, source: AnyError },
    /// An [`Interrupt`](crate::Interrupt) was raised while a function ran for columns.
    #[error("it was interrupted")]
    Interrupted,
    /// An argument or a variable that a guest cannot be given.
    #[error("{0}")]
    Given(String),
    /// More memory than is allowed or than the device has, or another limit.
    #[error("{0}")]
    Limit(String),
    /// A map of files cannot begin or go on.
    #[error(transparent)]
    Files(Box<gpu_run_map::Error>),
    /// The batch failed that a service ran a record in.
    #[error("{0}")]
    Batch(String),
    #[error("{what}: {source}")]
    Io { what: String, source: io::Error },
    /// An instance was used with another store than its own, or things of two engines together.
    #[error("it belongs to another store or engine")]
    OtherStore,
    /// There is no such place in an instance's memory.
    #[error("the memory has no {count} bytes at {at:#x}")]
    OutOfBounds { at: u64, count: usize },
    /// A mistake in gpu-run itself.
    #[error("internal error: {0}")]
    Internal(String),
}

impl Error {
    pub(crate) fn of_function(module: &str, error: FunctionError) -> Self {
        match error {
            FunctionError::Missing(name) => Self::MissingExport(format!("{module} exports no function `{name}`")),
            FunctionError::Adapter { .. } => Self::Internal(error.to_string()),
            FunctionError::NoNumber { .. } => Self::Limit(error.to_string()),
            FunctionError::Memory(_) => Self::Limit(format!("{module}: {error}")),
        }
    }

    pub(crate) fn of_compiler(name: &str, error: CompilerError) -> Self {
        match error {
            CompilerError::Module(what) => match Unprovided::of(&what) {
                Some(Unprovided { module, import, what, found: None }) => {
                    Self::UnknownImport { name: name.into(), module, import, what }
                }
                Some(Unprovided { module, import, what: wanted, found: Some(found) }) => {
                    Self::ImportType { name: name.into(), module, import, wanted, found }
                }
                None => Self::Module { name: name.into(), message: what.to_string() },
            },
            CompilerError::Usage(what) | CompilerError::Limit(what) => Self::Limit(format!("{name}: {what}")),
            CompilerError::MissingExport { .. } => Self::MissingExport(format!("{name}: {error}")),
            CompilerError::Late(_) | CompilerError::CompileTimeout(_) => Self::Limit(format!("{name}: {error}")),
            CompilerError::Device(what) => Self::Device(what.to_string()),
            CompilerError::Internal(what) => Self::Internal(what),
        }
    }
}
