//! gpu-run's own std: what programs that were built with it do under gpu-run and under Wasmtime, and `gpu-run build` and `test`.
//!
//! `scripts/own-std` makes the std. What has not been made is not tested: the tests that need it are reported as ignored.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;

use gpu_run_sysroot::{Panic, Rust, Sysroot, Target};
use libtest_mimic::{Arguments, Trial};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::{Place, Ran};
use wasmtime::{Engine, Linker, Module, Store};
use wasmtime_wasi::p1::{self, WasiP1Ctx};
use wasmtime_wasi::p2::pipe::MemoryOutputPipe;
use wasmtime_wasi::{I32Exit, WasiCtxBuilder};

type Test = (&'static str, fn());

const ANYWHERE: [Test; 6] = [
    ("build::another_rust_is_refused", another_rust_is_refused),
    ("build::missing_sources_are_named", missing_sources_are_named),
    ("build::a_target_without_a_std_is_refused", a_target_without_a_std_is_refused),
    ("build::a_cache_that_is_off_has_no_place_for_a_std", a_cache_that_is_off_has_no_place_for_a_std),
    ("build::a_rustc_that_fails_is_told_from_one_that_is_unknown", a_rustc_that_fails_is_told_from_one_that_is_unknown),
    ("build::options_before_a_command_are_explained", options_before_a_command_are_explained),
];

/// They need the sources of std.
const WITH_SOURCES: [Test; 8] = [
    ("crash::a_maker_that_is_killed_leaves_nothing_half_made", a_maker_that_is_killed_leaves_nothing_half_made),
    ("crash::two_makers_make_one_std", two_makers_make_one_std),
    ("crash::a_full_disk_is_said", a_full_disk_is_said),
    ("crash::a_signal_ends_cargo_too", a_signal_ends_cargo_too),
    ("crash::a_cut_std_is_made_again", a_cut_std_is_made_again),
    ("build::a_cache_that_others_may_write_to_holds_no_std", a_cache_that_others_may_write_to_holds_no_std),
    ("build::flags_are_taken_from_where_cargo_takes_them", flags_are_taken_from_where_cargo_takes_them),
    ("build::the_cache_of_a_run_has_its_std", the_cache_of_a_run_has_its_std),
];

/// They need the std.
const WITH_STD: [Test; 10] = [
    ("std::processes_work", processes_work),
    ("std::what_begins_with_a_dot_is_found", what_begins_with_a_dot_is_found),
    ("std::backtraces_have_functions_and_lines", backtraces_have_functions_and_lines),
    ("std::backtraces_need_noted_calls", backtraces_need_noted_calls),
    ("std::a_guest_cannot_have_debug_information_read_for_ever", a_guest_cannot_have_debug_information_read_for_ever),
    ("std::other_hosts_answer_unsupported", other_hosts_answer_unsupported),
    ("std::the_unknown_target_has_all_of_it", the_unknown_target_has_all_of_it),
    ("build::a_workspace_with_everything", a_workspace_with_everything),
    ("build::flags_for_all_targets_are_kept", flags_for_all_targets_are_kept),
    ("test::tests_and_examples_run", tests_and_examples_run),
];

/// They need the std that unwinds.
const WITH_UNWINDING: [Test; 1] =
    [("test::a_panic_ends_one_test_or_is_expected", a_panic_ends_one_test_or_is_expected)];

fn main() {
    let args = Arguments::from_args();
    let rust = Rust::find();
    let has = |panic, targets: &[Target]| {
        rust.as_ref().is_ok_and(|rust| targets.iter().all(|target| Sysroot::of(&cache(), rust, panic).has(*target)))
    };
    let is_made = has(Panic::Aborts, &[Target::Wasip1, Target::Unknown]);
    let unwinds = has(Panic::Unwinds, &[Target::Wasip1Threads]);
    let trials = [
        (&ANYWHERE[..], true, ""),
        (&WITH_SOURCES[..], rust.is_ok(), "no sources of std"),
        (&WITH_STD[..], is_made, "run scripts/own-std"),
        (&WITH_UNWINDING[..], unwinds, "run scripts/own-std --unwind"),
    ];
    let trials = trials.into_iter().flat_map(|(tests, can_run, why)| {
        tests.iter().map(move |&(name, test)| {
            let run = move || {
                test();
                Ok(())
            };
            let kind = if can_run { "" } else { why };
            Trial::test(name, run).with_kind(kind).with_ignored_flag(!can_run)
        })
    });
    libtest_mimic::run(&args, trials.collect()).exit();
}

/// Where `scripts/own-std` makes it.
fn cache() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/own-std").canonicalize().unwrap_or_default()
}

