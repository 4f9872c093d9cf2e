//! What the tests of the command line share: a folder to work in, and gpu-run in it.
#![allow(dead_code, unused_imports, unused_macros, clippy::unwrap_used)] // not every test uses all of it; one that cannot go on panics

pub(crate) mod tested;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A module of `tests/wat`.
macro_rules! wat {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wat/", $name, ".wat"))
    };
}
pub(crate) use wat;

/// A folder of its own, with gpu-run working in it.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn with(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = tested::gpu_run();
        command.args(line.split_whitespace()).current_dir(self.path()).stdin(Stdio::null());
        // No test writes into the user's cache; those about it name one of their own.
        command.env_remove("GPU_RUN_LOG").env_remove("RUST_BACKTRACE").env("GPU_RUN_CACHE", "off");
        command
    }

    pub(crate) fn run(&self, line: &str) -> Ran {
        Ran::from(self.command(line).output().unwrap())
    }

    pub(crate) fn run_with_input(&self, line: &str, input: &[u8]) -> Ran {
        let mut command = self.command(line);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // It may end before it has read all of that.
        _ = child.stdin.take().unwrap().write_all(input);
        Ran::from(child.wait_with_output().unwrap())
    }
}

#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Ran {
    #[track_caller]
    pub(crate) fn gives(self, code: i32, stdout: &str) -> Self {
        assert_eq!((self.code, self.stdout.as_str()), (Some(code), stdout), "{}", self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self
    }

    #[track_caller]
    pub(crate) fn says(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.stderr.contains(part), "{part:?} is not in:\n{}", self.stderr);
        }
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self
    }
}
