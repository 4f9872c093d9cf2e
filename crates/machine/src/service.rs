//! The machine's thread on the host: launches, the ledger, checkpoints, heartbeats.
//!
//! The thread wakes every few milliseconds; a few times a second while the machine is held and nothing happens. It takes no part in posting or taking events; callers wait for it only for
//! a checkpoint, a replay, a load or the shutdown.

use crate::boot::{read_state, set_control};
use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::feed::Feed;
use crate::kernel::Kernel;
use crate::layout::*;
use crate::log::Recorder;
use crate::machine::{Ended, Inner, ServiceRequest};
use crate::ring::Ring;
use crate::status::{status, stuck};
use crate::strategy::Strategy;
use gpu_run_gang::{Gang, Running, Successor};
use rustix::time::{ClockId, clock_gettime};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const LEDGER_RING: Ring = Ring::new(LEDGER, LEDGER_CAPACITY);

/// A machine without a heartbeat for this long is restarted.
const MAX_SILENCE: Duration = Duration::from_millis(1900);
/// How long the machine may take to reach a tick boundary and hold.
const MAX_HOLD_TIME: Duration = Duration::from_secs(10);
/// How long the machine may take to leave.
pub(crate) const MAX_LEAVE_TIME: Duration = Duration::from_secs(5);
/// How many events a restart may have to redo; beyond that, the service takes a checkpoint.
const MAX_EVENTS_SINCE_CHECKPOINT: usize = 1 << 20;

/// How long the thread sleeps between two rounds when it only watches.
const IDLE_PAUSE: Duration = Duration::from_millis(2);
/// How long it sleeps when the strategy launches often, or a feed or a hold is under way.
const BUSY_PAUSE: Duration = Duration::from_micros(300);

/// How long the machine must be held with nothing to do before it and this thread rest.
const REST_AFTER: Duration = Duration::from_millis(20);
/// How long the thread sleeps while they do. Whoever wants something wakes it.
const REST_PAUSE: Duration = Duration::from_millis(250);

pub(crate) struct Service {
    pub(crate) inner: Arc<Inner>,
    pub(crate) gang: Gang,
    pub(crate) launches: VecDeque<Running>,
    /// Launches that have finished since the device's memory was set up.
    pub(crate) ended: u64,
    pub(crate) limit: u64,
    /// The limit that a caller asked for before or during the feed, and that holds after it.
    pub(crate) limit_after_feed: Option<u64>,
    /// Ledger entries read so far.
    pub(crate) ledger: u32,
    pub(crate) recorder: Option<Recorder>,
    /// The checkpoint that a restart begins with, and the events that ticks took since.
    pub(crate) last: Arc<Checkpoint>,
    pub(crate) since: VecDeque<(u64, Vec<Event>)>,
    pub(crate) since_events: usize,
    pub(crate) feed: Option<(Feed, Option<SyncSender<Result<()>>>)>,
    hold: Option<Hold>,
    holds: u32,
    checkpoints: Option<(PathBuf, Duration)>,
    next_checkpoint: Instant,
    writer: Option<JoinHandle<Result<()>>>,
    /// The device clock of the last heartbeat seen, and when the host saw it.
    pub(crate) beat: (u64, Instant),
    was_stuck: bool,
    /// Since when the machine has been held with nothing to do.
    idle_since: Option<Instant>,
    /// Whether the user was told that answers are lost.
    said_lost: bool,
    /// Restarts since the last checkpoint.
    pub(crate) in_a_row: u32,
    /// The code that ran before the last load, until the new code reaches its first checkpoint.
    pub(crate) before: Option<Kernel>,
    /// Successors that were prepared and not loaded. They can be freed only while no launch runs.
    pub(crate) unused: Vec<Successor>,
}

/// A request to the machine to hold at a tick boundary.
struct Hold {
    number: u32,
    since: Instant,
    answers: Vec<SyncSender<Result<Arc<Checkpoint>>>>,
    /// Whether to write the periodic checkpoint file.
    periodic: bool,
}

pub(crate) fn start(mut service: Service) -> Result<JoinHandle<Result<Ended>>> {
    let begin = move || {
        let outcome = service.run();
        if let Err(error) = &outcome {
            service.inner.notice(format!("the machine has ended: {error}"));
        }
        outcome
    };
    let thread = std::thread::Builder::new().name("gpu-run machine".into()).spawn(begin);
    thread.map_err(|error| Error::Usage(format!("cannot start the machine's thread: {error}")))
}

