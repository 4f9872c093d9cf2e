//! `gpu-run bench`: what running on the device gains over Wasmtime on all cores, measured in one run.
//!
//! ```text
//! set          which programs
//! on_device    ours: compile, load, run so many instances
//! on_wasmtime  theirs: the same instances, a store for each, on all cores
//! handwritten  the same work as a CUDA kernel, where there is one and nvcc is installed
//! measure      the sides take turns; outputs are compared; figures come out
//! hostcalls    what it takes to ask the host for something
//! table, json, chart   what is made of the figures
//! own          the user's own program and records: is the device worth it?
//! verdict      what is made of those figures
//! ```
//!
//! A program that fails has a row that says so, and the others go on.

mod chart;
mod handwritten;
mod hostcalls;
mod json;
mod measure;
mod on_device;
mod on_wasmtime;
mod own;
mod set;
mod table;
mod verdict;

use crate::args::{BenchArgs, DeviceChoice};
use crate::devices;
use crate::run::{DEFAULT_TARGET, is_gpu};
use anyhow::{Context as _, Result};
use gpu_run_console::failure::exit;
use gpu_run_console::output::Standard;
use gpu_run_console::terminal::{self, Escaping};
use gpu_run_console::units::three_digits;
use gpu_run_device::Device;
use handwritten::Handwritten;
use hostcalls::HostCalls;
use measure::{Figures, Plan};
use on_device::Build;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Instances where the user does not say how many: what `map` takes.
const INSTANCES_GPU: u32 = crate::map::GPU_BATCH;
const INSTANCES_CPU: u32 = 1024;

/// All that was found out.
#[derive(Debug)]
struct Report {
    setting: Setting,
    rows: Vec<Row>,
    /// `None`: not measured.
    host_calls: Option<Result<HostCalls, String>>,
}

/// What the figures were measured on.
#[derive(Debug)]
struct Setting {
    /// `cuda:0`
    device: String,
    /// `NVIDIA H200`
    device_name: String,
    /// Of a GPU.
    driver: Option<String>,
    host: String,
    threads: usize,
    instances: u32,
}

#[derive(Debug)]
struct Row {
    name: String,
    wasm_bytes: usize,
    /// The error is one that names the place.
    figures: Result<Figures, String>,
}

pub(crate) fn bench(args: &BenchArgs) -> Result<u8> {
    if let Some(input) = &args.input {
        return own::bench(args, input);
    }
    args.check_without_input()?;
    let (programs, calls) = set::find(args)?;
    let mut device = devices::open(args.launch.device)?;
    let setting = Setting::new(&*device, args);
    let plan = Plan {
        instances: setting.instances,
        budget: args.seconds,
        threads: setting.threads,
        build: Build {
            layout: args.launch.codegen.layout,
            sm: args.launch.codegen.target.unwrap_or(DEFAULT_TARGET),
            tunes: args.tune,
        },
    };
    let handwritten = if is_gpu(&*device) { Handwritten::find(device.properties()) } else { None };

    let names: Vec<&str> = programs.iter().map(|program| program.name.as_str()).collect();
    let mut report = Report { setting, rows: Vec::new(), host_calls: None };
    let mut out = table_stream(args)?;
    let table = table::Table::new(&report.setting, &names, handwritten.is_some());
    if programs.is_empty() {
        out.write_all(format!("{}\n\n", describe(&report.setting)[0]).as_bytes())?;
    } else {
        out.write_all(table.heading().as_bytes())?;
    }
    for (at, program) in programs.iter().enumerate() {
        let place = format!("{} ({} of {})", program.name, at + 1, programs.len());
        let row = match set::load(program, &args.launch.codegen) {
            Ok(source) => {
                let figures = measure::measure(&place, &device, &source, &program.name, &plan, handwritten.as_ref());
                Row { name: program.name.clone(), wasm_bytes: source.wasm.len(), figures: figures.map_err(message) }
            }
            Err(error) => Row { name: program.name.clone(), wasm_bytes: 0, figures: Err(message(error)) },
        };
        out.write_all(table.row(&row).as_bytes())?;
        if row.figures.is_err() {
            // A kernel that faulted has taken its context with it.
            device = reopen(args.launch.device, device);
        }
        report.rows.push(row);
        // What was measured is kept, should one of the others never end.
        write_files(args, &report)?;
    }
    if !programs.is_empty() {
        out.write_all(table.footing(&report).as_bytes())?;
    }
    if calls {
        let figures = hostcalls::measure(&device, plan.build, plan.instances).map_err(message);
        let gap = if programs.is_empty() { "" } else { "\n" };
        out.write_all(format!("{gap}{}", hostcalls::text(&figures)).as_bytes())?;
        report.host_calls = Some(figures);
        write_files(args, &report)?;
    }
    if json_on_stdout(args) {
        terminal::print(&json::text(&report))?;
    }
    Ok(tell_failures(&report))
}

