//! `gpu-run FILE ARGS…`: from the file to the exit code.

use crate::args::{ChecksChoice, CodegenArgs, RunArgs, StatsFormat, TraceChoice};
use crate::backtrace::Wanted;
use crate::core_dump::CoreDumps;
use crate::devices;
use crate::guest::Guest;
use crate::invoke;
use crate::picture::PngFile;
use crate::processes;
use crate::program_cache;
use crate::program_status::ProgramPublisher;
use crate::report::{Stats, Tally, describe_denied};
use crate::source;
use crate::stopped_threads::{self, Interrupt};
use crate::surface::{MAIN, Surface};
use crate::threads;
use anyhow::Result;
use gpu_run_cache::Origin;
use gpu_run_compiler::{Build, CompileOptions, Compiler, Entry, Layout, Program, Report, Value, printable};
use gpu_run_console::failure::{Failure, exit};
use gpu_run_console::output::{Order, Standard};
use gpu_run_console::progress::Progress;
use gpu_run_console::terminal;
use gpu_run_console::units::show_duration;
use gpu_run_device::Device;
use gpu_run_map::{Tuning, remember};
use gpu_run_run::Source;
use gpu_run_run::{
    Common, CommonMemory, Denied, End, Onlooker, Outcome, ProcessOnlooker, Processes, RunOptions, RunStats, Watchdog,
};
use gpu_run_wasi::Context;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long printing the message of a hanging run may take: stderr may be a pipe that nobody reads.
const MAX_LAST_WORDS: Duration = Duration::from_millis(100);

/// The PTX target if none is named: every GPU of sm_75 or newer runs it.
pub(crate) const DEFAULT_TARGET: u32 = 75;

pub(crate) fn run(args: &RunArgs) -> Result<u8> {
    let (file, rest) = args.file_and_args.split_first().ok_or_else(|| Failure::usage("no FILE was given"))?;
    let source = source::load(Path::new(file), args.launch.codegen.bin.as_deref())?;
    let name = &source.name;

    // Report mistakes that can be seen without compiling before compiling.
    let surface = Surface::read(&source.wasm, name)?;
    surface.check_imports(name)?;
    surface.check_memory(name, args.launch.max_memory)?;
    let call = Call::new(args, &surface, name, rest)?;
    if surface.has_threads() && args.instances.get() > 1 {
        return Err(Failure::usage(format!("{name} has threads: it cannot run as several instances"))
            .hint("leave out --instances; --threads sets how many threads the program can have")
            .into());
    }
    let dumps = args.coredump.as_ref().map(|folder| CoreDumps::new(folder, name, args.instances.get())).transpose()?;
    let dumps = dumps.map(Arc::new);
    let png = args.png.as_deref().map(PngFile::open).transpose()?;
    let device = devices::open(args.launch.device)?;
    let mut environment = args.launch.env.clone();
    environment.extend(threads::variables(&surface, &args.threads, &args.launch, &*device));
    let guest = Guest::new(&argv(&source.argv0, args, rest), &environment, args.launch.preopens())?;
    let guest = guest.with_net(&args.launch.net);
    let processes = processes::prepare(&args.processes, &source, &args.launch, &device)?;
    let guest = guest.with_programs(processes.programs());

    let options =
        options(&args.launch.codegen, &*device, call.entry.clone(), args.instances.get(), ChecksChoice::Exact);
    let mut options = surface.settle(options);
    let backtrace = Wanted::new(&args.launch.env);
    options.backtrace = backtrace.is_any();
    let compiler = Compiler::new(program_cache::open(&args.launch.cache)?).limited(args.launch.codegen.compile_timeout);
    let loaded = Loaded::new(compiler, device, &source, options)?;
    if call.is_main && !surface.calls_host() {
        terminal::say(&format!(
            "gpu-run: {name} can print nothing: it was built for wasm32-unknown-unknown; build it for wasm32-wasip1, or with `gpu-run build --target wasm32-unknown-unknown`\n"
        ));
    }
    let interrupt = if surface.has_threads() { Some(Interrupt::watch()?) } else { None };
    let common = Common {
        picture_pixels: if png.is_some() { Common::MAX_PIXELS } else { 0 },
        ..args.guest.common(Some(args.instances.get().into()))
    };
    let common = CommonMemory::new(&loaded.program, common).map_err(|error| Failure::compiler(name, error))?;
    let common = Arc::new(common);
    let options = RunOptions { common: Some(common.clone()), ..RunOptions::default() };
    let beside = Beside { processes: &processes, interrupt: interrupt.as_ref(), dumps: dumps.as_ref() };
    let (mut outcomes, run) = launch(&loaded.program, &call, &guest, args, name, &beside, options)?;
    if call.is_main {
        outcomes.iter_mut().for_each(Outcome::exit_as_main_says);
    }
    print_results(&outcomes)?;
    let stopped = stopped_threads::show(&outcomes, backtrace);
    if let Some(code) = interrupt.and_then(|interrupt| interrupt.exit_code(&outcomes)) {
        terminal::say(&format!("error: {name} was interrupted\n{stopped}"));
        return Ok(code);
    }
    let tally = Tally::new(&outcomes, args.launch.timeout.is_some());
    let mut report = tally.report(name, args.launch.timeout, backtrace, args.launch.stats == Some(StatsFormat::Text));
    report += &stopped;
    report += &dumps.map_or_else(String::new, |dumps| dumps.report());
    if let Some(denied) = denied(&outcomes) {
        report += &format!("  note: {}\n", describe_denied(denied));
    }
    if let Some(format) = args.launch.stats {
        report += &loaded.stats(&run).show(format, &tally);
        if format == StatsFormat::Text {
            report += &processes::show(processes.stats(), &processes.list());
        }
    }
    terminal::say(&report);
    if let Some(png) = png {
        png.write(&common, name)?;
    }
    Ok(tally.exit_code())
}

