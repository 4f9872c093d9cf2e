//! Differential fuzzing against Wasmtime, for as long as one likes.
//!
//! `gpu-run-fuzz [--seeds FIRST..END] [--jobs N] [--seconds S] [--artifacts DIR] [--generator NAME]` compares a module of each generator for each
//! seed, from FIRST on, or from the clock; it ends at END, after S seconds, or never, and says what it did. The exit code is 1 if something differed. `gpu-run-fuzz FILE`
//! compares that module only.
//!
//! Modules run in processes of their own (`worker`), handed out one by one: one that crashes, or never ends, is a finding like any other, and its
//! text is left in the folder of artifacts.

#[path = "../../crates/run/tests/fuzz/atomics.rs"]
mod atomics;
#[path = "../../crates/run/tests/fuzz/case.rs"]
mod case;
#[path = "../../crates/run/tests/fuzz/counters.rs"]
mod counters;
#[path = "../../crates/run/tests/fuzz/differential.rs"]
mod differential;
#[path = "../../crates/run/tests/fuzz/expressions/mod.rs"]
mod expressions;
mod options;
mod parent;
#[path = "../../crates/run/tests/fuzz/random.rs"]
mod random;
#[path = "../../crates/run/tests/fuzz/smith.rs"]
mod smith;
#[path = "../../crates/run/tests/fuzz/vectors.rs"]
mod vectors;
mod worker;

use std::path::Path;
use std::process::ExitCode;

/// wasm-smith's modules have the threads proposal's instructions.
const ATOMICS: bool = true;

fn configure(config: &mut wasmtime::Config) {
    config.wasm_threads(true).shared_memory(true);
}

/// NVIDIA's assembler judges in the tests: it would take most of the time here.
fn judge(_: &str) -> Result<(), String> {
    Ok(())
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, folder] = &args[..]
        && flag == worker::FLAG
    {
        return worker::run(Path::new(folder));
    }
    match options::Options::parse(&args) {
        Ok(options) => match &options.file {
            Some(file) => one_file(file),
            None => parent::run(&options),
        },
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

fn one_file(file: &Path) -> ExitCode {
    match case::run_file(file) {
        Ok(compared) => {
            println!("no difference in {} calls", compared.calls);
            ExitCode::SUCCESS
        }
        Err(difference) => {
            println!("{difference}");
            ExitCode::FAILURE
        }
    }
}
