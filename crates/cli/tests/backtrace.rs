//! `RUST_BACKTRACE`: which functions and lines a trap shows, in every build, and what a module's names and DWARF cannot do.
//!
//! Tests that need a program with DWARF compile one with rustc; where rustc has no std for wasm32-wasip1 they are
//! reported as ignored. With `CI` set in the environment they fail there.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;
#[path = "support/with_rust.rs"]
mod with_rust;

use std::ops::Range;
use std::process::Command;
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use support::{Place, Ran};

fn main() {
    with_rust::run("wasm32-wasip1", &ANYWHERE, &WITH_RUST);
}

const ANYWHERE: [(&str, fn()); 11] = [
    ("calls::every_kind_of_call_is_shown", every_kind_of_call_is_shown),
    ("calls::functions_are_those_of_wasmtime", functions_are_those_of_wasmtime),
    ("calls::of_many_the_innermost_are_shown", of_many_the_innermost_are_shown),
    ("calls::in_every_build", in_every_build),
    ("calls::of_a_thread", of_a_thread),
    ("map::a_failed_record_shows_its_calls", a_failed_record_shows_its_calls),
    ("user::without_the_variable_a_note_says_how", without_the_variable_a_note_says_how),
    ("user::the_variable_is_read_as_std_reads_it", the_variable_is_read_as_std_reads_it),
    ("user::the_cache_has_both_programs", the_cache_has_both_programs),
    ("names::without_any_there_are_numbers", without_any_there_are_numbers),
    ("names::of_any_length_and_content", of_any_length_and_content),
];

const WITH_RUST: [(&str, fn()); 4] = [
    ("rust::a_panic_shows_functions_and_lines", a_panic_shows_functions_and_lines),
    ("rust::without_dwarf_there_are_names", without_dwarf_there_are_names),
    ("rust::a_whole_backtrace_has_the_start_and_the_panic", a_whole_backtrace_has_the_start_and_the_panic),
    ("rust::damaged_dwarf_is_survived", damaged_dwarf_is_survived),
];

const CALLS: &str = include_str!("backtrace/calls.wat");

impl Place {
    /// Runs it on `cpu` with `RUST_BACKTRACE` set to `value`.
    fn traced(&self, value: &str, line: &str) -> Ran {
        Ran::from(self.command(&format!("--device cpu {line}")).env("RUST_BACKTRACE", value).output().unwrap())
    }
}

impl Ran {
    /// The functions of the backtrace.
    #[track_caller]
    fn functions(&self) -> Vec<&str> {
        let (_, trace) = self.stderr.split_once("stack backtrace:\n").unwrap_or_else(|| panic!("{}", self.stderr));
        let mut functions = Vec::new();
        for line in trace.lines() {
            let number = format!("{:4}: ", functions.len());
            match line.strip_prefix(&number) {
                Some(rest) => functions.push(rest.split_once(" - ").map_or(rest, |(_, name)| name)),
                None if line.starts_with("             at ") => {}
                None => break,
            }
        }
        functions
    }
}

fn calls() -> Place {
    Place::new().with("calls.wat", CALLS)
}

fn every_kind_of_call_is_shown() {
    let place = calls();
    let shows = |what: &str, says: &str, functions: &[&str]| {
        let ran = place.traced("1", &format!("--timeout 300ms --invoke {what}"));
        assert_eq!(ran.functions(), functions, "{what}: {}", ran.stderr);
        ran.says(&[says])
    };
    shows("nested calls.wat", "out of bounds memory access", &["inner", "outer", "nested"]);
    shows("by_table calls.wat", "integer divide by zero", &["through", "by_table", "by_table"]);
    shows("by_reference calls.wat", "integer divide by zero", &["through", "by_reference", "by_reference"]);
    let host = shows("host calls.wat", "misaligned pointer", &["fd_write", "print", "print_twice", "host"]);
    assert_eq!(host.stdout, "hi\n");
    shows("exception calls.wat", "unreachable", &["after", "catch_and_trap", "exception"]);
    shows("tail calls.wat", "unreachable", &["end", "tail"]);
    shows("chain calls.wat", "unreachable", &["end", "keeper", "chain"]);
    shows("endless calls.wat", "did not finish within", &["spin", "endless"]);
    shows("alone calls.wat", "unreachable", &["alone"]);
    shows("deep calls.wat 2", "unreachable", &["down", "down", "down", "deep"]);
}