/// A program, compiled with the std.
fn built(place: Place, target: Target, source: &str) -> Place {
    let rust = Rust::find().unwrap();
    let place = place.with("app.rs", source);
    let mut rustc = Command::new(&rust.rustc);
    rustc.args(["-O", "-g", "--edition", "2024", "--target", target.name(), "--sysroot"]);
    rustc.arg(Sysroot::of(&cache(), &rust, Panic::Aborts).path()).args(["-o", "app.wasm", "app.rs"]);
    assert!(rustc.current_dir(place.path()).status().unwrap().success());
    place
}

/// `gpu-run` with the std that `scripts/own-std` has made.
fn gpu_run(place: &Place, line: &str) -> Ran {
    let mut command = place.command(line);
    command.env("GPU_RUN_CACHE", cache()).env("CARGO_TERM_COLOR", "never").env_remove("CARGO_TARGET_DIR");
    Ran::from(without_flags(&mut command).output().unwrap())
}

/// Flags that the shell has set, of another std for instance, are not the test's.
fn without_flags(command: &mut Command) -> &mut Command {
    let flags = ["RUSTFLAGS", "RUSTDOCFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS"];
    flags.iter().for_each(|variable| _ = command.env_remove(variable));
    command
}

const CHILD: &str = include_str!("own_std/child.rs");
const PROCESSES: &str = "\"/tmp\"
Err(PermissionDenied)
Ok(())
Err(NotFound)
exit status: 3, Some(3)
trap: unreachable, None
exit status: 0, 160000, 160000
None
killed
through a child
";

fn processes_work() {
    built(Place::new(), Target::Wasip1, CHILD).run("--device cpu --dir . app.wasm").gives(0, PROCESSES);
}

fn other_hosts_answer_unsupported() {
    let place = built(Place::new(), Target::Wasip1, CHILD);
    let unsupported = "Err(Unsupported)\n".repeat(3);
    assert_eq!(with_wasmtime(&place.path().join("app.wasm")), format!("\"/tmp\"\n{unsupported}no processes\n"));
}

