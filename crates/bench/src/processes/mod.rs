//! `gpu-run bench processes`: how long it takes to start a process on the device, and on the host.

use crate::sheet::Record;
use crate::{Sheet, percentile};
use anyhow::{Context as _, Result, bail};
use gpu_run_compiler::{Build, CompileOptions, Compiler, Entry, Layout, Program};
use gpu_run_console::units::{show_duration, three_digits};
use gpu_run_device::Device;
use gpu_run_run::{End, Loaded, Loader, ProcessSettings, Processes, RunOptions};
use gpu_run_wasi::stdio::{Buffer, Null};
use gpu_run_wasi::{Builder, Stdio};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use std::io::{Read, Write};
use std::process::{Command, Stdio as Streams};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The name of this bench among the programs of `gpu-run bench`.
pub const NAME: &str = "processes";

const GUEST: &str = include_str!("guest.wat");
/// What is measured of each child.
const FIGURES: [(&str, &str); 3] = [
    ("start to the child's first instruction", "first_instruction"),
    ("start to its first bytes, read", "first_bytes"),
    ("start to its end, waited for", "end"),
];
/// How many children the host starts.
const ROUNDS: usize = 300;
/// The variable that makes this program a child: it writes the time and exits.
const CHILD: &str = "GPU_RUN_BENCH_CHILD";
const PATIENCE: Duration = Duration::from_secs(60);

/// Measures both sides in one run.
pub fn measure(device: Arc<dyn Device>, compiler: &Compiler, sheet: &mut Sheet) -> Result<()> {
    let name = device.properties().name.clone();
    let (mut ours, mut theirs) = (on_device(&device, compiler)?, on_host()?);
    let mut record = Record::new(sheet);
    record.line(&format!("processes of {name}, and of the host: this program, by posix_spawn"))?;
    record.line(&format!("\n{:44}{:>12}{:>12}{:>10}", "", "device", "host", "ratio"))?;
    record.put("device", json!(name))?;
    for ((what, key), (ours, theirs)) in FIGURES.iter().zip(ours.iter_mut().zip(&mut theirs)) {
        for part in [50, 99] {
            let (device, host) = (percentile(ours, part).max(1), percentile(theirs, part).max(1));
            let [shown, beside] = [device, host].map(|time| show_duration(Duration::from_nanos(time)));
            let times = format!("{}×", three_digits(host as f64 / device as f64));
            record.line(&format!("{:44}{shown:>12}{beside:>12}{times:>10}", format!("{what}, p{part}")))?;
            record.put(&format!("{key}_p{part}_ns"), json!({ "device": device, "host": host }))?;
        }
    }
    record.line("\nratio: how many times as fast as the host")?;
    record.end()
}

/// Called before anything else: a child of the host's side does nothing but say when it began.
pub fn be_a_child_if_asked() {
    if std::env::var_os(CHILD).is_some() {
        // The parent notices if nothing comes.
        _ = std::io::stdout().write_all(&now().to_le_bytes());
        std::process::exit(0);
    }
}

fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

struct NoOthers;

impl Loader for NoOthers {
    fn check(&self, _: &[u8], _: &str) -> Result<(), String> {
        Ok(())
    }

    fn load(&self, _: Arc<Vec<u8>>, name: &str, _: &Arc<dyn Device>) -> Result<Loaded, String> {
        Err(format!("the bench does not start {name}"))
    }
}

fn on_device(device: &Arc<dyn Device>, compiler: &Compiler) -> Result<[Vec<u64>; 3]> {
    let wasm = Arc::new(wat::parse_str(GUEST)?);
    let options = CompileOptions::new(Build::Exact(Layout::Linear), Entry::Start);
    let options = options.settled(device.properties());
    let request = compiler.request(device, wasm, &options, "bench processes")?;
    let program: Arc<Program> = compiler.load(&request)?.0;
    let loaded = Loaded { program, function: "_start".into(), arguments: Vec::new() };
    let settings = ProcessSettings { device: device.clone(), own: None, max_memory: None, max_processes: 8 };
    let processes = Processes::new(settings, vec![("child".into(), loaded.clone())], Box::new(NoOthers));
    let stdout = Buffer::new();
    let stdio = Stdio { stdin: Box::new(Null), stdout: Box::new(stdout.clone()), stderr: Box::new(Null) };
    let mut builder = Builder::new();
    builder.arg("parent")?.programs(processes.programs());
    let deadline = Instant::now().checked_add(PATIENCE);
    processes.set_deadline(deadline);
    let options = RunOptions { deadline, ..RunOptions::default() };
    let (outcome, _) = processes.run_first(&loaded, builder.build(stdio), &options)?;
    match outcome.end {
        End::Returned | End::Exited(0) => {}
        other => bail!("the program that starts processes ended like this: {other:?}"),
    }
    let output = stdout.take();
    let words: Vec<u64> = output.as_chunks().0.iter().map(|bytes: &[u8; 8]| u64::from_le_bytes(*bytes)).collect();
    // A child's clock may be a little behind its parent's.
    let figures = |at: usize| words.iter().skip(at).step_by(FIGURES.len()).map(|time| (*time as i64).max(0) as u64);
    Ok([0, 1, 2].map(|at| figures(at).collect()))
}

fn on_host() -> Result<[Vec<u64>; 3]> {
    let program = std::env::current_exe().context("this program's own file")?;
    let mut figures = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        let begin = now();
        let mut child =
            Command::new(&program).env(CHILD, "1").stdin(Streams::null()).stdout(Streams::piped()).spawn()?;
        let mut first = [0; 8];
        child.stdout.take().context("a pipe")?.read_exact(&mut first)?;
        let heard = now();
        child.wait()?;
        let times = [u64::from_le_bytes(first), heard, now()];
        figures.iter_mut().zip(times).for_each(|(all, time)| all.push(time.saturating_sub(begin)));
    }
    Ok(figures)
}
