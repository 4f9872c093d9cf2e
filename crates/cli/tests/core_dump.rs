//! `--coredump`: what is in the file, which wasmparser reads, and when there is none.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Place, Ran, wat};
use wasmparser::{DataKind, KnownCustom, Operator, Parser, Payload, Validator, WasmFeatures};

/// Instance, function, offset.
type Frame = (u32, u32, u32);

/// A core dump, read with wasmparser.
#[derive(Debug, Default)]
struct Dump {
    program: String,
    modules: Vec<String>,
    /// The memories and the globals of each instance.
    instances: Vec<(Vec<u32>, Vec<u32>)>,
    /// The name of each thread, and its frames.
    threads: Vec<(String, Vec<Frame>)>,
    memories: Vec<Vec<u8>>,
    globals: Vec<String>,
    segments: usize,
    bytes: usize,
}

impl Dump {
    fn read(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap();
        Validator::new_with_features(WasmFeatures::all()).validate_all(&bytes).unwrap();
        let mut dump = Self { bytes: bytes.len(), ..Self::default() };
        for payload in Parser::new(0).parse_all(&bytes) {
            match payload.unwrap() {
                Payload::MemorySection(section) => {
                    let length = |memory: wasmparser::MemoryType| vec![0; memory.initial as usize * 65536];
                    dump.memories = section.into_iter().map(|memory| length(memory.unwrap())).collect();
                }
                Payload::GlobalSection(section) => {
                    for global in section {
                        let global = global.unwrap();
                        assert!(!global.ty.mutable);
                        dump.globals.push(format!("{:?}", global.init_expr.get_operators_reader().read().unwrap()));
                    }
                }
                Payload::DataSection(section) => {
                    for data in section {
                        let data = data.unwrap();
                        let DataKind::Active { memory_index, offset_expr } = data.kind else { panic!("passive") };
                        let at = match offset_expr.get_operators_reader().read().unwrap() {
                            Operator::I32Const { value } => value as u32 as usize,
                            Operator::I64Const { value } => value as usize,
                            other => panic!("{other:?}"),
                        };
                        dump.memories[memory_index as usize][at..at + data.data.len()].copy_from_slice(data.data);
                        dump.segments += 1;
                    }
                }
                Payload::CustomSection(section) => match section.as_known() {
                    KnownCustom::CoreDump(core) => dump.program = core.name.to_owned(),
                    KnownCustom::CoreDumpModules(all) => {
                        dump.modules = all.modules.iter().map(|m| (*m).to_owned()).collect()
                    }
                    KnownCustom::CoreDumpInstances(all) => {
                        dump.instances = all.instances.into_iter().map(|i| (i.memories, i.globals)).collect();
                    }
                    KnownCustom::CoreDumpStack(stack) => {
                        let frames = stack.frames.iter().map(|frame| {
                            assert!(frame.locals.is_empty() && frame.stack.is_empty());
                            (frame.instanceidx, frame.funcidx, frame.codeoffset)
                        });
                        dump.threads.push((stack.name.to_owned(), frames.collect()));
                    }
                    _ => panic!("{}", section.name()),
                },
                _ => {}
            }
        }
        dump
    }

    /// The functions of a thread's frames.
    fn functions(&self, thread: usize) -> Vec<u32> {
        self.threads[thread].1.iter().map(|frame| frame.1).collect()
    }
}

