//! Whole programs as processes: their native build, and `gpu-run`, the program people use.

use crate::directory::{Directory, Files};
use crate::manifest::{self, Input, Program};
use crate::observed::{Ending, Observed};
use crate::tested;
use libtest_mimic::{Failed, Trial};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// `gpu-run` on a trap, as documented.
const TRAPPED: i32 = 134;

/// A test; ignored if one of the files it needs is not there, which `script` builds. With `CI` set in the environment it fails.
pub(crate) fn trial(
    name: String,
    needs: &[PathBuf],
    script: &str,
    test: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    let Some(missing) = needs.iter().find(|file| !file.is_file()) else { return Trial::test(name, test) };
    let reason = format!("{} is not built: run {script}", missing.display());
    let kind = format!("not built, {script}");
    Trial::test(name, move || Err(reason.into())).with_kind(kind).with_ignored_flag(std::env::var_os("CI").is_none())
}

/// Runs the native build, and expects the exit code of the manifest; where a trap is expected, the result is one of `gpu-run`.
pub(crate) fn natively(program: &Program, input: &Input) -> Result<Observed, Failed> {
    let mut observed = in_directory(program, |dir| {
        let mut command = Command::new(program.native());
        command.args(&input.args).env_clear().envs(&input.env);
        if let Some(dir) = dir {
            command.current_dir(dir);
        }
        outcome(command, input)
    })?;
    if observed.ending != Ending::Exit(program.spec.exit) {
        return Err(format!("natively: expected exit code {}, got {}", program.spec.exit, observed.ending).into());
    }
    if program.spec.trap.is_some() {
        observed.ending = Ending::Exit(TRAPPED);
    }
    Ok(observed)
}

/// Runs one instance on the device under test; where a trap is expected, `gpu-run` must name it.
pub(crate) fn by_gpu_run(program: &Program, input: &Input, options: &[&str]) -> Result<Observed, Failed> {
    let observed = in_directory(program, |dir| outcome(gpu_run(program, input, options, dir), input))?;
    let stderr = String::from_utf8_lossy(&observed.stderr);
    match &program.spec.trap {
        Some(words) if !stderr.contains(words.as_str()) => {
            Err(format!("expected the trap `{words}`, got:\n{stderr}").into())
        }
        _ => Ok(observed),
    }
}

/// The command line for one instance.
fn gpu_run(program: &Program, input: &Input, options: &[&str], dir: Option<&Path>) -> Command {
    let mut command = tested::gpu_run();
    command.args(["--device", &tested::device()]).args(options);
    if let Some(dir) = dir {
        command.arg("--dir").arg(format!("{}::.", dir.display()));
    }
    for (key, value) in &input.env {
        command.arg("--env").arg(format!("{key}={value}"));
    }
    command.arg(program.wasm()).args(&input.args);
    command
}

/// Runs a command to its end, with this input on stdin. A signal is an exit code as in a shell.
fn outcome(mut command: Command, input: &Input) -> Result<Observed, Failed> {
    let mut stdin = tempfile::tempfile()?;
    std::io::Write::write_all(&mut stdin, &input.stdin)?;
    std::io::Seek::rewind(&mut stdin)?;
    let output = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).output()?;
    let signal = || output.status.signal().map(|signal| 128 + signal);
    let code = output.status.code().or_else(signal).ok_or_else(|| format!("{command:?}: {}", output.status))?;
    Ok(Observed { ending: Ending::Exit(code), stdout: output.stdout, stderr: output.stderr, files: None })
}

/// Does something in a fresh copy of the program's directory, and adds what is there afterwards.
pub(crate) fn in_directory(
    program: &Program,
    run: impl FnOnce(Option<&Path>) -> Result<Observed, Failed>,
) -> Result<Observed, Failed> {
    let (mut observed, files) = with_files(program, run)?;
    observed.files = files;
    Ok(observed)
}

pub(crate) fn with_files<T>(
    program: &Program,
    run: impl FnOnce(Option<&Path>) -> Result<T, Failed>,
) -> Result<(T, Option<Files>), Failed> {
    let Some(fixture) = &program.spec.dir else { return Ok((run(None)?, None)) };
    let directory = Directory::copy_of(&manifest::fixtures(), fixture)?;
    let result = run(Some(directory.path()))?;
    let files = directory.files()?;
    Ok((result, Some(files)))
}
