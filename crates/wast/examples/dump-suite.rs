//! `cargo run -p gpu-run-wast --example dump-suite -- DIR`: writes the scripts of the official WebAssembly suite that
//! the tests run to a folder, so that `gpu-run wast DIR` can run them on another computer.

#[path = "../tests/support/suite.rs"]
mod suite;

use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root: PathBuf = std::env::args_os().nth(1).ok_or("usage: dump-suite DIR")?.into();
    let mut count = 0;
    for folder in suite::folders().into_iter().chain([suite::own()]) {
        let to = root.join(folder.name);
        std::fs::create_dir_all(&to)?;
        for script in folder.scripts {
            // At the end, so that no line number changes.
            let text = format!("{}\n;;! wasm = {}\n", script.raw(), folder.wasm);
            std::fs::write(to.join(script.name()), text)?;
            count += 1;
        }
    }
    println!("{count} scripts in {}", root.display());
    Ok(())
}
