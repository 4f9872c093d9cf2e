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
use gpu_run_bench::{Sheet, machine, threads};
use gpu_run_compiler::Compiler;

pub(crate) fn bench(args: &BenchArgs) -> Result<u8> {
    match args.programs.as_slice() {
        [only] if only.as_os_str() == machine::NAME => machine(args),
        [only] if only.as_os_str() == threads::NAME => threads(args),
        _ => compare::compare(args),
    }
}

fn machine(args: &BenchArgs) -> Result<u8> {
    let device = devices::open(args.launch.device)?;
    let compiler = Compiler::new(program_cache::open(&CacheArgs::default())?);
    machine::measure(device, &compiler, &mut Sheet::new(args.json.clone())?)?;
    Ok(0)
}

fn threads(args: &BenchArgs) -> Result<u8> {
    let device = devices::open(args.launch.device)?;
    let compiler = Compiler::new(program_cache::open(&args.launch.cache)?);
    let options =
        threads::Options { threads: args.threads, placement: args.thread_placement.into(), time: args.seconds };
    threads::measure(device, &compiler, &options, &mut Sheet::new(args.json.clone())?)?;
    Ok(0)
}
