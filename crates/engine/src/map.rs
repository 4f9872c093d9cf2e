//! Many records through one program: bytes in, bytes out.
//!
//! A [`Mapper`] keeps a loaded program's slots between batches, so that the next batch costs a launch and nothing
//! else. A [`Job`] is one instance: what it is given, and its stdin. What became of it, and what it wrote, is a [`Done`](crate::Done).
//!
//! ```text
//! begin    inputs to the device, launch ordered          inputs, line
//! (runs)   the line's thread launches and serves         line, batch, bus
//! finish   endings and outputs to the host               written, results
//!          what a build could not finish runs again, with a safer one
//!          if launches take long, another build is tried    probation
//! ```
//!
//! Two batches can be under way: while one runs, the host makes the next ready and reads the results of the last.

use crate::batch::LaunchBuffers;
use crate::bus::Guests;
use crate::compile::Sibling;
use crate::error::Error;
use crate::inputs::Inputs;
use crate::journal;
use crate::line::{Desk, Desks, Line, Ordered, Report, Watch};
use crate::outbox::Outboxes;
use crate::probation::{Probation, Slow};
use crate::program::{End, Program, RunStats};
use crate::results::{Piece, Results};
use crate::tune::{Tuning, Variant};
use crate::wave::stillborn;
use crate::written::{Again, Given, POOL, Past, Wave};
use gpu_run_abi::launch::local;
use gpu_run_abi::layout::WORD;
use gpu_run_abi::{Launch, Layout};
use gpu_run_device::Error as DeviceError;
use gpu_run_wasi::Builder;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// One instance to run.
#[derive(Clone, Debug)]
pub struct Job {
    /// Arguments, environment, directories: the same for all jobs that share it.
    pub context: Arc<Builder>,
    /// What the instance finds in `GPU_RUN_INSTANCE`.
    pub number: u64,
    pub stdin: Arc<[u8]>,
}

/// The variable that tells an instance which it is.
pub(crate) const NUMBER: &str = "GPU_RUN_INSTANCE";
/// Instances that run again at once: few are expected.
const AGAIN: usize = 1024;
/// If more than one of so many instances has to run again for want of memory, all go to where there is more from then on.
const MANY: usize = 16;
/// The same for what quick checks cannot be sure of: exact ones take longer, so that to run some twice is less.
const MOST: usize = 2;
/// What runs again has the rest of its time; if all went by, so much of it once more: some may have ended long before the others were asked to.
const LAST_CHANCE: u32 = 8;

/// A loaded program, and room for a number of instances of it.
///
/// Dropped, it waits for what runs.
pub struct Mapper {
    inner: Arc<Inner>,
}

struct Inner {
    program: Arc<Program>,
    /// `None`: the module's segments do not fit, and no instance ever begins.
    room: Option<Room>,
    watch: Option<Watch>,
    pool: usize,
    /// As it was asked for.
    extent: Extent,
    /// Other builds of the program, by [`Sibling`].
    siblings: [Mutex<Option<Arc<Mapper>>>; 3],
    /// Whether another one is faster.
    probation: Probation,
    /// All begin in this build instead: so many could not finish here, or it is faster.
    instead: OnceLock<Sibling>,
}

/// How much of a device a [`Mapper`] takes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extent {
    /// Instances at once, if the device has memory for them.
    pub capacity: usize,
    /// Bytes an instance's memory may grow to.
    pub max_memory: Option<u64>,
    /// Lanes of a warp that run an instance, if not all do.
    pub lanes: Option<u32>,
    /// After such a launch another build is tried, unless nobody wants it: see [`crate::SLOW`].
    pub slow: Option<Slow>,
}

/// Slots, and what goes with them.
struct Room {
    line: Line,
    desks: Desks,
    inputs: Mutex<Inputs>,
    /// What every launch is told.
    launch: Launch,
    selector: u32,
    capacity: usize,
    memory_limit: u64,
    device_bytes: u64,
}

impl std::fmt::Debug for Mapper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mapper").field("program", &self.inner.program).field("capacity", &self.capacity()).finish()
    }
}