fn dumps(place: &Place) -> Vec<PathBuf> {
    let Ok(folder) = fs::read_dir(place.path().join("dumps")) else { return Vec::new() };
    let mut all: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

#[track_caller]
fn only_dump(place: &Place) -> Dump {
    let [path] = &dumps(place)[..] else { panic!("{:?}", dumps(place)) };
    Dump::read(path)
}

fn nested() -> Place {
    Place::new().with("app.wat", wat!("cli/core_dump"))
}

fn traced(place: &Place, line: &str) -> Ran {
    Ran::from(place.command(line).env("RUST_BACKTRACE", "1").output().unwrap())
}

/// Function and offset of each frame, as Wasmtime has them.
fn frames_of_wasmtime() -> Vec<(u32, u32)> {
    let engine = wasmtime::Engine::default();
    let module = wasmtime::Module::new(&engine, wat!("cli/core_dump")).unwrap();
    let mut linker = wasmtime::Linker::new(&engine);
    linker.func_wrap("wasi_snapshot_preview1", "proc_exit", |_: i32| {}).unwrap();
    let mut store = wasmtime::Store::new(&engine, ());
    let instance = linker.instantiate(&mut store, &module).unwrap();
    let start = instance.get_typed_func::<(), ()>(&mut store, "_start").unwrap();
    let error = start.call(&mut store, ()).unwrap_err();
    let trace = error.downcast_ref::<wasmtime::WasmBacktrace>().unwrap();
    trace.frames().iter().map(|frame| (frame.func_index(), frame.func_offset().unwrap() as u32)).collect()
}

#[test]
fn a_trap_writes_its_frames_memory_and_globals() {
    for line in ["--device cpu", "--device cpu --layout interleaved"] {
        let place = nested();
        let ran = traced(&place, &format!("{line} --coredump dumps app.wat")).gives(134, "");
        let ran = ran.says(&["out of bounds memory access", "note: the core dump is dumps/app.wat.", ".coredump, "]);
        let path = dumps(&place).remove(0);
        assert!(ran.stderr.contains(path.file_name().unwrap().to_str().unwrap()), "{}", ran.stderr);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

        let dump = only_dump(&place);
        assert_eq!((&*dump.program, &dump.modules[..]), ("app.wat", &["app.wat".to_owned()][..]));
        assert_eq!(dump.instances, [(vec![0], vec![0, 1, 2])]);
        let [(name, frames)] = &dump.threads[..] else { panic!("{dump:?}") };
        assert_eq!(name, "main");
        let frames = frames.iter().map(|(instance, function, offset)| {
            assert_eq!(*instance, 0);
            (*function, *offset)
        });
        assert_eq!(frames.collect::<Vec<_>>(), frames_of_wasmtime(), "{line}");

        let mut memory = vec![0; 100 * 65536];
        memory[1024..1039].copy_from_slice(b"from the module");
        memory[70000] = 9;
        memory[6553590..6553594].copy_from_slice(&[1, 2, 3, 4]);
        assert!(dump.memories == [memory], "{line}");
        assert_eq!(dump.segments, 3);
        assert!(dump.bytes < 1000, "{} bytes", dump.bytes);
        let globals = ["I32Const { value: 4096 }", "I64Const { value: -2 }"];
        assert_eq!(dump.globals[..2], globals);
        assert!(dump.globals[2].starts_with("F64Const"), "{:?}", dump.globals);
    }
}

#[test]
fn without_backtraces_the_function_that_trapped_is_there() {
    let place = nested();
    place.run("--device cpu --coredump dumps app.wat").gives(134, "");
    let dump = only_dump(&place);
    assert_eq!(dump.threads[0].1.len(), 1);
    assert_eq!((dump.threads[0].1[0].1, dump.threads[0].1[0].2), frames_of_wasmtime()[0]);
}

/// Types of globals are not kept in the cache.
#[test]
fn a_program_from_the_cache_has_its_globals() {
    let place = nested();
    for _ in 0..2 {
        place.command("--device cpu --cache-dir cache --coredump dumps app.wat").output().unwrap();
    }
    let [first, second] = &dumps(&place)[..] else { panic!("{:?}", dumps(&place)) };
    let globals = Dump::read(first).globals;
    assert_eq!((globals.len(), &globals), (3, &Dump::read(second).globals));
}

#[test]
fn only_a_trap_writes_one() {
    let place = nested();
    place.run("--device cpu --coredump dumps --invoke exits app.wat").gives(3, "");
    place.run("--device cpu --coredump dumps --invoke returns app.wat").gives(0, "");
    assert_eq!(dumps(&place), [] as [PathBuf; 0]);
    // A program that hangs is stopped where it is.
    let ran = place.run("--device cpu --coredump dumps --timeout 200ms --invoke spins app.wat").gives(124, "");
    ran.says(&["did not finish within", "the core dump is"]);
    assert_eq!(only_dump(&place).functions(0), [5]);
}

#[test]
fn of_many_instances_the_first_ten() {
    let place = Place::new().with("app.wat", wat!("cli/core_dump"));
    let ran = place.run("--device cpu --instances 12 --coredump dumps app.wat").gives(134, "");
    ran.says(&["the core dump of instance 9 is", "2 others after these left no core dump"]);
    assert_eq!(dumps(&place).len(), 10);
}

#[test]
fn all_threads_are_there_the_one_that_trapped_first() {
    let place = Place::new().with("app.wat", wat!("cli/core_dump_threads"));
    let ran = traced(&place, "--device cpu --coredump dumps app.wat").gives(134, "");
    ran.says(&["unreachable", "in thread 1", "the core dump is"]);
    let dump = only_dump(&place);
    let names: Vec<_> = dump.threads.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["thread 1", "thread 0 `main`"]);
    assert_eq!(dump.functions(0), [1, 2], "{dump:?}");
    assert_eq!(dump.instances, [(vec![0], vec![0]), (vec![0], vec![1])]);
    assert_eq!((dump.memories[0].len(), dump.memories[0][2048]), (65536, 77));
}

