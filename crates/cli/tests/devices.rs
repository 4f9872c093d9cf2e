//! Which device `--device` gives, and what is said about it, with a driver made for the purpose in the real one's place.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;

use libtest_mimic::{Arguments, Failed, Trial};
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;
use support::{Place, Ran};
use tempfile::TempDir;

const PROGRAM: &str = r#"(module (func (export "_start")))"#;

/// A folder with `libcuda.so.1`.
static DRIVER: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../device/tests/driver/fake.rs");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command.args(["--edition", "2024", "--crate-type", "cdylib", "--crate-name", "driver", "-o"]);
    let status = command.arg(folder.path().join("libcuda.so.1")).arg(source).status().unwrap();
    assert!(status.success(), "the test's driver does not compile");
    folder
});

fn main() {
    let args = Arguments::from_args();
    let nvidia = ["/dev/nvidia0", "/proc/driver/nvidia"].iter().any(|path| Path::new(path).exists());
    if nvidia {
        eprintln!("ignored: this machine has an NVIDIA card");
    }
    let trial = |name: &str, test: fn()| {
        Trial::test(name, move || -> Result<(), Failed> {
            test();
            Ok(())
        })
    };
    let trials = vec![
        trial("auto::says_nothing_where_nothing_of_nvidias_is", silent).with_ignored_flag(nvidia),
        trial("auto::says_in_one_line_that_the_driver_is_too_old", old_driver),
        trial("auto::says_in_one_line_that_the_card_is_too_old", old_card),
        trial("auto::says_in_one_line_that_there_is_no_card", no_card),
        trial("auto::says_in_one_line_that_the_card_does_not_work", broken_card),
        trial("cuda::asked_for_by_name_is_an_error", by_name),
    ];
    libtest_mimic::run(&args, trials).exit();
}

/// A driver of this CUDA version, with so many cards.
fn run(line: &str, version: &str, cards: &str, sm: &str) -> Ran {
    let place = Place::new().with("a.wat", PROGRAM);
    let mut command = place.command(line);
    command.env("LD_LIBRARY_PATH", DRIVER.path());
    command.envs([("FAKE_VERSION", version), ("FAKE_GPUS", cards), ("FAKE_SM", sm)]);
    command.output().unwrap().into()
}

#[track_caller]
fn runs_on_cpu_and_says(ran: Ran, parts: &[&str]) {
    assert_eq!((ran.code, ran.stderr.lines().count()), (Some(0), 1), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("gpu-run: running on cpu: "), "{}", ran.stderr);
    ran.says(parts);
}

fn silent() {
    let place = Place::new().with("a.wat", PROGRAM);
    let ran = place.run("a.wat").gives(0, "");
    // A driver without a card is something to be told of.
    if !ran.stderr.contains("finds no GPU") {
        assert_eq!(ran.stderr, "");
        place.run("-v a.wat").says(&["running on cpu: no NVIDIA driver is installed"]);
    }
}

fn old_driver() {
    runs_on_cpu_and_says(run("a.wat", "11040", "1", "90"), &["driver is too old", "CUDA 11.4", "11.8 or newer"]);
}

fn old_card() {
    runs_on_cpu_and_says(run("a.wat", "13000", "2", "61"), &["cuda:0 (Test card) is too old", "sm_61", "sm_70"]);
}

fn no_card() {
    runs_on_cpu_and_says(run("a.wat", "13000", "0", "90"), &["finds no GPU"]);
}

fn broken_card() {
    runs_on_cpu_and_says(run("a.wat", "13000", "1", "90"), &["cuCtxCreate_v2"]);
}

fn by_name() {
    for (version, cards, sm, reason) in
        [("11040", "1", "90", "too old"), ("13000", "1", "61", "sm_61"), ("13000", "1", "90", "no device cuda:3")]
    {
        let device = if reason.contains("cuda:3") { "cuda:3" } else { "cuda" };
        let ran = run(&format!("--device {device} a.wat"), version, cards, sm);
        ran.gives(1, "").says(&["error: no CUDA device", reason, "--device cpu"]);
        // Another machine may have one: whoever schedules maps is told that it is worth trying.
        let ran = run(&format!("map a.wat --device {device}"), version, cards, sm);
        ran.gives(75, "").says(&["error: no CUDA device", reason]);
    }
}
