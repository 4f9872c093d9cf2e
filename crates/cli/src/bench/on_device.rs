//! Our side: a program on the device, and so many instances of it.

use crate::args::LayoutChoice;
use crate::failure::Failure;
use crate::guest::INSTANCE;
use crate::run::is_gpu;
use crate::source::Source;
use anyhow::{Result, bail};
use gpu_run_device::Device;
use gpu_run_engine::{CompileOptions, Compiled, End, Entry, Program, RunOptions};
use gpu_run_wasi::stdio::{Buffer, Null, Output};
use gpu_run_wasi::{Builder, Context, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a run may take at most: far more than any should, so that a program without an end is told as one.
const LIMIT: Duration = Duration::from_secs(300);

/// How programs are compiled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Build {
    pub(super) layout: LayoutChoice,
    pub(super) sm: u32,
}

impl Build {
    /// Whether so many instances want another layout than one alone.
    pub(super) fn differs(&self, device: &dyn Device, instances: u32) -> bool {
        self.layout.resolve(is_gpu(device), instances) != self.layout.resolve(is_gpu(device), 1)
    }
}

/// A program that is ready to run.
#[derive(Debug)]
pub(super) struct Loaded {
    program: Program,
    /// What all instances have.
    guest: Builder,
    pub(super) to_ptx: Duration,
    pub(super) load: Duration,
    pub(super) ptx_bytes: usize,
}

/// Compiles for `instances` at once and loads.
pub(super) fn load(device: &Arc<dyn Device>, source: &Source, build: Build, instances: u32) -> Result<Loaded> {
    let layout = build.layout.resolve(is_gpu(&**device), instances);
    let failed = |error| Failure::engine(&source.name, error);
    let began = Instant::now();
    let compiled = Compiled::new(&source.wasm, &CompileOptions { layout, sm: build.sm, entry: Entry::Start });
    let compiled = Arc::new(compiled.map_err(failed)?);
    let to_ptx = began.elapsed();
    let ptx_bytes = compiled.ptx().len();
    let began = Instant::now();
    let program = Program::load(device.clone(), compiled).map_err(failed)?;
    let load = began.elapsed();
    let mut guest = Builder::new();
    guest.arg(&source.argv0)?;
    Ok(Loaded { program, guest, to_ptx, load, ptx_bytes })
}

/// Runs that many instances, from the first context to the last outcome: what those of `sample` wrote to stdout, and how
/// long it took. The only place that touches the engine's way to run.
pub(super) fn run_device(loaded: &Loaded, instances: u32, sample: &[u32]) -> Result<(Vec<Vec<u8>>, Duration)> {
    let began = Instant::now();
    let mut outputs = Vec::with_capacity(instances as usize);
    let mut contexts = Vec::with_capacity(instances as usize);
    for instance in 0..instances {
        let stdout = Buffer::new();
        contexts.push(context(&loaded.guest, instance, stdout.clone())?);
        outputs.push(stdout);
    }
    let options = RunOptions { deadline: began.checked_add(LIMIT), max_memory: None };
    let (outcomes, _) = loaded.program.run("_start", &[], contexts, &options)?;
    let took = began.elapsed();
    for (instance, outcome) in outcomes.iter().enumerate() {
        check_end(&outcome.end).map_err(|what| what.context(format!("on the device, instance {instance}")))?;
    }
    Ok((sample.iter().map(|instance| outputs[*instance as usize].take()).collect(), took))
}

fn context(guest: &Builder, instance: u32, stdout: impl Output + 'static) -> Result<Context> {
    let stdio = Stdio { stdin: Box::new(Null), stdout: Box::new(stdout), stderr: Box::new(Null) };
    Ok(guest.clone().env(INSTANCE, instance.to_string())?.build(stdio))
}

/// A program that is to be measured ends well.
fn check_end(end: &End) -> Result<()> {
    match end {
        End::Returned | End::Exited(0) => Ok(()),
        End::Exited(code) => bail!("exited {code}"),
        End::Trapped(trap) => bail!("{trap}"),
    }
}
