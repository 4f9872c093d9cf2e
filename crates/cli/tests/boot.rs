//! `gpu-run boot` and `gpu-run top`: the real binary with a machine on `cpu`, killed and resumed, recorded and replayed.
//!
//! `GPU_RUN_KILLS=200` kills it that often (default 4, or 20 with `scripts/test --all`).
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use support::{Place, Ran};
use tempfile::TempDir;

/// Ends what hangs.
const PATIENCE: Duration = Duration::from_secs(300);

/// One cache for all: the kernel is compiled once.
static CACHE: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

fn command(place: &Place, line: &str) -> Command {
    let mut command = place.command(&format!("boot --device cpu --threads 64 {line}"));
    command.env("GPU_RUN_CACHE", CACHE.path()).env("XDG_RUNTIME_DIR", place.path());
    command
}

fn boot(place: &Place, line: &str) -> Ran {
    Ran::from(command(place, line).output().unwrap())
}

/// What `--stats=json` says.
#[track_caller]
fn stats(ran: &Ran) -> Value {
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(ran.stdout.trim()).unwrap_or_else(|error| panic!("{error}: {}", ran.stdout))
}

fn start(place: &Place, line: &str) -> Child {
    let mut command = command(place, line);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn stats_are_one_object_with_the_keys_that_are_promised() {
    let stats = stats(&boot(&Place::new(), "--for 1s --load 5000 --stats=json"));
    let keys: Vec<&str> = stats.as_object().unwrap().keys().map(String::as_str).collect();
    let promised = [
        "heap_bytes",
        "heartbeat_gap_ms",
        "host_cpu",
        "image_hash",
        "lanes_active",
        "launches",
        "load_gap_ms",
        "loads",
        "ticks",
        "waits",
    ];
    assert_eq!(keys, promised);
    assert_eq!((stats["launches"].as_u64(), stats["waits"].as_u64()), (Some(0), Some(0)));
    // How many depends on who else uses the cores.
    assert!(stats["ticks"].as_u64().unwrap() > 0, "{stats}");
    assert!(stats["host_cpu"].as_f64().unwrap() < 0.5, "{stats}");
    assert_eq!(stats["image_hash"].as_str().unwrap().len(), 64);
}

#[test]
fn a_log_is_replayed_to_the_same_hash_under_another_strategy() {
    let place = Place::new();
    let first = stats(&boot(&place, "--for 1s --load 3000 --record log --stats=json"));
    let again = stats(&boot(&place, "--replay log --strategy redispatch --grid 2 --rate 0 --stats=json"));
    assert_eq!((&first["image_hash"], &first["ticks"]), (&again["image_hash"], &again["ticks"]));
}

#[test]
fn bad_files_are_refused_with_their_names() {
    let place = Place::new().with("text", "no checkpoint at all");
    let refused = boot(&place, "--resume text --for 1s");
    assert_eq!(refused.code, Some(2));
    refused.says(&["text cannot be used", "it is not a checkpoint"]);
    let refused = boot(&place, "--replay text");
    assert_eq!(refused.code, Some(2));
    refused.says(&["text cannot be used", "it is not a machine's log"]);
    let missing = boot(&place, "--resume nowhere --for 1s");
    assert_eq!(missing.code, Some(1));
    missing.says(&["nowhere"]);
    let refused = boot(&place, "--kernel text --for 1s");
    assert_eq!(refused.code, Some(2));
    refused.says(&["text cannot be used as the machine's code"]);
    boot(&place, "--strategy sideways --for 1s").says(&["resident"]);
}

#[test]
fn a_damaged_log_is_not_replayed_and_a_torn_one_as_far_as_it_goes() {
    let place = Place::new();
    let path = place.path().join("log");
    let whole = stats(&boot(&place, "--for 1s --load 3000 --record log --checkpoint-every 300ms --stats=json"));
    let log = std::fs::read(&path).unwrap();
    let checkpoint = std::fs::read(place.path().join("machine.ckpt")).unwrap();
    for at in [3, 9, 17, log.len() / 2, log.len() - 1] {
        let mut bad = log.clone();
        bad[at] ^= 0x10;
        std::fs::write(&path, &bad).unwrap();
        let refused = boot(&place, "--replay log");
        assert_eq!(refused.code, Some(1), "byte {at}: {}", refused.stderr);
        refused.says(&["log cannot be used", "damaged"]);
        // Nor is what was recorded before the damage cut off.
        let refused = boot(&place, "--record log --resume machine.ckpt --for 1s");
        assert_eq!(refused.code, Some(1), "byte {at}: {}", refused.stderr);
        assert_eq!(std::fs::read(&path).unwrap(), bad);
    }
    // As if it had been killed while it wrote.
    std::fs::write(&path, &log[..log.len() - 7]).unwrap();
    let torn = boot(&place, "--replay log --rate 0 --stats=json");
    assert!(torn.stderr.contains("bytes of an unfinished record"), "{}", torn.stderr);
    assert!(stats(&torn)["ticks"].as_u64() <= whole["ticks"].as_u64());
    let mut bad = checkpoint.clone();
    bad[checkpoint.len() / 2] ^= 1;
    std::fs::write(place.path().join("machine.ckpt"), bad).unwrap();
    let refused = boot(&place, "--resume machine.ckpt --for 1s");
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    refused.says(&["machine.ckpt cannot be used", "damaged"]);
}

#[test]
fn a_folder_that_others_may_use_is_not_published_in() {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    let place = Place::new();
    let folder = place.path().join("gpu-run");
    std::fs::DirBuilder::new().mode(0o700).create(&folder).unwrap();
    let top = || Ran::from(place.command("top --once").env("XDG_RUNTIME_DIR", place.path()).output().unwrap());
    top().says(&["no machine is running"]);
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    let booted = boot(&place, "--for 1s");
    assert_eq!(booted.code, Some(0), "{}", booted.stderr);
    booted.says(&["`gpu-run top` cannot show this machine", "0777", "XDG_RUNTIME_DIR"]);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    let refused = top();
    assert_eq!(refused.code, Some(1));
    refused.says(&["0777", "set XDG_RUNTIME_DIR"]);
    // Without one it is among temporary files, where anybody can have made it.
    let among = place.path().join(format!("gpu-run-{}", rustix::process::geteuid().as_raw()));
    std::os::unix::fs::symlink("gpu-run", &among).unwrap();
    let mut top = place.command("top --once");
    let refused = Ran::from(top.env_remove("XDG_RUNTIME_DIR").env("TMPDIR", place.path()).output().unwrap());
    assert_eq!(refused.code, Some(1));
    refused.says(&["it is not a folder", "set XDG_RUNTIME_DIR"]);
}

#[test]
fn a_signal_ends_it_in_good_order_and_top_sees_it_before() {
    let place = Place::new();
    let child = start(&place, "--load 2000 --stats=json");
    let top = || {
        let mut top = place.command("top --once");
        Ran::from(top.env("XDG_RUNTIME_DIR", place.path()).output().unwrap())
    };
    let since = Instant::now();
    let seen = loop {
        let seen = top();
        if seen.code == Some(0) {
            break seen;
        }
        assert!(since.elapsed() < PATIENCE, "{}", seen.stderr);
        std::thread::sleep(Duration::from_millis(100));
    };
    assert!(seen.stdout.contains("resident on cpu") && seen.stdout.contains("PHASE"), "{}", seen.stdout);
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT).unwrap();
    let ended = Ran::from(child.wait_with_output().unwrap());
    assert!(stats(&ended)["ticks"].as_u64().unwrap() > 0);
    top().says(&["no machine is running"]);
}

