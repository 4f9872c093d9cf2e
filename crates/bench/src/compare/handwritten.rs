//! The same work as hand-written CUDA kernels, to show what the card can do. Their sources, benches/cuda, are built
//! into this binary; nvcc compiles them if it is installed.

use anyhow::{Context as _, Result, bail};
use gpu_run_console::terminal;
use gpu_run_device::Properties;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Which programs of the set have a kernel, and in which of [`SOURCES`].
const KERNELS: [(&str, &str); 2] = [("sha256", "sha256.cu"), ("n-body", "nbody.cu")];

const SOURCES: [(&str, &str); 3] = [
    ("sha256.cu", include_str!("../../../../benches/cuda/sha256.cu")),
    ("nbody.cu", include_str!("../../../../benches/cuda/nbody.cu")),
    ("timing.cuh", include_str!("../../../../benches/cuda/timing.cuh")),
];

/// nvcc, and the device that it compiles for.
#[derive(Debug)]
pub(super) struct Handwritten {
    nvcc: PathBuf,
    sm: u32,
    /// The device's number in CUDA's order.
    ordinal: String,
}

impl Handwritten {
    /// Returns `None` if there is no nvcc.
    pub(super) fn find(device: &Properties) -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let homes = std::env::var_os("CUDA_HOME").map(|home| PathBuf::from(home).join("bin"));
        let folders = std::env::split_paths(&path).chain(homes).chain([PathBuf::from("/usr/local/cuda/bin")]);
        let nvcc = folders.map(|folder| folder.join("nvcc")).find(|file| file.is_file())?;
        let ordinal = device.id.strip_prefix("cuda:").unwrap_or("0").to_owned();
        Some(Self { nvcc, sm: device.target, ordinal })
    }

    /// Returns the instances per second of the program's kernel, if it has one. `expected` is what instance 0 of the
    /// program prints: a kernel that computes something else is an error. A kernel that cannot be compiled or run is
    /// reported on stderr and left out.
    pub(super) fn rate(&self, program: &str, instances: u32, expected: &[u8]) -> Result<Option<f64>> {
        let Some((_, source)) = KERNELS.iter().find(|(name, _)| *name == program) else { return Ok(None) };
        let printed = match self.run(source, instances) {
            Ok(printed) => printed,
            Err(error) => {
                terminal::say(&format!("gpu-run: no hand-written CUDA for {program}: {error:#}\n"));
                return Ok(None);
            }
        };
        rate_of(&printed, expected).with_context(|| format!("the hand-written {source}")).map(Some)
    }

    /// Compiles and runs a kernel, and returns what it prints.
    fn run(&self, source: &str, instances: u32) -> Result<String> {
        let folder = TempDir::new()?;
        for (name, text) in SOURCES {
            std::fs::write(folder.path().join(name), text)?;
        }
        let program = folder.path().join("kernel");
        let mut nvcc = Command::new(&self.nvcc);
        nvcc.arg("-O3").arg(format!("-arch=sm_{}", self.sm)).arg("-o").arg(&program).arg(folder.path().join(source));
        output(&self.nvcc, &mut nvcc)?;
        output(&program, Command::new(&program).arg(instances.to_string()).arg(&self.ordinal))
    }
}

/// Returns a command's stdout. If the command fails, its stderr is the error.
fn output(name: &Path, command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {}", name.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} failed ({}): {}", name.display(), output.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Extracts the instances per second from a kernel's line of JSON.
fn rate_of(printed: &str, expected: &[u8]) -> Result<f64> {
    let line: serde_json::Value = serde_json::from_str(printed).context("did not print JSON")?;
    let (Some(rate), Some(check)) = (line["per_second"].as_f64(), line["check"].as_str()) else {
        bail!("printed {}", printed.trim());
    };
    let expected = String::from_utf8_lossy(expected);
    if check != expected.trim() {
        bail!("computes {check} for instance 0, but the program computes {}", expected.trim());
    }
    Ok(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_computes_something_else_is_no_measure() {
        let line = r#"{"instances": 4, "seconds": 0.001, "per_second": 4000, "check": "-0.1690"}"#;
        assert_eq!(rate_of(line, b"-0.1690\n").unwrap(), 4000.0);
        let error = rate_of(line, b"-0.1691\n").unwrap_err().to_string();
        assert!(error.contains("-0.1690") && error.contains("-0.1691"), "{error}");
        assert!(rate_of("Segmentation fault", b"").is_err());
    }

    /// Takes `-o PROGRAM … SOURCE` as nvcc does; what it makes prints a line as the kernels do.
    const NVCC: &str = r#"#!/bin/sh
while [ "$1" != -o ]; do shift; done
grep -q __global__ "$3" && [ -f "$(dirname "$3")/timing.cuh" ] || exit 1
printf '#!/bin/sh\necho "{\\"per_second\\": $1, \\"check\\": \\"device $2\\"}"\n' >"$2" && chmod +x "$2"
"#;

    #[test]
    fn a_kernel_is_compiled_and_run_with_the_number_of_instances_on_the_right_device() {
        let folder = TempDir::new().unwrap();
        let nvcc = folder.path().join("nvcc");
        // By another process: one that had it open for writing could not run it.
        let made = Command::new("sh")
            .args(["-c", "printf %s \"$1\" >\"$2\" && chmod +x \"$2\"", "sh", NVCC])
            .arg(&nvcc)
            .status();
        assert!(made.unwrap().success());
        let handwritten = Handwritten { nvcc, sm: 90, ordinal: "1".into() };
        assert_eq!(handwritten.rate("sha256", 4096, b"device 1\n").unwrap(), Some(4096.0));
        assert!(handwritten.rate("n-body", 4096, b"device 0\n").is_err());
        assert_eq!(handwritten.rate("json", 4096, b"").unwrap(), None);
        let missing = Handwritten { nvcc: folder.path().join("none"), ..handwritten };
        assert_eq!(missing.rate("sha256", 4096, b"").unwrap(), None);
    }

    #[test]
    fn every_kernels_source_is_there() {
        for (_, file) in KERNELS {
            assert!(SOURCES.iter().any(|(name, _)| *name == file), "{file}");
        }
    }
}
