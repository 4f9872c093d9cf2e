//! Wasmtime's side, embedded for throughput. The module is compiled and linked once; memories come from a pool; every
//! instance has a store of its own, and threads on all cores take the next instance number from one counter.

use anyhow::{Context as _, Result, anyhow, bail};
use gpu_run_run::{INSTANCE, Job, Source};
use gpu_run_wasi::{Access, Preopen};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, InstancePre, Linker, Module, PoolingAllocationConfig, Store,
};
use wasmtime_wasi::p1::{self, WasiP1Ctx};
use wasmtime_wasi::p2::pipe::{MemoryInputPipe, MemoryOutputPipe};
use wasmtime_wasi::runtime::with_ambient_tokio_runtime;
use wasmtime_wasi::{FsPerms, I32Exit, WasiCtxBuilder};

/// The version of Wasmtime that is built in; a test compares it with the workspace's manifest.
pub(super) const VERSION: &str = "48.0.8";
/// The most bytes that an instance may print.
const MAX_OUTPUT_BYTES: usize = 64 << 20;
/// Bytes of a memory, and of a table, that are cleared instead of returned to the system after an instance.
const KEEP_RESIDENT_BYTES: usize = 2 << 20;

pub(super) struct OnWasmtime {
    engine: Engine,
    linked: InstancePre<WasiP1Ctx>,
    given: Vec<Given>,
    dirs: Vec<Preopen>,
    threads: usize,
}

/// What an instance is given besides its number.
pub(super) struct Given {
    args: Vec<String>,
    env: Vec<(String, String)>,
    stdin: Vec<u8>,
}

impl Given {
    fn nothing(source: &Source) -> Self {
        Self { args: vec![source.argv0.clone()], env: Vec::new(), stdin: Vec::new() }
    }

    /// Returns what the device's instance is given. Wasmtime accepts only UTF-8.
    pub(super) fn like(job: &Job) -> Result<Self> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).context("Wasmtime takes only UTF-8 arguments");
        let strings = |(starts, bytes): (&[u32], &[u8])| -> Result<Vec<String>> {
            starts.iter().map(|at| text(bytes[*at as usize..].split(|byte| *byte == 0).next().unwrap_or(&[]))).collect()
        };
        let pair = |text: String| text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        let env = strings(job.context.env_strings())?.into_iter().filter_map(pair).collect();
        Ok(Self { args: strings(job.context.arg_strings())?, env, stdin: job.stdin.to_vec() })
    }
}

/// The result of an instance.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) end: Ending,
    pub(super) stdout: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Exited(i32),
    /// Wasmtime's error message.
    Trapped(String),
}

impl OnWasmtime {
    /// Prepares instances that are given nothing.
    pub(super) fn new(source: &Source, threads: usize) -> Result<Self> {
        Self::with(source, threads, vec![Given::nothing(source)], Vec::new())
    }

    /// Prepares instances that are given the elements of `given` in turn, beginning again after the last.
    pub(super) fn with(source: &Source, threads: usize, given: Vec<Given>, dirs: Vec<Preopen>) -> Result<Self> {
        let build = || -> wasmtime::Result<_> {
            let engine = Engine::new(&config(threads))?;
            let module = Module::new(&engine, &*source.wasm)?;
            let mut linker = Linker::new(&engine);
            p1::add_to_linker_sync(&mut linker, |context: &mut WasiP1Ctx| context)?;
            let linked = linker.instantiate_pre(&module)?;
            Ok((engine, linked))
        };
        let (engine, linked) = build().map_err(plain).context("Wasmtime cannot run it")?;
        Ok(Self { engine, linked, given, dirs, threads })
    }

    /// Runs one instance, which must succeed. Returns what it wrote to stdout.
    pub(super) fn run(&self, instance: u32) -> Result<Vec<u8>> {
        with_ambient_tokio_runtime(|| self.run_one(instance)?.well(instance))
    }

    /// Runs one instance, however it ends.
    pub(super) fn run_any(&self, instance: u32) -> Result<Ran> {
        with_ambient_tokio_runtime(|| self.run_one(instance))
    }

    /// Returns what the instances of a sample write.
    pub(super) fn outputs(&self, sample: &[u32]) -> Result<Vec<Vec<u8>>> {
        sample.iter().map(|instance| self.run(*instance)).collect()
    }

    /// Returns the instances per second on all cores. Runs `instances` of them, or as many as the budget allows.
    pub(super) fn rate(&self, instances: u32, budget: Duration) -> Result<f64> {
        self.rate_of(instances, budget, |instance, ran| ran.well(instance).map(drop))
    }

