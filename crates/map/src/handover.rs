//! Continues a map in another process.
//!
//! A kernel fault poisons the whole process: after it, the driver refuses to make anything new there. So a process that
//! has lost its device, or the last one of several, replaces itself with the same program (`exec`), with the same
//! arguments, and hands over what the arguments do not say: how far the output is, what was counted, the program, and
//! what was read from a pipe but not written. All this travels in a file without a name; an environment variable holds
//! its descriptor. Whoever waits for the process, reads its output or feeds its stdin notices nothing.

use crate::dealer::Share;
use crate::error::Error;
use crate::input::chain::Anchor;
use crate::input::tape::Tape;
use crate::options::Options;
use crate::output::Counts;
use crate::output::journal::Progress;
use gpu_run_device::planned_faults;
use gpu_run_run::RunStats;
use gpu_run_run::Source;
use rustix::fs::{MemfdFlags, memfd_create};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// The environment variable with the file's descriptor.
const VARIABLE: &str = "GPU_RUN_MAP_HANDOVER";

/// What this process hands to the next.
#[derive(Debug)]
pub struct Handover {
    reason: HandoverReason,
    state: State,
    contents: Contents,
    /// Kept open until the next process has it.
    _tape: Option<Tape>,
}

/// What the process whose place we take has handed to us.
#[derive(Debug)]
pub struct Takeover {
    pub(crate) state: State,
    pub(crate) contents: Contents,
}

/// Why another process must continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandoverReason {
    #[error("{error}; continuing in a new process at record {record}")]
    DeviceLost { error: String, record: u64 },
    #[error("a record from {first} on does not finish and cannot be stopped; looking for it in a new process")]
    SomeRecordHangs { first: u64 },
    #[error("record {record} did not finish and could not be stopped; continuing without it in a new process")]
    RecordHangs { record: u64 },
}

/// The part of the handover that is text.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) done: Progress,
    /// Records after `done` that are written.
    #[serde(default)]
    pub(crate) skip: u64,
    /// Records one of which hangs.
    #[serde(default)]
    pub(crate) suspects: Option<Suspects>,
    /// Records that are known to hang.
    #[serde(default)]
    pub(crate) given_up: Vec<u64>,
    /// Records that earlier runs had done when the map began.
    pub(crate) before: u64,
    /// Failures that were reported.
    pub(crate) told: u64,
    pub(crate) counts: Counts,
    pub(crate) elapsed: Duration,
    pub(crate) spent: Spent,
    /// What each device did.
    #[serde(default)]
    pub(crate) shares: Vec<Share>,
    /// How often the device was lost since a record was last written.
    pub(crate) losses: u32,
    /// The program's name, `argv[0]` and length.
    pub(crate) program: (String, String, usize),
    pub(crate) stream: Option<Stream>,
    pub(crate) surroundings: Surroundings,
}

impl State {
    /// Returns how many records were written before this process, and stay.
    pub(crate) fn kept_records(&self) -> u64 {
        self.done.mark.records + self.skip
    }
}

/// The part of the handover that is not text.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    wasm: Arc<Vec<u8>>,
    pub(crate) header: Vec<u8>,
    /// The stream's bytes from the anchor on.
    pub(crate) input: Vec<u8>,
}

impl Handover {
    pub(crate) fn new(
        reason: HandoverReason,
        source: &Source,
        mut state: State,
        header: Vec<u8>,
        input: Vec<u8>,
        tape: Option<Tape>,
    ) -> Self {
        state.program = (source.name.clone(), source.argv0.clone(), source.wasm.len());
        if let Some(stream) = &mut state.stream {
            stream.header = header.len();
        }
        let contents = Contents { wasm: source.wasm.clone(), header, input };
        Self { reason, state, contents, _tape: tape }
    }

    /// Returns why another process must continue.
    pub fn reason(&self) -> &HandoverReason {
        &self.reason
    }

    /// Replaces this process with the same program. Returns only if that fails.
    pub fn give(self) -> Error {
        let source = match self.exec() {
            Ok(never) => match never {},
            Err(source) => source,
        };
        Error::GiveHandover { reason: self.reason, source }
    }

    fn exec(&self) -> io::Result<std::convert::Infallible> {
        // Not closed on exec. The file is gone with the last process that has it open.
        let mut file = File::from(memfd_create("gpu-run map", MemfdFlags::empty())?);
        serde_json::to_writer(&mut file, &self.state)?;
        let Contents { wasm, header, input } = &self.contents;
        for part in [b"\n", &wasm[..], header, input] {
            file.write_all(part)?;
        }
        file.seek(SeekFrom::Start(0))?;
        let mut args = std::env::args_os();
        let mut command = Command::new("/proc/self/exe");
        command.arg0(args.next().unwrap_or_else(|| "gpu-run".into())).args(args);
        command.env(VARIABLE, file.as_raw_fd().to_string());
        if let Some((name, value)) = planned_faults() {
            command.env(name, value);
        }
        Err(command.exec())
    }
}

impl Takeover {
    /// Returns what another process has left us, if we take its place.
    pub fn take() -> Result<Option<Self>, Error> {
        let Some(number) = std::env::var_os(VARIABLE) else { return Ok(None) };
        let taken = Self::read(&number).map(Some);
        taken.map_err(|source| Error::TakeHandover { variable: VARIABLE, number, source })
    }

