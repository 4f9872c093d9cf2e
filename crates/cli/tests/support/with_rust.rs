//! Tests some of which compile Rust for a WebAssembly target. Where there is no std for it, those are ignored; with `CI` set in
//! the environment they fail.

use libtest_mimic::{Arguments, Trial};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

type Test = (&'static str, fn());

pub(crate) fn run(target: &str, anywhere: &[Test], with_rust: &[Test]) -> ! {
    let args = Arguments::from_args();
    let trial = |&(name, test): &Test| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    let mut trials: Vec<_> = anywhere.iter().map(trial).collect();
    let has_rust = Command::new(rustc())
        .args(["--target", target, "--print", "target-libdir"])
        .output()
        .is_ok_and(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()).is_dir());
    let is_ignored = !has_rust && std::env::var_os("CI").is_none();
    let with_rust = with_rust.iter().map(|test| match has_rust {
        true => trial(test),
        false => trial(test).with_kind(format!("no std for {target}")).with_ignored_flag(is_ignored),
    });
    trials.extend(with_rust);
    libtest_mimic::run(&args, trials).exit();
}

pub(crate) fn rustc() -> OsString {
    std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}
