//! `gpu-run bench [PROGRAM…]` and `gpu-run bench PROGRAM --input RECORDS`: compares the device with Wasmtime.

use super::set;
use crate::args::{BenchArgs, MapArgs};
use crate::devices;
use crate::map;
use crate::source;
use anyhow::Result;
use gpu_run_bench::own::Own;
use gpu_run_bench::{Options, Sheet, own};
use gpu_run_compiler::DEFAULT_TARGET;
use gpu_run_console::failure::{Failure, exit};
use gpu_run_map::usual_batch;
use std::path::Path;
use std::time::Instant;

pub(super) fn compare(args: &BenchArgs) -> Result<u8> {
    let well = match &args.input {
        Some(input) => with_records(args, input)?,
        None => without_input(args)?,
    };
    Ok(if well { 0 } else { exit::FAILURE })
}

fn without_input(args: &BenchArgs) -> Result<bool> {
    args.check_without_input()?;
    let (programs, host_calls) = set::find(args)?;
    let device = devices::open(&args.launch.device)?;
    let programs = programs.iter().map(|program| set::load(program, &args.launch.codegen)).collect();
    let instances = args.instances.map_or(usual_batch(&*device), |count| count.get());
    let mut sheet = Sheet::new(args.json.clone())?;
    gpu_run_bench::set::measure(device, programs, host_calls, &options(args, instances), &mut sheet, &args.svg)
}

/// Measures the user's own program with the user's records.
fn with_records(args: &BenchArgs, input: &Path) -> Result<bool> {
    let [program] = args.programs.as_slice() else {
        return Err(Failure::usage("--input needs exactly one program")
            .hint("as in: gpu-run bench app.wasm -i records")
            .into());
    };
    let records = MapArgs::from((args, program.as_path(), input));
    records.check()?;
    let launch = &args.launch;
    if launch.timeout.is_some() || launch.stats.is_some() {
        return Err(Failure::usage("bench does not support --timeout and --stats").into());
    }
    let source = source::load(program, launch.codegen.bin.as_deref(), &launch.cache)?;
    let began = Instant::now();
    let device = devices::open(&launch.device)?;
    let opening = began.elapsed();
    let (jobs, instances) = map::sample(&records, &source, &*device)?;
    let folders = launch.given.preopens().cloned().collect();
    let own = Own { source, jobs, folders, max_memory: launch.max_memory, opening };
    own::measure(&device, own, &options(args, instances), &mut Sheet::new(args.json.clone())?)
}

fn options(args: &BenchArgs, instances: u32) -> Options {
    let codegen = &args.launch.codegen;
    Options {
        instances,
        budget: args.seconds,
        layout: codegen.layout.fixed(),
        sm: codegen.target.unwrap_or(DEFAULT_TARGET),
        tunes: args.tune,
    }
}
