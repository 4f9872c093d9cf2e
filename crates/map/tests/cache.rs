//! Programs through the cache, on the `cpu` device.
#![allow(clippy::unwrap_used)]

use gpu_run_abi::Layout;
use gpu_run_cache::{Cache, Options, Origin};
use gpu_run_compiler::{Build, CompileOptions, Compiler, Entry, Placement, Program, Value, compilations};
use gpu_run_device::Device;
use gpu_run_run::{End, RunOptions};
use gpu_run_wasi::{Builder, Stdio};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Compilations are counted for the whole process: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn compiler(dir: &Path) -> Compiler {
    Compiler::new(Cache::open(Options { durable: false, ..Options::new(dir) }))
}

fn options() -> CompileOptions {
    CompileOptions::new(Build::Exact(Layout::Linear), Entry::Function("f".into()))
}

/// `cached.wat` with this number in the place of 1000.
fn wasm(number: i32) -> Vec<u8> {
    let text = include_str!("wat/cached.wat").replace("(i32.const 1000)", &format!("(i32.const {number})"));
    wat::parse_str(text).unwrap()
}

fn run(program: &std::sync::Arc<Program>, argument: i32) -> End {
    let contexts = vec![Builder::new().build(Stdio::null())];
    let (outcomes, _) =
        gpu_run_run::run(program, "f", &[Value::I32(argument)], contexts, &RunOptions::default()).unwrap();
    match &outcomes[0].end {
        End::Returned => assert_eq!(outcomes[0].results, [Value::I32(1000 + 5 + 2 * argument)]),
        _ => assert_eq!(argument, 0),
    }
    outcomes[0].end.clone()
}

fn load(compiler: &Compiler, device: &Arc<dyn Device>, wasm: &[u8], options: &CompileOptions) -> (Arc<Program>, bool) {
    let request = compiler.request(device, wasm.to_vec().into(), options, "test.wasm").unwrap();
    let (program, report) = compiler.load(&request).unwrap();
    (program, matches!(report.map(|r| r.origin), Some(Origin::Hit { .. })))
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let below = |path: &Path| std::fs::read_dir(path).unwrap().flatten().map(|e| e.path()).collect::<Vec<_>>();
    let shards = below(&dir.join(format!("cpu-{}", std::env::consts::ARCH))).into_iter().filter(|p| p.is_dir());
    shards.flat_map(|shard| below(&shard)).collect()
}

#[test]
fn the_second_run_compiles_nothing() {
    let (_alone, dir) = (alone(), tempfile::tempdir().unwrap());
    let device = gpu_run_device::cpu::open();
    let before = compilations();
    let (first, hit) = load(&compiler(dir.path()), &device, &wasm(1000), &options());
    assert!(!hit);
    run(&first, 7);
    assert_eq!(compilations(), (before.0 + 1, before.1 + 1));
    // A new process would see no more than this: the folder.
    let (again, hit) = load(&compiler(dir.path()), &gpu_run_device::cpu::open(), &wasm(1000), &options());
    assert!(hit);
    run(&again, 7);
    let End::Trapped(trap) = run(&again, 0) else { panic!("it traps") };
    assert!(trap.function.is_some() && trap.offset > 0, "{trap:?}");
    assert_eq!(compilations(), (before.0 + 1, before.1 + 1), "nothing was compiled");
}

#[test]
fn whatever_changes_the_result_is_in_the_key() {
    let (_alone, dir) = (alone(), tempfile::tempdir().unwrap());
    let compiler = compiler(dir.path());
    let device = gpu_run_device::cpu::open();
    let strict = gpu_run_device::cpu::open_with(gpu_run_device::cpu::Options { strict: true, ..Default::default() });
    let other = |change: fn(&mut CompileOptions)| {
        let mut options = options();
        change(&mut options);
        options
    };
    let all = [
        (&device, wasm(1000), options()),
        (&device, wasm(1001), options()),
        (&strict, wasm(1000), options()),
        (&device, wasm(1000), other(|o| o.build = Build::Exact(Layout::Interleaved))),
        (&device, wasm(1000), other(|o| o.build = Build::Speculative(Placement::Interleaved))),
        (&device, wasm(1000), other(|o| o.sm = 80)),
        (&device, wasm(1000), other(|o| o.entry = Entry::Exports)),
    ];
    for (device, wasm, options) in &all {
        assert!(!load(&compiler, device, wasm, options).1, "{options:?}");
    }
    assert_eq!(entries(dir.path()).len(), all.len());
    // On `cpu` there is no speculative build of linear slots: asked for or not, this is the same.
    let before = compilations();
    load(&compiler, &device, &wasm(1000), &other(|o| o.build = Build::Speculative(Placement::Linear)));
    assert_eq!(compilations(), before);
}

