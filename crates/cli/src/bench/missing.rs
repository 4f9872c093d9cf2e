//! Stands in for `compare` in a build without it: comparing with Wasmtime needs a second compiler and runtime.

use crate::args::BenchArgs;
use anyhow::Result;
use gpu_run_console::failure::Failure;

pub(super) fn compare(_: &BenchArgs) -> Result<u8> {
    Err(Failure::environment("this gpu-run was built without `bench`, which needs Wasmtime to compare with")
        .hint("build it with: cargo build --release -p gpu-run-cli --features bench, or cargo install --path crates/cli --features bench")
        .into())
}
