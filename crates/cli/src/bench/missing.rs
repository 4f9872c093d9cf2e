//! `gpu-run bench` where it was left out of the build: it brings a second compiler and runtime along.

use crate::args::BenchArgs;
use anyhow::Result;
use gpu_run_console::failure::Failure;

pub(crate) fn bench(_: &BenchArgs) -> Result<u8> {
    Err(Failure::environment("this gpu-run was built without `bench`, which needs Wasmtime to compare with")
        .hint("build it with: cargo build --release -p gpu-run --features bench, or cargo install --path crates/cli --features bench")
        .into())
}
