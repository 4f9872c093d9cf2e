//! A std is made from the installed sources, and a program that uses what it adds compiles with it.
//!
//! Takes a minute or two, so it runs only with `GPU_RUN_TEST_ALL`; where no sources of std are installed, there is nothing to test.

#![allow(clippy::unwrap_used)] // In a test, `unwrap` is an assertion.

use gpu_run_sysroot::{Error, Rust, Sysroot, Target};
use std::process::Command;

const PROGRAM: &str = "
use std::net::{TcpListener, TcpStream, UdpSocket};
fn main() {
    println!(\"{:?}\", std::thread::available_parallelism());
    println!(\"{:?}\", TcpStream::connect(\"127.0.0.1:1\").map(drop));
    println!(\"{:?}\", TcpListener::bind(\"127.0.0.1:0\").map(drop));
    println!(\"{:?}\", UdpSocket::bind(\"127.0.0.1:0\").map(drop));
}
";

#[test]
fn a_program_compiles_with_the_std_that_was_made() {
    if std::env::var_os("GPU_RUN_TEST_ALL").is_none() {
        return;
    }
    let rust = match Rust::find() {
        Err(Error::NoSources { version }) => {
            eprintln!("not tested: the sources of std {version} are not installed");
            return;
        }
        found => found.unwrap(),
    };
    let cache = tempfile::tempdir().unwrap();
    let sysroot = Sysroot::of(cache.path(), &rust);
    let program = cache.path().join("program.rs");
    std::fs::write(&program, PROGRAM).unwrap();
    for target in Target::ALL {
        assert!(!sysroot.has(target));
        sysroot.make(&rust, target).unwrap();
        assert!(sysroot.has(target));
        let output = cache.path().join(target.name()).with_extension("wasm");
        let status = Command::new("rustc")
            .args(["-O", "--edition", "2024", "--target", target.name(), "--sysroot"])
            .arg(sysroot.path())
            .arg("-o")
            .arg(&output)
            .arg(&program)
            .status();
        assert!(status.unwrap().success());
        if let Some(kept) = std::env::var_os("GPU_RUN_KEEP") {
            std::fs::copy(&output, std::path::Path::new(&kept).join(output.file_name().unwrap())).unwrap();
        }
    }
}