/// Returns what the first failed instance was denied, if anything.
fn denied(outcomes: &[Outcome]) -> Option<Denied> {
    let failed = outcomes.iter().find(|outcome| !matches!(outcome.end, End::Returned | End::Exited(0)))?;
    failed.denied
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
    let options = CompileOptions {
        build,
        sm: codegen.target.unwrap_or(DEFAULT_TARGET),
        entry,
        registers: None,
        backtrace: false,
    };
    options.settled(device.properties())
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
    compiler: Compiler,
    options: CompileOptions,
    report: Report,
}

impl Loaded {
    /// Loads a program from the cache, or compiles it.
    pub(crate) fn new(
        compiler: Compiler,
        device: Arc<dyn Device>,
        source: &Source,
        options: CompileOptions,
    ) -> Result<Self> {
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
        Stats { device, layout, timings, load: *load, cache, run }
    }
}

/// The function to call, and its arguments.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) entry: Entry,
    pub(crate) function: String,
    pub(crate) arguments: Vec<Value>,
    /// The function is the `main` of a module that is no command: its result is the exit code.
    is_main: bool,
}

impl Call {
    fn new(args: &RunArgs, surface: &Surface, file: &str, rest: &[OsString]) -> Result<Self> {
        let Some(function) = &args.invoke else {
            return Self::of_program(surface, file);
        };
        let (params, _) = surface.signature(file, function)?;
        let arguments = invoke::arguments(&printable::name(function), &params, &strings(rest)?)?;
        Ok(Self { entry: Entry::Function(function.clone()), function: function.clone(), arguments, is_main: false })
    }

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

/// Who has to do with a run besides its instances.
struct Beside<'a> {
    processes: &'a Processes,
    interrupt: Option<&'a Interrupt>,
    dumps: Option<&'a Arc<CoreDumps>>,
}

