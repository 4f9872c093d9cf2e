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
        trial("cuda::several_asked_for_are_an_error_that_names_the_wrong_one", several),
        trial("cuda::all_of_none_is_an_error", all_of_none),
        trial("cuda::devices_lists_each_card", listed),
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

/// Which command it is decides about the exit code: of `map`, another machine may have more cards.
fn several() {
    for (devices, cards, sm, parts) in [
        ("cuda:0,7", "1", "90", ["--device cuda:0,7: ", "cuCtxCreate_v2"]),
        ("cuda:7,0", "1", "90", ["--device cuda:7,0: no device cuda:7", "there is one GPU, cuda:0"]),
        ("cuda:5,1", "3", "90", ["no device cuda:5", "there are 3 GPUs, cuda:0 to cuda:2"]),
        ("cuda:0,2", "3", "61", ["--device cuda:0,2: cuda:0 (Test card) is too old", "sm_61"]),
        // Cards that are too old are left out, but one has to be there that works.
        ("cuda:all", "3", "90,61,90", ["cuda:1 (Test card) is too old", "--device cuda:all: "]),
    ] {
        let ran = run(&format!("map a.wat --device {devices}"), "13000", cards, sm);
        ran.gives(75, "").says(&parts);
    }
    let ran = run("--device cuda:all a.wat", "13000", "2", "90");
    ran.gives(2, "").says(&["--device cuda:all: only `gpu-run map` runs on several devices", "--device cuda:0"]);
    let ran = run("map a.wat --device cuda:1,1", "13000", "2", "90");
    ran.gives(2, "").says(&["`cuda:1,1` names cuda:1 twice"]);
}

fn all_of_none() {
    for (version, cards, sm, reason) in [
        ("11040", "2", "90", "driver is too old"),
        ("13000", "0", "90", "finds no GPU"),
        ("13000", "2", "61", "cuda:0 (Test card) is too old"),
    ] {
        let ran = run("map a.wat --device cuda:all", version, cards, sm);
        ran.gives(75, "").says(&["error: --device cuda:all: ", reason, "--device cpu"]);
    }
}

fn listed() {
    let ran = run("devices", "13000", "3", "90,61,80");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let cards: Vec<_> = ran.stdout.lines().filter(|line| line.starts_with("cuda:")).collect();
    assert_eq!(cards.len(), 2, "{}", ran.stdout);
    assert!(cards[0].starts_with("cuda:0 ") && cards[0].contains("sm_90"), "{}", ran.stdout);
    assert!(cards[1].starts_with("cuda:2 ") && cards[1].contains("sm_80"), "{}", ran.stdout);
}
