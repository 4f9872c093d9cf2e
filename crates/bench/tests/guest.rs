//! What `gpu-run bench threads` runs on a device: it was built from the sources that are here, and is what they build to.

use gpu_run_bench::threads::GUEST;
use libtest_mimic::{Arguments, Failed, Trial};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let args = Arguments::from_args();
    let other = other_compiler();
    if let Some(why) = &other {
        eprintln!("guest::is_what_its_sources_build_to is ignored: {why}");
    }
    let trials = vec![
        Trial::test("guest::was_built_from_the_sources_that_are_here", was_built_from_the_sources_that_are_here),
        Trial::test("guest::is_what_its_sources_build_to", fresh).with_ignored_flag(other.is_some()),
    ];
    libtest_mimic::run(&args, trials).exit();
}

fn script() -> Command {
    Command::new(root().join("scripts/build-bench-guest"))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn was_built_from_the_sources_that_are_here() -> Result<(), Failed> {
    let output = script().arg("--sources").output()?;
    let (now, why) = (String::from_utf8(output.stdout)?, String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        return Err(format!("scripts/build-bench-guest --sources failed: {why}").into());
    }
    let then = std::fs::read_to_string(root().join("crates/bench/threads.sources"))?;
    let [then, now] = [&then, &now].map(|list| BTreeSet::from_iter(list.lines()));
    let stale: Vec<_> = then.symmetric_difference(&now).filter_map(|line| line.split_whitespace().last()).collect();
    if !stale.is_empty() {
        return Err(
            format!("threads.wasm was not built from these files: {stale:?}: run scripts/build-bench-guest").into()
        );
    }
    Ok(())
}

/// Why the program cannot be built here: std's paths in it name the commit of the compiler it was built with.
fn other_compiler() -> Option<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let says = |args: &[&str]| -> Option<String> {
        let output = Command::new(&rustc).args(args).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let library = says(&["--print", "target-libdir", "--target", "wasm32-wasip1-threads"])?;
    if !Path::new(&library).exists() {
        return Some("rustup target add wasm32-wasip1-threads".to_owned());
    }
    let version = says(&["-vV"])?;
    let commit = version.lines().find_map(|line| line.strip_prefix("commit-hash: "))?;
    let is_the_same = GUEST.windows(commit.len()).any(|bytes| bytes == commit.as_bytes());
    (!is_the_same).then(|| format!("it was built with another compiler than {commit}"))
}

fn fresh() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    if !script().arg("--to").arg(folder.path()).status()?.success() {
        return Err("scripts/build-bench-guest failed".into());
    }
    if std::fs::read(folder.path().join("threads.wasm"))? != GUEST {
        return Err("crates/bench/threads.wasm is stale: run scripts/build-bench-guest".into());
    }
    Ok(())
}