#[test]
fn new_code_is_loaded_at_a_tick_and_when_a_signal_asks_for_it() {
    let place = Place::new();
    let kernel = Path::new(env!("CARGO_MANIFEST_DIR")).join("../machine/kernel-debug.wasm");
    std::fs::copy(&kernel, place.path().join("k.wasm")).unwrap();
    let mut child = start(&place, "--load 2000 --kernel k.wasm --reload-at 30,60 --record log --stats=json");
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let top = || Ran::from(place.command("top --once").env("XDG_RUNTIME_DIR", place.path()).output().unwrap()).stdout;
    wait_until("two loads", || top().contains("loaded 2 times"));
    // What cannot be loaded changes nothing.
    std::fs::write(place.path().join("k.wasm"), "no module").unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::HUP).unwrap();
    let mut said = String::new();
    while !said.contains("continues with the old code") {
        assert!(stderr.read_line(&mut said).unwrap() > 0, "it ended: {said}");
    }
    std::fs::copy(&kernel, place.path().join("k.wasm")).unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::HUP).unwrap();
    wait_until("a third load", || top().contains("loaded 3 times"));
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT).unwrap();
    stderr.read_to_string(&mut said).unwrap();
    let ended = Ran { stderr: said, ..Ran::from(child.wait_with_output().unwrap()) };
    let first = stats(&ended);
    assert_eq!((first["loads"].as_u64(), first["launches"].as_u64()), (Some(3), Some(3)), "{}", ended.stderr);
    ended.says(&[
        "new code runs from tick",
        "continues with the old code: k.wasm cannot be used as the machine's code",
        "it is not a wasm module",
    ]);
    let again = stats(&boot(&place, "--replay log --rate 0 --stats=json"));
    assert_eq!((&first["image_hash"], &first["ticks"]), (&again["image_hash"], &again["ticks"]));
}