/// The same module without names: both say the same numbers.
fn functions_are_those_of_wasmtime() {
    let wasm = wat::parse_str(CALLS).unwrap();
    let place = Place::new().with("calls.wasm", without_sections(&wasm, &["name"]));
    let mut config = wasmtime::Config::new();
    config.wasm_exceptions(true).wasm_tail_call(true).wasm_function_references(true);
    let engine = wasmtime::Engine::new(&config).unwrap();
    let module = wasmtime::Module::new(&engine, &wasm).unwrap();
    let mut linker = wasmtime::Linker::new(&engine);
    let write = |_: i32, _: i32, _: i32, _: i32| -> i32 { 0 };
    linker.func_wrap("wasi_snapshot_preview1", "fd_write", write).unwrap();
    for (name, args) in [("nested", ""), ("by_table", ""), ("by_reference", ""), ("exception", ""), ("deep", "5")] {
        let ran = place.traced("full", &format!("--invoke {name} calls.wasm {args}"));
        let mut store = wasmtime::Store::new(&engine, ());
        let instance = linker.instantiate(&mut store, &module).unwrap();
        let function = instance.get_func(&mut store, name).unwrap();
        let args: Vec<_> = args.split_whitespace().map(|arg| wasmtime::Val::I32(arg.parse().unwrap())).collect();
        let mut results = vec![wasmtime::Val::I32(0); function.ty(&store).results().len()];
        let error = function.call(&mut store, &args, &mut results).unwrap_err();
        let trace = error.downcast_ref::<wasmtime::WasmBacktrace>().unwrap();
        let shown = |frame: &wasmtime::FrameInfo| format!("<unknown> (function {})", frame.func_index());
        let mut expected: Vec<_> = trace.frames().iter().map(shown).collect();
        // The outermost has no name of its own, but is exported under one.
        *expected.last_mut().unwrap() = name.to_owned();
        assert_eq!(ran.functions(), expected, "{name}: {}", ran.stderr);
        // The name section is at the module's end: without it, offsets are the same.
        let offset = trace.frames()[0].module_offset().unwrap();
        ran.says(&[&format!("\n   0: {offset:#010x} - ")]);
    }
}

fn of_many_the_innermost_are_shown() {
    let place = calls();
    // 64 calls are kept, and the function with the trap comes before them.
    let ran = place.traced("1", "--invoke deep calls.wat 63");
    assert_eq!(ran.functions().len(), 65);
    assert_eq!(ran.functions().last(), Some(&"deep"));
    assert!(!ran.stderr.contains("not shown"), "{}", ran.stderr);
    let ran =
        place.traced("1", "--invoke deep calls.wat 100").says(&["\n      [... 37 outer calls are not shown ...]\n"]);
    assert_eq!(ran.functions(), ["down"; 65]);
    let ran =
        place.traced("1", "--invoke overflow calls.wat").says(&["call stack exhausted", "outer calls are not shown"]);
    assert_eq!(ran.functions(), ["endlessly"; 65]);
}

fn in_every_build() {
    let place = calls().with("in.txt", "a\nb\n");
    for options in ["--layout linear", "--layout interleaved", "--instances 40 --layout interleaved"] {
        let ran = place.traced("full", &format!("{options} calls.wat"));
        assert_eq!(ran.functions(), ["inner", "outer", "main", "_start"], "{options}: {}", ran.stderr);
    }
    for options in ["--checks exact", "--checks speculative", "--layout interleaved", "--layout linear"] {
        let mut command = place.command(&format!("map --device cpu {options} calls.wat -i in.txt"));
        let ran = Ran::from(command.env("RUST_BACKTRACE", "full").output().unwrap());
        assert_eq!(ran.functions(), ["inner", "outer", "main", "_start"], "{options}: {}", ran.stderr);
    }
}

fn of_a_thread() {
    let text = r#"(module
        (import "wasi" "thread-spawn" (func $spawn (param i32) (result i32)))
        (memory (export "memory") 1 1 shared)
        (func $boom unreachable)
        (func $work call $boom)
        (func (export "wasi_thread_start") (param i32 i32) call $work)
        (func $main (drop (call $spawn (i32.const 0))) (loop $l (br $l)))
        (func (export "_start") call $main))"#;
    let ran = Place::new().with("a.wat", text).traced("1", "--timeout 20s a.wat").says(&["unreachable"]);
    assert_eq!(ran.functions(), ["boom", "work", "wasi_thread_start"]);
}