impl Mapper {
    /// Sets aside room for instances. Each calls `_start`. `watch` is called before every launch; what it gives is dropped after it.
    pub fn new(program: Arc<Program>, extent: Extent, watch: Option<Watch>) -> Result<Self, Error> {
        Self::with_pool(program, extent, watch, POOL)
    }

    fn with_pool(program: Arc<Program>, extent: Extent, watch: Option<Watch>, pool: usize) -> Result<Self, Error> {
        let room = match program.compiled().initial.trap {
            Some(_) => None,
            None => Some(Room::new(&program, extent)?),
        };
        let (siblings, instead) = (Default::default(), OnceLock::new());
        // The other build is one without these.
        let is_usual = program.compiled().layout == Layout::Interleaved && extent.lanes.is_none();
        let probation = Probation::new(extent.slow.filter(|_| is_usual));
        Ok(Self { inner: Arc::new(Inner { program, room, watch, pool, extent, siblings, probation, instead }) })
    }

    /// How many instances run at once. A batch may have more: they go one launch after the other.
    pub fn capacity(&self) -> usize {
        self.inner.room.as_ref().map_or(usize::MAX, |room| room.capacity)
    }

    /// Runs one instance for each job and says what became of each, in order. Those that run at once have `timeout`; what
    /// still runs then is ended. After an error nothing is known of any of them.
    pub fn run(&self, jobs: Vec<Job>, timeout: Option<Duration>) -> Result<(Results, RunStats), Error> {
        self.begin(jobs, timeout)?.finish()
    }

    /// Begins a batch. If two are under way that nobody has finished, it waits for one of them: a thread that begins
    /// has to finish, or leave that to another one.
    pub fn begin(&self, jobs: Vec<Job>, timeout: Option<Duration>) -> Result<Pending, Error> {
        self.begin_with(jobs, HashMap::new(), timeout)
    }

    /// The same for jobs of which some have run before, by place.
    fn begin_with(
        &self,
        jobs: Vec<Job>,
        pasts: HashMap<usize, Past>,
        timeout: Option<Duration>,
    ) -> Result<Pending, Error> {
        if let Some(instead) = self.inner.instead.get() {
            return self.inner.sibling(*instead, self.capacity())?.begin_with(jobs, pasts, timeout);
        }
        // What has run before has its own build.
        let tried = if pasts.is_empty() { self.inner.probation.part_of(jobs.len().min(self.capacity())) } else { 0 };
        let usual = jobs.len() - tried;
        let mut pending = Pending {
            mapper: self.inner.clone(),
            left: 0..usual,
            tried: (tried > 0).then_some(usual..jobs.len()),
            kept: None,
            jobs: Arc::new(jobs),
            pasts,
            timeout,
            pool: Arc::new(AtomicUsize::new(self.inner.pool)),
            journal_room: Arc::new(AtomicUsize::new(journal::ROOM)),
            under_way: VecDeque::new(),
            stats: RunStats::default(),
        };
        if let Some(room) = &self.inner.room
            && !pending.left.is_empty()
        {
            let make = || room.desk(&self.inner.program);
            pending.launch(room, room.desks.take(make)?)?;
            // Of a large batch, two launches can be under way; to wait for a desk here could be for ever.
            while !pending.left.is_empty()
                && let Some(desk) = room.desks.take_now(make)
            {
                pending.launch(room, desk?)?;
            }
        }
        Ok(pending)
    }

    /// Whether a part of the next batch is to try another build.
    pub fn tries_another(&self) -> bool {
        self.inner.probation.is_due()
    }

    /// What was found out about the builds, if another one was tried.
    pub fn tuning(&self) -> Option<Tuning> {
        let own_memory = self.inner.program.compiled().slots.own > 0;
        let (registers, batch) = (self.inner.program.compiled().options.registers, self.inner.extent.capacity as u32);
        self.inner.probation.tuning(Variant { interleaved: true, own_memory, lanes: None, registers, batch })
    }

    /// Waits until all that was begun is finished, by whoever does it.
    pub fn settle(&self) {
        if let Some(room) = &self.inner.room {
            room.desks.wait_for_all();
        }
    }
}

