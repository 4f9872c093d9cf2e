//! Turns a map's errors into messages for the user: with the options they concern, a hint, and the exit code.

use gpu_run_console::failure::Failure;
use gpu_run_map::{Error, TaskChange};

const BEGIN_ANEW: &str = "begin anew with --force";

/// Returns the message for an error of the map of `program`.
pub(super) fn told(program: &str, error: Error) -> anyhow::Error {
    let failure = match &error {
        Error::OpenInput { path, source } => Failure::usage(format!("cannot read {}: {source}", path.display())),
        Error::RecordTooLong(_) => Failure::usage(error.to_string()),
        Error::InputChanged => {
            Failure::usage(format!("--resume: {error}")).hint("resume with the same input, or begin anew with --force")
        }
        Error::OutputOverInput { input, output } => Failure::usage(format!(
            "--output {} and --input {} overlap: the input would be overwritten",
            output.display(),
            input.display()
        ))
        .hint("choose an --output outside the input"),
        Error::OutputIsFile(path) => {
            Failure::usage(format!("--output {} is a file, but --split files writes a folder", path.display()))
                .hint("to get all output in one file, leave out --output and redirect stdout")
        }
        Error::OutputIsFolder(path) => {
            Failure::usage(format!("--output {} is a folder; only --split files writes one", path.display()))
        }
        Error::OutputFolderMissing(path) => {
            Failure::usage(format!("--output {}: no such folder; only --split files creates one", path.display()))
        }
        Error::OutputInUse(path) => Failure::environment(format!("another gpu-run is writing to {}", path.display())),
        Error::OutputReplaced(_) => Failure::environment(error.to_string())
            .hint("run it again with --force, and with an --output that no --dir lets guests change"),
        Error::OutputHasNoJournal => Failure::usage("--resume needs --output with the unfinished file or folder"),
        Error::OutputUnfinished(_) => {
            Failure::usage(error.to_string()).hint("continue it with --resume, or begin anew with --force")
        }
        Error::OutputNotUnfinished(_) => {
            Failure::usage(format!("--resume: {error}")).hint("leave out --resume to overwrite it")
        }
        Error::OutputShorter(_) | Error::OutputEndChanged(_) | Error::OutputFileChanged { .. } => {
            Failure::usage(format!("--resume: {error}")).hint(BEGIN_ANEW)
        }
        Error::Journal { .. } => Failure::usage(error.to_string()).hint(BEGIN_ANEW),
        Error::TaskChanged(change) => {
            Failure::usage(format!("--resume: {} since the unfinished run", changed(*change)))
                .hint("resume with the same program and options, or begin anew with --force")
        }
        Error::UntrustedLink { action, path, link } => Failure::usage(format!(
            "cannot {action} {}: the path leads through the link {}, in a folder that --dir lets guests write to",
            path.display(),
            link.display()
        ))
        .hint("name the link's target instead, or follow the link with --follow-links"),
        Error::DeviceLost(_) => Failure::environment(format!("{program}: {error}")),
        Error::DeviceLostAgain { lost, .. } => {
            let (first, last) = (lost.first, lost.first + lost.count as u64 - 1);
            Failure::environment(format!("{program}: {error}"))
                .hint(format!("one of the records {first} to {last} causes this; find it with a smaller --batch"))
        }
        _ => return plain(program, error),
    };
    failure.into()
}

/// Errors without a hint: exit code 1, unless the compiler's error has its own.
fn plain(program: &str, error: Error) -> anyhow::Error {
    match error {
        Error::Engine(error) => Failure::compiler(program, error).into(),
        Error::GiveHandover { reason, source } => {
            anyhow::Error::from(source).context(format!("{program}: {reason}, but that process cannot be started"))
        }
        error => error.into(),
    }
}

fn changed(change: TaskChange) -> &'static str {
    match change {
        TaskChange::Program => "the program has changed",
        TaskChange::Input => "the input has changed",
        TaskChange::Split => "--split has changed",
        TaskChange::Args => "ARGS have changed",
        TaskChange::Folders => "--dir has changed",
        TaskChange::Env => "--env has changed",
        TaskChange::MaxMemory => "--max-memory has changed",
        TaskChange::Links => "--follow-links, or the target of a link in the input, has changed",
    }
}

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;
