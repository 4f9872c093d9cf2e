//! Programs that use every function of std's modules about the system, with gpu-run's own std: what they print must be what their
//! native builds print. `std::NAME` is the program `tests/std/src/bin/NAME.rs`; docs/std.md names these tests.
//!
//! `scripts/build-std-programs` builds the programs. A test whose program is not there is reported as ignored, never as passed; with
//! `CI` set in the environment it fails.

use libtest_mimic::{Arguments, Failed, Trial};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// What each program is given natively without asking, and on the device by options.
struct Program {
    name: &'static str,
    args: &'static [&'static str],
    options: &'static [&'static str],
    /// Under which name it sees its folder. Another name than `.` is also its argument.
    folder: Option<&'static str>,
    has_threads: bool,
}

const fn program(name: &'static str) -> Program {
    Program { name, args: &[], options: &[], folder: None, has_threads: false }
}

const PROGRAMS: &[Program] = &[
    Program { args: &["one", "two words"], options: &["--env", "GIVEN=given"], folder: Some("."), ..program("env") },
    Program { folder: Some("/given/folder"), ..program("fs") },
    Program { folder: Some("."), ..program("io") },
    Program {
        options: &[
            "--net=connect=localhost:*",
            "--net=connect=127.0.0.1:*",
            "--net=listen=127.0.0.1:*",
            "--net=listen=0.0.0.0:*",
            "--net=listen=[::1]:*",
        ],
        ..program("net")
    },
    Program { options: &["--env", "GIVEN=given"], folder: Some("."), ..program("process") },
    Program { folder: Some("."), has_threads: true, ..program("paths") },
    Program { has_threads: true, ..program("sync") },
    Program { has_threads: true, ..program("thread") },
    program("time"),
];

const STDIN: &str = "first\nsecond\nthird\nmore\nlast";

/// What a program prints that was given nothing.
const DENIED: &str = "\
variables: [\"GPU_RUN_INSTANCE\"]
set_current_dir: Some(NotFound)
open: Some(NotFound)
create: Some(NotFound)
read_dir: Some(NotFound)
metadata: Some(NotFound)
canonicalize: Some(NotFound)
TcpStream: Some(PermissionDenied)
TcpListener: Some(PermissionDenied)
UdpSocket: Some(PermissionDenied)
a host's name: Some(PermissionDenied)
Command: Some(NotFound)
Command: Some(NotFound)
";

fn main() {
    let args = Arguments::from_args();
    let cache = tempfile::tempdir().expect("a temporary folder can be made");
    let mut trials: Vec<Trial> = PROGRAMS
        .iter()
        .map(|program| {
            let cache = cache.path().to_owned();
            let needs = [program.wasm(), native(program.name)];
            trial(format!("std::{}", program.name), &needs, move || equals_native(program, &cache))
        })
        .collect();
    let at = cache.path().to_owned();
    trials.push(trial("std::denied".into(), &[DENIED_PROGRAM.wasm()], move || nothing_is_allowed(&at)));
    let conclusion = libtest_mimic::run(&args, trials);
    drop(cache); // `exit` drops nothing
    conclusion.exit();
}

const DENIED_PROGRAM: Program = program("denied");

fn trial(name: String, needs: &[PathBuf], test: impl FnOnce() -> Result<(), Failed> + Send + 'static) -> Trial {
    let Some(missing) = needs.iter().find(|file| !file.is_file()) else { return Trial::test(name, test) };
    let reason = format!("{} is not built: run scripts/build-std-programs", missing.display());
    let trial = Trial::test(name, move || Err(reason.into())).with_kind("not built, scripts/build-std-programs");
    trial.with_ignored_flag(std::env::var_os("CI").is_none())
}

fn built() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/std/target")
}

fn native(name: &str) -> PathBuf {
    built().join("release").join(name)
}

impl Program {
    fn wasm(&self) -> PathBuf {
        let target = if self.has_threads { "wasm32-wasip1-threads" } else { "wasm32-wasip1" };
        built().join(target).join("release").join(self.name).with_extension("wasm")
    }

    fn on_device(&self, folder: &Path, cache: &Path) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpu-run"));
        command.args(["--device", "cpu", "--timeout", "120s", "--cache-dir"]).arg(cache).args(self.options);
        if let Some(name) = self.folder {
            command.arg("--dir").arg(format!("{}::{name}", folder.display()));
        }
        if self.has_threads {
            command.args(["--threads", "16"]);
        }
        if self.name == "process" {
            command.arg("--program").arg(self.wasm());
        }
        command.arg(self.wasm()).args(self.args).args(self.folder.filter(|name| *name != "."));
        command
    }

    fn natively(&self, folder: &Path) -> Result<Command, Failed> {
        let file = native(self.name);
        let mut command = Command::new(&file);
        // The program finds itself in PATH.
        command.args(self.args).current_dir(folder).env("GIVEN", "given");
        command.args(self.folder.filter(|name| *name != ".").map(|_| folder));
        command.env("PATH", file.parent().ok_or("no folder")?).env_remove("MISSING");
        Ok(command)
    }
}

fn run(mut command: Command) -> Result<Output, Failed> {
    let mut stdin = tempfile::tempfile()?;
    std::io::Write::write_all(&mut stdin, STDIN.as_bytes())?;
    std::io::Seek::rewind(&mut stdin)?;
    Ok(command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).output()?)
}

fn equals_native(program: &Program, cache: &Path) -> Result<(), Failed> {
    let folders = [tempfile::tempdir()?, tempfile::tempdir()?];
    let expected = run(program.natively(folders[0].path())?)?;
    let got = run(program.on_device(folders[1].path(), cache))?;
    if !expected.status.success() {
        return Err(format!("natively: {}, {}", expected.status, String::from_utf8_lossy(&expected.stderr)).into());
    }
    let [natively, on_device] = [&expected, &got].map(|output| String::from_utf8_lossy(&output.stdout));
    let differ = |(ours, theirs): &(&str, &str)| ours != theirs;
    if let Some((natively, on_device)) = natively.lines().zip(on_device.lines()).find(differ) {
        return Err(format!("natively:\n    {natively}\non the device:\n    {on_device}").into());
    }
    let is_equal = got.status.success() && natively == on_device;
    let ended = || format!("{} after {} lines, {}", got.status, on_device.lines().count(), stderr(&got));
    if is_equal { Ok(()) } else { Err(ended().into()) }
}

fn nothing_is_allowed(cache: &Path) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let got = run(DENIED_PROGRAM.on_device(folder.path(), cache))?;
    let printed = String::from_utf8_lossy(&got.stdout);
    let is_empty = fs::read_dir(folder.path())?.next().is_none();
    if got.status.success() && printed == DENIED && is_empty {
        return Ok(());
    }
    Err(format!("{}:\n{printed}\n{}", got.status, stderr(&got)).into())
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
