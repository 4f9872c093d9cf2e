//! A program as it was given to gpu-run, before it is compiled.

use std::sync::Arc;

/// A module, and what to call it.
#[derive(Clone, Debug)]
pub struct Source {
    /// As the user named it, for messages.
    pub name: String,
    /// The guest's `argv[0]`: the file's name without its folders, as Wasmtime has it, so that no host path leaks.
    pub argv0: String,
    pub wasm: Arc<Vec<u8>>,
}
