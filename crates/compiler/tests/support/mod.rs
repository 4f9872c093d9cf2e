//! What several test binaries need: NVIDIA's assembler as a judge of every PTX module.

#![allow(unreachable_pub)] // tests of several crates include this file

#[allow(dead_code)] // the suite's modules are small: they are judged whole
pub mod functions;

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

/// Returns the path of NVIDIA's ptxas: `GPU_RUN_PTXAS`, or the one in `PATH`.
pub fn ptxas() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("GPU_RUN_PTXAS") {
        return Some(path.into());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join("ptxas")).find(|file| file.is_file())
}

/// Assembles a module with ptxas; the error is the output of ptxas. Without ptxas nothing is checked, and the tests
/// report that once, as ignored.
pub fn assemble(ptx: &str) -> Result<(), String> {
    let Some(ptxas) = ptxas() else { return Ok(()) };
    // The suite contains many modules more than once.
    static TAKEN: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());
    let taken = || TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut hasher = DefaultHasher::new();
    ptx.hash(&mut hasher);
    let text = hasher.finish();
    if taken().contains(&text) {
        return Ok(());
    }
    let mut file = tempfile::Builder::new().suffix(".ptx").tempfile().map_err(|e| e.to_string())?;
    file.write_all(ptx.as_bytes()).map_err(|e| e.to_string())?;
    // Only syntax and types are judged, so the lowest optimisation level is enough, and by far the fastest. At that
    // level, ptxas 13.4 crashes on a few modules that it assembles at all other levels: a crash is no verdict.
    let mut output = run_ptxas(&ptxas, "-O0", file.path())?;
    if output.status.code().is_none() {
        output = run_ptxas(&ptxas, "-O1", file.path())?;
    }
    match output.status.success() {
        true => {
            taken().insert(text);
            Ok(())
        }
        false => Err(format!("ptxas ({}): {}", output.status, String::from_utf8_lossy(&output.stderr))),
    }
}

fn run_ptxas(ptxas: &Path, level: &str, file: &Path) -> Result<Output, String> {
    let mut command = Command::new(ptxas);
    command.args(["-c", level, "-arch=sm_75", "-o", "/dev/null"]).arg(file);
    command.output().map_err(|e| e.to_string())
}
