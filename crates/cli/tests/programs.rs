//! Whole programs: what they print, return and write must be what they print, return and write elsewhere.
//!
//! - `programs::NAME::native_equal`: an example by `gpu-run`, the program people use, against the same source compiled for this machine.
//! - `programs::NAME::interleaved_64`: 64 instances at once, each with an input of its own, against each of them alone.
//! - `programs::NAME::assembles`: NVIDIA's assembler takes the PTX: of functions that are alike, one; of the largest programs, each function in
//!   one layout or the other.
//! - `real::NAME::equals_wasmtime`: a program from crates.io against Wasmtime.
//!
//! `GPU_RUN_TEST_DEVICE=cuda:0` does the first two on a GPU, which is what `scripts/gpu-test` is for; an instance alone is then
//! still one on `cpu`.
//!
//! `scripts/build-examples` and `scripts/real-programs` build the programs. A test whose program is not there is reported as ignored, never as
//! passed; with `CI` set in the environment it fails.

#[path = "programs/device.rs"]
mod device;
#[path = "programs/directory.rs"]
mod directory;
#[allow(dead_code)] // shared with the tests of programs with threads
#[path = "programs/manifest.rs"]
mod manifest;
#[path = "programs/observed.rs"]
mod observed;
#[path = "programs/oracle.rs"]
mod oracle;
#[path = "programs/process.rs"]
mod process;
#[path = "programs/shapes.rs"]
mod shapes;
#[path = "../../compiler/tests/support/mod.rs"]
mod support;
#[path = "support/tested.rs"]
mod tested;

use gpu_run_abi::Build;
use gpu_run_abi::Layout;
use libtest_mimic::{Arguments, Failed, Trial};
use manifest::{Aspect, Input, Program, Vary};
use observed::{Observed, difference};
use process::{in_directory, with_files};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use support::functions::Share;

/// Of a larger program, the assembler takes more than a minute.
const LARGE_PROGRAM_BYTES: u64 = 2 << 20;
/// Two warps.
const INSTANCES: usize = 64;

fn main() {
    let args = Arguments::from_args();
    // What takes longest comes first, so that no core is idle at the end.
    let mut trials = real();
    trials.extend(shapes::trials());
    for program in Program::all(&tested::root().join("examples/programs.toml")) {
        let program = Arc::new(program);
        trials.push(trial("programs", "native_equal", &program, &[program.wasm(), program.native()], native_equal));
        trials.push(trial("programs", "interleaved_64", &program, &[program.wasm()], interleaved));
        trials.push(assembling(trial("programs", "assembles", &program, &[program.wasm()], assembles)));
    }
    libtest_mimic::run(&args, trials).exit();
}

/// Programs from crates.io.
fn real() -> Vec<Trial> {
    let (mut first, mut trials) = (Vec::new(), Vec::new());
    let mut assembled = HashSet::new();
    for program in Program::all(&tested::root().join("tests/programs/real.toml")) {
        let program = Arc::new(program);
        trials.push(trial("real", "equals_wasmtime", &program, &[program.wasm()], equals_wasmtime));
        if program.spec.vary != Vary::None {
            trials.push(trial("real", "interleaved_64", &program, &[program.wasm()], interleaved));
        }
        // Of several tests of a program one; ptxas -O0 takes half a minute to a minute for each (17 to 65 MB of PTX). One program in one
        // layout, the next in the other, and the largest in none, unless all is wanted.
        let all = std::env::var_os("GPU_RUN_TEST_ALL").is_some();
        let is_large = std::fs::metadata(program.wasm()).is_ok_and(|file| file.len() > LARGE_PROGRAM_BYTES);
        let other = assembled.len() % 2;
        if assembled.insert(program.wasm()) && (all || !is_large) {
            let builds = [
                ("assembles_linear", assembles_linear as fn(&Program) -> Result<(), Failed>),
                ("assembles_interleaved", assembles_interleaved),
            ];
            for (what, test) in builds.into_iter().skip(if all { 0 } else { other }).take(if all { 2 } else { 1 }) {
                first.push(assembling(trial("real", what, &program, &[program.wasm()], test)));
            }
        }
    }
    // The largest is the last in the list.
    first.into_iter().rev().chain(trials).collect()
}

