//! Identifies this build of the compiler by a hash of its sources, for the keys of compiled programs.

use std::fs;
use std::path::{Path, PathBuf};

/// The sources that influence the generated code: every crate on the way, and the versions of all other crates.
const SOURCES: [&str; 6] = ["../abi/src", "../wasm/src", "../ptx/src", "../device/src", "src", "../../Cargo.lock"];

fn main() {
    let mut files = Vec::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        collect(Path::new(source), &mut files);
    }
    files.sort();
    let mut hasher = blake3::Hasher::new();
    for file in files {
        let content = fs::read(&file).unwrap_or_default();
        hasher.update(format!("{} {}\n", file.display(), content.len()).as_bytes()).update(&content);
    }
    println!("cargo::rustc-env=GPU_RUN_BUILD={}", hasher.finalize().to_hex());
}

/// Collects a file, or all files below a folder. A missing path is ignored: a crate from a registry is alone there, and
/// identified by its version.
fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    match fs::read_dir(path) {
        Ok(entries) => entries.flatten().for_each(|entry| collect(&entry.path(), files)),
        Err(_) if path.is_file() => files.push(path.to_owned()),
        Err(_) => {}
    }
}