impl Service {
    pub(crate) fn new(
        inner: Arc<Inner>,
        gang: Gang,
        first: Arc<Checkpoint>,
        limit: u64,
        recorder: Option<Recorder>,
        checkpoints: Option<(PathBuf, Duration)>,
    ) -> Self {
        let now = Instant::now();
        let next_checkpoint = now + checkpoints.as_ref().map_or(Duration::ZERO, |(_, every)| *every);
        Self {
            inner,
            gang,
            launches: VecDeque::new(),
            ended: 0,
            limit,
            limit_after_feed: None,
            ledger: 0,
            recorder,
            last: first,
            since: VecDeque::new(),
            since_events: 0,
            feed: None,
            hold: None,
            holds: 0,
            checkpoints,
            next_checkpoint,
            writer: None,
            beat: (0, now),
            was_stuck: false,
            idle_since: None,
            said_lost: false,
            in_a_row: 0,
            before: None,
            unused: Vec::new(),
        }
    }

    /// Starts the machine from the state in its memory.
    pub(crate) fn launch(&mut self) -> Result<()> {
        set_control(&self.inner.bus, &self.inner.settings, self.limit);
        self.beat = (0, Instant::now());
        self.keep_launched()
    }

    fn run(&mut self) -> Result<Ended> {
        while !self.inner.stop.load(Ordering::Relaxed) {
            if let Err(error) = self.keep_launched() {
                self.restart(format!("its launch failed: {error}"))?;
            }
            self.serve_requests()?;
            self.read_ledger()?;
            self.step_feed();
            self.step_checkpoint()?;
            self.watch()?;
            self.count_time();
            self.step_rest();
            self.pause();
        }
        self.finish()
    }

    /// Reaps finished launches and launches as many as the strategy wants in flight.
    pub(crate) fn keep_launched(&mut self) -> Result<()> {
        while let Some(first) = self.launches.front() {
            if !first.is_done()? {
                break;
            }
            if self.inner.settings.strategy == Strategy::Resident {
                return Err(why_ended(first)?);
            }
            self.count_ended()?;
            if let Strategy::Checkpointed(_) = self.inner.settings.strategy {
                // The launch has left, so this is a tick boundary.
                self.read_ledger()?;
                let checkpoint = Arc::new(read_state(&self.gang, &self.inner.settings.place)?);
                self.keep(checkpoint);
            }
        }
        while (self.launches.len() as u32) < self.inner.settings.strategy.depth() {
            self.gang.rest_with(&self.inner.rest);
            let launch = self.gang.launch("run")?;
            self.launches.push_back(launch);
        }
        Ok(())
    }

    /// Removes the oldest launch, which has finished. A launch publishes the number of launches that have begun, at the
    /// latest when it leaves; a lower number means that this launch failed before that.
    pub(crate) fn count_ended(&mut self) -> Result<()> {
        let Some(first) = self.launches.front() else { return Ok(()) };
        self.ended += 1;
        if status(&self.inner.bus, STATUS_LAUNCHES) < self.ended {
            return Err(why_ended(first)?);
        }
        self.launches.pop_front();
        Ok(())
    }

    fn serve_requests(&mut self) -> Result<()> {
        let requests = std::mem::take(&mut *self.inner.requests.lock());
        for request in requests {
            match request {
                ServiceRequest::Limit(limit) if self.feed.is_some() => self.limit_after_feed = Some(limit),
                ServiceRequest::Limit(limit) => self.set_limit(limit),
                ServiceRequest::Feed(feed, answer) => {
                    self.inner.sender.lock().feeding = true;
                    self.feed = Some((feed, Some(answer)));
                }
                ServiceRequest::Checkpoint(answer) => self.ask_to_hold(Some(answer), false),
                ServiceRequest::Read { at, mut bytes, answer } => {
                    let read = self.gang.read(at, &mut bytes).map(|()| bytes);
                    let _ = answer.send(read.map_err(Error::from));
                }
                ServiceRequest::Load(change) => self.exchange(*change)?,
            }
        }
        Ok(())
    }

    pub(crate) fn set_limit(&mut self, limit: u64) {
        if self.limit != limit {
            self.limit = limit;
            self.inner.control(C_LIMIT, limit);
        }
    }