/// The types of globals are looked up once, not once for each thread, and nobody takes looking for a hang.
#[test]
fn a_large_program_from_the_cache_with_many_threads_is_in_time() {
    // Code that is never reached costs nothing but to decode.
    let unreached = format!("(func unreachable {})", "i32.const 1 drop ".repeat(10_000));
    let text = format!(
        r#"(module
            (import "wasi" "thread-spawn" (func $spawn (param i32) (result i32)))
            (import "env" "memory" (memory 1 4 shared))
            (export "memory" (memory 0))
            (global $mine (mut i32) (i32.const 5))
            {}
            (func $wait
                (loop $l (drop (memory.atomic.wait32 (i32.const 64) (i32.const 0) (i64.const -1))) (br $l)))
            (func (export "wasi_thread_start") (param i32 i32) (call $wait))
            (func (export "_start") (local $i i32)
                (loop $l (drop (call $spawn (i32.const 0)))
                    (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 255))))
                (call $wait)))"#,
        unreached.repeat(50)
    );
    let place = Place::new().with("app.wasm", wat::parse_str(text).unwrap());
    for run in ["compiled", "from the cache"] {
        let line = "--device cpu --cache-dir cache --threads 256 --timeout 3 --coredump dumps app.wasm";
        let ran = Ran::from(place.command(line).output().unwrap()).gives(124, "");
        assert!(ran.stderr.contains("it had 256 threads"), "{run}: {}", ran.stderr);
        ran.says(&["did not finish within", "the core dump is"]);
    }
    assert_eq!(Dump::read(&dumps(&place)[0]).threads.len(), 256);
}

#[test]
fn segments_that_do_not_fit_leave_nothing_and_a_line_says_so() {
    let text = r#"(module (memory 1) (data (i32.const 65536) "x") (func (export "_start")))"#;
    let place = Place::new().with("app.wat", text);
    let ran = place.run("--device cpu --coredump dumps app.wat").gives(134, "");
    ran.says(&["note: no core dump was written in dumps: its segments do not fit, so it had no memory yet"]);
    assert_eq!(dumps(&place), [] as [PathBuf; 0]);
}

#[test]
fn several_memories_and_64_bit_addresses() {
    let text = r#"(module (memory 1) (memory i64 1 3)
        (func (export "_start") (i32.store8 (i32.const 65535) (i32.const 1))
            (i64.store 1 (i64.const 65528) (i64.const -1)) unreachable))"#;
    let place = Place::new().with("app.wat", text);
    place.run("--device cpu --coredump dumps app.wat").gives(134, "");
    let dump = only_dump(&place);
    assert_eq!(dump.instances, [(vec![0, 1], vec![])]);
    assert_eq!(
        (dump.memories[0][65535], &dump.memories[1][65527..]),
        (1, &[0, 255, 255, 255, 255, 255, 255, 255, 255][..])
    );
}

#[test]
fn a_folder_that_cannot_be_used_is_named_before_the_run() {
    let place = nested().with("file", "");
    for folder in ["file", "file/in", "none/below", "/proc/none"] {
        let ran = place.run(&format!("--device cpu --coredump {folder} app.wat")).gives(2, "");
        ran.says(&[&format!("--coredump {folder}: "), "hint: name a folder"]);
    }
    symlink("nowhere", place.path().join("link")).unwrap();
    let ran = place.run("--device cpu --coredump link app.wat").gives(2, "");
    ran.says(&["--coredump link: a link to a folder that is not there", "hint"]);
    let folder = place.path().join("write-only");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o333)).unwrap();
    place
        .run("--device cpu --coredump write-only app.wat")
        .gives(134, "")
        .says(&["the core dump is write-only/app.wat."]);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    let folder = place.path().join("locked");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o500)).unwrap();
    let ran = place.run("--device cpu --coredump locked app.wat");
    // Nothing is locked for root.
    match ran.code {
        Some(134) => assert_eq!(fs::read_dir(&folder).unwrap().count(), 1),
        _ => drop(ran.gives(2, "").says(&["--coredump locked: nothing can be written there"])),
    }
}

/// Files cannot become longer than 512 bytes, as on a full disk.
#[test]
fn a_full_disk_hides_no_trap() {
    let text = r#"(module (memory 1) (func (export "_start")
        (memory.fill (i32.const 0) (i32.const 1) (i32.const 65536)) unreachable))"#;
    let place = Place::new().with("app.wat", text);
    let program = env!("CARGO_BIN_EXE_gpu-run");
    let line = format!("trap '' XFSZ; ulimit -f 1; exec '{program}' --device cpu --no-cache --coredump dumps app.wat");
    let ran = Ran::from(Command::new("sh").args(["-c", &line]).current_dir(place.path()).output().unwrap());
    ran.gives(134, "")
        .says(&["app.wat trapped: unreachable", "note: no core dump was written in dumps: File too large"]);
    assert_eq!(dumps(&place), [] as [PathBuf; 0]);
}