    /// Like [`OnWasmtime::rate`], but passes the result of each instance to `look`.
    pub(super) fn rate_of(
        &self,
        instances: u32,
        budget: Duration,
        look: impl Fn(u32, Ran) -> Result<()> + Sync,
    ) -> Result<f64> {
        let next = AtomicU32::new(0);
        let failed = AtomicBool::new(false);
        let began = Instant::now();
        let work = || -> Result<u32> {
            let mut done = 0;
            while done == 0 || (began.elapsed() < budget && !failed.load(Ordering::Relaxed)) {
                let instance = next.fetch_add(1, Ordering::Relaxed);
                if instance >= instances {
                    break;
                }
                let ran = self.run_one(instance).and_then(|ran| look(instance, ran));
                ran.inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
                done += 1;
            }
            Ok(done)
        };
        let threads = self.threads.min(instances as usize);
        let counts = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(|| with_ambient_tokio_runtime(work))).collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, Result<u32>>| {
                thread.join().unwrap_or_else(|_| Err(anyhow!("a thread that ran Wasmtime panicked")))
            };
            threads.into_iter().map(join).collect::<Result<Vec<u32>>>()
        })?;
        let took = began.elapsed();
        let done: u64 = counts.into_iter().map(u64::from).sum();
        Ok(done as f64 / took.as_secs_f64())
    }

    /// Runs one instance in a new store. The caller must have entered a Tokio runtime: otherwise every host call would
    /// set one up and yield to it.
    fn run_one(&self, instance: u32) -> Result<Ran> {
        let stdout = MemoryOutputPipe::new(MAX_OUTPUT_BYTES);
        let mut builder = WasiCtxBuilder::new();
        let given = &self.given[instance as usize % self.given.len()];
        builder.args(&given.args).envs(&given.env).env(INSTANCE, instance.to_string()).stdout(stdout.clone());
        builder.stdin(MemoryInputPipe::new(given.stdin.clone()));
        for dir in &self.dirs {
            let opened = builder.preopened_dir(&dir.host, &dir.guest, permissions(dir.access));
            opened.map_err(plain).with_context(|| format!("cannot open {}", dir.host.display()))?;
        }
        builder.allow_blocking_current_thread(true);
        let mut store = Store::new(&self.engine, builder.build_p1());
        let result = self
            .linked
            .instantiate(&mut store)
            .and_then(|instance| instance.get_typed_func::<(), ()>(&mut store, "_start")?.call(&mut store, ()));
        drop(store);
        let end = match result {
            Ok(()) => Ending::Exited(0),
            Err(error) => match error.downcast_ref::<I32Exit>() {
                Some(exit) => Ending::Exited(exit.0),
                None => Ending::Trapped(plain(error).to_string()),
            },
        };
        Ok(Ran { end, stdout: stdout.try_into_inner().map(Vec::from).unwrap_or_default() })
    }
}

impl Ran {
    /// Returns the instance's output, if it exited with 0.
    fn well(self, instance: u32) -> Result<Vec<u8>> {
        match self.end {
            Ending::Exited(0) => Ok(self.stdout),
            Ending::Exited(code) => bail!("under Wasmtime, instance {instance}: exited {code}"),
            Ending::Trapped(error) => bail!("under Wasmtime, instance {instance}: {error}"),
        }
    }
}

/// Configures a pool with one slot per thread, and a spare one.
fn config(threads: usize) -> Config {
    let slots = threads as u32 + 1;
    let mut pool = PoolingAllocationConfig::new();
    pool.total_core_instances(slots).total_memories(slots).total_tables(slots).total_gc_heaps(slots);
    if PoolingAllocationConfig::is_pagemap_scan_available() {
        // The Linux kernel reports which pages were written (since 6.7): clearing those takes half as long as returning
        // them and faulting them in again. Without that, all pages would have to be cleared, which is worse.
        pool.linear_memory_keep_resident(KEEP_RESIDENT_BYTES)
            .table_keep_resident(KEEP_RESIDENT_BYTES)
            .pagemap_scan(Enabled::Auto);
    }
    let mut config = Config::new();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

fn permissions(access: Access) -> FsPerms {
    match access {
        Access::ReadOnly => FsPerms::ReadOnly,
        Access::ReadWrite => FsPerms::ReadWrite,
    }
}

/// Turns Wasmtime's error, with all its causes, into an `anyhow` error.
fn plain(error: wasmtime::Error) -> anyhow::Error {
    anyhow!("{error:#}")
}
