//! NVIDIA's assembler, where there is one, as the judge of PTX for a machine.

use libtest_mimic::Failed;
use std::process::Command;

/// Says where ptxas is.
pub(crate) const PTXAS: &str = "GPU_RUN_PTXAS";
pub(crate) const TARGETS: [&str; 2] = ["sm_75", "sm_90"];

/// ptxas takes it.
pub(crate) fn assemble(name: &str, ptx: &str, target: &str) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("it.ptx");
    std::fs::write(&path, ptx)?;
    // As many registers as a workgroup of 1024 leaves each thread.
    let mut ptxas = Command::new(std::env::var_os(PTXAS).unwrap_or_default());
    let output = ptxas.args(["-c", "-maxrregcount=64", "-arch", target, "-o", "/dev/null"]).arg(&path).output()?;
    if !output.status.success() {
        return Err(format!("{name}, {target}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(())
}