    /// Writes the events that ticks took to the log, and keeps them until the next checkpoint.
    pub(crate) fn read_ledger(&mut self) -> Result<()> {
        let before = self.ledger;
        while let Some(took) = LEDGER_RING.get(&self.inner.bus, self.ledger) {
            self.ledger = self.ledger.wrapping_add(1);
            let tick = took.a as u64 | (took.b as u64) << 32;
            let events: Vec<(Event, bool)> = {
                let mut sender = self.inner.sender.lock();
                let count = (took.key as usize).min(sender.pending.len());
                sender.pending.drain(..count).collect()
            };
            let recorded = events.iter().all(|(_, recorded)| *recorded);
            let events: Vec<Event> = events.into_iter().map(|(event, _)| event).collect();
            if let (Some(recorder), false) = (&mut self.recorder, recorded) {
                recorder.events(tick, &events)?;
            }
            self.since_events += events.len();
            self.since.push_back((tick, events));
        }
        if self.ledger != before {
            self.inner.tell_taken(C_LEDGER_TAKEN, self.ledger);
        }
        Ok(())
    }

    fn step_feed(&mut self) {
        let Some((feed, _)) = &mut self.feed else { return };
        let bus = &self.inner.bus;
        let mut sender = self.inner.sender.lock();
        let recorded = feed.recorded;
        let limit = feed.step(sender.room(bus), |event, is_event| sender.put(bus, event, is_event && recorded));
        drop(sender);
        let (arrived, then_free) = (feed.is_sent() && status(bus, STATUS_TICK) >= feed.end, feed.then_free);
        let more = feed.more;
        self.set_limit(limit);
        if arrived && self.step_posted() {
            let answer = self.feed.take().and_then(|(_, answer)| answer);
            self.inner.sender.lock().feeding = more;
            if then_free {
                self.set_limit(u64::MAX);
            }
            if let Some(limit) = self.limit_after_feed.take() {
                self.set_limit(limit);
            }
            if let Some(answer) = answer {
                let _ = answer.send(Ok(()));
            }
        }
    }

    /// Puts events back into the ring that were posted before a restart and not taken. Returns whether all of them are
    /// in the ring.
    fn step_posted(&mut self) -> bool {
        let Some((feed, _)) = &mut self.feed else { return true };
        let mut sender = self.inner.sender.lock();
        while sender.room(&self.inner.bus) > 0 {
            let Some((event, recorded)) = feed.then.pop_front() else { return true };
            sender.put(&self.inner.bus, &event, recorded);
        }
        feed.then.is_empty()
    }

    fn ask_to_hold(&mut self, answer: Option<SyncSender<Result<Arc<Checkpoint>>>>, periodic: bool) {
        if self.hold.is_none() {
            self.holds += 1;
            let (number, since) = (self.holds, Instant::now());
            self.hold = Some(Hold { number, since, answers: Vec::new(), periodic: false });
            self.inner.control(C_HOLD, number as u64);
        }
        if let Some(hold) = &mut self.hold {
            hold.answers.extend(answer);
            hold.periodic |= periodic;
        }
    }

    fn step_checkpoint(&mut self) -> Result<()> {
        let due = self.checkpoints.is_some() && Instant::now() >= self.next_checkpoint;
        if due && self.writer.as_ref().is_none_or(JoinHandle::is_finished) {
            self.settle_writer()?;
            self.ask_to_hold(None, true);
            self.next_checkpoint =
                Instant::now() + self.checkpoints.as_ref().map_or(MAX_HOLD_TIME, |(_, every)| *every);
        } else if self.since_events > MAX_EVENTS_SINCE_CHECKPOINT {
            self.ask_to_hold(None, false);
        }
        let Some(hold) = &self.hold else { return Ok(()) };
        if status(&self.inner.bus, STATUS_HELD) as u32 != hold.number {
            if hold.since.elapsed() > MAX_HOLD_TIME {
                self.let_go(Err(MAX_HOLD_TIME.as_secs()));
            }
            return Ok(());
        }
        self.read_ledger()?;
        let checkpoint = Arc::new(read_state(&self.gang, &self.inner.settings.place)?);
        self.keep(checkpoint.clone());
        if let (Some((path, _)), true) = (&self.checkpoints, self.hold.as_ref().is_some_and(|hold| hold.periodic)) {
            // The log of the ticks before a checkpoint must be on disk before the checkpoint is.
            if let (Some(recorder), Some(last)) = (&mut self.recorder, checkpoint.tick().checked_sub(1)) {
                // Makes the log reach up to the checkpoint even if its last ticks took no events. A log that is being
                // replayed reaches further already.
                if self.feed.is_none() {
                    recorder.events(last, &[])?;
                }
                recorder.sync()?;
            }
            let (path, kept) = (path.clone(), checkpoint.clone());
            self.writer = Some(std::thread::spawn(move || kept.write(&path)));
        }
        self.let_go(Ok(checkpoint));
        Ok(())
    }

