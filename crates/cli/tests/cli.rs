//! The real binary, from the command line to the exit code.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;

use std::process::{Command, Stdio};
use support::{Place, Ran, wat};

/// A command with this body for `_start`, which may call `$write` and `$proc_exit`.
fn command(body: &str) -> String {
    wat!("cli/command").replace("nop", body)
}

// ---- what cannot be run -------------------------------------------------------------------------

#[test]
fn bad_files_are_named_with_the_place_and_the_way_out() {
    let cut = |text: &str, end: usize| wat::parse_str(text).unwrap()[..end].to_vec();
    let with_data = r#"(module (memory 1) (data (i32.const 0) "abcdefghijklmnop"))"#;
    let invalid = wat::parse_str(r#"(module (func (export "_start") (drop (i32.add (i32.const 1) (f32.const 2)))))"#);
    let component = b"\0asm\x0d\0\x01\0".to_vec();
    let cases: Vec<(&str, Vec<u8>, &[&str])> = vec![
        ("empty.wasm", vec![], &["empty.wasm", "it is empty", "hint:"]),
        ("stub.wasm", b"\0as".to_vec(), &["ends after 3 bytes"]),
        ("magic.wasm", b"\0asm".to_vec(), &["cut short", "this file has 4"]),
        ("cut.wasm", cut(with_data, 30), &["cut.wasm is not a valid module", "at offset 0x"]),
        ("text.wasm", b"hello, world".to_vec(), &["it is text", "hint:"]),
        ("component.wasm", component, &["component", "wasm32-wasip1", "wasm-tools component unbundle"]),
        ("component.wat", b"(component (core module))".to_vec(), &["component", "wasm32-wasip1"]),
        ("wrong.wasm", b"\0ASM\x01\0\0\0".to_vec(), &["00 41 53 4d", "`\\0asm`"]),
        ("future.wasm", b"\0asm\x09\0\0\0".to_vec(), &["version 0x9"]),
        ("elf.wasm", b"\x7fELF\x02\x01\x01".to_vec(), &["native (ELF)", "wasm32-wasip1"]),
        ("type.wasm", invalid.unwrap(), &["type.wasm", "type mismatch", "offset"]),
        ("bad.wat", b"(module (func (export \"_start\") (i32.ad)))".to_vec(), &["bad.wat:1:", "i32.ad"]),
        (
            "import.wat",
            br#"(module (import "env" "sin" (func (param f64) (result f64))) (func (export "_start")))"#.to_vec(),
            &["import.wat imports `env.sin` (function, type (f64) -> f64), which nothing provides", "hint:"],
        ),
        (
            "library.wat",
            br#"(module (func (export "add") (param i32 i32) (result i32) (i32.const 0)))"#.to_vec(),
            &["no function `_start`", "add (i32, i32) -> i32", "--invoke add"],
        ),
        ("nothing.wat", b"(module)".to_vec(), &["no function `_start`", "it exports nothing"]),
    ];
    for (name, content, parts) in cases {
        Place::new().with(name, content).run(name).gives(2, "").says(parts).says(&[name]);
    }
}

#[test]
fn a_large_file_of_zeros_is_refused_by_its_beginning() {
    let place = Place::new();
    // All of it is more than there is memory for.
    std::fs::File::create(place.path().join("zeros.wasm")).unwrap().set_len(1 << 40).unwrap();
    place.run("zeros.wasm").gives(2, "").says(&["zeros.wasm", "00 00 00 00"]);
}

#[test]
fn every_prefix_of_a_module_is_refused_or_run_and_nothing_panics() {
    let module = wat::parse_str(r#"(module (memory 1) (func (export "f")) (data (i32.const 0) "abc"))"#).unwrap();
    for end in (0..module.len()).step_by(3) {
        Place::new().with("a.wasm", &module[..end]).run("a.wasm").gives(2, "").says(&["a.wasm"]);
    }
}

#[test]
fn what_is_not_there_is_named() {
    let place = Place::new().with("app.wasm", wat::parse_str("(module)").unwrap()).with("folder/x", "");
    place.run("nope.wasm").gives(2, "").says(&["nope.wasm: no such file"]);
    place.run("app").gives(2, "").says(&["hint: did you mean app.wasm?"]);
    place.run("folder").gives(2, "").says(&["folder is a folder without a Cargo.toml"]);
    place.run("--bin x app.wasm").gives(2, "").says(&["--bin"]);
    let start = Place::new().with("a.wat", r#"(module (func (export "_start")))"#).with("file", "");
    start.run("--dir nope a.wat").gives(2, "").says(&["--dir nope: no such folder"]);
    start.run("--dir file a.wat").gives(2, "").says(&["--dir file: this is a file", "--dir ."]);
}

#[test]
fn usage_errors_exit_2_and_name_the_option() {
    let place = Place::new().with("a.wat", r#"(module (func (export "_start")))"#);
    for (line, parts) in [
        ("--timeout soon a.wat", &["--timeout", "500ms"][..]),
        ("--timeout -1s a.wat", &["--timeout"]),
        ("--max-memory lots a.wat", &["--max-memory", "64MiB"]),
        ("--instances 0 a.wat", &["--instances"]),
        ("--device gpu a.wat", &["--device", "cuda:N"]),
        ("--layout square a.wat", &["--layout", "interleaved"]),
        ("--target turing a.wat", &["sm_75"]),
        ("--stats=xml a.wat", &["json"]),
        ("--nonsense a.wat", &["--nonsense"]),
        ("compile a.wat -o out.exe", &["out.exe", ".ptx or .clif"]),
    ] {
        place.run(line).gives(2, "").says(parts);
    }
    place.run("--invoke ad a.wat").gives(2, "").says(&["no function `ad`", "_start () -> ()"]);
}

#[test]
fn memory_over_the_limit_is_refused() {
    let place = Place::new().with("a.wat", r#"(module (memory 32) (func (export "_start")))"#);
    place.run("--max-memory 1MiB a.wat").gives(2, "").says(&["a.wat starts with 2 MiB", "--max-memory 1 MiB"]);
}

#[test]
fn cuda_is_said_to_be_missing_not_silently_replaced() {
    let place = Place::new().with("a.wat", r#"(module (func (export "_start")))"#);
    place.run("--device cuda a.wat").gives(1, "").says(&["no CUDA device", "--device cpu"]);
}

// ---- commands that run no guest -----------------------------------------------------------------

#[test]
fn help_version_completion_and_devices() {
    let place = Place::new();
    let help = place.run("--help");
    for part in ["Examples:", "runner = \"gpu-run --dir=.\"", "[default: auto]", "--timeout <DURATION>", "explain"] {
        assert!(help.stdout.contains(part), "{part} is not in:\n{}", help.stdout);
    }
    let version = place.run("--version");
    assert_eq!(version.stdout, format!("gpu-run {}\n", env!("CARGO_PKG_VERSION")));
    for shell in ["bash", "zsh", "fish"] {
        assert!(place.run(&format!("completion {shell}")).stdout.contains("gpu-run"));
    }
    let devices = place.run("devices");
    assert_eq!(devices.code, Some(0));
    assert!(devices.stdout.contains("cpu") && devices.stdout.contains("cuda: not available"), "{}", devices.stdout);
}

#[test]
fn a_closed_stdout_ends_quietly() {
    let place = Place::new();
    let mut child = place.command("completion bash").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert!(matches!(ran.code, Some(0 | 141)), "{ran:?}");
    assert_eq!(ran.stderr, "");
}

// ---- guests: these need the engine --------------------------------------------------------------

#[test]
fn only_the_guests_bytes_go_to_stdout() {
    let ran = Place::new().with("a.wat", wat!("cli/hi")).run("a.wat").gives(0, "hi\n");
    assert_eq!(ran.stderr, "hi");
}

#[test]
fn the_exit_code_is_the_guests() {
    for code in [0, 1, 7, 255] {
        let body = format!("(call $proc_exit (i32.const {code}))");
        Place::new().with("a.wat", command(&body)).run("a.wat").gives(code, "");
    }
}

#[test]
fn a_trap_exits_134_and_says_where() {
    let ran = Place::new().with("a.wat", command("unreachable")).run("a.wat").gives(134, "");
    ran.says(&["error: a.wat trapped: unreachable", "at offset 0x"]);
}

#[test]
fn a_timeout_ends_a_loop_with_124() {
    let ran = Place::new().with("a.wat", command("(loop $again (br $again))")).run("--timeout 300ms a.wat");
    ran.gives(124, "").says(&["error: a.wat did not finish within 300 ms"]);
}

#[test]
fn a_timeout_ends_what_writes_to_a_pipe_that_nobody_reads() {
    let endless = "(loop $again (call $write (i32.const 1) (i32.const 0) (i32.const 65536)) (br $again))";
    let place = Place::new().with("a.wat", command(endless));
    for line in ["--timeout 300ms a.wat", "--timeout 300ms --instances 3 a.wat"] {
        // Both pipes are open, and full at some time: what is to be said cannot be, either.
        let mut child = place.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(124), "{line}");
    }
}

#[test]
fn arguments_reach_the_guest_as_they_are() {
    let place = Place::new().with("dir/a.wat", wat!("cli/args"));
    place.run("dir/a.wat --version -v compile --dir=x").gives(0, "a.wat\0--version\0-v\0compile\0--dir=x\0");
    place.run("run dir/a.wat run").gives(0, "a.wat\0run\0");
}

#[test]
fn the_environment_is_what_was_given_and_the_instances_number() {
    let place = Place::new().with("a.wat", wat!("cli/environ"));
    place.run("--env A=1 --env NO_SUCH_THING a.wat").gives(0, "A=1\0GPU_RUN_INSTANCE=0\0");
    place.run("--env GPU_RUN_INSTANCE=5 a.wat").gives(0, "GPU_RUN_INSTANCE=5\0");
}

#[test]
fn instances_write_in_order_and_are_summed_up() {
    let place = Place::new().with("a.wat", wat!("cli/show_instance"));
    let expected: String = (0..8).map(|i| format!("GPU_RUN_INSTANCE={i}\n")).collect();
    place.run("--instances 8 a.wat").gives(0, &expected).says(&["gpu-run: 8 instances: 8 exited 0"]);
    let ran = place.run("--instances 8 --unordered a.wat");
    let mut lines: Vec<_> = ran.stdout.split_inclusive('\n').collect();
    lines.sort();
    assert_eq!(lines.concat(), expected);
}

#[test]
fn the_first_failure_in_instance_order_is_the_exit_code() {
    let place = Place::new().with("a.wat", wat!("cli/third_exits_fourth_traps"));
    let ran = place.run("--instances 5 a.wat");
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    ran.says(&[
        "error: a.wat, instance 3, trapped: unreachable",
        "gpu-run: 5 instances: 3 exited 0, 1 exited 3, 1 trapped (first: instance 3: unreachable)",
    ]);
}

#[test]
fn every_instance_reads_the_same_stdin() {
    let place = Place::new().with("a.wat", wat!("cli/cat"));
    place.run_with_input("--timeout 600s a.wat", b"one\ntwo").gives(0, "one\ntwo");
    place.run_with_input("--timeout 600s --instances 3 a.wat", b"one\ntwo\n").gives(0, &"one\ntwo\n".repeat(3));
    let both = place.run("--timeout 600s -");
    both.gives(2, "").says(&["stdin", "empty"]);
}

#[test]
fn invoke_passes_arguments_and_prints_results() {
    let place = Place::new().with("a.wat", wat!("cli/library"));
    place.run("--invoke add a.wat 2 3").gives(0, "5\n");
    place.run("--invoke add a.wat -1 0xffffffff").gives(0, "-2\n");
    place.run("--invoke swap a.wat -9 2.5").gives(0, "2.5\n-9\n");
    place.run("--invoke half a.wat 1").gives(0, "0.5\n");
    place.run("--invoke null a.wat").gives(0, "null\n");
    let vector = "0x00000004000000030000000200000001\n7\n";
    place.run("--invoke vector a.wat 7 i32x4:1,2,3,4").gives(0, vector);
    place.run("--invoke add --instances 2 a.wat 2 3").gives(0, "5\n5\n");
    place.run("--invoke add a.wat 2").gives(2, "").says(&["takes 2 arguments (i32, i32), not 1"]);
    place.run("--invoke add a.wat 2 x").gives(2, "").says(&["argument 2 of `add`, `x`, is not i32"]);
    place.run("--invoke ad a.wat 2 3").gives(2, "").says(&["did you mean `add`?"]);
}

#[test]
fn stats_go_to_stderr_as_text_or_json() {
    let place = Place::new().with("a.wat", wat!("cli/show_instance"));
    let text = place.run("--stats a.wat").gives(0, "GPU_RUN_INSTANCE=0\n");
    text.says(&["gpu-run: 1 instance: 1 exited 0", "gpu-run: device   cpu", "1 instance in 1 launch"]);
    let json = place.run("--stats=json --instances 2 a.wat");
    let last = json.stderr.lines().last().unwrap();
    let object: serde_json::Value = serde_json::from_str(last).unwrap_or_else(|e| panic!("{e}: {last}"));
    assert_eq!(object["instances"], 2);
    assert_eq!(object["exits"]["0"], 2);
}

/// See `gpu_run_device::scarce`: 1 GiB, and stacks of 8 KiB would take half of it.
const LITTLE_MEMORY: (&str, &str) = ("GPU_RUN_TEST_SCARCE", "1024,65536,128");

#[test]
fn a_call_stack_that_the_device_has_no_memory_for_is_the_cpus() {
    let place = Place::new().with("a.wat", wat!("cli/deep_calls")).with("in", "a\nb\n");
    let ran = |line: &str| Ran::from(place.command(line).env(LITTLE_MEMORY.0, LITTLE_MEMORY.1).output().unwrap());
    assert_eq!(ran("--device cpu a.wat").gives(0, "ok\n").stderr, "");
    ran("--device cpu --stats a.wat")
        .gives(0, "ok\n")
        .says(&["1 instance (1 on the cpu: the device has too little memory"]);
    let map = ran("map --device cpu a.wat -i in").gives(0, "ok\nok\n");
    map.says(&[
        "2 records, 0 failed",
        "2 records ran on the cpu: the device has too little memory for their call stacks",
    ]);
}

#[test]
fn a_guest_whose_reader_left_ends_quietly() {
    let body = "(loop $again (call $write (i32.const 1) (i32.const 100) (i32.const 1000)) (br $again))";
    let place = Place::new().with("a.wat", command(body));
    for line in ["--timeout 600s a.wat", "--timeout 600s --instances 2 a.wat"] {
        let mut child = place.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(141), ""), "{line}");
    }
}

#[test]
fn compile_writes_ptx_and_clif() {
    let place = Place::new().with("a.wat", wat!("cli/show_instance"));
    let ptx = place.run("compile a.wat -o -");
    assert!(ptx.code == Some(0) && ptx.stdout.contains(".target sm_75"), "{ptx:?}");
    let ptx = place.run("compile --target sm_80 a.wat -o -");
    assert!(ptx.stdout.contains(".target sm_80"), "{ptx:?}");
    place.run("compile a.wat").gives(0, "");
    assert!(std::fs::read_to_string(place.path().join("a.ptx")).unwrap().contains(".entry"));
    place.run("compile a.wat -o b.clif").gives(0, "");
    assert!(std::fs::read_to_string(place.path().join("b.clif")).unwrap().contains("block0"));
}

#[test]
fn explain_shows_the_three_forms_of_a_function() {
    let place = Place::new().with("a.wat", wat!("cli/show_instance"));
    let ran = place.run("explain a.wat main");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for part in ["main (function", "-- wasm --", "-- CLIF --", "block0", "-- PTX --", "call"] {
        assert!(ran.stdout.contains(part), "{part} is not in:\n{}", ran.stdout);
    }
    assert!(ran.stdout.contains("(func $main (") && !ran.stdout.contains("MemArg"), "{}", ran.stdout);
    place.run("explain a.wat mian").gives(2, "").says(&["`main`"]);
    place.run("explain a.wat 99").gives(2, "").says(&["no function 99"]);
}

#[test]
fn explain_shows_the_build_that_map_runs() {
    let place =
        Place::new().with("a.wat", wat!("cli/show_instance")).with("lib.wat", r#"(module (func (export "f")))"#);
    let [run, map] = ["run", "map"].map(|build| place.run(&format!("explain a.wat main --build {build}")));
    assert_eq!((run.code, map.code), (Some(0), Some(0)), "{}{}", run.stderr, map.stderr);
    assert_eq!(run.stdout, place.run("explain a.wat main").stdout);
    assert_ne!(run.stdout, map.stdout);
    place.run("explain lib.wat --build map").gives(2, "").says(&["no function `_start`"]);
}

#[test]
fn a_rust_file_and_a_package_are_built_and_run() {
    let program = r#"fn main() { println!("{:?}", std::env::args().collect::<Vec<_>>()); }"#;
    let manifest = "[package]\nname = \"two\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";
    let place = Place::new()
        .with("my-prog.rs", program)
        .with("bad.rs", "fn main() { nonsense }")
        .with("pkg/Cargo.toml", manifest)
        .with("pkg/src/bin/a.rs", program)
        .with("pkg/src/bin/b.rs", program);
    let ran = place.run("my-prog.rs x");
    if ran.stderr.contains("rustup target add wasm32-wasip1") {
        return; // No std for the target here: what to type is all that can be asked for.
    }
    ran.gives(0, "[\"my-prog.wasm\", \"x\"]\n");
    place.run("bad.rs").gives(2, "").says(&["bad.rs does not compile", "nonsense"]);
    place.run("pkg").gives(2, "").says(&["`a`, `b`", "--bin NAME"]);
    place.run("--bin c pkg").gives(2, "").says(&["no binary `c`"]);
    place.run("--bin b pkg --bin a").gives(0, "[\"b.wasm\", \"--bin\", \"a\"]\n");
}

#[test]
fn memory_that_the_system_does_not_give_is_no_lack_of_free_memory() {
    let place = Place::new().with("a.wat", r#"(module (memory 60000) (func (export "_start")))"#);
    let program = env!("CARGO_BIN_EXE_gpu-run");
    let line = format!("ulimit -v 3000000; exec '{program}' --device cpu --no-cache a.wat");
    let ran = Ran::from(Command::new("sh").args(["-c", &line]).current_dir(place.path()).output().unwrap());
    let ran = ran.gives(2, "").says(&["a.wat: one instance does not fit on cpu", "ulimit -v"]);
    assert!(!ran.stderr.contains("are free"), "{}", ran.stderr);
}

#[test]
fn a_shared_buffer_has_words() {
    let place = Place::new().with("a.wat", r#"(module (func (export "_start")))"#);
    for size in ["0", "4", "12", "3G"] {
        let ran = place.run(&format!("--device cpu --shared-buffer {size} a.wat")).gives(2, "");
        ran.says(&["give a multiple of 8 bytes, at least 8 and at most 2 GiB"]);
    }
    place.run("--device cpu --shared-buffer 8 --time -2.5 a.wat").gives(0, "");
}

#[cfg(not(feature = "bench"))]
#[test]
fn bench_left_out_of_the_build_says_how_to_have_it() {
    Place::new().run("bench").gives(1, "").says(&["built without `bench`", "--features bench"]);
}

#[test]
fn a_reactor_is_initialized_before_it_is_called() {
    let initialize = "(global.set $n (i32.add (global.get $n) (i32.const 41)))";
    let other = |body: &str| wat!("cli/reactor").replace(initialize, body);
    let place = Place::new()
        .with("a.wat", wat!("cli/reactor"))
        .with("trap.wat", other("unreachable"))
        .with("both.wat", other("nop) (start $i"))
        .with("takes.wat", other("(param i32)"));
    place.run("--invoke get --instances 2 a.wat").gives(0, "42\n42\n");
    place.run("--invoke _initialize a.wat").gives(0, "");
    place.run("--invoke get trap.wat").gives(134, "").says(&["unreachable", "in i (function 1)"]);
    place.run("--invoke get both.wat").gives(2, "").says(&["a start function and an `_initialize`"]);
    place.run("--invoke get takes.wat").gives(2, "").says(&["`_initialize` has type (i32) -> ()"]);
}
