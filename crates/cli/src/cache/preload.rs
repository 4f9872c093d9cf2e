//! `gpu-run cache preload`: compiles programs in advance.
//!
//! Compiles each program as `gpu-run FILE` does, and as `gpu-run map FILE` does.

use crate::args::{CacheArgs, ChecksChoice, CodegenArgs, PreloadArgs};
use crate::devices;
use crate::program;
use crate::program_cache::{entry_name, label};
use crate::source;
use crate::surface::Surface;
use anyhow::Result;
use gpu_run_cache::{Cache, Origin};
use gpu_run_compiler::{Compiler, Entry, printable};
use gpu_run_console::failure::{Failure, exit};
use gpu_run_console::terminal::{self, print};
use gpu_run_console::units::{show_duration, show_size};
use gpu_run_device::Device;
use gpu_run_map::GPU_BATCH;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

pub(super) fn preload(cache: Cache, here: &CacheArgs, args: &PreloadArgs) -> Result<u8> {
    if cache.path().is_none() {
        return Err(Failure::environment("there is no cache to preload")
            .hint("name a folder with --cache-dir, or set GPU_RUN_CACHE")
            .into());
    }
    let (compiler, device) = (Compiler::new(cache).limited(args.codegen.compile_timeout), devices::open(&args.device)?);
    let bar = ProgressBar::new(args.files.len() as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}") {
        bar.set_style(style);
    }
    // Own threads instead of the pool that compiling uses: a program that waits for another process must not block that
    // pool.
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get()).min(args.files.len());
    let (next, failed, lines) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(file) = args.files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    bar.set_message(printable::name(&label(&file.to_string_lossy())).into_owned());
                    let line = match one(&compiler, &device, file, here, &args.codegen) {
                        Ok(line) => line,
                        Err(error) => {
                            failed.fetch_add(1, Ordering::Relaxed);
                            bar.suspend(|| terminal::say(&format!("error: {error:#}\n")));
                            continue;
                        }
                    };
                    lines.lock().unwrap_or_else(|e| e.into_inner()).push(line);
                    bar.inc(1);
                }
            });
        }
    });
    bar.finish_and_clear();
    print(&lines.into_inner().unwrap_or_else(|e| e.into_inner()).concat())?;
    compiler.cache().wait_until_sent(MAX_SENDING);
    Ok(if failed.into_inner() == 0 { 0 } else { exit::FAILURE })
}

/// How long the command waits for the remote cache to take what was compiled.
const MAX_SENDING: Duration = Duration::from_secs(60);

/// Compiles one program for `gpu-run FILE` and for `gpu-run map`, and returns a line about each build.
fn one(
    compiler: &Compiler,
    device: &Arc<dyn Device>,
    file: &Path,
    here: &CacheArgs,
    codegen: &CodegenArgs,
) -> Result<String> {
    let source = source::load(file, codegen.bin.as_deref(), here)?;
    let surface = Surface::read(&source.wasm, &source.name)?;
    surface.check_imports(&source.name)?;
    surface.check_command(&source.name)?;
    let builds = [(1, ChecksChoice::Exact), (GPU_BATCH, ChecksChoice::Speculative)];
    let mut builds = builds
        .map(|(instances, checks)| {
            surface.settle(program::options(codegen, &**device, Entry::Start, instances, checks))
        })
        .to_vec();
    builds.dedup_by_key(|options| options.build);
    let mut lines = String::new();
    for options in builds {
        let name = entry_name(&source.name, &options);
        let failed = |error| Failure::compiler(&source.name, error);
        let request = compiler.request(device, source.wasm.clone(), &options, &name).map_err(failed)?;
        let what = match compiler.prepare(&request).map_err(failed)? {
            Origin::Hit { .. } => "already in the cache".to_owned(),
            Origin::Fetched { .. } => "fetched from the remote cache".to_owned(),
            Origin::Miss { took, kept: Some(bytes) } => {
                format!("compiled in {}, {}", show_duration(took), show_size(bytes))
            }
            Origin::Miss { took, kept: None } => format!("compiled in {}, not kept", show_duration(took)),
        };
        lines += &format!("{name}: {what}\n");
    }
    Ok(lines)
}
