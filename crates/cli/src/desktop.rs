//! `gpu-run desktop`: runs a script on a desktop without a display, and writes what it shows.

use crate::args::DesktopArgs;
use crate::{devices, program_cache};
use anyhow::Result;
use gpu_run_compiler::{Compiler, printable};
use gpu_run_console::failure::Failure;
use gpu_run_console::output::Standard;
use gpu_run_desktop::{Desktop, Error, Options, Script, map};
use gpu_run_machine::{Start, Status};
use std::fmt::Write as _;
use std::io::Write as _;

pub(crate) fn desktop(args: &DesktopArgs) -> Result<u8> {
    let pixels = |units: u32| (f64::from(units) * args.scale).round() as u32;
    let (width, height) = (pixels(args.size.0), pixels(args.size.1));
    if width > map::MAX_WIDTH || height > map::MAX_HEIGHT {
        let message = format!("--size and --scale ask for {width} by {height} pixels");
        let hint = format!("a desktop has at most {} by {}", map::MAX_WIDTH, map::MAX_HEIGHT);
        return Err(Failure::usage(message).hint(hint).into());
    }
    let name = printable::path(&args.script);
    let text = std::fs::read_to_string(&args.script);
    let text = text.map_err(|error| Failure::usage(format!("--script {name}: {error}")))?;
    let script = Script::parse(&text).map_err(|error| Failure::usage(format!("{name}, {error}")))?;

    let device = devices::open(args.device)?;
    let compiler = Compiler::new(program_cache::open(&args.cache)?);
    let prepared = crate::apps::prepare(&args.apps, &args.cache, &device)?;
    let options = Options { width, height, scale: args.scale, grid: args.grid, threads: args.threads };
    let mut desktop = Desktop::boot(&compiler, &device, Start::Empty, &options).map_err(failure)?;
    let mut apps = prepared.begin(Box::new(|| true));
    let ran = desktop.run_with(&script, &mut apps);
    apps.end();
    prepared.finish();
    ran.map_err(failure)?;
    desktop.picture().and_then(|picture| picture.write(&args.png)).map_err(failure)?;
    let frames = desktop.frames();
    let ended = desktop.shutdown().map_err(failure)?;
    if args.stats {
        report(&ended.state, frames)?;
    }
    Ok(0)
}

/// Prints the mean time of each phase on stderr.
fn report(status: &Status, frames: u64) -> Result<()> {
    let mut text = format!("{frames} frames, in the mean:\n");
    for phase in &status.phases {
        let mean = phase.time.as_secs_f64() * 1e6 / frames as f64;
        let lanes = phase.lanes_active().map_or(String::new(), |share| format!(", {:.0} % of lanes", share * 100.0));
        writeln!(text, "  {:<22} {mean:9.1} µs{lanes}", phase.name)?;
    }
    Ok(Standard::stderr()?.write_all(text.as_bytes())?)
}

fn failure(error: Error) -> anyhow::Error {
    match error {
        Error::Machine(error) => crate::machine::failure(error),
        error => error.into(),
    }
}
