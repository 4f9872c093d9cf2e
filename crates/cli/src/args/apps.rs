//! The options of `gpu-run desktop` that are about apps.

use super::common::{GivenArgs, ProcessArgs};
use clap::Args;
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
pub(crate) struct AppArgs {
    /// Programs with windows of their own (crate `gpu-run-ui`), which are started with the desktop: .wasm files, Rust sources, or Cargo packages
    #[arg(value_name = "APP")]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) given: GivenArgs,

    #[command(flatten)]
    pub(crate) processes: ProcessArgs,
}
