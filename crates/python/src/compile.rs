//! From a path to a module: what is Rust is built first, as the command `gpu-run` does it.

use crate::failure;
use crate::work;
use gpu_run::Interrupt;
use gpu_run_toolchain::{build_package, compile_file};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

const MAGIC: &[u8] = b"\0asm";

/// Returns a module's bytes, and what the program is called.
#[pyfunction]
#[pyo3(signature = (path, bin=None))]
pub(crate) fn compile<'py>(
    py: Python<'py>,
    path: PathBuf,
    bin: Option<String>,
) -> PyResult<(Bound<'py, PyBytes>, String)> {
    let (wasm, name) = work::wait(py, &Interrupt::new(), move || load(&path, bin.as_deref()))??;
    Ok((PyBytes::new(py, &wasm), name))
}

fn load(path: &Path, bin: Option<&str>) -> PyResult<(Vec<u8>, String)> {
    let of_toolchain = |error: anyhow::Error| failure::error(format!("{error:#}"));
    let name = |path: &Path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let cache = gpu_run::Config::usual_cache();
    let is_manifest = path.file_name() == Some(OsStr::new("Cargo.toml"));
    if path.is_dir() || is_manifest {
        let folder = if is_manifest { path.parent().unwrap_or(Path::new(".")) } else { path };
        if !folder.join("Cargo.toml").is_file() {
            let what = format!(
                "{} is a folder without a Cargo.toml: give a package's, or a .wasm or .rs file",
                folder.display()
            );
            return Err(failure::error(what));
        }
        let program = build_package(folder, bin, cache.as_deref()).map_err(of_toolchain)?;
        return Ok((failure::with_path(std::fs::read(&program), &program)?, name(&program)));
    }
    if bin.is_some() {
        return Err(failure::error(format!(
            "bin= chooses a binary of a Cargo package, but {} is a file",
            path.display()
        )));
    }
    let bytes = failure::with_path(std::fs::read(path), path)?;
    if !bytes.starts_with(MAGIC) && path.extension() == Some(OsStr::new("rs")) {
        let wasm = compile_file(path, cache.as_deref()).map_err(of_toolchain)?;
        return Ok((wasm, name(&path.with_extension("wasm"))));
    }
    Ok((bytes, name(path)))
}