/// A program that fails for a record that begins with `b`.
const SOME: &str = r#"(module
    (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1)
    (data (i32.const 0) "\10\00\00\00\10\00\00\00")
    (func $check (if (i32.eq (i32.load8_u (i32.const 16)) (i32.const 98)) (then unreachable)))
    (func $main (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8))) (call $check))
    (func (export "_start") (call $main)))"#;

fn a_failed_record_shows_its_calls() {
    let place = Place::new().with("some.wat", SOME).with("in.txt", "a\nb\nc\nb\n");
    let map = |value: Option<&str>, options: &str| {
        let mut command = place.command(&format!("map --device cpu {options} some.wat -i in.txt"));
        Ran::from(command.envs(value.map(|value| ("RUST_BACKTRACE", value))).output().unwrap())
    };
    for options in ["", "--layout interleaved", "--checks exact"] {
        let ran = map(Some("1"), options).says(&["line 2 (record 1) trapped: unreachable\n  in check (function "]);
        assert_eq!(ran.functions(), ["check", "main"], "{}", ran.stderr);
        assert_eq!(ran.stderr.matches("stack backtrace:\n   0: check\n   1: main\n").count(), 2, "{}", ran.stderr);
    }
    // How to see them is said once.
    let ran = map(None, "").says(&["line 4 (record 3) trapped"]);
    assert_eq!(ran.stderr.matches("note: run with RUST_BACKTRACE=1").count(), 1, "{}", ran.stderr);
}

const NOTE: &str = "\n  note: run with RUST_BACKTRACE=1 to see the functions that led here\n";

fn without_the_variable_a_note_says_how() {
    let place = calls();
    let ran = place.run("--device cpu calls.wat").says(&["out of bounds memory access\n  in inner (function ", NOTE]);
    assert!(!ran.stderr.contains("stack backtrace"), "{}", ran.stderr);
    place.run("--device cpu --timeout 300ms --invoke endless calls.wat").says(&["did not finish within", NOTE]);
    // Nothing led there but the host.
    let ran = place.run("--device cpu --invoke alone calls.wat").says(&["unreachable\n  in alone"]);
    assert!(!ran.stderr.contains("RUST_BACKTRACE"), "{}", ran.stderr);
}

