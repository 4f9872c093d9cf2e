//! Why a module cannot be compiled.

use crate::printable;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Malformed, or invalid by the specification.
    #[error("{} (at offset {offset:#x})", printable::name(message))]
    Invalid { message: String, offset: usize },
    #[error(
        "this is a WebAssembly component, not a module\n  hint: build for wasm32-wasip1 (a core module), not wasm32-wasip2"
    )]
    Component,
    /// Valid, but not supported yet.
    #[error("not supported yet: {feature}, at {place}, offset {offset:#x}")]
    Unsupported { feature: String, place: String, offset: usize },
    #[error(
        "it imports `{}.{}` ({kind}), which nothing provides\n  hint: gpu-run provides wasi_snapshot_preview1; build for wasm32-wasip1",
        printable::name(module),
        printable::name(name)
    )]
    UnknownImport { module: String, name: String, kind: String },
    #[error("it imports `{}.{}` as {found}, but it is {expected}", printable::name(module), printable::name(name))]
    ImportType { module: String, name: String, found: String, expected: String },
    /// Exceeds a limit of this compiler.
    #[error("{0}")]
    Limit(String),
    /// The time limit for compiling passed during this step.
    #[error("compiling did not finish in time; it was at {0}")]
    Late(String),
    /// A bug in the translator, reported instead of a panic.
    #[error("internal error in function {function}: {message}")]
    Internal { function: u32, message: String },
}

impl From<wasmparser::BinaryReaderError> for Error {
    fn from(e: wasmparser::BinaryReaderError) -> Self {
        Self::Invalid { message: e.message().to_string(), offset: e.offset() }
    }
}
