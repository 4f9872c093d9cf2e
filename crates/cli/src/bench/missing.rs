//! Comparisons with Wasmtime where they were left out of the build: they bring a second compiler and runtime along.

use crate::args::BenchArgs;
use anyhow::Result;
use gpu_run_console::failure::Failure;

pub(super) fn compare(_: &BenchArgs) -> Result<u8> {
    Err(Failure::environment("this gpu-run was built without `bench`, which needs Wasmtime to compare with")
        .hint("build it with: cargo build --release -p gpu-run --features bench, or cargo install --path crates/cli --features bench")
        .into())
}
