//! A map from beginning to end: it is opened, begun and run, and handed to another process if the device is lost.

use crate::batch::Tuning;
use crate::dealer::{Dealer, Share};
use crate::error::Error;
use crate::handover::{Contents, Handover, Paths, State, Stream, Surroundings, Takeover};
use crate::input::reader::Reader;
use crate::input::{FoundInput, OpenInput};
use crate::observer::{Observer, Summary};
use crate::options::{Input, Options, Output, Split};
use crate::output::journal::Progress;
use crate::output::writer::{Rules, Writer};
use crate::output::{self, Counts, SharedWriter, StopHandle, Target, shards};
use crate::pipeline::{self, PipelineEnd};
use crate::runner::{Batches, Jobs, Launcher, OnDevice, OnHang, RunLimits, Runner};
use crate::successor::{Successor, TotalSpent};
use gpu_run_compiler::Program;
use gpu_run_run::Source;
use gpu_run_run::{Job, RunStats};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A map whose input and output are open. Nothing has been written yet.
pub struct Map {
    source: Source,
    options: Options,
    jobs: Jobs,
    input: OpenInput,
    target: Target,
    /// What an earlier run, or another process, has done.
    from: Progress,
    /// What another process has handed to this one.
    handed: Option<State>,
    surroundings: Surroundings,
}

impl Map {
    /// Opens input and output, and skips what an earlier run did. `handed` comes from the process whose place this one
    /// takes.
    pub fn open(
        input: Input,
        output: Output,
        options: Options,
        source: Source,
        handed: Option<Takeover>,
    ) -> Result<Self, Error> {
        let (handed, contents) = handed.map(|Takeover { state, contents }| (state, contents)).unzip();
        let paths = paths(&input, &output, &options);
        let found = FoundInput::find(input, &options)?;
        if let Some(handed) = &handed {
            handed.surroundings.check(&Surroundings::of(&paths, found.links()), &paths)?;
        }
        let target = output::open(output, paths.input.as_deref(), &found, &options, &source)?;
        // By now the output exists, even if it did not before.
        let surroundings = Surroundings::of(&paths, found.links());
        let mut from = match &handed {
            Some(handed) => handed.done.clone(),
            None => target.earlier(options.unfinished)?.unwrap_or_default(),
        };
        let stream: Option<(Stream, Contents)> = handed.as_ref().and_then(|handed| handed.stream.clone()).zip(contents);
        let mut input = found.open(options.split, options.shard, &from, stream)?;
        if options.shard.is_some() && from.mark.records == 0 {
            from.start = input.reader.mark();
            from.mark = from.start.clone();
        }
        input.length = input.length.map(|end| end.saturating_sub(from.start.offset));
        let jobs = Jobs::of_options(&options);
        Ok(Self { source, options, jobs, input, target, from, handed, surroundings })
    }

    /// Returns whether another process began this map.
    pub fn is_continued(&self) -> bool {
        self.handed.is_some()
    }

    /// Returns how far a shard is that an earlier run has finished, so that there is nothing to do. Any other finished
    /// output cannot be resumed.
    pub fn finished(&self) -> Option<Summary> {
        let (records, failed) = (self.from.records(), self.from.failed);
        let input_offset = self.from.mark.offset.saturating_sub(self.from.start.offset);
        let summary = Summary { records, before: records, failed, elapsed: Duration::ZERO, input_offset };
        self.from.finished.then_some(summary)
    }

    /// Returns the bytes of input, if known: of a shard, those of its records.
    pub fn input_bytes(&self) -> Option<u64> {
        self.input.length
    }

    /// Reads the first batch ahead of the others. Returns how many records it has.
    pub fn read_first(&mut self, max_records: u32) -> Result<usize, Error> {
        Ok(self.input.reader.read_first(max_records as usize)?.records.len())
    }

    /// Returns the jobs of the first batch, if it was read ahead, for a measurement.
    pub fn first_jobs(&mut self) -> Vec<Job> {
        self.input.reader.first().map_or_else(Vec::new, |batch| self.jobs.of_batch(batch))
    }

    /// Begins the map. From here on the output belongs to it: old output that this map does not continue is gone.
    pub fn begin(mut self, observer: Box<dyn Observer>) -> Result<BegunMap, Error> {
        self.target.begin(self.from.clone(), self.options.unfinished)?;
        let Options { split, fail_fast, timeout, max_memory, interrupt, .. } = self.options;
        let rules = Rules { lines: split != Split::Files, fail_fast, has_deadline: timeout.is_some() };
        let OpenInput { mut reader, length, again } = self.input;
        let writer = Writer::new(self.target, rules, observer, self.from, again.tape().cloned());
        let mut writer = self.handed.iter().fold(writer, Writer::continued);
        writer.begin(length);
        if let Some(handed) = &self.handed {
            self.jobs.give_up(&handed.given_up);
            reader.suspect(handed.suspects);
        }
        let header = reader.header().to_vec();
        let Self { source, jobs, handed, surroundings, .. } = self;
        let successor = Successor { source, again, header, handed, surroundings };
        Ok(BegunMap { reader, jobs, timeout, max_memory, interrupt, writer: SharedWriter::new(writer), successor })
    }
}

