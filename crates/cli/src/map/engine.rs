//! A loaded program and its slots, as the runner needs them.

use super::Shared;
use super::runner::Engine;
use crate::args::{DeviceChoice, LaunchArgs};
use crate::devices;
use crate::run::{Loaded, Watchdog};
use anyhow::{Context, Result};
use gpu_run_engine::{Done, Error, Job, Mapper, RunStats};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(crate) struct OnDevice {
    /// `None` once the device was lost and could not be opened again.
    loaded: Option<Loaded>,
    mapper: Option<Mapper>,
    /// Room that the mapper was asked to have.
    room: usize,
    /// Records of the largest batch.
    most: usize,
    device: DeviceChoice,
    max_memory: Option<u64>,
    timeout: Option<Duration>,
    file: String,
    writer: Shared,
}

impl OnDevice {
    pub(crate) fn new(loaded: Loaded, most: usize, args: &LaunchArgs, file: String, writer: Shared) -> Self {
        let (device, max_memory, timeout) = (args.device, args.max_memory, args.timeout);
        Self { loaded: Some(loaded), mapper: None, room: 0, most, device, max_memory, timeout, file, writer }
    }

    pub(crate) fn loaded(&self) -> Option<&Loaded> {
        self.loaded.as_ref()
    }

    /// Slots for so many. A short input gets as few as it needs, a long one gets all at its second batch at the latest.
    fn mapper(&mut self, jobs: usize) -> Result<&mut Mapper, Error> {
        let kept = self.mapper.take().filter(|_| self.room >= jobs);
        let mapper = match kept {
            Some(mapper) => mapper,
            None => {
                let gone = || Error::Internal("the device is gone".into());
                let program = self.loaded.as_ref().ok_or_else(gone)?.program.clone();
                self.room = if self.room == 0 { jobs } else { self.most };
                Mapper::new(program, self.room, self.max_memory)?
            }
        };
        Ok(self.mapper.insert(mapper))
    }
}

impl Engine for OnDevice {
    fn run(&mut self, jobs: &[Job]) -> Result<(Vec<Done>, RunStats), Error> {
        let deadline = self.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let writer = self.writer.clone();
        let hang = move || {
            writer.end("the device hangs");
        };
        let _watchdog = self.timeout.map(|timeout| Watchdog::start(timeout, self.file.clone(), hang));
        self.mapper(jobs.len())?.run(jobs, deadline)
    }

    fn reopen(&mut self) -> Result<()> {
        // All that was made on the lost device goes first.
        self.mapper = None;
        let loaded = self.loaded.take().context("the device is gone")?;
        self.loaded = Some(loaded.reload(|| devices::open(self.device), &self.file)?);
        Ok(())
    }
}
