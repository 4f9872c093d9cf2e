//! How fast `cpu` is, measured against the project's own bars. Everything is measured in this run, on this computer.
//!
//! - A program run through PTX takes at most three times as long as under Wasmtime, not counting compilation.
//! - wasm to PTX takes at most 100 ms for 200 KB of wasm.
//!
//! `cargo bench` measures all examples, `cargo bench -- word-count` one. `docs/lab` keeps the log.

#![allow(clippy::print_stdout)] // a table on stdout is what this program is for

#[allow(dead_code)] // shared with the tests, which use more of it
#[path = "../../cli/tests/programs/device.rs"]
mod device;
#[allow(dead_code)]
#[path = "../../cli/tests/programs/directory.rs"]
mod directory;
#[allow(dead_code)]
#[path = "../../cli/tests/programs/manifest.rs"]
mod manifest;
#[allow(dead_code)]
#[path = "../../cli/tests/programs/observed.rs"]
mod observed;
#[path = "../../cli/tests/programs/oracle.rs"]
mod oracle;
#[allow(dead_code)]
#[path = "../../cli/tests/support/tested.rs"]
mod tested;

use directory::Directory;
use gpu_run_abi::{Build, Layout};
use manifest::{Input, Program};
use std::path::Path;
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The most that a run may take, as a multiple of Wasmtime's time.
const RUN_BAR: f64 = 3.0;
const TRANSLATE_BAR: Duration = Duration::from_millis(100);
const TRANSLATE_BYTES: f64 = 200.0 * 1024.0;
/// If Wasmtime takes less than this, a program measures starting rather than running.
const SHORT: Duration = Duration::from_millis(2);
/// Runs of each side, the best of which counts; fewer if they take long.
const RUNS: u32 = 7;
const PATIENCE: Duration = Duration::from_secs(6);

fn main() -> Result<(), Failure> {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let programs = Program::all(&tested::root().join("examples/programs.toml"));
    let (built, missing): (Vec<_>, Vec<_>) = programs
        .into_iter()
        .filter(|program| wanted.is_empty() || wanted.contains(&program.name))
        .partition(|program| program.wasm().is_file());
    if !missing.is_empty() {
        let names: Vec<_> = missing.iter().map(|program| program.name.as_str()).collect();
        println!("not built (scripts/build-examples): {}\n", names.join(", "));
    }
    let worst = run_times(&built)?;
    let translation = compile_times(&built)?;
    println!(
        "\nrun time, at most {RUN_BAR} times Wasmtime's: {}",
        verdict(worst <= RUN_BAR, format!("worst {worst:.2}"))
    );
    if let Some((name, translation)) = translation {
        let reached = translation <= TRANSLATE_BAR;
        let what = format!("{name}, the module nearest to that: {}", ms(translation));
        println!("wasm to PTX, at most {} for 200 KB: {}", ms(TRANSLATE_BAR), verdict(reached, what));
    }
    Ok(())
}

fn verdict(reached: bool, what: String) -> String {
    format!("{} ({what})", if reached { "reached" } else { "NOT reached" })
}

fn ms(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1e3)
}

/// Prints the ratio of every program; returns the worst of those that run long enough.
fn run_times(programs: &[Program]) -> Result<f64, Failure> {
    println!("{:<16} {:>12} {:>12} {:>8} {:>12}", "run", "Wasmtime", "cpu", "ratio", "host calls");
    let mut worst: f64 = 0.0;
    for program in programs {
        let (theirs, ours, calls) = measure(program)?;
        let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
        let short = theirs < SHORT;
        if !short {
            worst = worst.max(ratio);
        }
        let note = if short { "  too short to count" } else { "" };
        println!("{:<16} {:>12} {:>12} {ratio:>8.2} {calls:>12}{note}", program.name, ms(theirs), ms(ours));
    }
    Ok(worst)
}

