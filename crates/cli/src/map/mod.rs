//! `gpu-run map FILE`: one instance for each record of an input, of any length, in bounded memory.
//!
//! The crate `gpu-run-map` has the map itself; this module turns arguments into its options and prints what it reports.
//! After a signal, the process waits until the writer is between two batches, and exits there.

mod failure;
mod merge;
mod printer;
mod progress;
mod tune;

pub(crate) use merge::merge;
#[cfg(feature = "bench")]
pub(crate) use tune::sample;
pub(crate) use tune::tune;

use crate::args::{MapArgs, Variable};
use crate::backtrace::Wanted;
use crate::devices;
use crate::guest::{self, Guest};
use crate::program::Loaded;
use crate::program_cache;
use crate::report::{Stats, Tally};
use crate::source;
use crate::surface::Surface;
use crate::threads;
use anyhow::{Context, Result};
use gpu_run_compiler::{CompileOptions, Compiler, Interface, printable};
use gpu_run_console::failure::{Failure, exit, retried};
use gpu_run_console::output::Standard;
use gpu_run_console::progress::Progress;
use gpu_run_console::terminal;
use gpu_run_console::units::count;
use gpu_run_map::{
    Batches, Ended, Finished, Function, FunctionError, Gangs, Input, Map, ObjectError, Options, Output, SLOW,
    StopHandle, StopReason, Summary, Takeover, Unfinished, differ,
};
use gpu_run_objects::Object;
use gpu_run_run::Source;
use printer::Printer;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tune::Choice;

/// After a guessed build has run for this long, the user is told about `gpu-run tune`.
const LONG_RUN: Duration = Duration::from_secs(30);

pub(crate) fn map(args: &MapArgs) -> Result<u8> {
    map_all(args).map_err(retried)
}

fn map_all(args: &MapArgs) -> Result<u8> {
    args.check()?;
    let handed = Takeover::take()?;
    let source = match &handed {
        Some(handed) => handed.source(),
        None => source::load(&args.file, args.launch.codegen.bin.as_deref(), &args.launch.cache)?,
    };
    let told = |error| failure::told(&source.name, error);
    let surface = surface(args, &source)?;
    let mut environment = args.launch.given.env.clone();
    let (mut opened, mut gangs) = (None, None);
    if surface.has_threads() {
        // All devices of a list are of one kind.
        let device = &*opened.insert(devices::open_all(&args.launch.device, handed.is_some())?)[0];
        let of_record = threads::of_record(&args.threads, device);
        environment.extend(threads::variables(&surface, &of_record, &args.launch, device));
        gangs = Some(Gangs { threads: of_record.threads, placement: of_record.thread_placement.into() });
    }
    let options = options(args, &source, &environment)?;
    let function = options.function.clone();
    let (input, output) = (input(args)?, output(args)?);
    let mut map = {
        let _progress =
            args.shard.map(|shard| Progress::start(format!("looking for the first record of shard {shard}")));
        Map::open(input, output, options, source.clone(), handed).map_err(told)?
    };
    if let (Some(shard), Some(Summary { records, failed, .. })) = (args.shard, map.finished()) {
        terminal::say(&format!("gpu-run: shard {shard} is finished: {}, {failed} failed\n", count(records, "record")));
        return Ok(code(failed));
    }

    let devices = match opened {
        Some(opened) => opened,
        None => devices::open_all(&args.launch.device, map.is_continued())?,
    };
    let compiler = Compiler::new(program_cache::open(&args.launch.cache)?).limited(args.launch.codegen.compile_timeout);
    let compiler = Arc::new(compiler);
    let (first, tuned) = match map.is_continued() || surface.has_threads() {
        // A process that continues for another one has that process's findings. A program with threads has one build.
        true => (None, Vec::new()),
        false if args.tune => {
            let (records, tuned) = tune::first_batch(&devices, &source, args, &mut map)?;
            (Some(records), tuned)
        }
        false => (tune::small_batch(&*devices[0], &source, args, &mut map)?, Vec::new()),
    };
    let is_few = tune::is_few(first, map.input_bytes());
    let backtrace = Wanted::new(&args.launch.given.env);
    let (mut loaded, mut on_devices, mut is_any_guess) = (Vec::new(), Vec::new(), false);
    for (at, device) in devices.into_iter().enumerate() {
        let tuned = tuned.get(at).copied().flatten();
        let Choice { options, max_records, lanes, learned, is_guess } = match surface.has_threads() {
            true => tune::only_choice(args, &surface, &*device),
            false => tune::choice(&compiler, &device, &source, args, is_few, tuned, function.as_ref()),
        };
        let options = CompileOptions { backtrace: backtrace.is_any(), ..options };
        let here = Loaded::new(compiler.clone(), device, &source, options)?;
        // A process that continues after a device loss tries no other builds.
        let slow = Some(SLOW).filter(|_| is_guess && !map.is_continued());
        let common = args.guest.common(None);
        on_devices.push((here.program.clone(), Batches { max_records, lanes, learned, slow, gangs, common }));
        is_any_guess |= is_guess;
        loaded.push(here);
    }

    let quiet = args.output().is_none() && io::stdout().is_terminal();
    let map = map.begin(Box::new(Printer::new(&source.name, args.launch.timeout, backtrace, quiet))).map_err(told)?;
    watch_signals(map.stop_handle())?;
    let began = Instant::now();
    let exit_code = match map.run(on_devices).map_err(told)? {
        Ended::HandOver(handover) => return Err(told(handover.give())),
        Ended::Stopped => exit::FAILURE,
        Ended::Finished(finished) => {
            say_stats(&finished, &loaded[0], args);
            remember(&finished, &loaded, &source);
            code(finished.failed)
        }
    };
    if is_any_guess && began.elapsed() > LONG_RUN {
        terminal::say("  hint: `gpu-run tune` with the same program and --input may find a faster build\n");
    }
    Ok(exit_code)
}