    fn read(number: &OsString) -> io::Result<Self> {
        let mut file = BufReader::new(open(number)?);
        let mut text = Vec::new();
        file.read_until(b'\n', &mut text)?;
        let state: State = serde_json::from_slice(&text)?;
        let mut part = |length: usize| -> io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            let read = file.by_ref().take(length as u64).read_to_end(&mut bytes)?;
            if read == length { Ok(bytes) } else { Err(io::Error::other("the handover file is cut short")) }
        };
        let wasm = part(state.program.2)?.into();
        let header = part(state.stream.as_ref().map_or(0, |stream| stream.header))?;
        let mut input = Vec::new();
        file.read_to_end(&mut input)?;
        let contents = Contents { wasm, header, input };
        Ok(Self { state, contents })
    }

    /// Returns the program that the other process ran.
    pub fn source(&self) -> Source {
        let (name, argv0, _) = self.state.program.clone();
        Source { name, argv0, wasm: self.contents.wasm.clone() }
    }
}

/// What the user's paths led to when the map began. Guests have run since then, and may have put something else there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Surroundings {
    /// Device and inode number of each path, if it exists.
    identities: Vec<Option<(u64, u64)>>,
    /// Hash of the input's links that are followed.
    links: Option<String>,
}

/// The paths that the user gave to a map.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    pub(crate) input: Option<PathBuf>,
    pub(crate) output: Option<PathBuf>,
    folders: Vec<PathBuf>,
}

impl Paths {
    pub(crate) fn new(input: Option<PathBuf>, output: Option<PathBuf>, options: &Options) -> Self {
        Self { input, output, folders: options.folders.iter().map(|folder| folder.host.clone()).collect() }
    }

    fn iter(&self) -> impl Iterator<Item = &PathBuf> {
        self.input.iter().chain(&self.output).chain(&self.folders)
    }
}

impl Surroundings {
    pub(crate) fn of(paths: &Paths, links: Option<String>) -> Self {
        let identity = |path: &PathBuf| fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
        Self { identities: paths.iter().map(identity).collect(), links }
    }

    /// Refuses to continue if a path no longer leads to the same file or folder.
    pub(crate) fn check(&self, now: &Self, paths: &Paths) -> Result<(), Error> {
        let pairs = self.identities.iter().zip(&now.identities).zip(paths.iter());
        if let Some((_, path)) = pairs.into_iter().find(|((then, now), _)| then != now) {
            return Err(Error::PathReplaced(path.clone()));
        }
        if self.links != now.links {
            let input = paths.input.as_deref().unwrap_or(Path::new("-"));
            return Err(Error::LinksChanged(input.to_owned()));
        }
        Ok(())
    }
}

/// Records one of which hangs, and cannot be stopped: those before `until`, to be run `batch` at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Suspects {
    pub(crate) until: u64,
    pub(crate) batch: u32,
}

impl Suspects {
    /// After each hang, the batch is smaller by this factor.
    const FEWER_AT_ONCE: u32 = 32;

    /// Returns the records to suspect when a launch hangs while `first` is the first record that is not written; `None`
    /// if it is `first` itself. So many `batches` of the `usual` length can have been under way.
    pub(crate) fn narrowed(before: Option<Self>, first: u64, usual: u32, batches: u64) -> Option<Self> {
        match before.filter(|before| first < before.until) {
            None => {
                Some(Self { until: first + batches * u64::from(usual), batch: (usual / Self::FEWER_AT_ONCE).max(1) })
            }
            Some(Self { batch: 1, .. }) => None,
            Some(before) => Some(Self { batch: (before.batch / Self::FEWER_AT_ONCE).max(1), ..before }),
        }
    }
}

/// An input that can be read only once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Stream {
    pub(crate) anchor: Anchor,
    /// Its descriptor, if it is not stdin.
    pub(crate) file: Option<RawFd>,
    /// Bytes of CSV's header.
    header: usize,
}

impl Stream {
    pub(crate) fn new(anchor: Anchor, file: Option<RawFd>) -> Self {
        Self { anchor, file, header: 0 }
    }
}

/// The fields of [`RunStats`] that are added up.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Spent {
    instances: u64,
    launches: u64,
    hostcalls: u64,
    reruns: u64,
    on_host: u64,
    times: [Duration; 4],
}

impl From<&RunStats> for Spent {
    fn from(stats: &RunStats) -> Self {
        let RunStats { instances, launches, hostcalls, reruns, on_host, prepare, run, service, collect, .. } = *stats;
        Self { instances, launches, hostcalls, reruns, on_host, times: [prepare, run, service, collect] }
    }
}

impl From<Spent> for RunStats {
    fn from(spent: Spent) -> Self {
        let Spent { instances, launches, hostcalls, reruns, on_host, times: [prepare, run, service, collect] } = spent;
        Self { instances, launches, hostcalls, reruns, on_host, prepare, run, service, collect, ..Self::default() }
    }
}

/// Opens a file by its descriptor in this process.
fn open(number: &OsString) -> io::Result<File> {
    let mut path = OsString::from("/proc/self/fd/");
    path.push(number);
    File::open(path)
}

/// Opens the stream that was handed over under this descriptor.
pub(crate) fn open_stream(number: RawFd) -> Result<File, Error> {
    open(&number.to_string().into()).map_err(Error::TakeInput)
}
