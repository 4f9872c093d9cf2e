//! The device's side: runs the program that measures.

use super::{GUEST, Options};
use anyhow::{Context as _, Result, bail};
use gpu_run_compiler::{Build, CompileOptions, Compiler, Entry, Program};
use gpu_run_device::Device;
use gpu_run_run::{End, RunOptions, ThreadPlacement, run_threads};
use gpu_run_wasi::stdio::{Buffer, Null};
use gpu_run_wasi::{Builder, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Threads without std.
const RAW: &str = include_str!("raw.wat");
/// How much longer a run may take than the time that it measures for: a program that hangs is reported.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Guest<'a> {
    device: Arc<dyn Device>,
    compiler: &'a Compiler,
    program: Arc<Program>,
    threads: Option<u32>,
    placement: ThreadPlacement,
    time: Duration,
    /// How many threads there can be at once.
    limit: u32,
}

impl<'a> Guest<'a> {
    pub(super) fn load(device: Arc<dyn Device>, compiler: &'a Compiler, options: &Options) -> Result<Self> {
        let program = load(&device, compiler, "bench threads", GUEST.to_vec())?;
        let &Options { threads, placement, time } = options;
        let mut guest = Self { device, compiler, program, threads, placement, time, limit: 0 };
        // The shortest of all tasks, to see how many threads the device holds.
        let (_, limit) = guest.run(&guest.program.clone(), &["spawn", "1", "0"], threads)?;
        guest.limit = limit;
        Ok(guest)
    }

    pub(super) fn limit(&self) -> u32 {
        self.limit
    }

    /// Does one task, with room for so many threads besides the first.
    pub(super) fn measure(&self, task: &str, threads: u32, size: u64) -> Result<Vec<u64>> {
        let room = self.threads.unwrap_or(self.limit).max(threads + 1);
        let arguments = [task, &threads.to_string(), &size.to_string()];
        let (output, _) = self.run(&self.program, &arguments, Some(room)).with_context(|| task.to_owned())?;
        let text = String::from_utf8(output)?;
        text.lines().map(|line| line.parse().with_context(|| format!("{task}: {line} is no figure"))).collect()
    }

    /// Returns the times of spawns and of wake-ups without std.
    pub(super) fn raw(&self) -> Result<(Vec<u64>, Vec<u64>)> {
        let program = load(&self.device, self.compiler, "bench threads, raw", wat::parse_str(RAW)?)?;
        let (output, _) = self.run(&program, &[], Some(self.limit))?;
        let mut times: Vec<u64> =
            output.as_chunks().0.iter().map(|bytes: &[u8; 8]| u64::from_le_bytes(*bytes)).collect();
        let wakes = times.split_off(times.len() / 2);
        Ok((times, wakes))
    }

    /// Runs a program. Returns what it printed, and how many threads it could have had.
    fn run(&self, program: &Arc<Program>, arguments: &[&str], threads: Option<u32>) -> Result<(Vec<u8>, u32)> {
        let (stdout, stderr) = (Buffer::new(), Buffer::new());
        let stdio = Stdio { stdin: Box::new(Null), stdout: Box::new(stdout.clone()), stderr: Box::new(stderr.clone()) };
        let mut builder = Builder::new();
        builder.arg("measure")?.args(arguments)?;
        let options =
            RunOptions { deadline: Instant::now().checked_add(self.time + PATIENCE), ..RunOptions::default() };
        let context = builder.build(stdio);
        let (outcome, stats) = run_threads(program, "_start", &[], context, threads, self.placement, &options)?;
        match outcome.end {
            End::Returned | End::Exited(0) => {}
            End::Exited(code) => {
                bail!("exit code {code}: {}", String::from_utf8_lossy(&stderr.take()).trim_end())
            }
            End::Trapped(trap) => bail!("{trap}: {}", String::from_utf8_lossy(&stderr.take()).trim_end()),
        }
        let limit = stats.threads.map_or(1, |threads| threads.limit);
        Ok((stdout.take(), limit as u32))
    }
}

fn load(device: &Arc<dyn Device>, compiler: &Compiler, name: &str, wasm: Vec<u8>) -> Result<Arc<Program>> {
    let options = CompileOptions::new(Build::Threads, Entry::Start);
    let request = compiler.request(device, Arc::new(wasm), &options.settled(device.properties()), name)?;
    Ok(compiler.load(&request)?.0)
}