/// Keeps what was learned about the program, once for each kind of device.
fn remember(finished: &Finished, loaded: &[Loaded], source: &Source) {
    let mut kinds = Vec::new();
    for (loaded, tuning) in loaded.iter().zip(&finished.tunings) {
        let kind = loaded.device.code_target().ok();
        if let Some(tuning) = tuning.as_ref().filter(|_| !kinds.contains(&kind)) {
            loaded.remember(source, tuning);
            kinds.push(kind);
        }
    }
}

/// Returns the exit code of a map of which so many records failed.
fn code(failed: u64) -> u8 {
    if failed == 0 { 0 } else { exit::FAILURE }
}

/// Reports mistakes that can be seen without compiling.
fn surface(args: &MapArgs, source: &Source) -> Result<Surface> {
    let name = &source.name;
    let surface = Surface::read(&source.wasm, name)?;
    surface.check_imports(name)?;
    surface.check_memory(name, args.launch.max_memory)?;
    terminal::say(&surface.unknown_operations(name));
    match &args.invoke {
        Some(_) if surface.has_threads() => {
            return Err(Failure::usage(format!("{name} has threads: map cannot call its functions"))
                .hint("compile it for wasm32-wasip1")
                .into());
        }
        Some(function) => drop(surface.signature(name, function)?),
        None => surface.check_command(name)?,
    }
    if surface.has_threads() && args.tune {
        return Err(Failure::usage(format!("{name} has threads: there is nothing to tune"))
            .hint("`gpu-run map` runs it, a few records at once; for many at once, compile it for wasm32-wasip1")
            .into());
    }
    Ok(surface)
}

