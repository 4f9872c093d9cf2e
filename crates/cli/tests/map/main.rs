//! `gpu-run map`, the real binary: order and count, failures, every way of splitting, and what is left after an interruption.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod failures;
mod interruptions;
mod invoke;
mod lost_device;
mod order;
mod resume;
mod several;
mod shards;
mod splitting;
#[path = "../support/mod.rs"]
mod support;

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{Ran, wat};
use tempfile::TempDir;

/// The guests that are in every folder.
const GUESTS: [(&str, &str); 7] = [
    ("echo.wat", wat!("map/echo")),
    ("cat.wat", wat!("map/cat")),
    ("args.wat", wat!("map/args")),
    ("long.wat", wat!("map/long")),
    ("number.wat", wat!("map/number")),
    ("slow.wat", wat!("map/slow")),
    ("stuck.wat", wat!("map/stuck")),
];

/// A folder of its own, with the guests in it.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for (name, guest) in GUESTS {
            place.write(name, guest);
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    #[track_caller]
    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// Everything after `map`; always on the cpu, and never for ever.
    fn command(&self, line: &str) -> Command {
        self.command_on("cpu", line)
    }

    fn command_on(&self, devices: &str, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpu-run"));
        let (program, rest) = line.split_once(' ').unwrap_or((line, ""));
        command.args(["map", program, "--device", devices]).args(rest.split_whitespace());
        command.current_dir(self.0.path()).env_remove("GPU_RUN_LOG").env("GPU_RUN_CACHE", "off").stdin(Stdio::null());
        command
    }

    fn run(&self, line: &str) -> Ran {
        self.command(line).output().unwrap().into()
    }

    fn run_with_input(&self, line: &str, input: &[u8]) -> Ran {
        let mut child = self.start(line, Stdio::piped());
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        let feeder = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let ran = child.wait_with_output().unwrap().into();
        feeder.join().unwrap();
        ran
    }

    fn start(&self, line: &str, stdin: Stdio) -> Child {
        self.command(line).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

fn lines(count: usize) -> String {
    (0..count).fold(String::new(), |mut text, i| {
        writeln!(text, "line {i} {}", "x".repeat(i * 7919 % 50)).unwrap();
        text
    })
}

fn whole_lines(output: &str, of: &str) -> bool {
    of.starts_with(output) && (output.is_empty() || output.ends_with('\n'))
}