/// Returns the best run of each side, and the number of host calls on ours. The sides take turns, so that both see the
/// computer in the same state.
fn measure(program: &Program) -> Result<(Duration, Duration, u64), Failure> {
    let loaded = device::load(&program.wasm(), Layout::Linear)?;
    let (mut theirs, mut ours, mut calls) = (Duration::MAX, Duration::MAX, 0);
    let began = Instant::now();
    for run in 0..RUNS {
        if run > 1 && began.elapsed() > PATIENCE {
            break;
        }
        let (input, directory) = workload(program)?;
        let dir = directory.as_ref().map(Directory::path);
        let dirs: Vec<_> = dir.map(|dir| (dir, ".")).into_iter().collect();
        let (expected, took) = oracle::run(&program.wasm(), &program.name, &input, &dirs)?;
        theirs = theirs.min(took);
        let (input, directory) = workload(program)?;
        let dir = directory.as_ref().map(Directory::path);
        let (got, stats) = device::run(&loaded.1, &program.name, std::slice::from_ref(&input), dir)?;
        ours = ours.min(stats.run);
        calls = stats.hostcalls;
        if got[0].stdout != expected.stdout {
            return Err(
                format!("{}: not the same output as Wasmtime's; what it takes does not matter", program.name).into()
            );
        }
    }
    Ok((theirs, ours, calls))
}

/// Returns the program's input, enlarged if possible so that a run takes tens of milliseconds.
fn workload(program: &Program) -> Result<(Input, Option<Directory>), Failure> {
    let mut input = program.input();
    let directory =
        program.spec.dir.as_ref().map(|fixture| Directory::copy_of(&manifest::fixtures(), fixture)).transpose()?;
    let enlarge = |file: &str, times: usize| -> Result<(), Failure> {
        let path = directory.as_ref().ok_or("no directory")?.path().join(file);
        Ok(std::fs::write(&path, std::fs::read(&path)?.repeat(times))?)
    };
    match program.name.as_str() {
        "factorial" => input.args = vec!["3000".into()],
        "n-body" => input.args = vec!["200000".into()],
        "interpreter" => input.args = vec!["3000".into()],
        "line-filter" => input.stdin = input.stdin.repeat(2000),
        "sha256" => input.stdin = input.stdin.repeat(4000),
        "json-pretty" => {
            input.stdin = [b"[".to_vec(), vec![input.stdin.clone(); 300].join(&b","[..]), b"]".to_vec()].concat()
        }
        "regex-search" => enlarge("access.log", 20)?,
        "word-count" => enlarge("alice.txt", 1000)?,
        _ => {}
    }
    Ok((input, directory))
}

/// Prints how long compiling takes. Returns the name of the module nearest to 200 KB, and its translation time scaled
/// to 200 KB.
fn compile_times(programs: &[Program]) -> Result<Option<(&str, Duration)>, Failure> {
    println!(
        "\n{:<16} {:>10} {:>12} {:>14} {:>12} {:>12}",
        "compile", "wasm", "to PTX", "for 200 KB", "PTX", "load on cpu"
    );
    let mut nearest: Option<(f64, &str, Duration)> = None;
    for program in programs {
        let (bytes, translation) = compile_time(&program.name, &program.wasm())?;
        let distance = (bytes as f64 - TRANSLATE_BYTES).abs();
        if nearest.is_none_or(|(least, ..)| distance < least) {
            nearest = Some((distance, &program.name, translation));
        }
    }
    Ok(nearest.map(|(_, name, translation)| (name, translation)))
}

fn compile_time(name: &str, file: &Path) -> Result<(usize, Duration), Failure> {
    let wasm = std::fs::read(file)?;
    let bytes = bytes_that_count(&wasm);
    let (mut translation, mut load, mut ptx) = (Duration::MAX, Duration::MAX, 0);
    let began = Instant::now();
    for run in 0..RUNS {
        if run > 0 && began.elapsed() > PATIENCE {
            break;
        }
        let start = Instant::now();
        let compiled = device::compile(&wasm, Build::Exact(Layout::Linear))?;
        translation = translation.min(start.elapsed());
        ptx = compiled.ptx().len();
        let start = Instant::now();
        gpu_run_compiler::Program::load(gpu_run_device::cpu::open(), compiled.into())?;
        load = load.min(start.elapsed());
    }
    let scaled = translation.mul_f64(TRANSLATE_BYTES / bytes as f64);
    let kb = |bytes: usize| format!("{} KB", bytes / 1024);
    println!(
        "{name:<16} {:>10} {:>12} {:>14} {:>12} {:>12}",
        kb(bytes),
        ms(translation),
        ms(scaled),
        kb(ptx),
        ms(load)
    );
    Ok((bytes, scaled))
}

/// Returns the module's size without names and debug information, from which nothing is translated.
fn bytes_that_count(wasm: &[u8]) -> usize {
    let custom = wasmparser::Parser::new(0).parse_all(wasm).filter_map(|payload| match payload {
        Ok(wasmparser::Payload::CustomSection(section)) => Some(section.range().len()),
        _ => None,
    });
    wasm.len() - custom.sum::<usize>()
}
