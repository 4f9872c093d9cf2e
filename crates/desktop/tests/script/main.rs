//! What scripts say, done by a desktop on the `cpu` device; and pictures of what a phase found.
#![allow(clippy::unwrap_used)] // A test that cannot go on says so by panicking.

mod overlays;
mod words;

use gpu_run_cache::{Cache, Options as CacheOptions};
use gpu_run_compiler::Compiler;
use gpu_run_desktop::{Desktop, Options, Script};
use gpu_run_machine::{GridSize, Start};
use std::sync::LazyLock;
use tempfile::TempDir;

static CACHE: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());
static COMPILER: LazyLock<Compiler> = LazyLock::new(|| {
    Compiler::new(Cache::open(CacheOptions { durable: false, ..CacheOptions::new(CACHE.path().to_owned()) }))
});

/// A desktop that has done what a script says. The device is `cpu`, or what `GPU_RUN_TEST_DEVICE` says.
fn run(script: &str, (width, height): (u32, u32), (groups, threads): (u32, u32)) -> Desktop {
    let id = std::env::var("GPU_RUN_TEST_DEVICE").unwrap_or_else(|_| "cpu".to_owned());
    let device = gpu_run_device::open(&id).unwrap();
    let options = Options { width, height, scale: 1.0, grid: GridSize::Groups(groups), threads: Some(threads) };
    let mut desktop = Desktop::boot(&COMPILER, &device, Start::Empty, &options).unwrap();
    desktop.run(&Script::parse(script).unwrap()).unwrap();
    desktop
}
