//! Rust sources become programs, with the toolchain that is installed.

#![cfg_attr(test, allow(clippy::unwrap_used))] // in a test, that is an assertion

mod compile;
mod own_std;
mod settings;

pub use compile::{become_cargo, build_package, cargo_with, compile_file};
pub use own_std::{check, rust};
pub use settings::{Flags, Settings};
