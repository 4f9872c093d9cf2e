//! What the command line says about a program's threads.

use crate::args::{LaunchArgs, ThreadArgs, Variable};
use crate::surface::Surface;
use gpu_run_compiler::{Error, Program, Value};
use gpu_run_device::Device;
use gpu_run_run::{Outcome, RunOptions, RunStats, run_threads};
use gpu_run_wasi::Context;
use std::sync::Arc;

/// The variable that the crate rayon takes its number of threads from. std on WebAssembly does not know how many
/// processors there are, and rayon then has one thread.
const RAYON: &str = "RAYON_NUM_THREADS";
/// The most threads that rayon has on a 32-bit target.
const MOST_OF_RAYON: u32 = 255;
/// The variable that std takes the size of a thread's stack from, in bytes, and the size without it.
const STACK: &str = "RUST_MIN_STACK";
const USUAL_STACK: u64 = 2 << 20;
/// The smallest stack that threads get without being asked: an overflow is not noticed on WebAssembly.
const LEAST_STACK: u64 = 64 << 10;

/// How many threads a record of a map can have on a GPU.
const OF_RECORD: u32 = 128;

/// Returns the variables that a program with threads gets besides `--env`, unless the user set them.
///
/// With `--threads N`, the stacks of N threads take at most half of the memory that the program can have.
pub(crate) fn variables(
    surface: &Surface,
    args: &ThreadArgs,
    launch: &LaunchArgs,
    device: &dyn Device,
) -> Vec<Variable> {
    if !surface.has_threads() {
        return Vec::new();
    }
    let of_rayon = match args.threads {
        Some(threads) => threads.saturating_sub(1),
        None if device.is_gpu() => MOST_OF_RAYON,
        None => device.properties().processors,
    };
    let mut all = vec![(RAYON, u64::from(of_rayon.clamp(1, MOST_OF_RAYON)))];
    if let Some(threads) = args.threads {
        let memory = surface.most_memory().min(launch.max_memory.unwrap_or(u64::MAX));
        let stack = (memory / 2 / u64::from(threads)).clamp(LEAST_STACK, USUAL_STACK) & !0xfff;
        all.extend((stack < USUAL_STACK).then_some((STACK, stack)));
    }
    let is_given = |name: &str| launch.given.env.iter().any(|variable| variable.name == name);
    let variable = |(name, value): (&str, u64)| Variable { name: name.to_owned(), value: Some(value.to_string()) };
    all.into_iter().filter(|(name, _)| !is_given(name)).map(variable).collect()
}

/// Returns the threads of a record of a map: several records run at once.
pub(crate) fn of_record(args: &ThreadArgs, device: &dyn Device) -> ThreadArgs {
    ThreadArgs { threads: args.threads.or(device.is_gpu().then_some(OF_RECORD)), ..*args }
}

/// Runs a program with threads: calls a function with these arguments.
pub(crate) fn run(
    program: &Arc<Program>,
    (function, arguments): (&str, &[Value]),
    context: Context,
    args: &ThreadArgs,
    options: &RunOptions,
) -> Result<(Vec<Outcome>, RunStats), Error> {
    let placement = args.thread_placement.into();
    let (outcome, stats) = run_threads(program, function, arguments, context, args.threads, placement, options)?;
    if let Some(threads) = stats.threads {
        tracing::info!(?threads, "threads");
    }
    Ok((vec![outcome], stats))
}
