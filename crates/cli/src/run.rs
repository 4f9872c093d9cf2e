//! `gpu-run FILE ARGS…`: from the file to the exit code.

use crate::args::{ChecksChoice, RunArgs, StatsFormat, TraceChoice};
use crate::backtrace::Wanted;
use crate::core_dump::CoreDumps;
use crate::devices;
use crate::guest::Guest;
use crate::picture::PngFile;
use crate::process_figures;
use crate::processes;
use crate::program::{Call, Loaded, options};
use crate::program_cache;
use crate::program_status::ProgramPublisher;
use crate::report::{Stats, Tally, describe_denied};
use crate::source;
use crate::stopped_threads::{self, Interrupt};
use crate::surface::Surface;
use crate::threads;
use anyhow::Result;
use gpu_run_compiler::{Build, Compiler, Entry, Program};
use gpu_run_console::failure::{Failure, exit};
use gpu_run_console::output::{Order, Standard};
use gpu_run_console::terminal;
use gpu_run_console::units::show_duration;
use gpu_run_run::{
    Common, CommonMemory, Denied, End, Onlooker, Outcome, ProcessOnlooker, Processes, RunOptions, RunStats, Watchdog,
    value_text,
};
use gpu_run_wasi::Context;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long printing the message of a hanging run may take: stderr may be a pipe that nobody reads.
const MAX_LAST_WORDS: Duration = Duration::from_millis(100);

pub(crate) fn run(args: &RunArgs) -> Result<u8> {
    let (file, rest) = args.file_and_args.split_first().ok_or_else(|| Failure::usage("no FILE was given"))?;
    let source = source::load(Path::new(file), args.launch.codegen.bin.as_deref(), &args.launch.cache)?;
    let name = &source.name;

    // Report mistakes that can be seen without compiling before compiling.
    let surface = Surface::read(&source.wasm, name)?;
    surface.check_imports(name)?;
    surface.check_memory(name, args.launch.max_memory)?;
    terminal::say(&surface.unknown_operations(name));
    let call = first_call(args, &surface, name, rest)?;
    if surface.has_threads() && args.instances.get() > 1 {
        return Err(Failure::usage(format!("{name} has threads: it cannot run as several instances"))
            .hint("leave out --instances; --threads sets how many threads the program can have")
            .into());
    }
    let dumps = args.coredump.as_ref().map(|folder| CoreDumps::new(folder, name, args.instances.get())).transpose()?;
    let dumps = dumps.map(Arc::new);
    let png = args.png.as_deref().map(PngFile::open).transpose()?;
    let device = devices::open(&args.launch.device)?;
    let mut environment = args.launch.given.env.clone();
    environment.extend(threads::variables(&surface, &args.threads, &args.launch, &*device));
    let guest = Guest::new(&argv(&source.argv0, args, rest), &environment, args.launch.given.preopens())?;
    let guest = guest.with_net(&args.launch.given.net);
    let processes = processes::prepare(&args.processes, &source, &args.launch, &device)?;
    let guest = guest.with_programs(processes.programs());

    let options =
        options(&args.launch.codegen, &*device, call.entry.clone(), args.instances.get(), ChecksChoice::Exact);
    let mut options = surface.settle(options);
    let backtrace = Wanted::new(&args.launch.given.env);
    options.backtrace = backtrace.is_any();
    let compiler = Compiler::new(program_cache::open(&args.launch.cache)?).limited(args.launch.codegen.compile_timeout);
    let loaded = Loaded::new(compiler, device, &source, options)?;
    if call.is_main && !surface.calls_host() {
        terminal::say(&format!(
            "gpu-run: {name} imports nothing of WASI, so it can print nothing; build Rust programs for wasm32-wasip1, or with `gpu-run build --target wasm32-unknown-unknown`\n"
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
    let outlived = processes.outlived();
    if let Some(code) = interrupt.and_then(|interrupt| interrupt.exit_code(&outcomes, outlived)) {
        terminal::say(&format!("error: {name} was interrupted\n{stopped}"));
        return Ok(code);
    }
    let tally = Tally::new(&outcomes, args.launch.timeout.is_some());
    let mut report = tally.report(name, args.launch.timeout, backtrace, args.launch.stats == Some(StatsFormat::Text));
    report += &stopped;
    report += &process_figures::outlived(outlived, args.launch.timeout);
    report += &dumps.map_or_else(String::new, |dumps| dumps.report());
    if let Some(denied) = denied(&outcomes) {
        report += &format!("  note: {}\n", describe_denied(denied));
    }
    if let Some(format) = args.launch.stats {
        report += &Stats { processes: Some(&processes), ..loaded.stats(&run) }.show(format, &tally);
    }
    terminal::say(&report);
    let code = match tally.exit_code() {
        0 if outlived > 0 => exit::TIMEOUT,
        code => code,
    };
    match png {
        Some(png) => png.write(&common, name, code),
        None => Ok(code),
    }
}

/// What a run begins with: the function of `--invoke`, or the program's beginning.
fn first_call(args: &RunArgs, surface: &Surface, file: &str, rest: &[OsString]) -> Result<Call> {
    let Some(function) = &args.invoke else {
        return Call::of_program(surface, file);
    };
    let (params, _) = surface.signature(file, function)?;
    let arguments = value_text::arguments(function, &params, &strings(rest)?).map_err(Failure::usage)?;
    Ok(Call { entry: Entry::Function(function.clone()), function: function.clone(), arguments, is_main: false })
}

/// Returns what the first failed instance was denied, if anything.
fn denied(outcomes: &[Outcome]) -> Option<Denied> {
    let failed = outcomes.iter().find(|outcome| !matches!(outcome.end, End::Returned | End::Exited(0)))?;
    failed.denied
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
        processes.set_examiner(dumps.clone());
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
    processes.finish(&options);
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
    let lines: String = returned.flat_map(|o| &o.results).map(|value| value_text::show(value) + "\n").collect();
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
