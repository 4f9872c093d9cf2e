//! Makes the stds of the installed Rust in a folder, and prints the flags that rustc needs to use them: `own_std FOLDER [--unwind] [TARGET]...`.

use gpu_run_sysroot::{Panic, Rust, Sysroot, Target};
use std::env;
use std::error::Error;
use std::path::Path;
use std::process::exit;

/// The exit code where there are no sources: what needs them is skipped.
const NO_SOURCES: i32 = 77;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (folder, names) = arguments.split_first().ok_or("own_std FOLDER [--unwind] [TARGET]...")?;
    let (panic, names) = match names {
        [first, rest @ ..] if first == "--unwind" => (Panic::Unwinds, rest),
        _ => (Panic::Aborts, names),
    };
    let rust = Rust::find().inspect_err(|error| {
        if let gpu_run_sysroot::Error::NoSources { .. } = error {
            eprintln!("own_std: {error}");
            exit(NO_SOURCES);
        }
    })?;
    let sysroot = Sysroot::of(Path::new(folder), &rust, panic);
    let targets: Vec<Target> = match names {
        [] => Target::ALL.to_vec(),
        _ => names.iter().map(|name| Target::by_name(name).ok_or(name.as_str())).collect::<Result<_, _>>()?,
    };
    for target in targets {
        sysroot.make(&rust, target, &|_| ())?;
    }
    let flags: String = sysroot.panic().flags().iter().map(|flag| format!(" {flag}")).collect();
    println!("--sysroot={}{flags}", sysroot.path().display());
    Ok(())
}
