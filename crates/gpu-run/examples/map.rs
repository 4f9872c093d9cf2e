//! Runs one instance of a program for each of a million records.
//!
//! `cargo run --release --example map -- FILE.wasm [RECORDS]`, for example with `examples/sha256` of this repository.

use gpu_run::{Config, Engine, Mapper, Module};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let file = args.next().ok_or("which .wasm file?")?;
    let count = args.next().map_or(Ok(1_000_000), |count| count.parse())?;

    let engine = Engine::new(&Config::new())?;
    let module = Module::from_file(&engine, &file)?;
    let mut mapper = Mapper::builder(&module).arg(&file).build()?;

    let began = Instant::now();
    let (mut failed, mut last) = (0, None);
    for output in mapper.map((0..count).map(|i: u64| format!("record {i}\n"))) {
        let output = output?;
        failed += u64::from(!output.status.success());
        last = Some(output);
    }
    let rate = count as f64 / began.elapsed().as_secs_f64();
    if let Some(last) = last {
        println!("the last: {}", String::from_utf8_lossy(&last.stdout).trim_end());
    }
    println!("{count} records on {}, {failed} failed, {rate:.0} a second", engine.device());
    Ok(())
}
