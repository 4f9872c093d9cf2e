//! The compiled kernel: it was built from the sources that are here, it is what they build to, and no loop in it is run by one lane while the others wait.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

#[path = "kernel/lanes.rs"]
mod lanes;
#[path = "kernel/ptxas.rs"]
mod ptxas;

use gpu_run_machine::{KERNEL, KERNEL_DEBUG, KERNEL_MEASURE};
use libtest_mimic::{Arguments, Failed, Trial};
use ptxas::{PTXAS, TARGETS, assemble};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use wasmparser::{ExternalKind, Parser, Payload};

fn main() {
    let args = Arguments::from_args();
    let missing = toolchain_missing();
    if let Some(why) = &missing {
        eprintln!("kernel::is_what_its_sources_build_to is ignored: {why}");
    }
    let ptxas = std::env::var_os(PTXAS);
    if ptxas.is_none() {
        eprintln!("kernel::ptxas_takes_it is ignored: {PTXAS} does not say where ptxas is");
    }
    let trial = |name: &str, test: fn() -> Result<(), Failed>| Trial::test(name, test);
    let trials = vec![
        trial("kernel::was_built_from_the_sources_that_are_here", was_built_from_the_sources_that_are_here),
        trial("kernel::is_what_its_sources_build_to", fresh).with_ignored_flag(missing.is_some()),
        trial("kernel::no_loop_is_run_by_one_lane", no_loop_is_run_by_one_lane),
        trial("kernel::what_runs_has_nothing_for_tests", what_runs_has_nothing_for_tests),
        trial("kernel::ptxas_takes_it", ptxas_takes_it).with_ignored_flag(ptxas.is_none()),
        trial("kernel::a_changed_a_new_and_a_missing_source_are_named", a_changed_a_new_and_a_missing_source_are_named),
        trial("kernel::a_loop_of_one_lane_is_found", lanes::a_loop_of_one_lane_is_found),
    ];
    libtest_mimic::run(&args, trials).exit();
}

/// The kernels that are kept, by the names of their files.
const KERNELS: [(&str, &[u8]); 3] =
    [("kernel.wasm", KERNEL), ("kernel-debug.wasm", KERNEL_DEBUG), ("kernel-measure.wasm", KERNEL_MEASURE)];

/// The repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Whichever compiler is installed, and if none is: a source that has changed since the kernels were built is named.
fn was_built_from_the_sources_that_are_here() -> Result<(), Failed> {
    let output = Command::new(root().join("scripts/build-kernel")).arg("--sources").output()?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("scripts/build-kernel --sources failed: {why}").into());
    }
    let now = String::from_utf8(output.stdout)?;
    let then = std::fs::read_to_string(root().join("crates/machine/kernel.sources"))?;
    let stale = differing_files(&then, &now);
    if !stale.is_empty() {
        let files = Vec::from_iter(stale).join(", ");
        return Err(
            format!("the kept kernels were not built from these files: {files}: run scripts/build-kernel").into()
        );
    }
    Ok(())
}

/// The files of which two lists of hashes do not say the same.
fn differing_files<'a>(then: &'a str, now: &'a str) -> BTreeSet<&'a str> {
    let [then, now] = [then, now].map(|list| BTreeSet::from_iter(list.lines()));
    then.symmetric_difference(&now).filter_map(|line| line.split_whitespace().last()).collect()
}

fn a_changed_a_new_and_a_missing_source_are_named() -> Result<(), Failed> {
    let then = "00  same.rs\n01  changed.rs\n02  gone.rs\n";
    let now = "00  same.rs\n05  changed.rs\n03  new.rs\n";
    let differing = differing_files(then, now);
    if !differing.iter().eq(&["changed.rs", "gone.rs", "new.rs"]) {
        return Err(format!("{differing:?}").into());
    }
    Ok(())
}

/// Why the kernel cannot be built here: it has to be the compiler it was built with.
fn toolchain_missing() -> Option<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let says = |args: &[&str]| -> Option<String> {
        let output = Command::new(&rustc).args(args).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let library = says(&["--print", "target-libdir", "--target", "wasm32-unknown-unknown"]);
    let version = says(&["--version"]).and_then(|says| Some(says.strip_prefix("rustc ")?.to_owned()));
    let (Some(library), Some(version)) = (library, version) else { return Some("there is no rustc".to_owned()) };
    if !Path::new(&library).exists() {
        return Some("rustup target add wasm32-unknown-unknown".to_owned());
    }
    let built_with = KERNEL.windows(version.len()).any(|bytes| bytes == version.as_bytes());
    (!built_with).then(|| format!("it was built with another compiler than {version}"))
}

fn fresh() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let status = Command::new(root().join("scripts/build-kernel")).arg("--to").arg(folder.path()).status()?;
    if !status.success() {
        return Err("scripts/build-kernel failed".into());
    }
    for (name, _) in KERNELS {
        let kept = std::fs::read(root().join("crates/machine").join(name))?;
        if std::fs::read(folder.path().join(name))? != kept {
            return Err(format!("crates/machine/{name} is stale: run scripts/build-kernel").into());
        }
    }
    Ok(())
}

/// Functions with loops that one lane may run, and why that is right.
const ALONE: &[(&str, &str)] =
    &[("boot", "eight words of the header, once in a machine's life"), ("ping_pong", "what it measures is one thread")];

fn no_loop_is_run_by_one_lane() -> Result<(), Failed> {
    for (kernel, wasm) in KERNELS {
        let found = lanes::loops_of_one_lane(wasm)?;
        let is_known = |name: &String| ALONE.iter().any(|(known, _)| name.contains(known));
        let unknown: Vec<_> = found.iter().filter(|name| !is_known(name)).collect();
        if !unknown.is_empty() {
            return Err(format!("{kernel}: one lane runs a loop while others wait, in: {unknown:?}").into());
        }
    }
    Ok(())
}

/// What a user boots exports what a machine needs, and no more.
fn what_runs_has_nothing_for_tests() -> Result<(), Failed> {
    let exported = |wasm| -> Result<BTreeSet<String>, Failed> {
        let mut names = BTreeSet::new();
        for payload in Parser::new(0).parse_all(wasm) {
            let Payload::ExportSection(exports) = payload? else { continue };
            for export in exports {
                let export = export?;
                names.extend((export.kind == ExternalKind::Func).then(|| export.name.to_owned()));
            }
        }
        Ok(names)
    };
    for (kernel, expected) in [
        (KERNEL, &["boot", "run"][..]),
        (KERNEL_DEBUG, &["boot", "run"]),
        (KERNEL_MEASURE, &["boot", "heap_storm", "ping_pong", "run"]),
    ] {
        let names = exported(kernel)?;
        if !names.iter().eq(expected) {
            return Err(format!("{names:?}, not {expected:?}").into());
        }
    }
    Ok(())
}

fn ptxas_takes_it() -> Result<(), Failed> {
    for target in TARGETS {
        for (name, kernel) in KERNELS {
            let kernel = gpu_run_machine::Kernel::named(name, kernel.to_vec())?;
            assemble(name, &gpu_run_machine::kernel_ptx(&kernel, 132, 1024)?, target)?;
        }
    }
    Ok(())
}
