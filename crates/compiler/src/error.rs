//! What a module cannot be run for.

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not a module, an invalid one, or one that uses what is not supported yet: what, and at which offset of the file.
    #[error("{0}")]
    Module(gpu_run_wasm::Error),
    #[error("{0}")]
    Device(gpu_run_device::Error),
    /// A missing export, a wrong number of arguments: what was asked does not fit the module.
    #[error("{0}")]
    Usage(String),
    /// More memory than `--max-memory` or the device allows.
    #[error("{0}")]
    Limit(String),
    /// It does not export the function that was asked for.
    #[error("it exports no function `{wanted}`; {}", list(.exported))]
    MissingExport { wanted: String, exported: Vec<String> },
    /// Compiling has to end, and was at this.
    #[error("compiling did not end in time, and was at {0}")]
    Late(String),
    /// Compiling took longer than it may.
    #[error("{0}")]
    CompileTimeout(String),
    #[error("internal error: {0}")]
    Internal(String),
}

fn list(exported: &[String]) -> String {
    match exported {
        [] => "it exports no functions at all".into(),
        _ => format!("it exports {}", exported.join(", ")),
    }
}

impl Error {
    /// Whether the device is lost with all that was on it: see `gpu_run_device::Error::is_lost`.
    pub fn is_device_lost(&self) -> bool {
        matches!(self, Self::Device(error) if error.is_lost())
    }

    /// Whether the device has no memory for it now.
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
