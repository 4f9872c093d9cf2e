//! Makes the stds of the installed Rust in a folder, and prints the path of the sysroot: `own_std FOLDER [TARGET]...`.

use gpu_run_sysroot::{Rust, Sysroot, Target};
use std::env;
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (folder, names) = arguments.split_first().ok_or("own_std FOLDER [TARGET]...")?;
    let rust = Rust::find()?;
    let sysroot = Sysroot::of(Path::new(folder), &rust);
    let targets: Vec<Target> = match names {
        [] => Target::ALL.to_vec(),
        _ => names.iter().map(|name| Target::by_name(name).ok_or(name.as_str())).collect::<Result<_, _>>()?,
    };
    for target in targets {
        sysroot.make(&rust, target)?;
    }
    println!("{}", sysroot.path().display());
    Ok(())
}
