//! Why a module cannot be compiled or run.

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not a module, an invalid module, or one that uses an unsupported feature. The message names what and at which
    /// offset of the file.
    #[error("{0}")]
    Module(gpu_run_wasm::Error),
    #[error("{0}")]
    Device(gpu_run_device::Error),
    /// The request does not fit the module, for example a wrong number of arguments.
    #[error("{0}")]
    Usage(String),
    /// More memory than `--max-memory` or the device allows, or another limit of the compiler.
    #[error("{0}")]
    Limit(String),
    /// The module does not export the requested function.
    #[error("it exports no function `{wanted}`; {}", list(.exported))]
    MissingExport { wanted: String, exported: Vec<String> },
    /// The time limit for compiling passed during this step.
    #[error("compiling did not finish in time; it was at {0}")]
    Late(String),
    /// Compiling took longer than its time limit.
    #[error("{0}")]
    CompileTimeout(String),
    #[error("internal error: {0}")]
    Internal(String),
}

fn list(exported: &[String]) -> String {
    match exported {
        [] => "it exports no functions".into(),
        _ => format!("it exports {}", exported.join(", ")),
    }
}

impl Error {
    /// Returns whether the device is lost with everything on it, see `gpu_run_device::Error::is_lost`.
    pub fn is_device_lost(&self) -> bool {
        matches!(self, Self::Device(error) if error.is_lost())
    }

    /// Returns whether the device has no memory for this now.
    pub fn is_shortage(&self) -> bool {
        matches!(self, Self::Device(gpu_run_device::Error::OutOfMemory { .. }))
    }
}

impl From<gpu_run_wasm::Error> for Error {
    fn from(e: gpu_run_wasm::Error) -> Self {
        match e {
            gpu_run_wasm::Error::Internal { .. } => Self::Internal(e.to_string()),
            gpu_run_wasm::Error::Limit(message) => Self::Limit(message),
            gpu_run_wasm::Error::Late(place) => Self::Late(place),
            other => Self::Module(other),
        }
    }
}

impl From<gpu_run_ptx::Error> for Error {
    fn from(e: gpu_run_ptx::Error) -> Self {
        match e {
            gpu_run_ptx::Error::Late(place) => Self::Late(place),
            other => Self::Internal(other.to_string()),
        }
    }
}

impl From<gpu_run_device::Error> for Error {
    fn from(e: gpu_run_device::Error) -> Self {
        match e {
            gpu_run_device::Error::Late(place) => Self::Late(place),
            other => Self::Device(other),
        }
    }
}
