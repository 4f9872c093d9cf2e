//! Programs with threads, compiled by stock rustc for wasm32-wasip1-threads: what they print and return by `gpu-run` must be what the
//! same source prints and returns when compiled for this machine, whatever the number of threads.
//!
//! `threads::NAME::N` runs a program of `tests/threads` with N threads; with `GPU_RUN_TEST_DEVICE=cuda:0`, `threads::NAME::PLACEMENT_N`
//! runs it on a GPU in each placement, which is what `scripts/gpu-test threads` is for. A program that still runs after a minute has
//! failed: it hangs.
//!
//! `scripts/build-threads` builds the programs. A test whose program is not there is reported as ignored, never as passed; with `CI`
//! set in the environment it fails.

#[allow(dead_code)] // shared with the tests of whole programs
#[path = "programs/directory.rs"]
mod directory;
#[allow(dead_code)]
#[path = "programs/manifest.rs"]
mod manifest;
#[allow(dead_code)]
#[path = "programs/observed.rs"]
mod observed;
#[path = "programs/process.rs"]
mod process;
#[path = "support/tested.rs"]
mod tested;

use libtest_mimic::{Arguments, Failed, Trial};
use manifest::Program;
use observed::{Ending, Observed, difference};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// The threads that a run may have at once besides those asked for: the main one, and those that crates start by themselves.
const SPARE_THREADS: usize = 8;
/// std reads it: 1,024 threads with 2 MiB each would not fit into a memory of wasm32.
const STACK: (&str, &str) = ("RUST_MIN_STACK", "65536");

fn main() {
    let args = Arguments::from_args();
    // The runs of one program share what it compiles to.
    let cache = tempfile::tempdir().expect("a temporary folder can be made");
    let placements: &[Option<&str>] = match tested::device().as_str() {
        "cpu" => &[None],
        _ => &[Some("lane"), Some("warp")],
    };
    let mut trials = Vec::new();
    for program in Program::all_with_threads().into_iter().map(Arc::new) {
        for threads in program.spec.threads.clone() {
            for placement in placements.iter().copied() {
                let prefix = placement.map(|placement| format!("{placement}_")).unwrap_or_default();
                let name = format!("threads::{}::{prefix}{threads}", program.name);
                let (program, cache) = (program.clone(), cache.path().to_owned());
                let needs = [program.wasm(), program.native()];
                let program_unwinds = program.spec.unwinds;
                let test = move || equals_native(&program, threads, placement, &cache);
                let trial = match program_unwinds && !needs[0].is_file() {
                    true => Trial::test(name, test).with_kind("no std with unwinding").with_ignored_flag(true),
                    false => process::trial(name, &needs, "scripts/build-threads", test),
                };
                trials.push((threads, trial));
            }
        }
        if program.name == "stdin" {
            let (program, cache) = (program.clone(), cache.path().to_owned());
            let needs = [program.wasm()];
            let test = move || maps_each_line(&program, &cache);
            trials.push((9, process::trial("map::stdin".into(), &needs, "scripts/build-threads", test)));
        }
        if program.name == "litmus" {
            let (needs, name) = ([program.native()], "threads::litmus::finds_what_a_processor_reorders");
            let test = move || finds_what_a_processor_reorders(&program);
            let trial = process::trial(name.into(), &needs, "scripts/build-threads", test);
            trials.push((0, if can_reorder() { trial } else { trial.with_ignored_flag(true) }));
        }
    }
    // The first run of each program compiles it: all programs once, before any runs again.
    trials.sort_by_key(|(threads, _)| *threads);
    let conclusion = libtest_mimic::run(&args, trials.into_iter().map(|(_, trial)| trial).collect());
    drop(cache); // `exit` drops nothing
    conclusion.exit();
}

fn equals_native(program: &Program, threads: usize, placement: Option<&str>, cache: &Path) -> Result<(), Failed> {
    let mut input = program.with_threads(threads);
    input.env.insert(STACK.0.into(), STACK.1.into());
    let mut expected = match &program.spec.expected {
        None => process::natively(program, &input)?,
        Some(stdout) => Observed {
            ending: Ending::Exit(program.spec.exit),
            stdout: stdout.clone().into_bytes(),
            stderr: Vec::new(),
            files: None,
        },
    };
    let (limit, cache) = ((threads + SPARE_THREADS).to_string(), cache.display().to_string());
    let mut options = vec!["--threads", &limit, "--timeout", "60s", "--cache-dir", &cache];
    if let Some(placement) = placement {
        options.extend(["--thread-placement", placement]);
    }
    let mut got = process::by_gpu_run(program, &input, &options)?;
    if program.spec.sort {
        sort_lines(&mut expected.stdout);
        sort_lines(&mut got.stdout);
    }
    Ok(difference(&program.spec, &expected, &got)?)
}

/// `map` runs a program with threads for each line.
fn maps_each_line(program: &Program, cache: &Path) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    let line = |n: usize| "word ".repeat(n % 7);
    fs::write(&input, (0..100).map(|n| line(n) + "\n").collect::<String>())?;
    let mut command = tested::gpu_run();
    command.args(["map", "--threads", "9", "--timeout", "60s", "--device"]).arg(tested::device());
    command.arg("--cache-dir").arg(cache).arg("-i").arg(&input).arg("-o").arg(&output).arg(program.wasm()).arg("8");
    let ran = command.output()?;
    let expected: String =
        (0..100).map(|n| format!("1 lines, {} words, {} characters\n", n % 7, line(n).len() + 1)).collect();
    let got = fs::read_to_string(&output).unwrap_or_default();
    match ran.status.success() && got == expected {
        true => Ok(()),
        false => Err(format!("{}: {got}{}", ran.status, String::from_utf8_lossy(&ran.stderr)).into()),
    }
}

/// Whether this is a processor that puts loads before stores, with two cores to see it.
fn can_reorder() -> bool {
    cfg!(target_arch = "x86_64") && std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1)
}

/// A litmus test must be able to fail: with relaxed orders, this machine has outcomes that `strict` forbids. The cores may be busy with
/// other things, so it may take more than one run.
fn finds_what_a_processor_reorders(program: &Program) -> Result<(), Failed> {
    for _ in 0..50 {
        let output = Command::new(program.native()).args(["4", "50000", "1", "strict"]).output()?;
        if output.status.code() == Some(1) {
            // Stores wait in a buffer while loads go ahead; nothing else is reordered.
            let stdout = String::from_utf8(output.stdout)?;
            let mut found = stdout.lines().filter(|line| line.contains(" of 50000 rounds"));
            let is_known = |line: &str| ["SB Rel", "R Rel"].iter().any(|test| line.starts_with(test));
            return if found.all(is_known) { Ok(()) } else { Err(stdout.into()) };
        }
    }
    Err("50 runs found nothing".into())
}

fn sort_lines(bytes: &mut Vec<u8>) {
    let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    lines.sort_unstable();
    *bytes = lines.concat();
}