fn message(error: anyhow::Error) -> String {
    format!("{error:#}")
}

/// The device anew; if it cannot be had, the old one will say why.
fn reopen(choice: DeviceChoice, old: Arc<dyn Device>) -> Arc<dyn Device> {
    if !is_gpu(&*old) {
        return old;
    }
    devices::open(choice).ok().filter(|new| is_gpu(&**new)).unwrap_or(old)
}

/// Where the table goes: JSON on stdout leaves no room there.
fn table_stream(args: &BenchArgs) -> io::Result<Escaping<Standard>> {
    Ok(Escaping(if json_on_stdout(args) { Standard::stderr()? } else { Standard::stdout()? }))
}

fn json_on_stdout(args: &BenchArgs) -> bool {
    args.json.as_deref() == Some(Path::new("-"))
}

fn write_files(args: &BenchArgs, report: &Report) -> Result<()> {
    let write = |path: &Path, text: String| {
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    if !report.rows.is_empty() {
        write(&args.svg, chart::svg(report))?;
    }
    match &args.json {
        Some(path) if !json_on_stdout(args) => write(path, json::text(report)),
        _ => Ok(()),
    }
}

/// Says in full what went wrong, where the table had one line for it; returns the exit code.
fn tell_failures(report: &Report) -> u8 {
    let rows = report.rows.iter().map(|row| (row.name.as_str(), row.figures.as_ref().err()));
    let calls = report.host_calls.iter().map(|calls| (hostcalls::NAME, calls.as_ref().err()));
    let mut code = 0;
    for (name, error) in rows.chain(calls) {
        if let Some(error) = error {
            terminal::say(&format!("error: {name}: {error}\n"));
            code = exit::FAILURE;
        }
    }
    code
}

impl Setting {
    fn new(device: &dyn Device, args: &BenchArgs) -> Self {
        let gpu = is_gpu(device);
        let properties = device.properties();
        let default = if gpu { INSTANCES_GPU } else { INSTANCES_CPU };
        Self {
            device: properties.id.clone(),
            device_name: properties.name.clone(),
            driver: if gpu { driver_version("/proc/driver/nvidia/version") } else { None },
            host: processor("/proc/cpuinfo").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            threads: std::thread::available_parallelism().map_or(1, |count| count.get()),
            instances: args.instances.map_or(default, |count| count.get()),
        }
    }
}

/// `580.159.04` out of `NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Release Build`.
fn driver_version(file: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let is_version = |word: &&str| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    text.lines().next()?.split_whitespace().find(is_version).map(str::to_owned)
}

fn processor(file: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

impl Report {
    fn measured(&self) -> impl Iterator<Item = (&str, &Figures)> {
        self.rows.iter().filter_map(|row| Some((row.name.as_str(), row.figures.as_ref().ok()?)))
    }

    /// Of the ratios to Wasmtime; `None` where nothing was measured.
    fn geometric_mean(&self) -> Option<f64> {
        let logarithms: Vec<f64> = self.measured().map(|(_, figures)| figures.ratio().ln()).collect();
        (!logarithms.is_empty()).then(|| (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp())
    }
}

/// `215×`, `6.54×`, `0.42×`
fn show_ratio(ratio: f64) -> String {
    format!("{}×", three_digits(ratio))
}

/// `65,536`
fn show_grouped(number: u32) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// What the table and the picture say of where it ran: ours, then theirs.
fn describe(setting: &Setting) -> [String; 2] {
    let driver = setting.driver.as_ref().map_or(String::new(), |driver| format!(", driver {driver}"));
    let instances = show_grouped(setting.instances);
    [
        format!(
            "gpu-run {} on {} ({}{driver}), {instances} instances",
            env!("CARGO_PKG_VERSION"),
            setting.device_name,
            setting.device
        ),
        format!("Wasmtime {} on {}, {} threads", on_wasmtime::VERSION, setting.host, setting.threads),
    ]
}

/// Seconds for JSON.
fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