impl Drop for Mapper {
    fn drop(&mut self) {
        // A batch that is still pending may keep the rest, but not the slots.
        if let Some(room) = &self.inner.room {
            room.line.close();
        }
    }
}

impl Room {
    fn new(program: &Program, extent: Extent) -> Result<Self, Error> {
        let (selector, _) = program.compiled().arguments("_start", &[])?;
        let capacity = extent.capacity.max(1);
        // What an instance may have does not change if fewer fit.
        let most = program.memory_limit(capacity as u64, extent.max_memory)?;
        let (capacity, mut batch) = fitting(capacity, |capacity| program.batch(capacity as u64, most))?;
        batch.set_lanes(extent.lanes);
        let launch = batch.describe(Launch::default());
        let (memory_limit, device_bytes) = (batch.memory_limit(), batch.device_bytes());
        let (line, desks, inputs) = (Line::new(batch)?, Desks::default(), Mutex::default());
        let room = Self { line, desks, inputs, launch, selector, capacity, memory_limit, device_bytes };
        // The first is always needed: if there is no memory for it, that is told now.
        room.desks.put(Some(room.desks.take(|| room.desk(program))?));
        Ok(room)
    }

    fn desk(&self, program: &Program) -> Result<Desk, Error> {
        let (device, slots) = (program.device(), self.capacity as u64);
        Ok(Desk {
            buffers: LaunchBuffers::new(device, program.compiled(), self.capacity)?,
            inputs: device.allocate(slots * 2 * WORD)?,
            strings: None,
            outboxes: Arc::new(Outboxes::new(device, slots)?),
        })
    }
}

/// A batch that was begun.
pub struct Pending {
    mapper: Arc<Inner>,
    jobs: Arc<Vec<Job>>,
    /// Those that were not launched yet.
    left: Range<usize>,
    /// Those that are to try another build, behind all others,
    tried: Option<Range<usize>>,
    /// and a desk for them if they cannot.
    kept: Option<Box<Desk>>,
    /// Those that have run before and were not launched yet, by place.
    pasts: HashMap<usize, Past>,
    timeout: Option<Duration>,
    pool: Arc<AtomicUsize>,
    journal_room: Arc<AtomicUsize>,
    /// In order. Each has a desk, which goes back.
    under_way: VecDeque<UnderWay>,
    stats: RunStats,
}

struct UnderWay {
    ordered: Ordered,
    wave: Arc<Wave>,
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pending").field("jobs", &self.jobs.len()).field("left", &self.left).finish_non_exhaustive()
    }
}

impl Pending {
    /// Waits until the batch has run, and says what became of each job, in order.
    pub fn finish(mut self) -> Result<(Results, RunStats), Error> {
        let mapper = self.mapper.clone();
        self.stats.instances = self.jobs.len() as u64;
        let Some(room) = &mapper.room else { return Ok((self.stillborn(), std::mem::take(&mut self.stats))) };
        self.stats.device_bytes = room.device_bytes;
        let mut results = Results::default();
        while let Some(UnderWay { ordered, wave }) = self.under_way.pop_front() {
            let (desk, report) = ordered.wait();
            let ran = report.as_ref().map_or(Duration::ZERO, |report| report.run);
            let collected = self.collect(desk.as_deref(), &wave, report);
            // The next part goes first: what runs again can do so beside it.
            match desk {
                Some(desk) if !self.left.is_empty() && collected.is_ok() => self.launch(room, desk)?,
                Some(desk) if self.tried.is_some() && self.under_way.is_empty() => self.kept = Some(desk),
                desk => room.desks.put(desk),
            }
            let (pieces, again) = collected?;
            let first = results.len();
            results.append(pieces.into());
            self.run_again(&wave, first, &again, ran, &mut results)?;
            if let Some(desk) = self.kept.take() {
                self.try_other(room, desk, &mut results)?;
            }
        }
        Ok((results, std::mem::take(&mut self.stats)))
    }

