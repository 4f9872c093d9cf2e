//! What a booted machine tells `gpu-run top`: a small file, replaced several times a second, in a folder that only its owner can read.

use anyhow::{Context as _, Result};
use gpu_run_machine::State;
use serde::{Deserialize, Serialize};
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A machine, as another process sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Published {
    pub(crate) pid: u32,
    pub(crate) device: String,
    pub(crate) strategy: String,
    /// Since it was up.
    pub(crate) seconds: f64,
    pub(crate) tick: u64,
    pub(crate) events: u64,
    pub(crate) refused: u64,
    pub(crate) waiting: u32,
    pub(crate) lost: u64,
    pub(crate) heap_bytes: u64,
    pub(crate) objects: u64,
    pub(crate) timers: u64,
    pub(crate) work: u64,
    pub(crate) heartbeat_gap_ms: f64,
    pub(crate) late: u64,
    pub(crate) launches: u64,
    pub(crate) restarts: u32,
    pub(crate) loads: u32,
    pub(crate) load_gap_ms: f64,
    /// Of a core.
    pub(crate) host_cpu: f64,
    /// Name, seconds, lanes active.
    pub(crate) phases: Vec<(String, f64, Option<f64>)>,
    pub(crate) stuck: Option<String>,
}

impl Published {
    pub(crate) fn new(device: &str, strategy: &str, seconds: f64, host_cpu: f64, state: &State) -> Self {
        let phase = |p: &gpu_run_machine::Phase| (p.name.to_owned(), p.time.as_secs_f64(), p.lanes_active());
        Self {
            pid: std::process::id(),
            device: device.to_owned(),
            strategy: strategy.to_owned(),
            seconds,
            tick: state.tick,
            events: state.events,
            refused: state.refused,
            waiting: state.waiting,
            lost: state.lost,
            heap_bytes: state.heap_bytes,
            objects: state.objects,
            timers: state.timers,
            work: state.work,
            heartbeat_gap_ms: milliseconds(state.heartbeat_gap),
            late: state.late,
            launches: state.launches,
            restarts: state.restarts,
            loads: state.loads,
            load_gap_ms: milliseconds(state.load_gap),
            host_cpu,
            phases: state.phases.iter().map(phase).collect(),
            stuck: state.stuck.map(str::to_owned),
        }
    }
}

pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Where the files are: the user's own folder for what is running, or one among temporary files.
fn folder() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) if !folder.is_empty() => Path::new(&folder).join("gpu-run"),
        _ => std::env::temp_dir().join(format!("gpu-run-{}", rustix::process::getuid().as_raw())),
    }
}

/// This process's file; removed when dropped.
#[derive(Debug)]
pub(crate) struct Publisher(PathBuf);

impl Publisher {
    /// `None` where there is no place for it: a machine runs all the same.
    pub(crate) fn new() -> Option<Self> {
        let folder = folder();
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).ok()?;
        Some(Self(folder.join(format!("machine-{}.json", std::process::id()))))
    }

    pub(crate) fn publish(&self, published: &Published) {
        let draft = self.0.with_extension("tmp");
        let written = serde_json::to_vec(published).map_err(Into::into).and_then(|bytes| fs::write(&draft, bytes));
        if let Err(error) = written.and_then(|()| fs::rename(&draft, &self.0)) {
            tracing::debug!("{}: {error}", self.0.display());
        }
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The machine of a process, or the one whose process is alive and wrote last.
pub(crate) fn find(pid: Option<u32>) -> Result<Option<Published>> {
    let folder = folder();
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        entries => entries.with_context(|| folder.display().to_string())?,
    };
    let mut newest = None;
    for entry in entries.flatten() {
        let Some(published) = read(&entry.path()) else { continue };
        let alive = Path::new("/proc").join(published.pid.to_string()).exists();
        if !alive || pid.is_some_and(|pid| pid != published.pid) {
            continue;
        }
        let time = entry.metadata().and_then(|m| m.modified()).ok();
        if newest.as_ref().is_none_or(|(other, _)| *other < time) {
            newest = Some((time, published));
        }
    }
    Ok(newest.map(|(_, published)| published))
}

fn read(path: &Path) -> Option<Published> {
    if path.extension().is_none_or(|extension| extension != "json") {
        return None;
    }
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}