/// Looks for itself by several paths, and starts itself, here and in the folder it is in.
const DOTS: &str = "
use std::process::Command;
fn main() {
    if std::env::args().len() > 1 {
        return print!(\"started {}\", std::fs::metadata(\"app.wasm\").is_ok());
    }
    for path in [\"in/app.wasm\", \"./in/app.wasm\", \".//in/./app.wasm\", \"/./in/app.wasm\", \"//././in//app.wasm\"] {
        let joined = std::env::current_dir().unwrap().join(path);
        let started = |command: &mut Command| match command.arg(\"-\").output() {
            Ok(output) => String::from_utf8(output.stdout).unwrap(),
            Err(error) => format!(\"{:?}\", error.kind()),
        };
        let (here, there) = (started(&mut Command::new(path)), started(Command::new(path).current_dir(\"./in\")));
        println!(\"{} {}, {here}, {there}\", std::fs::exists(path).unwrap(), std::fs::exists(joined).unwrap());
    }
    println!(\"{} {}\", std::fs::exists(\"/./.in\").unwrap(), std::fs::read_dir(\"/./in/.\").unwrap().count());
}";

fn what_begins_with_a_dot_is_found() {
    let place = built(Place::new(), Target::Wasip1, DOTS);
    let folder = place.path().join("in");
    fs::create_dir(&folder).unwrap();
    fs::rename(place.path().join("app.wasm"), folder.join("app.wasm")).unwrap();
    // A program is looked for from the folder that the child begins in, as natively.
    let relative = "true true, started false, NotFound\n".repeat(3);
    let absolute = "true true, started false, started true\n".repeat(2);
    place.run("--device cpu --dir in in/app.wasm").gives(0, &format!("{relative}{absolute}false 1\n"));
}

const BACKTRACE: &str = include_str!("own_std/backtrace.rs");

/// What the program prints of a backtrace of `inner`, without the functions of std that call `main`.
const FUNCTIONS: &str = "   0: app::inner
             at FOLDER/app.rs:5:5
   1: app::outer
             at FOLDER/app.rs:10:29
   2: app::outer
             at FOLDER/app.rs:10:46
   3: app::main
";

/// The program of backtraces, with lines.
fn traced() -> (Place, String) {
    let place = built(Place::new(), Target::Wasip1, BACKTRACE);
    let folder = place.path().canonicalize().unwrap();
    (place, FUNCTIONS.replace("FOLDER", folder.to_str().unwrap()))
}

fn backtraces_have_functions_and_lines() {
    let (place, functions) = traced();
    for variable in ["RUST_BACKTRACE=1", "RUST_LIB_BACKTRACE=1", "RUST_BACKTRACE=full"] {
        let ran = place.run(&format!("--device cpu --dir . --env {variable} app.wasm"));
        let printed = format!("Captured\n{functions}");
        assert!(ran.code == Some(0) && ran.stdout.starts_with(&printed), "{variable}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("\nforced: Captured, app::main first\n"), "{variable}: {}", ran.stdout);
    }
    // Records of a map have their own.
    let place = place.with("records", "one\ntwo\n");
    let ran = place.run("map --device cpu --env RUST_BACKTRACE=1 -i records app.wasm");
    let printed = ran.stdout.matches(&functions).count();
    assert!(ran.code == Some(0) && printed == 2, "{}{}", ran.stdout, ran.stderr);
}

fn backtraces_need_noted_calls() {
    let (place, _) = traced();
    let nothing = "Disabled\ndisabled backtrace\nforced: Unsupported, nothing first\n";
    place.run("--device cpu app.wasm").gives(0, nothing);
    assert_eq!(with_wasmtime(&place.path().join("app.wasm")), nothing);
}

/// It asks for the functions at a hundred thousand places, which are all there is.
const ASKS: &str = "
#[repr(C)]
struct Output(*mut u8, usize);
#[link(wasm_import_module = \"wasi_snapshot_preview1\")]
unsafe extern \"C\" {
    fn fd_pread(fd: u32, to: *const Output, count: usize, offset: u64, read: *mut u32) -> i32;
}
fn main() {
    let (mut buffer, mut read, mut known) = ([0u8; 4096], 0, 0);
    for place in 0..100_000u64 {
        let to = Output(buffer.as_mut_ptr(), buffer.len());
        let errno = unsafe { fd_pread(0x67707501, &to, 1, 11 | place << 32, &mut read) };
        assert_eq!(errno, 0);
        known += u32::from(read > 0);
    }
    println!(\"{}\", known > 1000);
}";

fn a_guest_cannot_have_debug_information_read_for_ever() {
    let began = Instant::now();
    built(Place::new(), Target::Wasip1, ASKS).run("--device cpu --env RUST_BACKTRACE=1 app.wasm").gives(0, "true\n");
    // Reading it for each place would take minutes.
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}

/// Runs a program under Wasmtime; returns what it printed.
fn with_wasmtime(wasm: &Path) -> String {
    let engine = Engine::default();
    let stdout = MemoryOutputPipe::new(1 << 20);
    let context = WasiCtxBuilder::new().arg("app.wasm").stdout(stdout.clone()).build_p1();
    let mut linker: Linker<WasiP1Ctx> = Linker::new(&engine);
    p1::add_to_linker_sync(&mut linker, |context| context).unwrap();
    let mut store = Store::new(&engine, context);
    let instance = linker.instantiate(&mut store, &Module::from_file(&engine, wasm).unwrap()).unwrap();
    let start = instance.get_typed_func::<(), ()>(&mut store, "_start").unwrap();
    if let Err(error) = start.call(&mut store, ()) {
        assert_eq!(error.downcast_ref::<I32Exit>().map(|exit| exit.0), Some(0), "{error:?}");
    }
    drop(store);
    String::from_utf8(stdout.contents().to_vec()).unwrap()
}

fn the_unknown_target_has_all_of_it() {
    let place = built(Place::new(), Target::Unknown, "fn main(){println!(\"Result: {}\", 42)}");
    let ran = place.run("--device cpu app.wasm").gives(0, "Result: 42\n");
    assert!(!ran.stderr.contains("can print nothing"), "{}", ran.stderr);
    let source = "
        use std::collections::HashMap;
        use std::io::Read;
        use std::time::{Instant, SystemTime};
        fn main() {
            println!(\"{:?} {:?}\", std::env::args().skip(1).collect::<Vec<_>>(), std::env::var(\"NAME\"));
            std::fs::write(\"new\", std::fs::read_to_string(\"given\").unwrap() + \"!\").unwrap();
            std::fs::create_dir(\"folder\").unwrap();
            let mut names: Vec<_> = std::fs::read_dir(\".\").unwrap().map(|e| e.unwrap().file_name()).collect();
            names.sort();
            println!(\"{names:?} {:?}\", std::fs::metadata(\"none\").map(drop).map_err(|e| e.kind()));
            assert!(Instant::now().elapsed().as_secs() < 60 && SystemTime::now() > SystemTime::UNIX_EPOCH);
            assert_eq!(HashMap::from([(1, 2)])[&1], 2);
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).unwrap();
            eprintln!(\"on stderr: {text}\");
            println!(\"{}\", cfg!(target_os = \"unknown\") && !cfg!(target_os = \"wasi\"));
            std::process::exit(5);
        }";
    let place = built(Place::new().with("given", "text"), Target::Unknown, source);
    let names = "\"app.rs\", \"app.wasm\", \"folder\", \"given\", \"new\"";
    let expected = format!("[\"one\", \"two\"] Ok(\"value\")\n[{names}] Err(NotFound)\ntrue\n");
    let line = "--device cpu --dir . --env NAME=value app.wasm one two";
    place.run_with_input(line, b"input").gives(5, &expected).says(&["on stderr: input"]);
    assert_eq!(fs::read_to_string(place.path().join("new")).unwrap(), "text!");
    let processes = built(Place::new(), Target::Unknown, CHILD).run("--device cpu --dir . app.wasm");
    processes.gives(0, PROCESSES);
}

/// A workspace with a feature, a build script, a macro, a patched dependency and LTO.
fn workspace() -> Place {
    let package = |name: &str, rest: &str| {
        format!("[package]\nname = \"{name}\"\nversion = \"1.0.0\"\nedition = \"2024\"\nlicense = \"MIT\"\n{rest}")
    };
    let app = "[features]\nloud = []\n[dependencies]\nlibrary = { path = \"../library\" }\nitoa = \"1\"\nanswer = { path = \"../answer\" }\n";
    Place::new()
        .with(
            "Cargo.toml",
            "[workspace]\nmembers = [\"app\", \"library\", \"answer\"]\nresolver = \"3\"\n\
             [patch.crates-io]\nitoa = { path = \"itoa\" }\n[profile.release]\nlto = true\n",
        )
        .with("app/Cargo.toml", package("app", app))
        .with("app/build.rs", "fn main() { println!(\"cargo::rustc-env=BUILT={}\", std::env::var(\"TARGET\").unwrap()); }")
        .with(
            "app/src/main.rs",
            "fn main() {
                 let loud = if cfg!(feature = \"loud\") { \"!\" } else { \"\" };
                 println!(\"{} {} {} {}{loud}\", env!(\"BUILT\"), library::two(), answer::answer!(), itoa::name());
                 println!(\"{:?}\", std::io::pipe().is_ok());
             }",
        )
        .with("library/Cargo.toml", package("library", ""))
        .with(
            "library/src/lib.rs",
            "/// ```\n/// assert_eq!(library::two(), 2);\n/// assert!(std::io::pipe().is_ok());\n/// ```\n\
             pub fn two() -> u32 { 2 }\n\
             #[test]\nfn a_pipe_is_made() { assert!(std::io::pipe().is_ok()); }\n",
        )
        .with("answer/Cargo.toml", package("answer", "[lib]\nproc-macro = true\n"))
        .with(
            "answer/src/lib.rs",
            "#[proc_macro]\npub fn answer(_: proc_macro::TokenStream) -> proc_macro::TokenStream { \"42\".parse().unwrap() }",
        )
        .with("itoa/Cargo.toml", package("itoa", ""))
        .with("itoa/src/lib.rs", "pub fn name() -> &'static str { \"patched\" }")
}

fn a_workspace_with_everything() {
    let place = workspace();
    gpu_run(&place, "build --release --offline -p app --features loud").gives(0, "");
    let output = "wasm32-wasip1 2 42 patched!\ntrue\n";
    place.run("--device cpu target/wasm32-wasip1/release/app.wasm").gives(0, output);
    gpu_run(&place, "build --offline --target=wasm32-unknown-unknown -p app").gives(0, "");
    let output = "wasm32-unknown-unknown 2 42 patched\ntrue\n";
    place.run("--device cpu target/wasm32-unknown-unknown/debug/app.wasm").gives(0, output);
    // Without `build`, the std that is there is used, too.
    gpu_run(&place, "--device cpu app").gives(0, "wasm32-wasip1 2 42 patched\ntrue\n");
}

fn flags_for_all_targets_are_kept() {
    let place = Place::new()
        .with("Cargo.toml", "[package]\nname = \"app\"\nversion = \"1.0.0\"\nedition = \"2024\"\n")
        .with(".cargo/config.toml", "[build]\nrustflags = [\"--cfg\", \"flagged\"]\n")
        .with("src/main.rs", "#![allow(unexpected_cfgs)]\nfn main() { println!(\"{}\", cfg!(flagged)); }");
    gpu_run(&place, "build --offline").gives(0, "");
    place.run("--device cpu target/wasm32-wasip1/debug/app.wasm").gives(0, "true\n");
}

fn tests_and_examples_run() {
    let ran = gpu_run(&workspace(), "test --offline -p library");
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    for part in ["test a_pipe_is_made ... ok", "src/lib.rs - two (line 1) ... ok"] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
}

fn a_panic_ends_one_test_or_is_expected() {
    let place =
        Place::new().with("Cargo.toml", "[package]\nname = \"app\"\nversion = \"1.0.0\"\nedition = \"2024\"\n").with(
            "src/lib.rs",
            "#[test] #[should_panic(expected = \"of bounds\")] fn expects() { [0; 2][std::env::args().count() + 5]; }
            #[test] fn fails() { panic!() }
            #[test] fn joins() { assert!(std::thread::spawn(|| panic!()).join().is_err()) }
            #[test] fn passes() { assert!(std::panic::catch_unwind(|| panic!()).is_err()) }",
        );
    let ran = gpu_run(&place, "test --offline --threads --unwind --lib");
    assert_eq!(ran.code, Some(101), "{}\n{}", ran.stdout, ran.stderr);
    for part in
        ["expects - should panic ... ok", "fails ... FAILED", "joins ... ok", "passes ... ok", "3 passed; 1 failed"]
    {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
}

/// A program of the toolchain that does what a script says.
fn fake(place: &Place, name: &str, script: &str) -> PathBuf {
    let path = place.path().join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn with_rust_of(version: &str) -> Ran {
    let place = Place::new();
    let script = format!(
        "case $1 in -vV) printf 'release: {version}\\ncommit-hash: 0123456789abcdef\\n' ;; *) echo {} ;; esac",
        place.path().display()
    );
    let rustc = fake(&place, "fake-rustc", &script);
    let mut command = place.command("build");
    Ran::from(command.env("RUSTC", rustc).env("GPU_RUN_CACHE", place.path()).output().unwrap())
}

fn another_rust_is_refused() {
    for version in ["1.94.1", "1.98.0", "1.97.0-nightly", "1.96.0-beta.2", "2.0.0"] {
        let is = format!("and this is {version}");
        with_rust_of(version).gives(1, "").says(&["1.95, 1.96 and 1.97", &is, "cargo build --target wasm32-wasip1"]);
    }
}

fn a_rustc_that_fails_is_told_from_one_that_is_unknown() {
    let place = Place::new();
    let rustc = fake(&place, "fake-rustc", "echo why >&2; exit 3");
    let ran =
        Ran::from(place.command("build").env("RUSTC", rustc).env("GPU_RUN_CACHE", place.path()).output().unwrap());
    ran.gives(1, "").says(&["why", "-vV` failed (exit status: 3); its message is above"]);
}

fn options_before_a_command_are_explained() {
    let said = ["run: no such file or folder", "options of `run` come after the word `run`"];
    Place::new().run("--device cpu run .").gives(2, "").says(&said);
}

fn missing_sources_are_named() {
    let said = ["sources of std for Rust 1.95.77 are not installed", "rustup component add rust-src", "distribution"];
    with_rust_of("1.95.77").gives(1, "").says(&said);
}

fn a_target_without_a_std_is_refused() {
    let said = ["x86_64-unknown-linux-gnu", "wasm32-wasip1, wasm32-wasip1-threads, wasm32-unknown-unknown"];
    Place::new().run("build --target x86_64-unknown-linux-gnu").gives(2, "").says(&said);
    Place::new().run("build --threads --target wasm32-wasip1").gives(2, "").says(&["wasm32-wasip1-threads"]);
}

fn a_cache_that_is_off_has_no_place_for_a_std() {
    Place::new().run("build").gives(1, "").says(&["there is no place to keep gpu-run's std", "GPU_RUN_CACHE"]);
}

/// A cargo that takes its time where a file says so, and makes a std that is none.
const MAKER: &str = "\
[ \"$1\" = build ] || exit 1
echo >>\"$PLACE/calls\"
case $* in *-Zbuild-std*) ;; *) exit 0 ;; esac
while [ -f \"$PLACE/slow\" ]; do sleep 0.05; done
while [ $# -gt 1 ]; do [ \"$1\" = --target ] && target=$2; [ \"$1\" = --target-dir ] && folder=$2; shift; done
mkdir -p \"$folder/$target/release/deps\" && cd \"$folder/$target/release/deps\" && echo std >libstd-0.rlib && echo core >libcore-0.rlib";

fn make(place: &Place, script: &str) -> Command {
    let cargo = fake(place, "fake-cargo", script);
    let mut command = place.command("build");
    command.env("CARGO", cargo).env("PLACE", place.path()).env("GPU_RUN_CACHE", place.path().join("cache"));
    without_flags(&mut command);
    command
}

fn std_in(place: &Place) -> PathBuf {
    let sysroot = Sysroot::of(&place.path().join("cache"), &Rust::find().unwrap(), Panic::Aborts);
    sysroot.path().join("lib/rustlib/wasm32-wasip1/lib")
}

fn wait_for(path: &Path) {
    let began = Instant::now();
    while !path.exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "{} does not appear", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn a_maker_that_is_killed_leaves_nothing_half_made() {
    let place = Place::new().with("slow", "");
    let mut killed = make(&place, MAKER).spawn().unwrap();
    wait_for(&place.path().join("calls"));
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(!std_in(&place).exists());
    // The first cargo goes on: who comes next waits for it, because both would work in the same folder.
    let second = make(&place, MAKER).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert!(!std_in(&place).exists());
    assert_eq!(fs::read_to_string(place.path().join("calls")).unwrap().lines().count(), 1);
    fs::remove_file(place.path().join("slow")).unwrap();
    Ran::from(second.wait_with_output().unwrap()).gives(0, "").says(&["waiting for another gpu-run"]);
    assert!(std_in(&place).join("libstd-0.rlib").is_file());
    assert!(std_in(&place).join("self-contained/libc.a").is_file());
}

fn two_makers_make_one_std() {
    let place = Place::new().with("slow", "");
    let makers: Vec<_> = (0..3).map(|_| make(&place, MAKER).spawn().unwrap()).collect();
    wait_for(&place.path().join("calls"));
    fs::remove_file(place.path().join("slow")).unwrap();
    for maker in makers {
        Ran::from(maker.wait_with_output().unwrap()).gives(0, "");
    }
    // One to make it, and one from each front for its package.
    assert_eq!(fs::read_to_string(place.path().join("calls")).unwrap().lines().count(), 1 + 3);
    let left = fs::read_dir(place.path().join("cache/sysroots")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(left.iter().all(|name| !name.starts_with("building")), "{left:?}");
}

fn a_full_disk_is_said() {
    let place = Place::new();
    let script = "echo warning: of std; echo 'error: No space left on device (os error 28)' >&2; exit 101";
    let ran = Ran::from(make(&place, script).output().unwrap());
    ran.gives(1, "").says(&["std does not build for wasm32-wasip1", "No space left on device"]);
    assert!(!std_in(&place).exists());
    let script = "echo 'in words that nobody expects' >&2; exit 101";
    Ran::from(make(&place, script).output().unwrap()).gives(1, "").says(&["in words that nobody expects"]);
}

fn a_signal_ends_cargo_too() {
    let place = Place::new().with("slow", "");
    let mut stopped = make(&place, MAKER).spawn().unwrap();
    wait_for(&place.path().join("calls"));
    assert!(Command::new("kill").arg(stopped.id().to_string()).status().unwrap().success());
    assert_eq!(stopped.wait().unwrap().signal(), Some(15));
    let folder = place.path().join("cache/sysroots");
    let names = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["lock"]);
    // Who still works holds the lock.
    fs::File::open(folder.join("lock")).unwrap().try_lock().unwrap();
}

fn a_cut_std_is_made_again() {
    let place = Place::new();
    let make = || Ran::from(make(&place, MAKER).output().unwrap()).gives(0, "");
    make().says(&["making std for wasm32-wasip1 from the sources"]);
    fs::write(std_in(&place).join("libstd-0.rlib"), "").unwrap();
    make().says(&["making std for wasm32-wasip1 from the sources"]);
    assert_eq!(fs::read_to_string(std_in(&place).join("libstd-0.rlib")).unwrap(), "std\n");
    assert!(!make().stderr.contains("making std"));
    let mut stats = place.command("cache stats");
    let stats = Ran::from(stats.env("GPU_RUN_CACHE", place.path().join("cache")).output().unwrap());
    assert!(stats.stdout.contains("\nstds: 1, "), "{}", stats.stdout);
}

fn a_cache_that_others_may_write_to_holds_no_std() {
    let place = Place::new();
    for folder in ["cache", "cache/sysroots"] {
        let path = place.path().join(folder);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        let ran = Ran::from(make(&place, MAKER).output().unwrap());
        ran.gives(1, "").says(&["gpu-run cannot keep its std", &format!("{folder}: "), "chmod go-w"]);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    }
}

/// A cargo that knows its configuration, makes a std that is none, and says what else it is asked.
fn telling_cargo() -> String {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    format!(
        "case $* in *'config get'*) exec '{cargo}' \"$@\" ;; *-Zbuild-std*) {{ {MAKER}; }}; exit ;; esac
         echo \"rustc $CARGO_ENCODED_RUSTFLAGS\" | tr '\\037' '|'
         echo \"rustdoc $CARGO_ENCODED_RUSTDOCFLAGS\" | tr '\\037' '|'
         echo \"arguments $*\""
    )
}

fn flags_are_taken_from_where_cargo_takes_them() {
    const BUILD: &str =
        "[build]\nrustflags = [\"-Cbuild=a b\", \"-Cmore\"]\nrustdocflags = \"-Cdoc\"\n[env]\nHERE = \"1\"\n";
    const WASI: &str =
        "[target.'cfg(all(target_os = \"wasi\", not(unix)))']\nrustflags = \"-Cwasi\"\nrunner = \"other\"\n";
    const UNIX: &str = "[target.'cfg(unix)']\nrustflags = \"-Cunix\"\nrunner = \"other\"\n";
    const OWN: &str = "[target.wasm32-wasip1]\nrustflags = [\"-Cown\"]\n";
    const TARGETS: &str = "CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS";
    let config = |parts: &[&str]| parts.concat();
    let place = Place::new().with("with space/.cargo/config.toml", "").with("with space/Cargo.toml", "");
    let here = place.path().join("with space");
    let sysroot = Sysroot::of(&here.join("cache"), &Rust::find().unwrap(), Panic::Aborts);
    let sysroot = sysroot.path().to_str().unwrap();
    let run = |config: &str, variables: &[(&str, &str)], line: &str| {
        fs::write(here.join(".cargo/config.toml"), config).unwrap();
        let mut command = make(&place, &telling_cargo());
        command.current_dir(&here).env("GPU_RUN_CACHE", here.join("cache"));
        command.args(line.split_whitespace()).envs(variables.iter().copied());
        Ran::from(command.output().unwrap())
    };
    for (config, variables, line, expected) in [
        (config(&[]), &[][..], "", ""),
        (config(&[BUILD]), &[], "", "-Cbuild=a b|-Cmore|"),
        (config(&[BUILD, WASI, UNIX]), &[], "", "-Cwasi|"),
        (config(&[BUILD, WASI, OWN]), &[(TARGETS, "-Cvariable -Ctwo")], "", "-Cown|-Cvariable|-Ctwo|-Cwasi|"),
        (config(&[BUILD, OWN]), &[("RUSTFLAGS", "-Ca  -Cb")], "", "-Ca|-Cb|"),
        (config(&[BUILD]), &[("RUSTFLAGS", "")], "", ""),
        (config(&[]), &[("CARGO_ENCODED_RUSTFLAGS", "-Ca b\x1f-Cc"), ("RUSTFLAGS", "-Cd")], "", "-Ca b|-Cc|"),
        (config(&[]), &[], "--config build.rustflags=['-Cline'] -v", "-Cline|"),
    ] {
        let ran = run(&config, variables, line);
        let expected = format!("rustc {expected}--sysroot={sysroot}\n");
        assert!(ran.stdout.contains(&expected), "{config}, {variables:?}: {}\n{}", ran.stdout, ran.stderr);
    }
    // The same std may be named, another may not.
    let named = format!("--sysroot={}", sysroot);
    let ran = run("", &[("CARGO_ENCODED_RUSTFLAGS", &named)], "");
    assert!(ran.stdout.contains(&format!("rustc {named}\n")), "{}\n{}", ran.stdout, ran.stderr);
    run("", &[("RUSTFLAGS", "--sysroot=/a")], "").gives(2, "").says(&[
        "name another sysroot",
        "/a",
        "leave out --sysroot",
    ]);
    // Tests: the flags of rustdoc, and the runner.
    let test = |config: &str| {
        let cargo = fake(&place, "fake-cargo", &telling_cargo());
        fs::write(here.join(".cargo/config.toml"), config).unwrap();
        let mut command = place.command("test");
        command.env("CARGO", cargo).env("PLACE", place.path()).env("GPU_RUN_CACHE", here.join("cache"));
        Ran::from(without_flags(&mut command).current_dir(&here).output().unwrap())
    };
    let ran = test(&config(&[BUILD]));
    assert!(ran.stdout.contains(&format!("rustdoc -Cdoc|--sysroot={sysroot}\n")), "{}\n{}", ran.stdout, ran.stderr);
    let runner = format!("--config target.wasm32-wasip1.runner=[\"{}\"]", env!("CARGO_BIN_EXE_gpu-run"));
    assert!(ran.stdout.contains(&runner), "{}", ran.stdout);
    let ran = test(&config(&[WASI]));
    assert!(ran.stdout.contains("arguments test") && !ran.stdout.contains("runner"), "{}", ran.stdout);
}

fn the_cache_of_a_run_has_its_std() {
    let place = Place::new().with("app.rs", "fn main() {}");
    Ran::from(make(&place, MAKER).output().unwrap()).gives(0, "");
    let rustc = Rust::find().unwrap().rustc;
    let script =
        format!("case $* in -vV | --print*) exec '{}' \"$@\" ;; *) echo \"$@\" >&2; exit 1 ;; esac", rustc.display());
    let rustc = fake(&place, "fake-rustc", &script);
    let ran =
        Ran::from(without_flags(&mut place.command("--cache-dir cache app.rs")).env("RUSTC", &rustc).output().unwrap());
    ran.says(&[&format!("--sysroot={}", place.path().join("cache/sysroots").display())]);
    let ran = Ran::from(without_flags(&mut place.command("app.rs")).env("RUSTC", &rustc).output().unwrap());
    assert!(!ran.stderr.contains("cache/sysroots"), "{}", ran.stderr);
}
