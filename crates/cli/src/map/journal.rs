//! What an unfinished output needs to be finished: a small file beside it, or in it if it is a folder.
//!
//! The journal says what was being done (program, input, options) and how far it is safely on disk: so many records,
//! so many bytes of output. It is there before the first byte of output and gone after the last, and each version of it
//! replaces the one before in one step, after the output it speaks of was flushed. So at whatever moment the process or the
//! machine dies, the journal is whole and the output is at least as long as it says; what is beyond belongs to a batch that
//! was not finished and is done again.

use super::reader::Mark;
use crate::failure::Failure;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Behind the output's name. In a folder, every name that begins so is ours.
pub(crate) const SUFFIX: &str = ".gpu-run-map";
const VERSION: u32 = 2;

/// What is being done. Two runs with the same task give the same output, whatever the device and the size of batches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Task {
    /// blake3 of the module.
    pub(crate) program: String,
    pub(crate) input: Identity,
    pub(crate) split: String,
    pub(crate) args: Vec<String>,
    pub(crate) dirs: Vec<String>,
    /// blake3 of the variables: their values may be secret.
    pub(crate) env: String,
    pub(crate) max_memory: Option<u64>,
}

/// How the input is known again. What is no file is known by [`Mark::seen`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Identity {
    File { path: PathBuf, bytes: u64, modified: (i64, i64) },
    Folder { path: PathBuf },
    Stream,
}

impl Identity {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let (metadata, path) = (fs::metadata(path)?, fs::canonicalize(path)?);
        Ok(if metadata.is_dir() {
            Self::Folder { path }
        } else if metadata.is_file() {
            Self::File { path, bytes: metadata.len(), modified: (metadata.mtime(), metadata.mtime_nsec()) }
        } else {
            Self::Stream
        })
    }
}

/// How far it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Progress {
    pub(crate) mark: Mark,
    /// Bytes of output; 0 where the output is a folder.
    pub(crate) output: u64,
    /// Records that failed.
    pub(crate) failed: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Content {
    version: u32,
    task: Task,
    progress: Progress,
}

/// The journal of one output.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    task: Task,
}

impl Journal {
    pub(crate) fn beside(file: &Path, task: Task) -> Self {
        let mut path = OsString::from(file);
        path.push(SUFFIX);
        Self { path: path.into(), task }
    }

    /// Not beside it: the folder may be all that we can write to.
    pub(crate) fn within(folder: &Path, task: Task) -> Self {
        Self { path: folder.join(SUFFIX), task }
    }

    pub(crate) fn exists(&self) -> bool {
        self.path.symlink_metadata().is_ok()
    }

    /// How far an earlier run came with the same task. `None`: there was none, or it finished.
    pub(crate) fn read(&self) -> Result<Option<Progress>> {
        let damaged = || {
            Failure::usage(format!("{} is no journal that this version of gpu-run can read", self.path.display()))
                .hint("begin anew with --force")
        };
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", self.path.display())),
        };
        let content: Content = serde_json::from_slice(&bytes).map_err(|_| damaged())?;
        if content.version != VERSION {
            return Err(damaged().into());
        }
        match difference(&content.task, &self.task) {
            Some(what) => Err(Failure::usage(format!("--resume: {what} since the unfinished output was begun"))
                .hint("resume with what it was, or begin anew with --force")
                .into()),
            None => Ok(Some(content.progress)),
        }
    }

    /// Replaces the journal, in one step. The output it speaks of has been flushed.
    pub(crate) fn write(&self, progress: &Progress) -> Result<()> {
        let content = Content { version: VERSION, task: self.task.clone(), progress: progress.clone() };
        self.replace(&content).with_context(|| format!("cannot write {}", self.path.display()))
    }

    fn replace(&self, content: &Content) -> io::Result<()> {
        let fresh = self.fresh();
        let mut file = File::create(&fresh)?;
        file.write_all(&serde_json::to_vec(content)?)?;
        file.sync_all()?;
        fs::rename(&fresh, &self.path)?;
        sync_folder(&self.path)
    }

    /// All is done.
    pub(crate) fn remove(&self) -> Result<()> {
        let _ = fs::remove_file(self.fresh());
        fs::remove_file(&self.path).with_context(|| format!("cannot remove {}", self.path.display()))
    }

    fn fresh(&self) -> PathBuf {
        self.path.with_added_extension("new")
    }
}

/// A name in a folder is as lasting as the folder.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// The first thing that is no longer as it was.
fn difference(then: &Task, now: &Task) -> Option<&'static str> {
    let same = [
        ("the program has changed", then.program == now.program),
        ("the input has changed", then.input == now.input),
        ("--split has changed", then.split == now.split),
        ("ARGS have changed", then.args == now.args),
        ("--dir has changed", then.dirs == now.dirs),
        ("--env has changed", then.env == now.env),
        ("--max-memory has changed", then.max_memory == now.max_memory),
    ];
    same.into_iter().find(|(_, same)| !same).map(|(what, _)| what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> Task {
        let (input, args) = (Identity::Stream, vec!["a".into()]);
        let (program, split, env) = ("p".into(), "lines".into(), "e".into());
        Task { program, input, split, args, dirs: Vec::new(), env, max_memory: None }
    }

    fn progress() -> Progress {
        let mark = Mark { records: 7, offset: 99, line: 8, seen: Some("h".into()), anchor: None };
        Progress { mark, output: 1234, failed: 1 }
    }

    #[test]
    fn what_was_written_is_read_and_then_gone() {
        let place = tempfile::tempdir().unwrap();
        let journal = Journal::beside(&place.path().join("out"), task());
        assert_eq!(journal.path, place.path().join("out.gpu-run-map"));
        assert_eq!(journal.read().unwrap(), None);
        journal.write(&Progress::default()).unwrap();
        journal.write(&progress()).unwrap();
        assert_eq!(journal.read().unwrap(), Some(progress()));
        fs::write(journal.fresh(), "half a jour").unwrap();
        assert_eq!(journal.read().unwrap(), Some(progress()), "a version that was not finished does not count");
        journal.remove().unwrap();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn another_task_is_refused_with_what_differs() {
        let place = tempfile::tempdir().unwrap();
        Journal::beside(&place.path().join("o"), task()).write(&progress()).unwrap();
        let others = [
            ("the program", Task { program: "q".into(), ..task() }),
            ("the input", Task { input: Identity::Folder { path: "x".into() }, ..task() }),
            ("ARGS", Task { args: Vec::new(), ..task() }),
            ("--env", Task { env: String::new(), ..task() }),
            ("--max-memory", Task { max_memory: Some(1), ..task() }),
        ];
        for (what, other) in others {
            let error = Journal::beside(&place.path().join("o"), other).read().unwrap_err().to_string();
            assert!(error.contains(what) && error.contains("--force"), "{error}");
        }
    }

    #[test]
    fn a_damaged_journal_is_told_and_not_believed() {
        let place = tempfile::tempdir().unwrap();
        let journal = Journal::beside(&place.path().join("o"), task());
        for text in ["", "{}", "{\"version\": 1}"] {
            fs::write(&journal.path, text).unwrap();
            assert!(journal.read().unwrap_err().to_string().contains("no journal"), "{text}");
        }
    }
}
