//! The compiled kernel: it was built from the sources that are here, and NVIDIA's assembler takes it.
#![allow(clippy::unwrap_used)] // A test that cannot go on says so by panicking.

#[path = "../../machine/tests/kernel/ptxas.rs"]
mod ptxas;

use gpu_run_desktop::KERNEL;
use gpu_run_machine::{Kernel, kernel_ptx};
use libtest_mimic::{Arguments, Failed, Trial};
use ptxas::{PTXAS, TARGETS, assemble};
use std::path::Path;
use std::process::Command;

fn main() {
    let args = Arguments::from_args();
    let ptxas = std::env::var_os(PTXAS);
    if ptxas.is_none() {
        eprintln!("kernel::ptxas_takes_it is ignored: {PTXAS} does not say where ptxas is");
    }
    let trials = vec![
        Trial::test("kernel::was_built_from_the_sources_that_are_here", was_built_from_the_sources_that_are_here),
        Trial::test("kernel::ptxas_takes_it", ptxas_takes_it).with_ignored_flag(ptxas.is_none()),
    ];
    libtest_mimic::run(&args, trials).exit();
}

/// Whichever compiler is installed: a source that has changed since the kernel was built is named.
fn was_built_from_the_sources_that_are_here() -> Result<(), Failed> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(root.join("scripts/build-desktop")).arg("--sources").output()?;
    if !output.status.success() {
        return Err(format!("scripts/build-desktop --sources: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let now = String::from_utf8(output.stdout)?;
    let then = std::fs::read_to_string(root.join("crates/desktop/kernel.sources"))?;
    let stale: Vec<&str> = now.lines().filter(|line| !then.lines().any(|known| known == *line)).collect();
    if !stale.is_empty() || now.lines().count() != then.lines().count() {
        return Err(format!("the kept kernel was not built from these: {stale:?}: run scripts/build-desktop").into());
    }
    Ok(())
}

fn ptxas_takes_it() -> Result<(), Failed> {
    let kernel = Kernel::named("kernel.wasm", KERNEL.to_vec())?;
    for target in TARGETS {
        assemble("kernel.wasm", &kernel_ptx(&kernel, 132, 1024)?, target)?;
    }
    Ok(())
}
