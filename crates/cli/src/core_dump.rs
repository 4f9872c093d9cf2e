//! `--coredump DIR`: a file for each instance and process that traps.

use anyhow::Result;
use gpu_run_compiler::{Error, printable};
use gpu_run_console::failure::Failure;
use gpu_run_console::units::{count, show_size};
use gpu_run_run::{DumpError, Examiner, Held, Remains, Whose, WrittenDump};
use parking_lot::Mutex;
use rustix::fs::{Access, AtFlags, Mode, OFlags, access, open, openat, unlinkat};
use rustix::io::Errno;
use std::fs::{DirBuilder, File};
use std::io::{self, BufWriter};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many instances and processes of a run get a core dump.
const MAX_DUMPS: usize = 10;
/// How many names are tried for a file: none is overwritten.
const MAX_NAMES: u32 = 1000;
/// The most characters of a program's name in a file's name.
const MAX_NAME: usize = 100;

/// The name of a file and what is in it, or why there is none.
type Written = Result<(String, WrittenDump), String>;

/// The folder of core dumps, and what was written there.
#[derive(Debug)]
pub(crate) struct CoreDumps {
    folder: PathBuf,
    /// The folder, held open: a guest cannot put a link in its place.
    open: OwnedFd,
    program: String,
    /// Whether the files' names have the number of the instance.
    is_numbered: bool,
    /// Writing a large memory takes long, as does finding out about many threads; that is no hang.
    held: Mutex<Option<Held>>,
    /// Whose each is, in words, and what became of it.
    results: Mutex<Vec<(String, Written)>>,
    /// How many there were to write.
    wanted: AtomicUsize,
}

impl CoreDumps {
    /// Opens the folder; makes it, if it is not there.
    pub(crate) fn new(folder: &Path, program: &str, instances: u32) -> Result<Self> {
        let shown = printable::path(folder);
        let failed = |what: &str, error: io::Error| {
            Failure::usage(format!("--coredump {shown}: {what}: {error}")).hint("name a folder that you can write to")
        };
        if !folder.exists() {
            if folder.is_symlink() {
                let what = format!("--coredump {shown}: a link to a folder that is not there");
                return Err(Failure::usage(what).hint("make that folder, or name another one").into());
            }
            DirBuilder::new().mode(0o700).create(folder).map_err(|error| failed("the folder cannot be made", error))?;
        }
        // It need not be readable.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open =
            open(folder, flags, Mode::empty()).map_err(|error| failed("cannot open it as a folder", error.into()))?;
        access(folder, Access::WRITE_OK | Access::EXEC_OK)
            .map_err(|error| failed("nothing can be written there", error.into()))?;
        Ok(Self {
            folder: folder.to_owned(),
            open,
            program: program.to_owned(),
            is_numbered: instances > 1,
            held: Mutex::default(),
            results: Mutex::default(),
            wanted: AtomicUsize::new(0),
        })
    }

    /// A watchdog that waits while core dumps are written.
    pub(crate) fn hold(&self, held: Option<Held>) {
        *self.held.lock() = held;
    }

    /// Returns lines that name the files, or say why there are none.
    pub(crate) fn report(&self) -> String {
        let mut text = String::new();
        for (whose, result) in self.results.lock().iter() {
            text += &match result {
                Ok((name, dump)) => {
                    let path = self.folder.join(name);
                    let rest = if dump.is_whole { "" } else { ", without the end of its memory, which is too large" };
                    format!(
                        "  note: the core dump{whose} is {}, {}{rest}\n",
                        printable::path(&path),
                        show_size(dump.bytes)
                    )
                }
                Err(why) => {
                    format!("  note: no core dump{whose} was written in {}: {why}\n", printable::path(&self.folder))
                }
            };
        }
        match self.wanted.load(Ordering::Relaxed).saturating_sub(MAX_DUMPS) {
            0 => {}
            more => text += &format!("  note: {} after these left no core dump\n", count(more as u64, "other")),
        }
        text
    }

    fn write(&self, whose: Whose<'_>, remains: &Remains<'_>) -> Written {
        let program = match whose {
            Whose::Instance(_) => &self.program,
            Whose::Process(_, program) => program,
        };
        let (name, file) = self.create(whose, program).map_err(|error| error.to_string())?;
        let written = remains.write_core_dump(program, BufWriter::new(&file)).and_then(|written| {
            // A full disk may be noticed only now.
            file.sync_all().map_err(DumpError::from)?;
            Ok(written)
        });
        match written {
            Ok(written) => Ok((name, written)),
            Err(error) => {
                // Half a core dump is of no use, and takes space that somebody may lack.
                let _ = unlinkat(&self.open, &name, AtFlags::empty());
                Err(error.to_string())
            }
        }
    }

    /// Makes a file that was not there, which only the user can read: memory may hold secrets.
    fn create(&self, whose: Whose<'_>, program: &str) -> io::Result<(String, File)> {
        let number = match whose {
            Whose::Instance(number) if self.is_numbered => format!(".{number}"),
            Whose::Instance(_) => String::new(),
            Whose::Process(number, _) => format!(".{number}"),
        };
        let stem = format!("{}.{}{number}", file_name(program), std::process::id());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for attempt in 0..MAX_NAMES {
            let name = match attempt {
                0 => format!("{stem}.coredump"),
                again => format!("{stem}-{again}.coredump"),
            };
            match openat(&self.open, &name, flags, Mode::RUSR | Mode::WUSR) {
                Err(Errno::EXIST) => {}
                made => return Ok((name, File::from(made?))),
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "there are too many files of that name"))
    }
}

impl Examiner for CoreDumps {
    fn held(&self) -> Option<Held> {
        self.held.lock().clone()
    }

    fn examines(&self, whose: Whose<'_>, remains: Result<&Remains<'_>, &Error>) {
        if self.wanted.fetch_add(1, Ordering::Relaxed) >= MAX_DUMPS {
            return;
        }
        let result = remains.map_err(|error| error.to_string()).and_then(|remains| self.write(whose, remains));
        let whose = match whose {
            Whose::Instance(number) if self.is_numbered => format!(" of instance {number}"),
            Whose::Instance(_) => String::new(),
            Whose::Process(number, program) => format!(" of {} (process {number})", printable::name(program)),
        };
        self.results.lock().push((whose, result));
    }
}

/// Returns a program's name as a part of a file's name.
fn file_name(program: &str) -> String {
    let last = Path::new(program).file_name().map_or_else(|| program.into(), |name| name.to_string_lossy());
    let plain = |c: char| if c.is_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let name: String = last.chars().map(plain).take(MAX_NAME).collect();
    // A leading dot would hide the file.
    match name.trim_start_matches('.') {
        "" => "program".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_programs_name_cannot_lead_elsewhere() {
        for (program, name) in
            [("a/b/app.wasm", "app.wasm"), ("..", "program"), ("a b\n.wat", "a_b_.wat"), ("-", "-"), (".x", "x")]
        {
            assert_eq!(file_name(program), name);
        }
        assert_eq!(file_name(&"é".repeat(300)).chars().count(), MAX_NAME);
    }
}
