//! A std is made from the sources of each supported Rust that is installed, and a program that uses what it adds compiles with it.
//!
//! Takes a minute for each target and version, so it runs only with `GPU_RUN_TEST_ALL`.

#![allow(clippy::unwrap_used)] // In a test, `unwrap` is an assertion.

use gpu_run_sysroot::{Error, Panic, Rust, SUPPORTED, Sysroot, Target};
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAM: &str = r#"
use std::io::pipe;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
fn main() {
    println!("{:?}", std::thread::available_parallelism());
    println!("{:?}", TcpStream::connect("127.0.0.1:1").map(drop));
    println!("{:?}", TcpListener::bind("127.0.0.1:0").map(drop));
    println!("{:?}", UdpSocket::bind("127.0.0.1:0").map(drop));
    let (reader, writer) = pipe().unwrap();
    let mut child = Command::new("a").stdin(reader).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    let stderr = OwnedFd::from(child.stderr.take().unwrap());
    println!("{:?}", Command::new("b").stdin(stderr.try_clone().unwrap()).output());
    println!("{:?} {:?}", child.wait(), std::env::current_exe());
}
"#;

/// Returns the Rust of a version that rustup has installed.
fn installed(version: &str) -> Option<Rust> {
    let toolchains = Command::new("rustup").args(["toolchain", "list"]).output().ok()?;
    let toolchains = String::from_utf8(toolchains.stdout).unwrap();
    let names = toolchains.lines().filter_map(|line| line.split_whitespace().next());
    let rusts = names.filter_map(|name| {
        let which = |program| {
            let found = Command::new("rustup").args(["which", "--toolchain", name, program]).output().unwrap();
            PathBuf::from(String::from_utf8(found.stdout).unwrap().trim_end())
        };
        Rust::of(which("rustc"), which("cargo")).ok()
    });
    let mut rusts = rusts.filter(|rust| rust.version.starts_with(version));
    rusts.next()
}

fn compile(rust: &Rust, target: Target, sysroot: &Sysroot, folder: &Path) {
    let program = folder.join("program.rs");
    std::fs::write(&program, PROGRAM).unwrap();
    let mut rustc = Command::new(&rust.rustc);
    rustc.args(["-O", "--edition", "2024", "--target", target.name(), "--sysroot"]).arg(sysroot.path());
    let status = rustc.arg("-o").arg(folder.join("program.wasm")).arg(&program).status().unwrap();
    assert!(status.success(), "Rust {}, {}", rust.version, target.name());
}

#[test]
fn a_program_compiles_with_the_std_of_each_installed_version() {
    if std::env::var_os("GPU_RUN_TEST_ALL").is_none() {
        return;
    }
    for version in SUPPORTED {
        let Some(rust) = installed(version) else {
            eprintln!("not tested: Rust {version} and its sources are not installed");
            continue;
        };
        let cache = tempfile::tempdir().unwrap();
        for target in Target::ALL {
            let sysroot = Sysroot::of(cache.path(), &rust, Panic::Aborts);
            assert!(!sysroot.has(target));
            match sysroot.make(&rust, target, &|_| ()) {
                Err(Error::NoLibc { target }) => {
                    eprintln!("not tested: {} of Rust {version} is not installed", target.name());
                    continue;
                }
                made => made.unwrap(),
            }
            assert!(sysroot.has(target));
            compile(&rust, target, &sysroot, cache.path());
        }
    }
}