fn paths(input: &Input, output: &Output, options: &Options) -> Paths {
    let input = match input {
        Input::Path(path) => Some(path.clone()),
        Input::Stdin | Input::Object(_) | Input::Objects(_) | Input::Stream(_) => None,
    };
    let output = match (output, options.shard) {
        (Output::Path(path), Some(shard)) if options.split != Split::Files => Some(shards::path_beside(path, shard)),
        (Output::Path(path), _) => Some(path.clone()),
        (Output::Object(_) | Output::Objects(_) | Output::Stream(_), _) => None,
    };
    Paths::new(input, output, options)
}

/// A map that has begun: its journal exists.
pub struct BegunMap {
    reader: Reader,
    jobs: Jobs,
    timeout: Option<Duration>,
    max_memory: Option<u64>,
    interrupt: Option<Arc<AtomicBool>>,
    writer: SharedWriter,
    successor: Successor,
}

/// How a map ended.
#[derive(Debug)]
pub enum Ended {
    /// All records are written.
    Finished(Box<Finished>),
    /// A record failed, and the options say to stop there; or the map was interrupted.
    Stopped,
    /// Another process must continue: [`Handover::give`] starts it.
    HandOver(Box<Handover>),
}

#[derive(Debug)]
pub struct Finished {
    /// What all processes of the run spent.
    pub stats: RunStats,
    /// What each device did: first those that [`BegunMap::run`] was given, in that order.
    pub shares: Vec<Share>,
    pub counts: Counts,
    /// Failed records, including those of earlier runs.
    pub failed: u64,
    /// What was learned about the program on each device.
    pub tunings: Vec<Option<Tuning>>,
}

impl BegunMap {
    /// Returns a handle that stops the map from outside.
    pub fn stop_handle(&self) -> StopHandle {
        self.writer.stop_handle()
    }

    /// Runs every record on one of these devices and writes its output, in this thread and others: one that reads, and
    /// two for each device. Each device has the program as it is loaded there, and how batches run there.
    pub fn run(self, devices: Vec<(Arc<Program>, Batches)>) -> Result<Ended, Error> {
        let Self { reader, jobs, timeout, max_memory, interrupt, writer, successor } = self;
        let Some(max_records) = devices.iter().map(|(_, batches)| batches.max_records).max() else {
            return Err(Error::Internal("a map without a device"));
        };
        let shares = devices.iter().map(|(program, _)| Share::of(program.device().properties())).collect();
        let dealer = Dealer::new(shares, successor.spent(), successor.suspects()).interrupted_by(interrupt.clone());
        let dealer = Arc::new(dealer);
        let limits = RunLimits { max_memory, timeout, interrupt };
        let on_hang: OnHang = Arc::new({
            let dealer = dealer.clone();
            move || dealer.hang()
        });
        let (count, has_threads) = (devices.len(), devices.iter().any(|(_, batches)| batches.gangs.is_some()));
        let records = max_records as usize;
        let end = if has_threads {
            let launcher = |(program, batches)| Launcher::new(program, batches, limits.clone(), on_hang.clone());
            let engines = devices.into_iter().map(launcher).collect::<Result<Vec<_>, _>>().map_err(Error::Engine)?;
            let runners = engines.into_iter().map(|engine| Runner::new(engine, jobs.clone())).collect();
            pipeline::run(reader, runners, records, &writer, &dealer)?
        } else {
            let alone = successor.alone();
            let engine = |(program, batches)| OnDevice::new(program, batches, limits.clone(), alone, on_hang.clone());
            match jobs.calls() {
                Some(calls) => {
                    let grouped = |device| engine(device).grouped(calls.clone());
                    let runners = devices.into_iter().map(|device| Runner::new(grouped(device), jobs.clone()));
                    pipeline::run(reader, runners.collect(), records, &writer, &dealer)?
                }
                None => {
                    let runners = devices.into_iter().map(|device| Runner::new(engine(device), jobs.clone()));
                    pipeline::run(reader, runners.collect(), records, &writer, &dealer)?
                }
            }
        };
        let (stats, shares) = dealer.spent();
        let spent = TotalSpent { stats, shares: successor.shares(shares), devices: count };
        match end {
            PipelineEnd::Finished(tunings) => {
                let writer = writer.lock();
                let (counts, failed) = (writer.counts().clone(), writer.failed());
                let TotalSpent { stats, shares, .. } = spent;
                Ok(Ended::Finished(Box::new(Finished { stats, shares, counts, failed, tunings })))
            }
            PipelineEnd::Stopped => Ok(Ended::Stopped),
            PipelineEnd::DeviceLost(lost) => successor.after_loss(lost, &writer, spent),
            PipelineEnd::Hung => successor.after_hang(max_records, &writer, spent),
        }
    }
}

/// The first records of an input, for a measurement: nothing is written.
pub struct Sample {
    reader: Reader,
    jobs: Jobs,
}

impl Sample {
    pub fn open(input: Input, options: &Options) -> Result<Self, Error> {
        let input = FoundInput::find(input, options)?.open(options.split, options.shard, &Progress::default(), None)?;
        Ok(Self { reader: input.reader, jobs: Jobs::of_options(options) })
    }

    /// Returns the jobs of the first batch.
    pub fn jobs(mut self, max_records: u32) -> Result<Vec<Job>, Error> {
        let batch = self.reader.read_first(max_records as usize)?;
        Ok(self.jobs.of_batch(batch))
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Map").field("source", &self.source.name).field("from", &self.from).finish_non_exhaustive()
    }
}

impl fmt::Debug for BegunMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BegunMap").field("writer", &self.writer).finish_non_exhaustive()
    }
}

impl fmt::Debug for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sample").field("reader", &self.reader).finish_non_exhaustive()
    }
}
