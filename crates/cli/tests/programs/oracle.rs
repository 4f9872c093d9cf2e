//! Wasmtime, the judge: the same .wasm file, run in this process.

use crate::manifest::Input;
use crate::observed::{Ending, Observed};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};
use wasmtime::{Engine, Linker, Module, Store, Trap};
use wasmtime_wasi::p1::{self, WasiP1Ctx};
use wasmtime_wasi::p2::pipe::{MemoryInputPipe, MemoryOutputPipe};
use wasmtime_wasi::{FsPerms, I32Exit, WasiCtxBuilder};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What a program may print at most.
const OUTPUT: usize = 64 << 20;

static ENGINE: LazyLock<Engine> = LazyLock::new(Engine::default);
static MODULES: LazyLock<Mutex<HashMap<PathBuf, Module>>> = LazyLock::new(Mutex::default);

/// Runs a program with these folders, under these names; says what it did and how long `_start` took.
pub(crate) fn run(
    wasm: &Path,
    name: &str,
    input: &Input,
    dirs: &[(&Path, &str)],
) -> Result<(Observed, Duration), Failure> {
    let module = module(wasm)?;
    let (stdout, stderr) = (MemoryOutputPipe::new(OUTPUT), MemoryOutputPipe::new(OUTPUT));
    let mut builder = WasiCtxBuilder::new();
    builder.stdin(MemoryInputPipe::new(input.stdin.clone())).stdout(stdout.clone()).stderr(stderr.clone());
    builder.arg(name).args(&input.args).allow_blocking_current_thread(true);
    for (key, value) in &input.env {
        builder.env(key, value);
    }
    for (dir, name) in dirs {
        builder.preopened_dir(dir, *name, FsPerms::ReadWrite)?;
    }
    let mut linker: Linker<WasiP1Ctx> = Linker::new(&ENGINE);
    p1::add_to_linker_sync(&mut linker, |context| context)?;
    let mut store = Store::new(&ENGINE, builder.build_p1());
    let instance = linker.instantiate(&mut store, &module)?;
    let start = instance.get_typed_func::<(), ()>(&mut store, "_start")?;
    let began = Instant::now();
    let result = start.call(&mut store, ());
    let took = began.elapsed();
    let ending = match result {
        Ok(()) => Ending::Exit(0),
        Err(error) => match (error.downcast_ref::<I32Exit>(), error.downcast_ref::<Trap>()) {
            (Some(exit), _) => Ending::Exit(exit.0),
            (_, Some(trap)) => Ending::Trap(words(*trap)),
            // A host function ended it.
            _ => Ending::Trap(error.root_cause().to_string()),
        },
    };
    drop(store);
    let observed =
        Observed { ending, stdout: stdout.contents().to_vec(), stderr: stderr.contents().to_vec(), files: None };
    Ok((observed, took))
}

/// Compiles a file once.
fn module(wasm: &Path) -> Result<Module, Failure> {
    let mut modules = MODULES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(module) = modules.get(wasm) {
        return Ok(module.clone());
    }
    let module = Module::from_file(&ENGINE, wasm)?;
    modules.insert(wasm.to_owned(), module.clone());
    Ok(module)
}

/// The specification's words for a trap.
fn words(trap: Trap) -> String {
    match trap {
        Trap::UnreachableCodeReached => "unreachable".into(),
        Trap::MemoryOutOfBounds => "out of bounds memory access".into(),
        Trap::IntegerDivisionByZero => "integer divide by zero".into(),
        Trap::StackOverflow => "call stack exhausted".into(),
        other => other.to_string(),
    }
}
