//! `gpu-run bench`: turns arguments into options; the crate `gpu-run-bench` measures.

#[cfg(feature = "bench")]
mod compare;
#[cfg(not(feature = "bench"))]
#[path = "missing.rs"]
mod compare;
#[cfg(feature = "bench")]
mod set;

use crate::args::{BenchArgs, CacheArgs};
use crate::devices;
use crate::program_cache;
use anyhow::Result;
use gpu_run_bench::{Sheet, desktop, machine, processes, threads};
use gpu_run_compiler::Compiler;
use gpu_run_run::ThreadPlacement;

pub(crate) fn bench(args: &BenchArgs) -> Result<u8> {
    let only = match args.programs.as_slice() {
        [only] => only.to_str(),
        _ => None,
    };
    if only != Some(threads::NAME) {
        args.check_without_threads()?;
    }
    match only {
        Some(desktop::NAME) => desktop(args),
        Some(machine::NAME) => machine(args),
        Some(processes::NAME) => processes(args),
        Some(threads::NAME) => threads(args),
        _ => compare::compare(args),
    }
}

fn desktop(args: &BenchArgs) -> Result<u8> {
    let device = devices::open(&args.launch.device)?;
    let compiler = Compiler::new(program_cache::open(&args.launch.cache)?);
    desktop::measure(device, &compiler, args.seconds, &mut Sheet::new(args.json.clone())?)?;
    Ok(0)
}

fn machine(args: &BenchArgs) -> Result<u8> {
    let device = devices::open(&args.launch.device)?;
    let compiler = Compiler::new(program_cache::open(&CacheArgs::default())?);
    machine::measure(device, &compiler, &mut Sheet::new(args.json.clone())?)?;
    Ok(0)
}

fn processes(args: &BenchArgs) -> Result<u8> {
    let device = devices::open(&args.launch.device)?;
    let compiler = Compiler::new(program_cache::open(&args.launch.cache)?);
    processes::measure(device, &compiler, &mut Sheet::new(args.json.clone())?)?;
    Ok(0)
}

fn threads(args: &BenchArgs) -> Result<u8> {
    let device = devices::open(&args.launch.device)?;
    let compiler = Compiler::new(program_cache::open(&args.launch.cache)?);
    let placement = args.thread_placement.map(ThreadPlacement::from).unwrap_or_default();
    let options = threads::Options { threads: args.threads, placement, time: args.seconds };
    threads::measure(device, &compiler, &options, &mut Sheet::new(args.json.clone())?)?;
    Ok(0)
}
