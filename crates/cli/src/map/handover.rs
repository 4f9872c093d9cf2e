//! A map that goes on in another process.
//!
//! A GPU's fault is the process's: after it the driver refuses to make anything new there. So the process that
//! loses its device starts the same program in its own place (`exec`), with the same arguments, and hands it what arguments do not say: how far the
//! output is, what was counted, the program, and of a pipe what was read but not written. That travels in a file without a name; a
//! variable says under which number it is open. Whoever waits for the process, reads its output or feeds its stdin notices nothing.

use super::args::MapArgs;
use super::chain::Anchor;
use super::journal::Progress;
use crate::report::Counts;
use crate::source::Source;
use anyhow::{Context, Result, bail};
use gpu_run_device::planned_faults;
use gpu_run_run::RunStats;
use rustix::fs::{MemfdFlags, memfd_create};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The number of the open file.
const VARIABLE: &str = "GPU_RUN_MAP_HANDOVER";

/// What one process tells the next.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Handover {
    pub(crate) done: Progress,
    /// Records behind `done` that are written.
    #[serde(default)]
    pub(crate) skip: u64,
    /// Records one of which does not end.
    #[serde(default)]
    pub(crate) suspects: Option<Suspects>,
    /// Records that did not end by themselves, one by one.
    #[serde(default)]
    pub(crate) given_up: Vec<u64>,
    /// Records that earlier runs had done when the map began.
    pub(crate) before: u64,
    /// Failures that were told.
    pub(crate) told: u64,
    pub(crate) counts: Counts,
    pub(crate) elapsed: Duration,
    pub(crate) spent: Spent,
    /// How often the device was lost since a record was last written.
    pub(crate) losses: u32,
    /// The program's name, `argv[0]` and length.
    pub(super) program: (String, String, usize),
    pub(crate) stream: Option<Stream>,
    pub(crate) surroundings: Surroundings,
}

/// What the user's paths led to when the map began. Guests have run since: they may have put something else there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Surroundings {
    /// Device and number of each, where there is something.
    identities: Vec<Option<(u64, u64)>>,
    /// The input's links that are followed.
    links: Option<String>,
}

impl Surroundings {
    pub(crate) fn of(args: &MapArgs, links: Option<String>) -> Self {
        let identity = |path: &Path| fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
        Self { identities: Self::paths(args).map(identity).collect(), links }
    }

    fn paths(args: &MapArgs) -> impl Iterator<Item = &Path> {
        let input = Some(&*args.input).filter(|_| !args.reads_stdin());
        input.into_iter().chain(args.output()).chain(args.launch.preopens().map(|dir| &*dir.host))
    }

    /// Refuses to go on where something is no longer what it was.
    pub(crate) fn check(&self, now: &Self, args: &MapArgs) -> Result<()> {
        let pairs = self.identities.iter().zip(&now.identities).zip(Self::paths(args));
        if let Some((_, path)) = pairs.into_iter().find(|((then, now), _)| then != now) {
            bail!("cannot go on in a new process: {} was replaced while the map ran", path.display());
        }
        if self.links != now.links {
            bail!("cannot go on in a new process: links of {} were changed while the map ran", args.input.display());
        }
        Ok(())
    }
}

/// Records one of which does not end, nor when it is told to: up to this one, and so many at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Suspects {
    pub(crate) until: u64,
    pub(crate) batch: u32,
}

impl Suspects {
    /// How many times fewer run at a time after each time that one of them did not end.
    const FEWER: u32 = 32;

    /// Whom to suspect when a launch did not end, of records from `first` on; `None`, if it was the first one.
    pub(crate) fn narrowed(before: Option<Self>, first: u64, usual: u32) -> Option<Self> {
        match before {
            // Those that ran, those that waited to run, and those that were read meanwhile.
            None => Some(Self { until: first + 4 * u64::from(usual), batch: (usual / Self::FEWER).max(1) }),
            Some(Self { batch: 1, .. }) => None,
            Some(before) => Some(Self { batch: (before.batch / Self::FEWER).max(1), ..before }),
        }
    }
}