#[test]
fn a_damaged_entry_and_one_that_does_not_load_are_compiled_again() {
    let (_alone, dir) = (alone(), tempfile::tempdir().unwrap());
    let device = gpu_run_device::cpu::open();
    load(&compiler(dir.path()), &device, &wasm(1000), &options());
    let path = entries(dir.path()).remove(0);
    let whole = std::fs::read(&path).unwrap();
    for at in (0..whole.len()).step_by(whole.len() / 40) {
        let mut flipped = whole.clone();
        flipped[at] ^= 4;
        std::fs::write(&path, flipped).unwrap();
        let (program, hit) = load(&compiler(dir.path()), &device, &wasm(1000), &options());
        assert!(!hit, "a flip of byte {at}");
        run(&program, 3);
    }
    // Whole, of this key, and yet no machine code: as one that a new driver no longer takes.
    let compiler = compiler(dir.path());
    let request = compiler.request(&device, wasm(1000).into(), &options(), "test.wasm").unwrap();
    compiler.cache().clear().unwrap();
    compiler.cache().put(request.key(), b"nonsense", std::time::Duration::ZERO);
    let (program, report) = compiler.load(&request).unwrap();
    assert!(matches!(report.unwrap().origin, Origin::Miss { kept: Some(_), .. }));
    run(&program, 3);
    assert_eq!(compiler.cache().counts().repaired, 1);
}

#[test]
fn a_switch_between_loaded_programs_is_a_look_in_a_table() {
    let (_alone, dir) = (alone(), tempfile::tempdir().unwrap());
    let (compiler, device) = (compiler(dir.path()), gpu_run_device::cpu::open());
    let requests = [1000, 2000].map(|n| compiler.request(&device, wasm(n).into(), &options(), "test.wasm").unwrap());
    let programs = requests.each_ref().map(|request| compiler.load(request).unwrap().0);
    let before = compilations();
    for n in 0..2000 {
        let (program, report) = compiler.load(&requests[n % 2]).unwrap();
        assert!(Arc::ptr_eq(&program, &programs[n % 2]) && report.is_none());
    }
    assert_eq!(compilations(), before);
    // What was lost with its device is not given out again.
    compiler.forget(&device);
    assert!(!Arc::ptr_eq(&compiler.load(&requests[0]).unwrap().0, &programs[0]));
}

#[test]
fn an_entry_stays_while_its_program_is_loaded() {
    let (_alone, dir) = (alone(), tempfile::tempdir().unwrap());
    let device = gpu_run_device::cpu::open();
    let compiler_of_another = compiler(dir.path());
    {
        let compiler = compiler(dir.path());
        let _loaded = load(&compiler, &device, &wasm(1000), &options());
        assert_eq!(compiler_of_another.cache().clear().unwrap().in_use, 1);
    }
    assert_eq!(compiler_of_another.cache().clear().unwrap().in_use, 0);
    assert_eq!(entries(dir.path()).len(), 0);
}

/// The bytes of a file with one changed, or without its end, at every place.
fn damages(whole: &[u8], step: usize) -> impl Iterator<Item = Vec<u8>> + '_ {
    (0..whole.len()).step_by(step).flat_map(move |at| {
        let mut flipped = whole.to_vec();
        flipped[at] ^= 1 << (at % 8);
        [flipped, whole[..at].to_vec()]
    })
}

#[test]
fn a_tuning_with_any_byte_changed_is_none() {
    let (_alone, dir) = (alone(), tempfile::tempdir().unwrap());
    let device = gpu_run_device::cpu::open();
    let wasm = Arc::new(wasm(1000));
    let trials = gpu_run_map::variants(&*device, 64).into_iter();
    let trials = trials.map(|variant| gpu_run_map::Trial { variant, per_second: 1.5e6 }).collect();
    let tuning = gpu_run_map::Tuning { trials, learned: None };
    let keep =
        || gpu_run_map::remember(&compiler(dir.path()), &*device, &wasm, &options(), "test.wasm", &tuning).unwrap();
    assert!(keep());
    let path = entries(dir.path()).pop().unwrap();
    let whole = std::fs::read(&path).unwrap();
    let compiler = compiler(dir.path());
    assert_eq!(gpu_run_map::recall(&compiler, &*device, &wasm, &options()), Some(tuning.clone()));
    for bad in damages(&whole, 1) {
        std::fs::write(&path, bad).unwrap();
        assert_eq!(gpu_run_map::recall(&compiler, &*device, &wasm, &options()), None);
    }
    // What a whole entry says may be anything as well.
    for text in ["", "{}", "[]", "null", r#"{"trials":[]}"#, r#"{"trials":[{"per_second":1e999}]}"#] {
        let found: Option<gpu_run_map::Tuning> = serde_json::from_str(text).ok();
        assert!(found.is_none_or(|tuning| tuning.best().is_none()), "{text}");
    }
}

#[test]
fn a_program_with_any_byte_changed_is_compiled_again() {
    let (_alone, dir) = (alone(), tempfile::tempdir().unwrap());
    let device = gpu_run_device::cpu::open();
    let wasm = wasm(1000);
    load(&compiler(dir.path()), &device, &wasm, &options());
    let path = entries(dir.path()).pop().unwrap();
    let whole = std::fs::read(&path).unwrap();
    // Whether each byte matters is shown where entries are read; here, that nothing of it comes to run.
    for bad in damages(&whole, whole.len() / 25) {
        std::fs::write(&path, bad).unwrap();
        let (program, hit) = load(&compiler(dir.path()), &device, &wasm, &options());
        assert!(!hit);
        run(&program, 7);
    }
}
