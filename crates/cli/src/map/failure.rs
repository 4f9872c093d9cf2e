//! Turns a map's errors into messages for the user: with the options they concern, a hint, and the exit code.

use gpu_run_console::failure::Failure;
use gpu_run_map::{Error, SplitError, TaskChange};
use gpu_run_objects::Error as ObjectError;
use std::io;

const BEGIN_ANEW: &str = "begin anew with --force";

/// Returns the message for an error of the map of `program`.
pub(super) fn told(program: &str, error: Error) -> anyhow::Error {
    let failure = match &error {
        Error::OpenInput { path, source } => {
            let failure = if is_of_machine(source) { Failure::machine } else { Failure::usage };
            failure(format!("cannot read {}: {source}", path.display()))
        }
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
        Error::ShardOfStream => {
            Failure::usage("--shard needs --input with a file or a folder: each shard reads a part of it")
                .hint("write the stream to a file first")
        }
        Error::InputChanging(path) => {
            Failure::usage(format!("--input {} changed while a shard of it was mapped", path.display()))
                .hint("begin all shards anew, with --force, when nothing writes to the input any more")
        }
        Error::ShardToStream(path) => Failure::usage(format!(
            "shards need a file, a folder or an object, but --output {} is none",
            path.display()
        )),
        Error::InputNotListed(_) | Error::InputIsFolder(_) | Error::OutputNotListed(_) => {
            Failure::usage(error.to_string())
        }
        Error::OutputHasShards(path) => Failure::usage(error.to_string())
            .hint(format!("put them together with `gpu-run merge {}`, or begin anew with --force", path.display())),
        Error::OutputExists(_) => Failure::usage(error.to_string()).hint("replace it with --force"),
        Error::NoShards { .. } => Failure::usage(error.to_string())
            .hint("give the --output of the commands with --shard; shards that were put together in a folder are gone"),
        Error::ShardsOfSeveral { shards, found: (_, last) } => Failure::usage(error.to_string()).hint(format!(
            "remove those that do not belong to the map you want: {}/*-of-{}*, for instance",
            shards.display(),
            last.count()
        )),
        Error::ShardsMissing { missing, count, .. } => {
            let first = missing.missing.iter().chain(&missing.unfinished).min_by_key(|shard| shard.index());
            let first = first.map_or(0, |shard| shard.index());
            Failure::usage(error.to_string())
                .hint(format!("run these shards with --resume; the first of them is --shard {first}/{count}"))
        }
        Error::ShardOfAnotherMap { shard, first, change } => Failure::usage(format!(
            "{} and {} are not shards of one map: {}",
            first.display(),
            shard.display(),
            changed(*change)
        ))
        .hint("map one of the two anew, with --force"),
        Error::ShardOutOfPlace(_) | Error::ShardChanged(_) => {
            Failure::usage(error.to_string()).hint("map this shard anew, with --force")
        }
        Error::OutputInUse(path) => Failure::machine(format!("another gpu-run is writing to {}", path.display())),
        Error::OutputReplaced(_) => Failure::environment(error.to_string())
            .hint("run it again with --force, and with an --output that no --dir lets guests change"),
        Error::OutputHasNoJournal => {
            Failure::usage("--resume needs --output with the unfinished file, folder or object")
        }
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
        Error::DeviceLost(_) => Failure::machine(format!("{program}: {error}")),
        Error::DeviceLostAgain { lost, .. } => {
            let (first, last) = (lost.first, lost.first + lost.count as u64 - 1);
            Failure::machine(format!("{program}: {error}"))
                .hint(format!("one of the records {first} to {last} causes this; find it with a smaller --batch"))
        }
        _ => return plain(program, error),
    };
    failure.into()
}

/// Errors without a hint.
fn plain(program: &str, error: Error) -> anyhow::Error {
    match error {
        Error::Engine(error) => Failure::compiler(program, error).into(),
        Error::GiveHandover { .. } => Failure::machine(format!("{program}: {}", whole(error))).into(),
        Error::ReadHeader(SplitError::Read(ref source))
        | Error::Read { ref source, .. }
        | Error::Write { ref source, .. }
        | Error::Remove { ref source, .. }
        | Error::StartThread { ref source, .. }
        | Error::TakeHandover { ref source, .. }
        | Error::TakeInput(ref source)
        | Error::GiveInput(ref source)
            if is_of_machine(source) =>
        {
            Failure::machine(whole(error)).into()
        }
        error => error.into(),
    }
}

/// Whether an error of the system, or of a server with objects, is about the machine, and not about a path of the user's.
/// Other errors without a number are ours, such as a refusal to write through a link.
fn is_of_machine(error: &io::Error) -> bool {
    let of_server = error.get_ref().and_then(|error| error.downcast_ref::<ObjectError>());
    if let Some(error) = of_server {
        return matches!(error, ObjectError::Failed { .. });
    }
    use io::ErrorKind::{IsADirectory, NotADirectory, NotFound, PermissionDenied};
    let is_of_path = matches!(error.kind(), NotFound | PermissionDenied | NotADirectory | IsADirectory);
    error.raw_os_error().is_some() && !is_of_path
}

/// Returns an error's text with its causes.
fn whole(error: Error) -> String {
    format!("{:#}", anyhow::Error::from(error))
}

fn changed(change: TaskChange) -> &'static str {
    match change {
        TaskChange::Program => "the program has changed",
        TaskChange::Input => "the input has changed",
        TaskChange::Split => "--split has changed",
        TaskChange::Function => "--invoke has changed",
        TaskChange::Args => "ARGS have changed",
        TaskChange::Folders => "--dir has changed",
        TaskChange::Env => "--env has changed",
        TaskChange::MaxMemory => "--max-memory has changed",
        TaskChange::Shard => "--shard has changed",
        TaskChange::Links => "--follow-links, or the target of a link in the input, has changed",
    }
}

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;
