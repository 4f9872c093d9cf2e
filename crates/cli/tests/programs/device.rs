//! gpu-run, in this process: any number of instances, each with an input of its own.

use crate::manifest::Input;
use crate::observed::{Ending, Observed};
use crate::tested;
use gpu_run_abi::Layout;
use gpu_run_compiler::{Build, CompileOptions, Compiled, Entry, Program};
use gpu_run_device::{Device, cpu};
use gpu_run_run::{End, RunOptions, RunStats};
use gpu_run_wasi::stdio::{Buffer, Bytes};
use gpu_run_wasi::{Builder, Context, Stdio};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What a run may take at most: far more than it does, so that a hang is told as one.
const LIMIT: Duration = Duration::from_secs(600);

/// What an instance may have at most, so that many fit on a device that sets memory aside.
const MEMORY: u64 = 64 << 20;

type Loaded = Arc<(Arc<Compiled>, Arc<Program>)>;
static PROGRAMS: LazyLock<Mutex<HashMap<(PathBuf, Layout), Loaded>>> = LazyLock::new(Mutex::default);
static CPU: LazyLock<Arc<dyn Device>> = LazyLock::new(cpu::open);
static TESTED: LazyLock<Result<Arc<dyn Device>, String>> =
    LazyLock::new(|| gpu_run_device::open(&tested::device()).map_err(|error| error.to_string()));

/// Compiles a file and loads it, once for each layout: interleaved on the device under test, linear on `cpu`.
pub(crate) fn load(wasm: &Path, layout: Layout) -> Result<Loaded, Failure> {
    let mut programs = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (wasm.to_owned(), layout);
    if let Some(loaded) = programs.get(&key) {
        return Ok(loaded.clone());
    }
    let device = match layout {
        Layout::Linear => CPU.clone(),
        Layout::Interleaved => TESTED.clone()?,
    };
    let compiled = Arc::new(compile(&std::fs::read(wasm)?, Build::Exact(layout))?);
    let loaded = Arc::new((compiled.clone(), Arc::new(Program::load(device, compiled)?)));
    programs.insert(key, loaded.clone());
    Ok(loaded)
}

pub(crate) fn compile(wasm: &[u8], build: Build) -> Result<Compiled, Failure> {
    Ok(Compiled::new(wasm, &CompileOptions::new(build, Entry::Start))?)
}

/// Runs an instance for each input, all at once and in the same directory.
pub(crate) fn run(
    program: &Arc<Program>,
    name: &str,
    inputs: &[Input],
    dir: Option<&Path>,
) -> Result<(Vec<Observed>, RunStats), Failure> {
    let mut streams = Vec::new();
    let mut contexts = Vec::new();
    for input in inputs {
        let (stdout, stderr) = (Buffer::new(), Buffer::new());
        contexts.push(context(name, input, dir, &stdout, &stderr)?);
        streams.push((stdout, stderr));
    }
    let options =
        RunOptions { deadline: Some(Instant::now() + LIMIT), max_memory: Some(MEMORY), ..RunOptions::default() };
    let (outcomes, stats) = gpu_run_run::run(program, "_start", &[], contexts, &options)?;
    let observed = outcomes.into_iter().zip(streams).map(|(outcome, (stdout, stderr))| {
        let ending = match outcome.end {
            End::Returned => Ending::Exit(0),
            End::Exited(code) => Ending::Exit(code as i32),
            End::Trapped(trap) => Ending::Trap(trap.code.message().into()),
        };
        Observed { ending, stdout: stdout.take(), stderr: stderr.take(), files: None }
    });
    Ok((observed.collect(), stats))
}

fn context(
    name: &str,
    input: &Input,
    dir: Option<&Path>,
    stdout: &Buffer,
    stderr: &Buffer,
) -> Result<Context, Failure> {
    let mut builder = Builder::new();
    builder.arg(name)?.args(&input.args)?;
    for (key, value) in &input.env {
        builder.env(key, value)?;
    }
    if let Some(dir) = dir {
        builder.preopen(dir, ".")?;
    }
    Ok(builder.build(Stdio {
        stdin: Box::new(Bytes::from(input.stdin.clone())),
        stdout: Box::new(stdout.clone()),
        stderr: Box::new(stderr.clone()),
    }))
}
