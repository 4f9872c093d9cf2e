//! A module that is linked with the guest's and calls its functions.

use crate::content;
use crate::error::Error;
use gpu_run_wasm::{self as wasm, EmbedderFunctions, Module, WasmFeatures, link};
use std::fmt;
use std::sync::Arc;

/// A module that imports from the guest's under the name `guest`: functions by their exported names, and its first memory as `memory`.
/// The program begins with the adapter's functions.
#[derive(Clone)]
pub struct Adapter(Arc<Vec<u8>>);

impl Adapter {
    pub fn new(wasm: Vec<u8>) -> Self {
        Self(wasm.into())
    }
}

/// The cache's key has the hash.
impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Adapter").field(&content::sum(&self.0)).finish()
    }
}

/// Decodes a module, with its adapter if it has one.
pub(crate) fn decode<'a>(
    bytes: &'a [u8],
    features: WasmFeatures,
    adapter: Option<&'a Adapter>,
    embedder: &EmbedderFunctions,
) -> Result<Module<'a>, Error> {
    let Some(Adapter(adapter)) = adapter else { return Ok(wasm::decode(bytes, features, embedder)?) };
    let (module, adapter) = (wasm::decode_unlinked(bytes, features)?, wasm::decode_unlinked(adapter, features)?);
    Ok(link::adapt(module, adapter, embedder)?)
}