/// A test of a program; ignored if one of the files it needs is not there.
fn trial(
    group: &str,
    what: &str,
    program: &Arc<Program>,
    needs: &[PathBuf],
    test: fn(&Program) -> Result<(), Failed>,
) -> Trial {
    let script = if group == "real" { "scripts/real-programs" } else { "scripts/build-examples" };
    let program = program.clone();
    process::trial(format!("{group}::{}::{what}", program.name), needs, script, move || test(&program))
}

/// The same test, ignored where there is no ptxas.
fn assembling(trial: Trial) -> Trial {
    match support::ptxas() {
        Some(_) => trial,
        None => trial.with_kind("no ptxas").with_ignored_flag(true),
    }
}

fn native_equal(program: &Program) -> Result<(), Failed> {
    let mut input = program.input();
    // `gpu-run` tells every instance its number.
    input.env.insert("GPU_RUN_INSTANCE".into(), "0".into());
    let native = process::natively(program, &input)?;
    // It sets GPU_RUN_INSTANCE itself.
    input.env.remove("GPU_RUN_INSTANCE");
    let ours = process::by_gpu_run(program, &input, &["--timeout", "600s", "--no-cache"])?;
    Ok(difference(&program.spec, &native, &ours)?)
}

fn equals_wasmtime(program: &Program) -> Result<(), Failed> {
    let input = program.input();
    let expected = in_directory(program, |dir| {
        let dirs: Vec<_> = dir.map(|dir| (dir, ".")).into_iter().collect();
        Ok(oracle::run(&program.wasm(), &program.name, &input, &dirs)?.0)
    })?;
    let got = in_directory(program, |dir| alone(program, &input, dir))?;
    Ok(difference(&program.spec, &expected, &got)?)
}

fn interleaved(program: &Program) -> Result<(), Failed> {
    let inputs: Vec<Input> = (0..INSTANCES).map(|instance| program.varied(instance)).collect();
    let loaded = device::load(&program.wasm(), Layout::Interleaved)?;
    let (together, files) = with_files(program, |dir| Ok(device::run(&loaded.1, &program.name, &inputs, dir)?.0))?;
    let (alone, files_alone) = with_files(program, |dir| {
        inputs.iter().map(|input| alone(program, input, dir)).collect::<Result<Vec<_>, _>>()
    })?;
    for (instance, (expected, got)) in alone.iter().zip(&together).enumerate() {
        let mut spec = program.spec.clone();
        spec.stderr_contains.clear();
        spec.compare = vec![Aspect::Stdout, Aspect::Stderr, Aspect::Exit];
        difference(&spec, expected, got).map_err(|message| format!("instance {instance} of {INSTANCES}: {message}"))?;
    }
    if files != files_alone {
        return Err("the files that 64 instances wrote are not those that they write one after the other".into());
    }
    // A batch that ran the same input 64 times would prove less than it says.
    match program.spec.vary != Vary::None && together.windows(2).any(|pair| pair[0] == pair[1]) && files.is_none() {
        true => Err("neighbouring instances with different inputs have the same output".into()),
        false => Ok(()),
    }
}

/// One instance on its own, linear, on `cpu`.
fn alone(program: &Program, input: &Input, dir: Option<&Path>) -> Result<Observed, Failed> {
    let loaded = device::load(&program.wasm(), Layout::Linear)?;
    let (mut observed, _) = device::run(&loaded.1, &program.name, std::slice::from_ref(input), dir)?;
    observed.pop().ok_or_else(|| "no outcome".into())
}

/// Every build there is of it.
fn assembles(program: &Program) -> Result<(), Failed> {
    assembles_as(program, Build::Exact(Layout::Linear), Share::All)?;
    assembles_as(program, Build::Exact(Layout::Interleaved), Share::All)?;
    assembles_as(program, Build::speculative(Layout::Interleaved, 256 << 10), Share::All)
}

fn assembles_linear(program: &Program) -> Result<(), Failed> {
    assembles_as(program, Build::Exact(Layout::Linear), Share::Even)
}

fn assembles_interleaved(program: &Program) -> Result<(), Failed> {
    assembles_as(program, Build::Exact(Layout::Interleaved), Share::Odd)
}

fn assembles_as(program: &Program, build: Build, share: Share) -> Result<(), Failed> {
    let compiled = device::compile(&std::fs::read(program.wasm())?, build)?;
    Ok(support::assemble(&support::functions::new_ones(compiled.ptx(), share))
        .map_err(|message| format!("{build:?}: {message}"))?)
}
