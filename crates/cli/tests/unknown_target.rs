//! Programs for wasm32-unknown-unknown: modules without `_start` that export a `main`.
//!
//! Tests that need such a program of rustc's compile one; where rustc has no std for the target they are reported as ignored.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;
#[path = "support/with_rust.rs"]
mod with_rust;

use std::process::Command;
use support::{Place, wat};

fn main() {
    with_rust::run("wasm32-unknown-unknown", &ANYWHERE, &WITH_RUST);
}

const ANYWHERE: [(&str, fn()); 5] = [
    ("main::its_result_is_the_exit_code", its_result_is_the_exit_code),
    ("main::of_another_type_is_not_called", of_another_type_is_not_called),
    ("main::a_command_has_none", a_command_has_none),
    ("main::instances_share_one_note", instances_share_one_note),
    ("main::map_refuses_it", map_refuses_it),
];

const WITH_RUST: [(&str, fn()); 2] = [
    ("rust::main_runs_and_returns_its_code", main_runs_and_returns_its_code),
    ("rust::a_panic_is_a_trap", a_panic_is_a_trap),
];

const NOTE: &str = "so it can print nothing";

fn its_result_is_the_exit_code() {
    let place = Place::new().with("c.wat", wat!("cli/main_of_c")).with("alone.wat", wat!("cli/main_alone"));
    place.run("--device cpu c.wat").gives(7, "").says(&[
        "c.wat imports nothing of WASI, so it can print nothing",
        "wasm32-wasip1",
        "gpu-run build",
    ]);
    place.run("--device cpu c.wat its own arguments").gives(7, "");
    place.run("--device cpu alone.wat").gives(3, "");
    // `--invoke` prints the result, as for any other function.
    let invoked = place.run("--device cpu --invoke main c.wat 0 0").gives(0, "7\n");
    assert!(!invoked.stderr.contains(NOTE), "{}", invoked.stderr);
    let traps = r#"(module (func $f unreachable) (func (export "main") (result i32) call $f i32.const 0))"#;
    Place::new().with("a.wat", traps).run("--device cpu a.wat").gives(134, "").says(&["a.wat trapped: unreachable"]);
}

fn of_another_type_is_not_called() {
    for ty in ["", "(param i32) (result i32)", "(result i64)", "(param i32 i64) (result i32)", "(result i32 i32)"] {
        let module = format!(r#"(module (func (export "main") {ty} unreachable))"#);
        let ran = Place::new().with("a.wat", module).run("--device cpu a.wat").gives(2, "");
        ran.says(&["exports no function `_start`", "--invoke main"]);
    }
    let imports = r#"(module (import "env" "sin" (func)) (func (export "main") (result i32) i32.const 0))"#;
    Place::new().with("a.wat", imports).run("--device cpu a.wat").gives(2, "").says(&["imports `env.sin`"]);
}

fn a_command_has_none() {
    let both = r#"(module (func (export "_start")) (func (export "main") (result i32) unreachable))"#;
    let ran = Place::new().with("a.wat", both).run("--device cpu a.wat").gives(0, "");
    assert!(!ran.stderr.contains(NOTE), "{}", ran.stderr);
    let prints = r#"(module (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
        (memory (export "memory") 1) (func (export "main") (result i32) call $yield))"#;
    let ran = Place::new().with("a.wat", prints).run("--device cpu a.wat").gives(0, "");
    assert!(!ran.stderr.contains(NOTE), "it imports functions: {}", ran.stderr);
}

fn instances_share_one_note() {
    let place = Place::new().with("a.wat", wat!("cli/main_of_c"));
    let ran = place.run("--device cpu --instances 40 a.wat").gives(7, "").says(&["40 instances: 40 exited 7"]);
    assert_eq!(ran.stderr.matches(NOTE).count(), 1, "{}", ran.stderr);
}

fn map_refuses_it() {
    let place = Place::new().with("a.wat", wat!("cli/main_of_c"));
    let ran = place.run_with_input("map --device cpu a.wat", b"1\n2\n").gives(2, "");
    ran.says(&["exports no function `_start`", "neither reads nor prints", "wasm32-wasip1"]);
}

fn built(source: &str) -> Place {
    let place = Place::new().with("app.rs", source);
    let mut rustc = Command::new(with_rust::rustc());
    rustc.args(["--target", "wasm32-unknown-unknown", "--edition", "2024", "-O", "app.rs", "-o", "app.wasm"]);
    assert!(rustc.current_dir(place.path()).status().unwrap().success());
    place
}

fn main_runs_and_returns_its_code() {
    let place = built(
        "use std::process::ExitCode;\n\
         fn main() -> ExitCode {\n\
             println!(\"nobody sees this\");\n\
             let words: Vec<String> = std::env::args().collect();\n\
             let squares: Vec<u8> = (1..=3).map(|n| n * n).collect();\n\
             ExitCode::from(squares.iter().sum::<u8>() + words.len() as u8)\n\
         }",
    );
    place
        .run("--device cpu app.wasm one two")
        .gives(14, "")
        .says(&["app.wasm imports nothing of WASI, so it can print nothing"]);
}

fn a_panic_is_a_trap() {
    let place = built("fn main() { std::env::args().nth(5).unwrap(); }");
    place.run("--device cpu app.wasm").gives(134, "").says(&["app.wasm trapped: unreachable"]);
}