fn the_variable_is_read_as_std_reads_it() {
    let place = calls();
    let is_shown = |ran: Ran| ran.stderr.contains("stack backtrace:");
    assert!(!is_shown(place.traced("0", "calls.wat")));
    assert!(is_shown(place.traced("1", "calls.wat")));
    // The guest's own variable counts first.
    assert!(is_shown(place.run("--device cpu --env RUST_BACKTRACE=1 calls.wat")));
    assert!(is_shown(place.traced("1", "--env RUST_BACKTRACE calls.wat")));
    assert!(!is_shown(place.traced("1", "--env RUST_BACKTRACE=0 calls.wat")));
    let omitted = "\nnote: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.\n";
    let short = place.traced("1", "calls.wat").says(&[omitted]);
    assert_eq!(short.functions(), ["inner", "outer", "main"]);
    let full = place.traced("full", "calls.wat");
    assert!(!full.stderr.contains("omitted"), "{}", full.stderr);
    assert_eq!(full.functions(), ["inner", "outer", "main", "_start"]);
    // A program that ends well says nothing.
    let fine = Place::new().with("a.wat", r#"(module (func $f) (func (export "_start") call $f))"#);
    assert_eq!(fine.traced("full", "a.wat").gives(0, "").stderr, "");
}

fn the_cache_has_both_programs() {
    let place = calls();
    let run = |value: &str| {
        let mut command = place.command("--device cpu --stats calls.wat");
        command.env("GPU_RUN_CACHE", place.path().join("cache")).env("RUST_BACKTRACE", value);
        Ran::from(command.output().unwrap())
    };
    run("0").says(&["cache    miss", NOTE]);
    run("1").says(&["cache    miss", "stack backtrace:\n   0: inner\n"]);
    run("full").says(&["cache    hit", "stack backtrace:\n"]);
    run("0").says(&["cache    hit", NOTE]);
    let mut list = place.command("cache list");
    let list = Ran::from(list.env("GPU_RUN_CACHE", place.path().join("cache")).output().unwrap());
    assert!(list.stdout.contains("backtrace"), "{}", list.stdout);
}

fn without_any_there_are_numbers() {
    let text = r#"(module (func unreachable) (func call 0) (func (export "_start") call 1))"#;
    let ran = Place::new().with("a.wat", text).traced("1", "a.wat");
    assert_eq!(ran.functions(), ["<unknown> (function 0)", "<unknown> (function 1)"], "{}", ran.stderr);
}

fn of_any_length_and_content() {
    let named = |name: &str| {
        let text = format!(r#"(module (func $f (@name "{name}") unreachable) (func (export "_start") call $f))"#);
        Place::new().with("a.wasm", wat::parse_str(text).unwrap()).traced("1", "a.wasm")
    };
    let ran = named(&"x".repeat(10 << 20)).says(&["unreachable"]);
    assert!(ran.stderr.len() < 10_000, "{}", ran.stderr.len());
    let ran = named(r"\1b]0;owned\07\0aerror: x").says(&[r"   0: \u001b]0;owned\u0007\u000aerror: x"]);
    assert!(!ran.stderr.contains("\nerror: x"), "{}", ran.stderr);
    // Names whose text would be without end.
    for name in [format!("_RN{}vC1a1b", "K".repeat(100_000)), format!("_RMC0{}", "B_".repeat(10_000))] {
        let began = Instant::now();
        named(&name).says(&["unreachable"]);
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    }
    // A name section that is cut short, or says that it is longer than it is.
    let wasm = wat::parse_str(CALLS).unwrap();
    let plain = without_sections(&wasm, &["name"]);
    let names = section(&wasm, "name");
    for end in (0..names.len()).step_by(7) {
        let place = Place::new().with("a.wasm", with_section(&plain, "name", &names[..end]));
        place.traced("1", "a.wasm").says(&["out of bounds memory access", "stack backtrace:"]);
    }
    let place =
        Place::new().with("a.wasm", with_section(&plain, "name", b"\x01\xff\xff\xff\xff\x0f\xff\xff\xff\xff\x0f"));
    place.traced("1", "a.wasm").says(&["<unknown> (function "]);
}

/// The program of `backtrace/app.rs`, with DWARF.
static APP: LazyLock<(Place, Vec<u8>)> = LazyLock::new(|| {
    let place = Place::new().with("src/app.rs", include_str!("backtrace/app.rs"));
    let mut command = Command::new(with_rust::rustc());
    command.args(["--target", "wasm32-wasip1", "-O", "-g", "-o", "app.wasm", "src/app.rs"]);
    let output = command.current_dir(place.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let wasm = std::fs::read(place.path().join("app.wasm")).unwrap();
    (place, wasm)
});

/// The program's own functions, from the inside.
const OWN: [&str; 4] = ["app::Items::pick", "app::inner", "app::outer", "app::main"];

fn a_panic_shows_functions_and_lines() {
    let ran = APP.0.traced("1", "app.wasm").gives_panic();
    let functions = ran.functions();
    let own: Vec<_> = functions.iter().filter(|name| name.starts_with("app::")).copied().collect();
    assert_eq!(own, OWN, "{}", ran.stderr);
    assert_eq!(functions.last(), Some(&"app::main"), "{}", ran.stderr);
    let is_hidden =
        |name: &&&str| ["panick", "abort", "backtrace", "_start", "lang_start"].iter().any(|n| name.contains(n));
    assert_eq!(functions.iter().find(is_hidden), None, "{}", ran.stderr);
    for part in [
        ": app::Items::pick\n             at src/app.rs:10:15\n",
        ": app::inner\n             at src/app.rs:16:37\n",
        ": app::outer\n             at src/app.rs:21:5\n",
        ": app::main\n             at src/app.rs:26:20\n",
    ] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
}

fn a_whole_backtrace_has_the_start_and_the_panic() {
    let ran = APP.0.traced("full", "app.wasm").gives_panic();
    let functions = ran.functions();
    assert_eq!((functions.first(), functions.last()), (Some(&"abort"), Some(&"_start")), "{}", ran.stderr);
    for part in ["core::panicking::panic_bounds_check", "__rust_begin_short_backtrace", "std::rt::lang_start_internal"]
    {
        assert!(functions.iter().any(|name| name.contains(part)), "{part}: {}", ran.stderr);
    }
}

fn without_dwarf_there_are_names() {
    let (place, wasm) = &*APP;
    let stripped = without_sections(wasm, &DWARF);
    std::fs::write(place.path().join("stripped.wasm"), &stripped).unwrap();
    let ran = place.traced("1", "stripped.wasm").gives_panic();
    assert_eq!(ran.functions(), OWN[1..], "{}", ran.stderr);
    assert!(!ran.stderr.contains("             at "), "{}", ran.stderr);
    std::fs::write(place.path().join("bare.wasm"), without_sections(&stripped, &["name"])).unwrap();
    let ran = place.traced("1", "bare.wasm").gives_panic();
    assert!(ran.functions().len() > 5 && ran.functions()[0].starts_with("<unknown> (function "), "{}", ran.stderr);
}

const DWARF: [&str; 7] =
    [".debug_info", ".debug_abbrev", ".debug_line", ".debug_str", ".debug_ranges", ".debug_aranges", ".debug_loc"];

/// Cuts and changes DWARF that real programs have: whatever becomes of the lines, the trap is told.
fn damaged_dwarf_is_survived() {
    let (_, wasm) = &*APP;
    let place = Place::new();
    let mut random = 0x9e37_79b9_u64;
    for round in 0..24 {
        let name = DWARF[round % 5];
        let mut data = section(wasm, name).to_vec();
        let mut next = |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize % below.max(1)
        };
        match round % 3 {
            0 => data.truncate(next(data.len())),
            _ => (0..200).for_each(|_| {
                let (at, value) = (next(data.len()), next(256));
                data[at] = value as u8;
            }),
        }
        let damaged = with_section(&without_sections(wasm, &[name]), name, &data);
        std::fs::write(place.path().join("a.wasm"), damaged).unwrap();
        let began = Instant::now();
        let ran = place.traced("full", "a.wasm").gives_panic();
        assert!(began.elapsed() < Duration::from_secs(30), "round {round}: {:?}", began.elapsed());
        assert!(ran.functions().len() >= 5, "round {round}: {}", ran.stderr);
    }
}

impl Ran {
    /// The program of `backtrace/app.rs` has panicked, and gpu-run has not.
    #[track_caller]
    fn gives_panic(self) -> Self {
        assert_eq!((self.code, self.stdout.as_str()), (Some(134), "before\n"), "{}", self.stderr);
        assert_eq!(self.stderr.matches("panicked at").count(), 1, "{}", self.stderr);
        self
    }
}

/// The custom sections of a module: where each is, its name and its content.
fn custom_sections(wasm: &[u8]) -> Vec<(Range<usize>, &str, &[u8])> {
    let (mut at, mut found) = (8, Vec::new());
    while at < wasm.len() {
        let (length, content) = unleb(wasm, at + 1);
        let end = content + length;
        if wasm[at] == 0 {
            let (length, name) = unleb(wasm, content);
            let data = name + length;
            found.push((at..end, std::str::from_utf8(&wasm[name..data]).unwrap(), &wasm[data..end]));
        }
        at = end;
    }
    found
}

/// The content of a custom section.
fn section<'a>(wasm: &'a [u8], name: &str) -> &'a [u8] {
    let sections = custom_sections(wasm);
    sections.into_iter().find(|(_, other, _)| *other == name).unwrap_or_else(|| panic!("no section {name}")).2
}

/// The module without these custom sections.
fn without_sections(wasm: &[u8], names: &[&str]) -> Vec<u8> {
    let mut kept = wasm.to_vec();
    for (range, name, _) in custom_sections(wasm).into_iter().rev() {
        if names.contains(&name) {
            kept.drain(range);
        }
    }
    kept
}

fn with_section(wasm: &[u8], name: &str, data: &[u8]) -> Vec<u8> {
    let content = [&leb(name.len()), name.as_bytes(), data].concat();
    [wasm, &[0], &leb(content.len()), &content].concat()
}

fn leb(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// The number at an offset, and what follows it.
fn unleb(wasm: &[u8], mut at: usize) -> (usize, usize) {
    let (mut value, mut shift) = (0, 0);
    loop {
        value |= usize::from(wasm[at] & 0x7f) << shift;
        (at, shift) = (at + 1, shift + 7);
        if wasm[at - 1] < 0x80 {
            return (value, at);
        }
    }
}
