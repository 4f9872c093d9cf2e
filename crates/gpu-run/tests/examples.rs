//! The examples run, and print what they should.

#![allow(clippy::unwrap_used)] // In a test, that is an assertion.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn root() -> PathBuf {
    let root = std::env::var_os("GPU_RUN_TEST_ROOT").map(PathBuf::from);
    root.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
}

/// A program of the folder `examples`. `scripts/build-examples` makes them, and `scripts/test` calls that.
fn program(name: &str) -> PathBuf {
    let file = root().join("examples/target/wasm32-wasip1/release").join(name).with_extension("wasm");
    assert!(file.is_file(), "{} is not built: scripts/build-examples", file.display());
    file
}

/// Runs an example, which Cargo has built beside this test.
fn run(example: &str, args: &[&str], input: &str) -> String {
    let own = std::env::current_exe().unwrap();
    let example = own.parent().unwrap().parent().unwrap().join("examples").join(example);
    let mut command = Command::new(example);
    command.args(args).env("GPU_RUN_CACHE", "off").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn command_shows_what_a_program_printed() {
    let file = program("line-filter");
    let printed = run("command", &[file.to_str().unwrap(), "-n", "b"], "abc\nxyz\nabba\n");
    assert!(printed.contains("abc") && printed.contains("abba") && !printed.contains("xyz"), "{printed}");
    assert!(printed.ends_with("exited with code 0\n"), "{printed}");
}

#[test]
fn host_function_fills_the_basket() {
    let printed = run("host_function", &[], "");
    assert!(printed.contains("10 pears cost 4\n"), "{printed}");
    assert!(printed.ends_with("in the basket: 1 pears, 5 pears, 10 pears\n"), "{printed}");
}

#[test]
fn map_gives_every_record_its_output() {
    let file = program("sha256");
    let printed = run("map", &[file.to_str().unwrap(), "2000"], "");
    // `echo record 1999 | sha256sum`
    let digest = "65f7296ece472b0b4466f70cc0bab234d39e3aaf71609e674a8b0279cd898e78";
    assert!(printed.contains(digest), "{printed}");
    assert!(printed.contains("2000 records") && printed.contains(" 0 failed"), "{printed}");
}

#[test]
fn column_finds_the_longest_way() {
    let printed = run("column", &["100000"], "");
    assert_eq!(printed, "up to 100000, 77031 takes the most steps: 350\n");
}

#[test]
#[cfg(feature = "arrow")]
fn arrow_finds_the_smallest_digest() {
    let file = root().join("tests/arrow/target/wasm32-wasip1/release/arrow_functions.wasm");
    assert!(file.is_file(), "{} is not built: scripts/build-arrow", file.display());
    let printed = run("arrow", &[file.to_str().unwrap(), "20000"], "");
    // The first line of `for i in {0..19999}; do printf "row $i" | sha256sum; done | sort`
    let digest = "0007893af6010800c1965b577de31e356b1dbe0a33ddfa86ccad0d57347b6436";
    assert_eq!(printed, format!("the smallest digest of 20000 rows: {digest}\n"));
}

#[test]
fn service_answers_every_task() {
    let file = program("sha256");
    let printed = run("service", &[file.to_str().unwrap(), "300"], "");
    assert!(printed.starts_with("300 requests answered"), "{printed}");
}
