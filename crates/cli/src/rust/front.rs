//! `gpu-run build` and `gpu-run test`: cargo with gpu-run's own std.

use super::own_std::OwnStd;
use crate::args::CargoArgs;
use anyhow::Result;
use gpu_run_console::failure::Failure;
use gpu_run_sysroot::{Panic, Target};
use gpu_run_toolchain::{Settings, become_cargo, cargo_with};
use std::ffi::{OsStr, OsString};

/// Runs a command of cargo in place of gpu-run, so that signals reach it and its end is the end.
pub(crate) fn run(command: &str, args: &CargoArgs) -> Result<u8> {
    let (target, panic, cargo_args) = split(&args.cargo_args)?;
    let settings = Settings::of(target.name(), &cargo_args);
    let own_std = OwnStd::find(target, panic, settings.rustc())?;
    // Mistakes that can be seen before a std is made are reported before.
    let cargo = cargo_with(command, target.name(), &settings, &own_std.sysroot, &cargo_args)?;
    own_std.make()?;
    Err(become_cargo(cargo))
}

/// Takes `--threads`, `--unwind` and `--target` from cargo's options; what is behind `--` is left alone.
fn split(args: &[OsString]) -> Result<(Target, Panic, Vec<OsString>)> {
    let (mut threads, mut panic, mut target, mut rest) = (false, Panic::Aborts, None, Vec::new());
    let mut name_target = |name: &OsStr| {
        let named = known(name)?;
        match target.replace(named) {
            Some(other) if other != named => {
                let message = format!("gpu-run builds for one target: {} or {}", other.name(), named.name());
                Err(anyhow::Error::from(Failure::usage(message).hint("run it once for each target")))
            }
            _ => Ok(()),
        }
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.to_str() {
            Some("--") => {
                rest.push(arg.clone());
                rest.extend(args.by_ref().cloned());
            }
            Some("--threads") => threads = true,
            Some("--unwind") => panic = Panic::Unwinds,
            Some("--target") => {
                let name = args.next().ok_or_else(|| Failure::usage("--target needs a target"))?;
                name_target(name)?;
            }
            Some(text) if text.starts_with("--target=") => {
                name_target(OsStr::new(&text["--target=".len()..]))?;
            }
            _ => rest.push(arg.clone()),
        }
    }
    match (threads, target) {
        (true, Some(Target::Wasip1 | Target::Unknown)) => {
            let message = format!("--threads is for {}", Target::Wasip1Threads.name());
            Err(Failure::usage(message).hint("leave out --target").into())
        }
        (true, _) => Ok((Target::Wasip1Threads, panic, rest)),
        (false, target) => Ok((target.unwrap_or(Target::Wasip1), panic, rest)),
    }
}

fn known(name: &OsStr) -> Result<Target> {
    if name.is_empty() {
        return Err(Failure::usage("--target needs a target").into());
    }
    let known = name.to_str().and_then(Target::by_name);
    known.ok_or_else(|| {
        let all = Target::ALL.map(Target::name).join(", ");
        Failure::usage(format!("gpu-run has no std for the target {}", name.display()))
            .hint(format!("its targets are {all}; cargo builds for others"))
            .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(args: &[&str]) -> Result<(Target, Panic, Vec<OsString>)> {
        split(&args.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn only_the_target_is_taken_from_cargos_options() {
        for (args, target, rest) in [
            (&[][..], Target::Wasip1, &[][..]),
            (&["--release", "-p", "a"], Target::Wasip1, &["--release", "-p", "a"]),
            (&["--release", "--threads"], Target::Wasip1Threads, &["--release"]),
            (&["--target", "wasm32-wasip1-threads", "-v"], Target::Wasip1Threads, &["-v"]),
            (&["--target=wasm32-wasip1"], Target::Wasip1, &[]),
            (&["--threads", "--target=wasm32-wasip1-threads"], Target::Wasip1Threads, &[]),
            (&["--target=wasm32-unknown-unknown"], Target::Unknown, &[]),
            (&["--target=wasm32-wasip1", "--target", "wasm32-wasip1"], Target::Wasip1, &[]),
            (&["--", "--threads"], Target::Wasip1, &["--", "--threads"]),
        ] {
            let rest: Vec<OsString> = rest.iter().map(OsString::from).collect();
            assert_eq!(of(args).unwrap(), (target, Panic::Aborts, rest), "{args:?}");
        }
        assert_eq!(of(&["--unwind", "-v"]).unwrap(), (Target::Wasip1, Panic::Unwinds, vec!["-v".into()]));
        assert_eq!(of(&["--", "--unwind"]).unwrap().1, Panic::Aborts);
    }

    #[test]
    fn a_target_without_a_std_of_ours_is_refused() {
        for args in [
            &["--target", "x86_64-unknown-linux-gnu"][..],
            &["--target"],
            &["--target="],
            &["--threads", "--target=wasm32-wasip1"],
            &["--threads", "--target", "wasm32-unknown-unknown"],
        ] {
            assert!(of(args).is_err(), "{args:?}");
        }
        assert_eq!(of(&["--target="]).unwrap_err().to_string(), of(&["--target"]).unwrap_err().to_string());
        let two = of(&["--target=wasm32-wasip1", "--target=wasm32-unknown-unknown"]).unwrap_err().to_string();
        assert!(two.contains("one target") && two.contains("wasm32-unknown-unknown"), "{two}");
    }
}
