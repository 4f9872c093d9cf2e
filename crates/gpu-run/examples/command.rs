//! Runs a program on the GPU, with an argument, a folder and an input, and shows what it printed.
//!
//! `cargo run --example command -- FILE.wasm [ARGUMENT]… < INPUT`

use gpu_run::{Access, Command, Config, Engine, Module, Wasi};
use std::io::{self, Read, Write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let file = args.next().ok_or("which .wasm file?")?;
    let mut input = Vec::new();
    io::stdin().read_to_end(&mut input)?;

    let engine = Engine::new(&Config::new())?;
    let module = Module::from_file(&engine, &file)?;
    let wasi = Wasi::new().arg(&file).args(args).stdin(input).dir(".", ".", Access::ReadOnly)?;
    let output = Command::new(&module).wasi(wasi).output()?;

    io::stdout().write_all(&output.stdout)?;
    io::stderr().write_all(&output.stderr)?;
    println!("{file} on {}: {}", engine.device(), output.status);
    Ok(())
}
