//! The options of `gpu-run desktop` that are about apps.

use super::common::{GivenArgs, ProcessArgs};
use clap::Args;
use gpu_run_console::units;
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
pub(crate) struct AppArgs {
    /// Programs with windows of their own (crate `gpu-run-ui`), which are started with the desktop: .wasm files, Rust sources, or Cargo packages
    #[arg(value_name = "APP")]
    pub(crate) files: Vec<PathBuf>,

    /// Shows no bar and no apps: only what the script makes. That is so anyway with --png, if no APP is named and the script starts none
    #[arg(long, conflicts_with = "files")]
    pub(crate) no_apps: bool,

    #[command(flatten)]
    pub(crate) given: GivenArgs,

    /// Limits the memory of each app and of each program that it starts; bytes, or a number with `K`, `M` or `G` (powers of 1024)
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = units::size, allow_hyphen_values = true)]
    pub(crate) max_memory: u64,

    #[command(flatten)]
    pub(crate) processes: ProcessArgs,
}
