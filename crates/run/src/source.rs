//! A program as it was given to gpu-run, before it is compiled.

use std::sync::Arc;

/// A module, and its names.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name the user gave, for messages.
    pub name: String,
    /// The guest's `argv[0]`: the file name without its folders, as in Wasmtime, so that no host path leaks.
    pub argv0: String,
    pub wasm: Arc<Vec<u8>>,
}
