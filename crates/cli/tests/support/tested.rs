//! What is tested, and where. `scripts/gpu-test` sets the variables: it tests a gpu-run on a GPU, on a machine without the repository.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The repository; `GPU_RUN_TEST_ROOT` names a folder with what the tests need of it.
pub(crate) fn root() -> PathBuf {
    let here =
        || Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates lie two levels below the root");
    std::env::var_os("GPU_RUN_TEST_ROOT").map_or_else(|| here().to_owned(), PathBuf::from)
}

/// The device under test, by its id: `cpu`, or what `GPU_RUN_TEST_DEVICE` says.
pub(crate) fn device() -> String {
    std::env::var("GPU_RUN_TEST_DEVICE").unwrap_or_else(|_| "cpu".into())
}

/// The `gpu-run` that is tested. Cargo names what it built only to the tests of the crate that it belongs to.
pub(crate) fn gpu_run() -> Command {
    let built = option_env!("CARGO_BIN_EXE_gpu-run").unwrap_or("gpu-run");
    Command::new(std::env::var_os("GPU_RUN_TEST_BIN").unwrap_or_else(|| built.into()))
}
