//! From a WebAssembly file to a program on a device: how it is compiled, and the function that it begins with.

use crate::args::{ChecksChoice, CodegenArgs};
use crate::program_cache;
use crate::report::Stats;
use crate::surface::{MAIN, Surface};
use anyhow::Result;
use gpu_run_cache::Origin;
use gpu_run_compiler::{CompileOptions, Compiler, DEFAULT_TARGET, Entry, Layout, Program, Report, Value};
use gpu_run_console::failure::Failure;
use gpu_run_console::progress::Progress;
use gpu_run_device::Device;
use gpu_run_map::{Tuning, remember};
use gpu_run_run::{RunStats, Source};
use std::sync::Arc;
use std::time::Duration;

/// The function to call, and its arguments.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) entry: Entry,
    pub(crate) function: String,
    pub(crate) arguments: Vec<Value>,
    /// The function is the `main` of a module that is no command: its result is the exit code.
    pub(crate) is_main: bool,
}

impl Call {
    /// What a program begins with.
    pub(crate) fn of_program(surface: &Surface, file: &str) -> Result<Self> {
        if let Some(parameters) = surface.main_parameters() {
            let (entry, arguments) = (Entry::Function(MAIN.into()), vec![Value::I32(0); parameters]);
            return Ok(Self { entry, function: MAIN.into(), arguments, is_main: true });
        }
        surface.check_command(file)?;
        Ok(Self { entry: Entry::Start, function: "_start".into(), arguments: Vec::new(), is_main: false })
    }
}

/// Returns how to compile a program for this many instances at once.
pub(crate) fn options(
    codegen: &CodegenArgs,
    device: &dyn Device,
    entry: Entry,
    instances: u32,
    checks: ChecksChoice,
) -> CompileOptions {
    let layout = codegen.layout.resolve(device.is_gpu(), instances);
    let build = checks.build(layout, device.properties().local_bytes);
    targeted(codegen, CompileOptions::new(build, entry)).settled(device.properties())
}

/// Returns the options for the PTX target that was chosen.
pub(crate) fn targeted(codegen: &CodegenArgs, options: CompileOptions) -> CompileOptions {
    CompileOptions { sm: codegen.target.unwrap_or(DEFAULT_TARGET), ..options }
}

/// Loads a program, or returns the one that this process has loaded already.
pub(crate) fn load(
    compiler: &Compiler,
    device: &Arc<dyn Device>,
    source: &Source,
    options: &CompileOptions,
) -> Result<(Arc<Program>, Report)> {
    let name = &source.name;
    let _progress = Progress::start(format!("compiling {name}"));
    let failed = |error| Failure::compiler(name, error);
    let entry = program_cache::entry_name(name, options);
    let request = compiler.request(device, source.wasm.clone(), options, &entry).map_err(failed)?;
    let (program, report) = compiler.load(&request).map_err(failed)?;
    let at_hand =
        || Report { origin: Origin::Hit { saved: Duration::ZERO }, timings: Vec::new(), load: Duration::ZERO };
    Ok((program, report.unwrap_or_else(at_hand)))
}

/// A compiled program, on the device it was compiled for.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) device: Arc<dyn Device>,
    pub(crate) program: Arc<Program>,
    compiler: Arc<Compiler>,
    options: CompileOptions,
    report: Report,
}

impl Loaded {
    /// Loads a program from the cache, or compiles it.
    pub(crate) fn new(
        compiler: impl Into<Arc<Compiler>>,
        device: Arc<dyn Device>,
        source: &Source,
        options: CompileOptions,
    ) -> Result<Self> {
        let compiler = compiler.into();
        let (program, report) = load(&compiler, &device, source, &options)?;
        Ok(Self { device, program, compiler, options, report })
    }

    /// Stores what the run found out about the program's builds, for the next run.
    pub(crate) fn remember(&self, source: &Source, tuning: &Tuning) {
        let kept = remember(
            &self.compiler,
            &*self.device,
            &source.wasm,
            &self.options,
            &program_cache::label(&source.name),
            tuning,
        );
        tracing::info!(?kept, best = ?tuning.best(), "tuned during the run");
    }

    pub(crate) fn stats<'a>(&'a self, run: &'a RunStats) -> Stats<'a> {
        let Report { origin, timings, load } = &self.report;
        let cache = self.compiler.cache().path().map(|_| *origin);
        let (device, layout) = (self.device.properties(), self.options.build.layout());
        Stats { device, layout, timings, load: *load, cache, run, shares: &[], processes: None }
    }
}

/// Local memory per thread of a large GPU.
const LARGE_LOCAL_BYTES: u32 = 256 << 10;

/// Returns how `compile` and `explain` compile: without opening a device, for a GPU that is not known yet.
pub(crate) fn offline_options(
    codegen: &CodegenArgs,
    entry: Entry,
    layout: Layout,
    checks: ChecksChoice,
) -> CompileOptions {
    let build = checks.build(layout, LARGE_LOCAL_BYTES);
    targeted(codegen, CompileOptions::new(build, entry))
}