/// An input that comes once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Stream {
    pub(crate) anchor: Anchor,
    /// What it is open under, where it is not stdin.
    pub(crate) file: Option<RawFd>,
    /// Bytes of CSV's header.
    header: usize,
}

/// Contents that are no text.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) wasm: Vec<u8>,
    pub(crate) header: Vec<u8>,
    /// Of the stream, from the anchor on.
    pub(crate) input: Vec<u8>,
}

/// Of [`RunStats`], what is added up.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Spent {
    instances: u64,
    launches: u64,
    hostcalls: u64,
    again: u64,
    on_host: u64,
    times: [Duration; 4],
}

impl From<&RunStats> for Spent {
    fn from(stats: &RunStats) -> Self {
        let RunStats { instances, launches, hostcalls, again, on_host, prepare, run, service, collect, .. } = *stats;
        Self { instances, launches, hostcalls, again, on_host, times: [prepare, run, service, collect] }
    }
}

impl From<Spent> for RunStats {
    fn from(spent: Spent) -> Self {
        let Spent { instances, launches, hostcalls, again, on_host, times: [prepare, run, service, collect] } = spent;
        Self { instances, launches, hostcalls, again, on_host, prepare, run, service, collect, ..Self::default() }
    }
}

impl Stream {
    pub(crate) fn new(anchor: Anchor, file: Option<RawFd>) -> Self {
        Self { anchor, file, header: 0 }
    }
}

impl Handover {
    /// What another process has left us, if we take its place.
    pub(crate) fn take() -> Result<Option<(Self, Contents)>> {
        let Some(number) = std::env::var_os(VARIABLE) else { return Ok(None) };
        Self::read(&number).map(Some).with_context(|| format!("cannot go on with a map ({VARIABLE}={number:?})"))
    }

    fn read(number: &OsString) -> Result<(Self, Contents)> {
        let mut file = BufReader::new(open(number)?);
        let mut text = Vec::new();
        file.read_until(b'\n', &mut text)?;
        let handover: Self = serde_json::from_slice(&text)?;
        let mut part = |length: usize| -> Result<Vec<u8>> {
            let mut bytes = Vec::new();
            let read = file.by_ref().take(length as u64).read_to_end(&mut bytes)?;
            if read == length { Ok(bytes) } else { bail!("it ends too early") }
        };
        let wasm = part(handover.program.2)?;
        let header = part(handover.stream.as_ref().map_or(0, |stream| stream.header))?;
        let mut input = Vec::new();
        file.read_to_end(&mut input)?;
        Ok((handover, Contents { wasm, header, input }))
    }

    /// The program, as it was.
    pub(crate) fn source(&self, wasm: Vec<u8>) -> Source {
        let (name, argv0, _) = self.program.clone();
        Source { name, argv0, wasm: wasm.into() }
    }

    /// Starts the same program in this one's place. Returns only if that fails.
    pub(crate) fn give(mut self, source: &Source, header: &[u8], input: &[u8]) -> Result<std::convert::Infallible> {
        self.program = (source.name.clone(), source.argv0.clone(), source.wasm.len());
        if let Some(stream) = &mut self.stream {
            stream.header = header.len();
        }
        // Not closed on exec; gone with the last process that has it open.
        let mut file = File::from(memfd_create("gpu-run map", MemfdFlags::empty())?);
        serde_json::to_writer(&mut file, &self)?;
        for part in [b"\n", &source.wasm[..], header, input] {
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
        Err(command.exec().into())
    }
}

/// A file that is open in this process under a number.
fn open(number: &OsString) -> Result<File> {
    let mut path = OsString::from("/proc/self/fd/");
    path.push(number);
    Ok(File::open(path)?)
}

/// The stream that was handed on under a number.
pub(crate) fn open_stream(number: RawFd) -> Result<File> {
    open(&number.to_string().into()).context("cannot go on reading the input")
}