    /// Launches as many as there is room for.
    fn launch(&mut self, room: &Room, desk: Box<Desk>) -> Result<(), Error> {
        let began = Instant::now();
        let range = self.left.start..self.left.end.min(self.left.start + room.capacity);
        self.left.start = range.end;
        let ordered = self.order(room, desk, range).map_err(|(desk, error)| {
            room.desks.put(Some(desk));
            error
        });
        self.stats.prepare += began.elapsed();
        self.under_way.push_back(ordered?);
        Ok(())
    }

    fn order(&mut self, room: &Room, mut desk: Box<Desk>, range: Range<usize>) -> Result<UnderWay, (Box<Desk>, Error)> {
        let mut inputs = room.inputs.lock().unwrap_or_else(PoisonError::into_inner);
        let written = inputs.write(self.mapper.program.device(), &mut desk, &self.jobs[range.clone()]);
        drop(inputs);
        let pasts: HashMap<u32, Past> = range
            .clone()
            .filter_map(|place| Some(((place - range.start) as u32, self.pasts.remove(&place)?)))
            .collect();
        let Launch { image, pieces, ports, port_bytes, local: always, .. } = room.launch;
        let told = written.and_then(|mut local| {
            if !pasts.is_empty() {
                // The host knows which bytes they were given before.
                local.local &= !local::RANDOM;
            }
            let told = Launch { image, pieces, ports, port_bytes, local: local.local | always, ..local };
            desk.buffers.write(&told)?;
            Ok(Given { key: local.key, first: local.first, journals: self.mapper.program.compiled().may_run_again() })
        });
        let given = match told {
            Ok(given) => given,
            Err(error) => return Err((desk, error)),
        };
        let count = range.len();
        let room_left = [self.pool.clone(), self.journal_room.clone()];
        let wave = Arc::new(Wave::new(self.jobs.clone(), range, desk.outboxes.clone(), room_left, given, pasts));
        let guests = Guests::Quiet(count, wave.clone());
        let ordered = room.line.order(desk, room.selector, guests, self.timeout, self.mapper.watch.clone())?;
        Ok(UnderWay { ordered, wave })
    }

    /// Reads what became of the instances of a launch that has ended.
    fn collect(
        &mut self,
        desk: Option<&Desk>,
        wave: &Wave,
        report: Result<Report, Error>,
    ) -> Result<(Vec<Piece>, Again), Error> {
        let report = report?;
        self.stats.launches += 1;
        self.stats.hostcalls += report.hostcalls;
        self.stats.run += report.run;
        self.mapper.probation.note(wave.jobs().len(), report.run, self.timeout);
        self.stats.service += report.service;
        let Some(desk) = desk else { return Err(Error::Internal("a launch without its buffers".into())) };
        let began = Instant::now();
        let endings = desk.buffers.endings(wave.jobs().len(), 0)?;
        let collected = wave.results(self.mapper.program.compiled(), &endings, report.stopped);
        self.stats.collect += began.elapsed();
        collected
    }

    /// Runs the last part of the batch in another build, to see whether it is faster. If there is none, it is launched here.
    fn try_other(&mut self, room: &Room, desk: Box<Desk>, results: &mut Results) -> Result<(), Error> {
        let tried = self.tried.take().unwrap_or_default();
        let other = self.mapper.sibling(Sibling::Apart, tried.len());
        if let Err(error) = &other
            && !error.is_device_lost()
        {
            tracing::info!(%error, "no other build can be tried");
            self.mapper.probation.judge(None);
            self.left = tried;
            return self.launch(room, desk);
        }
        room.desks.put(Some(desk));
        let jobs = self.jobs[tried.clone()].to_vec();
        let (done, stats) = other?.begin_with(jobs, HashMap::new(), self.timeout)?.finish()?;
        match self.mapper.probation.judge(Some((tried.len(), stats.run))) {
            true => drop(self.mapper.instead.set(Sibling::Apart)), // one that is needed stays
            false => drop(self.mapper.lock(Sibling::Apart).take()),
        }
        self.stats.add(&RunStats { instances: 0, ..stats });
        results.append(done);
        Ok(())
    }

