//! Their side: Wasmtime as one would embed it for throughput. The module is compiled once and linked once; memories come
//! from a pool; every instance has a store of its own, and threads on all cores take the next number from one counter.

use crate::guest::INSTANCE;
use crate::source::Source;
use anyhow::{Context as _, Result, anyhow};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, InstancePre, Linker, Module, PoolingAllocationConfig, Store,
};
use wasmtime_wasi::p1::{self, WasiP1Ctx};
use wasmtime_wasi::p2::pipe::MemoryOutputPipe;
use wasmtime_wasi::runtime::with_ambient_tokio_runtime;
use wasmtime_wasi::{I32Exit, WasiCtxBuilder};

/// The version that is built in; a test compares it with the workspace's manifest.
pub(super) const VERSION: &str = "48.0.8";
/// Bytes an instance may print.
const OUTPUT: usize = 64 << 20;
/// Bytes of a memory, and of a table, that are cleared rather than given back when an instance ends.
const KEPT: usize = 2 << 20;

pub(super) struct OnWasmtime {
    engine: Engine,
    linked: InstancePre<WasiP1Ctx>,
    argv0: String,
    threads: usize,
}

impl OnWasmtime {
    pub(super) fn new(source: &Source, threads: usize) -> Result<Self> {
        let build = || -> wasmtime::Result<_> {
            let engine = Engine::new(&config(threads))?;
            let module = Module::new(&engine, &*source.wasm)?;
            let mut linker = Linker::new(&engine);
            p1::add_to_linker_sync(&mut linker, |context: &mut WasiP1Ctx| context)?;
            let linked = linker.instantiate_pre(&module)?;
            Ok((engine, linked))
        };
        let (engine, linked) = build().map_err(plain).context("Wasmtime cannot take it")?;
        Ok(Self { engine, linked, argv0: source.argv0.clone(), threads })
    }

    /// What one instance writes to stdout.
    pub(super) fn run(&self, instance: u32) -> Result<Vec<u8>> {
        with_ambient_tokio_runtime(|| self.run_one(instance))
    }

    /// What instances of a sample write.
    pub(super) fn outputs(&self, sample: &[u32]) -> Result<Vec<Vec<u8>>> {
        sample.iter().map(|instance| self.run(*instance)).collect()
    }

    /// Instances a second on all cores: that many of them, or as many as fit into the time.
    pub(super) fn rate(&self, instances: u32, budget: Duration) -> Result<f64> {
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
                self.run_one(instance).inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
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

    /// A store, an instance, its end. Tokio's runtime must be there: without it, every host call would set it up and
    /// yield to it.
    fn run_one(&self, instance: u32) -> Result<Vec<u8>> {
        let stdout = MemoryOutputPipe::new(OUTPUT);
        let mut builder = WasiCtxBuilder::new();
        builder.arg(&self.argv0).env(INSTANCE, instance.to_string()).stdout(stdout.clone());
        builder.allow_blocking_current_thread(true);
        let mut store = Store::new(&self.engine, builder.build_p1());
        let result = self
            .linked
            .instantiate(&mut store)
            .and_then(|instance| instance.get_typed_func::<(), ()>(&mut store, "_start")?.call(&mut store, ()));
        drop(store);
        match result {
            Ok(()) => Ok(()),
            Err(error) if error.downcast_ref::<I32Exit>().is_some_and(|exit| exit.0 == 0) => Ok(()),
            Err(error) => Err(plain(error).context(format!("under Wasmtime, instance {instance}"))),
        }?;
        Ok(stdout.try_into_inner().map(Vec::from).unwrap_or_default())
    }
}

/// One slot for each thread, and one to spare.
fn config(threads: usize) -> Config {
    let slots = threads as u32 + 1;
    let mut pool = PoolingAllocationConfig::new();
    pool.total_core_instances(slots).total_memories(slots).total_tables(slots).total_gc_heaps(slots);
    if PoolingAllocationConfig::is_pagemap_scan_available() {
        // The kernel tells which pages were written (Linux 6.7): clearing them is half the work of giving them back and
        // faulting them in again. Without it all of them would be cleared, which is worse.
        pool.linear_memory_keep_resident(KEPT).table_keep_resident(KEPT).pagemap_scan(Enabled::Auto);
    }
    let mut config = Config::new();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// Wasmtime's error with all it says of its causes.
fn plain(error: wasmtime::Error) -> anyhow::Error {
    anyhow!("{error:#}")
}