/// Returns the function that is called for each record.
fn function(args: &MapArgs, source: &Source) -> Result<Option<Function>> {
    let Some(name) = &args.invoke else { return Ok(None) };
    let told = |message: String| Failure::usage(format!("{}: {}", source.name, printable::message(&message)));
    let module = Interface::read(&source.wasm).map_err(|error| Failure::compiler(&source.name, error))?;
    let found = Function::find(&module, name).map_err(|error| match &error {
        FunctionError::NoNumber { .. } => told(error.to_string())
            .hint("map calls functions of i32, i64, f32 and f64; for others, `gpu-run --invoke` makes one call"),
        _ => told(error.to_string()),
    })?;
    if let Some(arg) = args.args.iter().find(|arg| arg.to_str().is_none()) {
        return Err(Failure::usage(format!("the argument {arg:?} is not UTF-8")).into());
    }
    Ok(Some(found))
}

/// Returns the map's options; `environment` is that of the instances.
fn options(args: &MapArgs, source: &Source, environment: &[Variable]) -> Result<Options> {
    let split = args.split()?;
    let function = function(args, source)?;
    // Those of a function are not the guest's. Others that differ from record to record are made for each record.
    let common = if function.is_some() || differ(&args.args) { &[][..] } else { &args.args[..] };
    let argv: Vec<OsString> = std::iter::once(source.argv0.clone().into()).chain(common.iter().cloned()).collect();
    let guest = Guest::new(&argv, environment, args.launch.given.preopens())?;
    let context = guest.with_net(&args.launch.given.net).into_builder();
    let env = guest::environment(environment).into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Ok(Options {
        split: split.into(),
        context,
        function,
        args: args.args.clone(),
        env,
        folders: args.launch.given.preopens().cloned().collect(),
        follow_links: args.follow_links,
        shard: args.shard,
        unfinished: match (args.resume, args.force) {
            (true, _) => Unfinished::Resume,
            (false, true) => Unfinished::Overwrite,
            (false, false) => Unfinished::Refuse,
        },
        fail_fast: args.fail_fast,
        timeout: args.launch.timeout,
        max_memory: args.launch.max_memory,
        // A signal ends the process.
        interrupt: None,
    })
}

fn input(args: &MapArgs) -> Result<Input> {
    if args.reads_stdin() { Ok(Input::Stdin) } else { of_store(Input::at(&args.input)) }
}

fn output(args: &MapArgs) -> Result<Output> {
    match args.output() {
        Some(path) => of_store(Output::at(path)),
        None => Ok(Output::Stream(Box::new(Standard::stdout()?))),
    }
}

/// Returns the path as an address, if it is one of an object, or of a folder of objects.
fn address(path: &Path) -> Option<&str> {
    path.to_str().filter(|path| Object::is_address(path))
}

/// Reports what is wrong with an address.
fn of_store<T>(opened: Result<T, ObjectError>) -> Result<T> {
    opened.map_err(|error| Failure::usage(error.to_string()).into())
}

fn say_stats(finished: &Finished, loaded: &Loaded, args: &MapArgs) {
    let on_host = finished.stats.on_host;
    if let Some(format) = args.launch.stats {
        let shares = if finished.shares.len() > 1 { &finished.shares[..] } else { &[] };
        let stats = Stats { shares, ..loaded.stats(&finished.stats) };
        terminal::say(&stats.show(format, &Tally::from(&finished.counts)));
    } else if on_host > 0 {
        let records = count(on_host, "record");
        terminal::say(&format!(
            "gpu-run: {records} ran on the cpu: the device has too little memory for their call stacks\n"
        ));
    }
}

/// The first signal waits for the writer; the second exits at once.
fn watch_signals(map: StopHandle) -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot wait for signals")?;
    let watch = move || {
        for (count, signal) in signals.forever().enumerate() {
            let code = 128 + signal;
            if count > 0 {
                std::process::exit(code);
            }
            let map = map.clone();
            thread::spawn(move || {
                // A run that has just finished is about to exit with its own code.
                if map.stop(StopReason::Interrupted) {
                    std::process::exit(code);
                }
            });
        }
    };
    thread::Builder::new()
        .name("signals".into())
        .spawn(watch)
        .context("cannot start the thread that waits for signals")?;
    Ok(())
}