/// Runs all instances until they finish.
fn launch(
    program: &Arc<Program>,
    call: &Call,
    guest: &Guest,
    args: &RunArgs,
    file: &str,
    beside: &Beside<'_>,
    options: RunOptions,
) -> Result<(Vec<Outcome>, RunStats)> {
    let &Beside { processes, interrupt, dumps } = beside;
    let order = if args.unordered { Order::AsItComes } else { Order::ByInstance };
    let (contexts, streams) = match args.instances.get() {
        1 => (vec![guest.alone()?], None),
        instances => {
            let (contexts, streams) = guest.batch(instances as usize, order, args.max_spill)?;
            (contexts, Some(streams))
        }
    };
    let contexts = match args.trace {
        None => contexts,
        Some(TraceChoice::Wasi) => traced(contexts),
    };
    let deadline = args.launch.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let interrupt = interrupt.map(Interrupt::flag);
    let max_memory = args.launch.max_memory;
    processes.set_deadline(deadline);
    let mut options = RunOptions { deadline, interrupt, max_memory, ..options };
    let watchdog = args.launch.timeout.map(|timeout| {
        let file = file.to_owned();
        Watchdog::start(timeout, move || end_hanging(&file, timeout))
    });
    if let Some(dumps) = dumps {
        dumps.hold(watchdog.as_ref().map(Watchdog::held));
        options.examiner = Some(dumps.clone());
    }
    let (label, id) = (file.to_owned(), program.device().properties().id.clone());
    processes.set_onlooker(Box::new(move || {
        ProgramPublisher::new(&label, &id).map(|publisher| Arc::new(publisher) as Arc<dyn ProcessOnlooker>)
    }));
    let result = match (program.compiled().options.build, contexts) {
        (Build::Threads, mut contexts) => {
            let publisher = ProgramPublisher::new(file, &program.device().properties().id).map(Arc::new);
            options.onlooker = publisher.clone().map(|publisher| publisher as Arc<dyn Onlooker>);
            processes.set_onlooker(Box::new(|| publisher.map(|publisher| publisher as Arc<dyn ProcessOnlooker>)));
            let prepared = processes.prepare_far();
            let call = (&call.function[..], &call.arguments[..]);
            prepared.and_then(|()| threads::run(program, call, contexts.remove(0), &args.threads, &options))
        }
        (_, mut contexts) if processes.has_named() && contexts.len() == 1 => {
            let (function, arguments) = (call.function.clone(), call.arguments.clone());
            let loaded = gpu_run_run::Loaded { program: program.clone(), function, arguments };
            let ran = processes.run_first(&loaded, contexts.remove(0), &options);
            ran.map(|(outcome, stats)| (vec![outcome], stats))
        }
        (_, contexts) => {
            let prepared = if contexts.len() > 1 { processes.prepare_far() } else { Ok(()) };
            prepared.and_then(|()| gpu_run_run::run(program, &call.function, &call.arguments, contexts, &options))
        }
    };
    if options.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
        processes.kill_all();
    }
    processes.finish(deadline);
    // Whatever became of the run, the instances' output is written. This may block: nobody may be reading it.
    let closed = streams.map_or(Ok(()), |streams| streams.close());
    drop(watchdog);
    let result = result.map_err(|error| Failure::compiler(file, error))?;
    closed?;
    Ok(result)
}

/// Has the instances' calls printed on stderr.
fn traced(mut contexts: Vec<Context>) -> Vec<Context> {
    let (print, count) = (Arc::new(terminal::say), contexts.len());
    for (instance, context) in contexts.iter_mut().enumerate() {
        let caller = if count > 1 { format!("[instance {instance}] ") } else { String::new() };
        context.trace(caller, print.clone());
    }
    contexts
}

/// Exits the process, because nothing else would stop the run.
fn end_hanging(file: &str, timeout: Duration) -> ! {
    let message = format!("error: {file} did not finish within {} and could not be stopped\n", show_duration(timeout));
    let (said, told) = mpsc::channel();
    std::thread::spawn(move || {
        terminal::say(&message);
        let _ = said.send(());
    });
    let _ = told.recv_timeout(MAX_LAST_WORDS);
    std::process::exit(exit::TIMEOUT.into());
}

/// Prints the results of `--invoke`, one per line, instance after instance; a command has none.
fn print_results(outcomes: &[Outcome]) -> Result<()> {
    let returned = outcomes.iter().filter(|outcome| outcome.end == End::Returned);
    let lines: String = returned.flat_map(|o| &o.results).map(|value| invoke::show(value) + "\n").collect();
    Ok(Standard::stdout()?.write_all(lines.as_bytes())?)
}

/// Returns the guest's arguments; those that `--invoke` passes to a function are not among them.
fn argv(argv0: &str, args: &RunArgs, rest: &[OsString]) -> Vec<OsString> {
    let rest = if args.invoke.is_some() { &[] } else { rest };
    std::iter::once(argv0.into()).chain(rest.iter().cloned()).collect()
}

fn strings(args: &[OsString]) -> Result<Vec<String>> {
    let string = |(at, arg): (usize, &OsString)| match arg.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(Failure::usage(format!("argument {}, {arg:?}, is not UTF-8", at + 1)).into()),
    };
    args.iter().enumerate().map(string).collect()
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
    CompileOptions { build, sm: codegen.target.unwrap_or(DEFAULT_TARGET), entry, registers: None, backtrace: false }
}