#[track_caller]
fn wait_until(what: &str, so: impl Fn() -> bool) {
    let since = Instant::now();
    while !so() {
        assert!(since.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The kernel with another number in the place of one that it mixes with: objects that are worked on come to something else.
fn other_kernel() -> Vec<u8> {
    let number = [0x41, 0xeb, 0x94, 0xaf, 0xaf, 0x78];
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../machine/kernel.wasm");
    let mut wasm = std::fs::read(path).unwrap();
    let places: Vec<usize> = (0..wasm.len() - number.len()).filter(|at| wasm[*at..].starts_with(&number)).collect();
    assert!(!places.is_empty(), "the kernel has no such number any more");
    places.into_iter().for_each(|at| wasm[at + 2] ^= 0x04);
    wasm
}

#[test]
fn killed_at_random_it_resumes_from_the_checkpoint_and_the_log() {
    let kills: u32 = std::env::var("GPU_RUN_KILLS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(if std::env::var_os("GPU_RUN_TEST_ALL").is_some() { 20 } else { 4 });
    let place = Place::new();
    let path = |name: &str| place.path().join(name);
    std::fs::write(path("k.wasm"), other_kernel()).unwrap();
    let mut random = fastrand::Rng::with_seed(12345);
    for round in 0..kills {
        let resume = if path("ck").exists() { "--resume ck" } else { "" };
        // Every other time it does not match its hash what the log has is done again with the code it was done with.
        let kernel = if round % 2 == 1 { "--kernel k.wasm" } else { "" };
        let line = format!(
            "--rate 500 --load 4000 --seed {round} --record log --checkpoint ck --checkpoint-every 60ms {resume} {kernel}"
        );
        let checkpoint = || path("ck").metadata().and_then(|file| file.modified()).ok();
        let before = checkpoint();
        let mut child = start(&place, &line);
        // At some moment after its first checkpoint, or before, every fourth time.
        if round % 4 != 3 {
            wait_until("a checkpoint", || checkpoint() != before);
        }
        std::thread::sleep(Duration::from_millis(random.u64(..500)));
        child.kill().unwrap();
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert!(!ran.stderr.contains("error"), "round {round}: {}", ran.stderr);
        // The whole log from nothing, and the checkpoint with the rest of it, come to the same.
        let whole = stats(&boot(&place, "--replay log --rate 0 --stats=json"));
        let rest = stats(&boot(&place, "--resume ck --replay log --rate 0 --stats=json"));
        assert_eq!(whole["image_hash"], rest["image_hash"], "round {round}: {whole} {rest}");
        assert_eq!(whole["ticks"], rest["ticks"], "round {round}");
    }
}