    /// Ends a hold and answers everyone who asked for it: with the checkpoint, or with the seconds that were waited in
    /// vain.
    pub(crate) fn let_go(&mut self, outcome: Result<Arc<Checkpoint>, u64>) {
        let Some(hold) = self.hold.take() else { return };
        self.inner.control(C_HOLD, 0);
        for answer in hold.answers {
            let told = outcome.clone().map_err(|seconds| Error::Slow { what: "reach a tick boundary", seconds });
            let _ = answer.send(told);
        }
    }

    pub(crate) fn keep(&mut self, checkpoint: Arc<Checkpoint>) {
        let tick = checkpoint.tick();
        while self.since.front().is_some_and(|(taken, _)| *taken < tick) {
            self.since_events -= self.since.pop_front().map_or(0, |(_, events)| events.len());
        }
        self.last = checkpoint;
        self.in_a_row = 0;
        self.before = None;
    }

    /// Waits until the checkpoint file is written.
    fn settle_writer(&mut self) -> Result<()> {
        match self.writer.take().map(JoinHandle::join) {
            Some(Ok(outcome)) => outcome,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(()),
        }
    }

    /// Restarts a machine without heartbeats, and reports stuck phases and lost answers.
    fn watch(&mut self) -> Result<()> {
        let clock = status(&self.inner.bus, STATUS_CLOCK);
        if clock != self.beat.0 {
            self.beat = (clock, Instant::now());
        } else if self.beat.1.elapsed() > MAX_SILENCE {
            let silent = self.beat.1.elapsed().as_secs_f64();
            return self.restart(format!("no heartbeat for {silent:.1} s"));
        }
        let phase = stuck(&self.inner.bus, self.inner.settings.phases);
        if let (Some(phase), false) = (phase, self.was_stuck) {
            self.inner.notice(format!("the machine has been in the phase `{phase}` for more than a second"));
        }
        self.was_stuck = phase.is_some();
        if !self.said_lost && status(&self.inner.bus, STATUS_LOST) != 0 {
            self.said_lost = true;
            self.inner.notice(format!("answers are being lost: {OUT_CAPACITY} are waiting, and the host reads none"));
        }
        self.inner.lanes.lock().look(&self.inner.bus);
        Ok(())
    }

    fn count_time(&self) {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        let nanoseconds = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
        self.inner.host_cpu.store(nanoseconds, Ordering::Relaxed);
    }

    /// Lets the machine rest when no tick may begin and nobody waits for anything.
    fn step_rest(&mut self) {
        let bus = &self.inner.bus;
        let is_idle = self.inner.settings.strategy == Strategy::Resident
            && self.feed.is_none()
            && self.hold.is_none()
            && !self.was_stuck
            && status(bus, STATUS_TICK) >= self.limit
            && self.inner.sender.lock().waiting(bus) == 0;
        if !is_idle {
            self.idle_since = None;
        } else if self.idle_since.get_or_insert_with(Instant::now).elapsed() > REST_AFTER && !self.inner.rest.is_on() {
            self.inner.set_rest(true);
        }
    }

    fn pause(&self) {
        let launches_often = self.inner.settings.strategy.ticks() != 0;
        if self.inner.rest.is_on() {
            let due = self.checkpoints.as_ref().map(|_| self.next_checkpoint.saturating_duration_since(Instant::now()));
            std::thread::park_timeout(due.map_or(REST_PAUSE, |due| due.min(REST_PAUSE)));
        } else if launches_often && self.inner.settings.period == 0 {
            std::thread::yield_now();
        } else if launches_often || self.feed.is_some() || self.hold.is_some() {
            std::thread::park_timeout(BUSY_PAUSE);
        } else {
            std::thread::park_timeout(IDLE_PAUSE);
        }
    }

    fn finish(&mut self) -> Result<Ended> {
        let state = self.inner.status();
        self.let_go(Err(0));
        self.leave()?;
        self.read_ledger()?;
        let checkpoint = read_state(&self.gang, &self.inner.settings.place)?;
        let hash = checkpoint.hash();
        self.settle_writer()?;
        if let Some(recorder) = &mut self.recorder {
            recorder.end(checkpoint.tick(), &hash)?;
        }
        if let Some((path, _)) = &self.checkpoints {
            checkpoint.write(path)?;
        }
        Ok(Ended { checkpoint, hash, state })
    }
}

/// Returns why a launch finished that should not have: its trap, or that it left by itself.
fn why_ended(launch: &Running) -> Result<Error> {
    let trap = launch.wait()?.err();
    Ok(Error::Usage(trap.map_or("it returned by itself".to_owned(), |trap| trap.to_string())))
}