    /// Runs those of a wave again that its build could not finish, in the time that is left. The wave's results begin at `first`.
    fn run_again(
        &mut self,
        wave: &Wave,
        first: usize,
        again: &Again,
        ran: Duration,
        results: &mut Results,
    ) -> Result<(), Error> {
        let timeout = self.timeout.map(|timeout| timeout.saturating_sub(ran).max(timeout / LAST_CHANCE));
        for (safer, slots, some) in [(Sibling::Roomy, &again.roomy, MANY), (Sibling::Exact, &again.exact, MOST)] {
            if slots.len() > wave.jobs().len() / some {
                let _ = self.mapper.instead.set(safer); // the first stays
            }
        }
        for (safer, slots) in [(Sibling::Roomy, &again.roomy), (Sibling::Exact, &again.exact)] {
            if slots.is_empty() {
                continue;
            }
            tracing::debug!(count = slots.len(), ?safer, "run again");
            let jobs = slots.iter().map(|slot| wave.jobs()[*slot].clone()).collect();
            let pasts = slots.iter().enumerate().filter_map(|(place, slot)| Some((place, wave.past(*slot)?))).collect();
            let (done, more) = self.mapper.sibling(safer, slots.len())?.begin_with(jobs, pasts, timeout)?.finish()?;
            self.stats.add(&RunStats { instances: 0, again: more.again + slots.len() as u64, ..more });
            for (slot, done) in slots.iter().zip(done.iter()) {
                results.replace(first + slot, done);
            }
        }
        Ok(())
    }

    fn stillborn(&self) -> Results {
        let mut results = Results::default();
        let code = self.mapper.program.compiled().initial.trap;
        for _ in self.jobs.iter() {
            results.push(code.map_or(End::Returned, stillborn), b"", b"", false);
        }
        results
    }
}

impl Inner {
    fn lock(&self, which: Sibling) -> MutexGuard<'_, Option<Arc<Mapper>>> {
        self.siblings[which as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same program in another build, with room for so many instances, or for a few. They may have as much memory as here, so that they do
    /// the same.
    fn sibling(&self, which: Sibling, count: usize) -> Result<Arc<Mapper>, Error> {
        let mut sibling = self.lock(which);
        let capacity = count.max(AGAIN).min(self.extent.capacity.max(1));
        if let Some(mapper) = sibling.take_if(|mapper| mapper.inner.extent.capacity < capacity) {
            // Its memory is needed.
            mapper.settle();
        }
        if let Some(mapper) = &*sibling {
            return Ok(mapper.clone());
        }
        let max_memory = self.room.as_ref().map(|room| room.memory_limit);
        let lanes = if which == Sibling::Apart { Variant::apart(0).lanes } else { self.extent.lanes };
        let extent = Extent { capacity, max_memory, lanes, slow: None };
        let program = Arc::new(self.program.rebuilt(which)?);
        let mapper = Mapper::with_pool(program, extent, self.watch.clone(), self.pool)?;
        Ok(sibling.insert(Arc::new(mapper)).clone())
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let Some(room) = &self.mapper.room else { return };
        if let Some(desk) = self.kept.take() {
            room.desks.put(Some(desk));
        }
        for UnderWay { ordered, .. } in self.under_way.drain(..) {
            room.desks.put(ordered.wait().0);
        }
    }
}

/// Makes it with half as much room, and half of that, until the device has the memory. Says how much it was.
fn fitting<T>(capacity: usize, mut make: impl FnMut(usize) -> Result<T, Error>) -> Result<(usize, T), Error> {
    let mut room = capacity;
    loop {
        match make(room) {
            Err(Error::Device(DeviceError::OutOfMemory { .. })) if room > 1 => room = room.div_ceil(2),
            made => {
                if room < capacity {
                    tracing::info!(capacity, room, "the device has memory for fewer instances at once");
                }
                return made.map(|made| (room, made));
            }
        }
    }
}

#[cfg(test)]
#[path = "map_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "map_float_tests.rs"]
mod float_tests;

#[cfg(test)]
#[path = "map_probation_tests.rs"]
mod probation_tests;

#[cfg(test)]
#[path = "map_ahead_tests.rs"]
mod ahead_tests;
