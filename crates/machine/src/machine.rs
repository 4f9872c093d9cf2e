//! A running machine: posting events, taking answers, reading its state, taking checkpoints, shutting it down.

use crate::boot::Settings;
use crate::checkpoint::{Checkpoint, Hash};
use crate::error::{Error, Result};
use crate::event::{self, Event};
use crate::exchange::Change;
use crate::feed::Feed;
use crate::kernel::Kernel;
use crate::layout::*;
use crate::log::Log;
use crate::ring::Ring;
use crate::status::{self, Lanes, Status};
use gpu_run_compiler::Compiler;
use gpu_run_device::{Bell, Rest, Shared};
use gpu_run_gang::{Gang, Seat};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub(crate) const IN: Ring = Ring::new(IN_RING, IN_CAPACITY);
const PONG: Ring = Ring::new(PONG_RING, PONG_CAPACITY);
const OUT: Ring = Ring::new(OUT_RING, OUT_CAPACITY);
const DEBUG: Ring = Ring::new(DEBUG_RING, DEBUG_CAPACITY);

/// How long [`Machine::run_to`] pauses between two looks: briefly for a tick that is soon done, longer for others.
const SHORT_TICK: Duration = Duration::from_millis(2);
const SHORT_PAUSE: Duration = Duration::from_micros(30);
const LONG_PAUSE: Duration = Duration::from_micros(200);

/// A machine on a device. Dropping it shuts the machine down.
#[derive(Debug)]
pub struct Machine {
    inner: Arc<Inner>,
    service: Option<JoinHandle<Result<Ended>>>,
}

/// What remains of a machine after its shutdown.
#[derive(Debug)]
pub struct Ended {
    pub checkpoint: Checkpoint,
    pub hash: Hash,
    /// The machine's last report, read just before it was asked to leave.
    pub state: Status,
}

/// State that callers and the machine's thread share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) bus: Arc<Shared>,
    bell: Bell,
    /// On while the machine may rest, because it is held and has nothing to do: whoever changes something on the bus wakes it.
    pub(crate) rest: Rest,
    pub(crate) settings: Settings,
    /// The code that the machine runs now.
    kernel: Mutex<Kernel>,
    pub(crate) seat: Seat,
    /// The gang that ran before the last load. The next load may reuse its memory.
    pub(crate) spare: Mutex<Option<Gang>>,
    /// Held during a load: only one load runs at a time.
    pub(crate) loading: Mutex<()>,
    pub(crate) loads: AtomicU32,
    /// How long no tick could begin during the last load, in nanoseconds.
    pub(crate) load_gap: AtomicU64,
    pub(crate) sender: Mutex<EventSender>,
    pub(crate) replies: Mutex<ReplyReader>,
    pub(crate) lanes: Mutex<Lanes>,
    pub(crate) requests: Mutex<Vec<ServiceRequest>>,
    /// Messages for the user, until [`Machine::notices`] takes them.
    pub(crate) notices: Mutex<Vec<String>>,
    pub(crate) stop: AtomicBool,
    pub(crate) restarts: AtomicU32,
    /// CPU time of the machine's thread, in nanoseconds.
    pub(crate) host_cpu: AtomicU64,
    /// The process's counts of launches, waits and copies at the time the machine came up.
    launches: AtomicU64,
    waits: AtomicU64,
    copies: AtomicU64,
}

/// A request of a caller to the machine's thread.
#[derive(Debug)]
pub(crate) enum ServiceRequest {
    Checkpoint(SyncSender<Result<Arc<Checkpoint>>>),
    Feed(Feed, SyncSender<Result<()>>),
    /// Only ticks below this number may begin.
    Limit(u64),
    Load(Box<Change>),
    Read {
        at: u64,
        bytes: Vec<u8>,
        answer: SyncSender<Result<Vec<u8>>>,
    },
}

/// The host's side of the ring of events.
#[derive(Debug, Default)]
pub(crate) struct EventSender {
    /// Messages put into the ring so far.
    pub(crate) head: u32,
    /// Events that no tick has taken yet, as far as the ledger says; `true` for an event that is in the log already.
    pub(crate) pending: VecDeque<(Event, bool)>,
    /// Whether a feed supplies the events: callers cannot post then.
    pub(crate) feeding: bool,
}

/// The host's side of the rings from the device: how many messages of each ring were read.
#[derive(Debug, Default)]
pub(crate) struct ReplyReader {
    out: u32,
    pong: u32,
    debug: u32,
    /// Debug messages of code that has been replaced, already as text.
    messages: Vec<String>,
}

impl EventSender {
    pub(crate) fn waiting(&self, bus: &Shared) -> u32 {
        self.head.wrapping_sub(bus.load_u64(IN_TAKEN as u64) as u32)
    }

    pub(crate) fn room(&self, bus: &Shared) -> u32 {
        IN.capacity() - self.waiting(bus)
    }

    /// Puts an event into the ring. The caller has checked that the ring has a free line.
    pub(crate) fn put(&mut self, bus: &Shared, event: &Event, recorded: bool) {
        // First: the machine may take the event as soon as it is in the ring.
        if event.kind != event::PING && event.kind != event::MARK {
            self.pending.push_back((*event, recorded));
        }
        IN.put(bus, self.head, event);
        self.head = self.head.wrapping_add(1);
    }
}

impl Inner {
    pub(crate) fn new(gang: &Gang, settings: Settings, kernel: Kernel) -> Self {
        Self {
            bus: gang.bus().clone(),
            bell: gang.program().device().bell(),
            rest: Rest::default(),
            settings,
            kernel: Mutex::new(kernel),
            seat: gang.seat(),
            spare: Mutex::default(),
            loading: Mutex::default(),
            loads: AtomicU32::new(0),
            load_gap: AtomicU64::new(0),
            sender: Mutex::default(),
            replies: Mutex::default(),
            lanes: Mutex::default(),
            requests: Mutex::default(),
            notices: Mutex::default(),
            stop: AtomicBool::new(false),
            restarts: AtomicU32::new(0),
            host_cpu: AtomicU64::new(0),
            launches: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            copies: AtomicU64::new(0),
        }
    }

    /// Sets a control word, and has the machine look at once.
    pub(crate) fn control(&self, which: u32, value: u64) {
        self.bus.store_u64((CONTROL + which * 8) as u64, value);
        self.set_rest(false);
    }

    /// Tells the machine how many messages of a ring were read. A machine that does not rest looks soon enough by itself.
    pub(crate) fn tell_taken(&self, which: u32, taken: u32) {
        self.bus.store_u64((CONTROL + which * 8) as u64, taken as u64);
        self.wake_resting();
    }

    /// Lets the machine rest, or not any more, and has it look at once.
    pub(crate) fn set_rest(&self, on: bool) {
        self.rest.set(on);
        self.bell.ring();
    }

    /// Wakes the machine, if it rests, after a change on the bus. Returns whether it rested.
    fn wake_resting(&self) -> bool {
        let rests = self.rest.is_on();
        if rests {
            self.set_rest(false);
        }
        rests
    }

    /// Starts counting launches, waits and copies from here.
    pub(crate) fn is_up(&self) {
        self.launches.store(gpu_run_device::launches(), Ordering::Relaxed);
        self.waits.store(gpu_run_device::waits(), Ordering::Relaxed);
        self.copies.store(gpu_run_device::copies(), Ordering::Relaxed);
    }

    pub(crate) fn kernel(&self) -> Kernel {
        self.kernel.lock().clone()
    }

    /// Sets the code that runs now and returns the previous one. Formats the previous code's debug messages first,
    /// because their texts are in that code's data.
    pub(crate) fn set_kernel(&self, kernel: Kernel) -> Kernel {
        let mut replies = self.replies.lock();
        let messages = self.read_messages(&mut replies);
        replies.messages.extend(messages);
        std::mem::replace(&mut *self.kernel.lock(), kernel)
    }

    fn read_messages(&self, replies: &mut ReplyReader) -> Vec<String> {
        let (kernel, mut messages) = (self.kernel(), Vec::new());
        while let Some(message) = DEBUG.get(&self.bus, replies.debug) {
            replies.debug = replies.debug.wrapping_add(1);
            let text = kernel.text(message.key, message.id).unwrap_or_else(|| "?".to_owned());
            let text = text.replacen("{}", &message.a.to_string(), 1).replacen("{}", &message.b.to_string(), 1);
            messages.push(format!("[{}:{}] {text}", message.flags, message.kind));
        }
        messages
    }

    pub(crate) fn notice(&self, text: String) {
        tracing::warn!("{text}");
        self.notices.lock().push(text);
    }

    pub(crate) fn status(&self) -> Status {
        let mut lanes = self.lanes.lock();
        lanes.look(&self.bus);
        Status {
            waiting: self.sender.lock().waiting(&self.bus),
            launches: gpu_run_device::launches() - self.launches.load(Ordering::Relaxed),
            waits: gpu_run_device::waits() - self.waits.load(Ordering::Relaxed),
            copies: gpu_run_device::copies() - self.copies.load(Ordering::Relaxed),
            restarts: self.restarts.load(Ordering::Relaxed),
            loads: self.loads.load(Ordering::Relaxed),
            load_gap: Duration::from_nanos(self.load_gap.load(Ordering::Relaxed)),
            host_cpu: Duration::from_nanos(self.host_cpu.load(Ordering::Relaxed)),
            ..status::read(&self.bus, &lanes, self.settings.phases)
        }
    }
}

impl Machine {
    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    pub(crate) fn new(inner: Arc<Inner>, service: JoinHandle<Result<Ended>>) -> Self {
        Self { inner, service: Some(service) }
    }

    /// Puts an event into the machine's ring with a few stores. Returns [`Error::Full`] if the ring is full or a log is
    /// being replayed.
    pub fn post(&self, event: Event) -> Result<()> {
        if event.kind == event::MARK {
            return Err(Error::Usage("a mark is not an event".to_owned()));
        }
        let bus = &self.inner.bus;
        let mut sender = self.inner.sender.lock();
        if sender.feeding || sender.room(bus) == 0 {
            return Err(Error::Full { waiting: sender.waiting(bus) });
        }
        sender.put(bus, &event, false);
        drop(sender);
        if self.inner.wake_resting() {
            self.wake();
        }
        Ok(())
    }

    /// Returns the events that came back since the last call: answers to pings, then answers of ticks, each in order.
    pub fn take_events(&self) -> Vec<Event> {
        let bus = &self.inner.bus;
        let mut replies = self.inner.replies.lock();
        let ReplyReader { out, pong, .. } = &mut *replies;
        let mut events = Vec::new();
        for (ring, taken, word) in [(PONG, pong, C_PONG_TAKEN), (OUT, out, C_OUT_TAKEN)] {
            let before = *taken;
            while let Some(event) = ring.get(bus, *taken) {
                events.push(event);
                *taken = taken.wrapping_add(1);
            }
            if *taken != before {
                self.inner.tell_taken(word, *taken);
            }
        }
        events
    }

    /// Returns the messages of a debug kernel, each with its workgroup and thread: `[0:17] no room for 3`.
    pub fn debug_messages(&self) -> Vec<String> {
        let mut replies = self.inner.replies.lock();
        let mut messages = std::mem::take(&mut replies.messages);
        messages.extend(self.inner.read_messages(&mut replies));
        messages
    }

    /// Returns the machine's state as of its last heartbeat.
    pub fn status(&self) -> Status {
        self.inner.status()
    }

    /// Returns the code that the machine runs.
    pub fn kernel(&self) -> Kernel {
        self.inner.kernel()
    }

    /// Returns and clears the messages for the user: restarts, stuck phases, lost answers.
    pub fn notices(&self) -> Vec<String> {
        std::mem::take(&mut *self.inner.notices.lock())
    }

    /// Whether the machine's thread still runs; `false` after a failure.
    pub fn is_up(&self) -> bool {
        self.service.as_ref().is_some_and(|service| !service.is_finished())
    }

    /// Asks the machine's thread for something.
    pub(crate) fn ask(&self, request: ServiceRequest) {
        self.inner.requests.lock().push(request);
        self.wake();
    }

    /// Wakes the machine's thread.
    fn wake(&self) {
        if let Some(service) = &self.service {
            service.thread().unpark();
        }
    }

    /// Lets a held machine run.
    pub fn go(&self) {
        self.ask(ServiceRequest::Limit(u64::MAX));
    }

    /// Returns a checkpoint of the machine between two ticks.
    pub fn snapshot(&self) -> Result<Arc<Checkpoint>> {
        let (answer, answered) = sync_channel(1);
        self.ask(ServiceRequest::Checkpoint(answer));
        answered.recv().unwrap_or_else(|_| Err(gone()))
    }

    /// Returns a part of the machine's memory as it is now. It is of one tick if no tick can begin meanwhile ([`Machine::run_to`]).
    pub fn read(&self, at: u32, length: u32) -> Result<Vec<u8>> {
        let end = at as u64 + length as u64;
        let memory = self.inner.settings.place.memory();
        if end > memory as u64 {
            return Err(Error::Usage(format!("byte {end} is outside the machine's memory of {memory} bytes")));
        }
        let (answer, answered) = sync_channel(1);
        let bytes = vec![0; length as usize];
        self.ask(ServiceRequest::Read { at: at as u64, bytes, answer });
        answered.recv().unwrap_or_else(|_| Err(gone()))
    }

    /// Writes a checkpoint of the machine between two ticks; it is on disk when this returns.
    pub fn checkpoint(&self, path: &Path) -> Result<Arc<Checkpoint>> {
        let checkpoint = self.snapshot()?;
        checkpoint.write(path)?;
        Ok(checkpoint)
    }

    /// Replays a log from the tick where a held machine is: every tick takes the events that the log lists for it and
    /// runs the code that it ran with. Afterwards the machine continues by itself with its own code if `then_free` is
    /// set, and else stays where the log ends. `recorded`: these events are in the machine's own log already.
    pub fn replay(&self, compiler: &Compiler, log: &Log, then_free: bool, recorded: bool) -> Result<()> {
        let tick = self.snapshot()?.tick();
        if tick < log.from {
            return Err(Error::Usage(format!(
                "the log begins with tick {}, but the machine is at {tick}: resume it from a checkpoint of tick {} or later",
                log.from, log.from
            )));
        }
        let own = self.kernel();
        let stretches = log.stretches(tick);
        for (index, (code, from, to)) in stretches.iter().enumerate() {
            if let Some(hash) = code.filter(|hash| *hash != self.kernel().hash()) {
                self.load_as(compiler, &log.kernel(hash)?, !recorded)?;
            }
            let ticks = log.ticks.iter().filter(|(tick, _)| tick < to).cloned();
            let mut feed = Feed::new(ticks, *from, *to);
            feed.more = index + 1 < stretches.len();
            (feed.then_free, feed.recorded) = (then_free && !feed.more, recorded);
            let (answer, answered) = sync_channel(1);
            self.ask(ServiceRequest::Feed(feed, answer));
            answered.recv().unwrap_or_else(|_| Err(gone()))?;
        }
        if then_free && own != self.kernel() {
            self.load(compiler, &own)?;
        }
        Ok(())
    }

    /// Lets a held machine run up to this tick, and waits until it gets there.
    pub fn run_to(&self, tick: u64, patience: Duration) -> Result<()> {
        self.ask(ServiceRequest::Limit(tick));
        let since = Instant::now();
        while status::status(&self.inner.bus, STATUS_TICK) < tick {
            if !self.is_up() {
                return Err(gone());
            }
            let waited = since.elapsed();
            if waited > patience {
                return Err(Error::Slow { what: "reach its tick", seconds: patience.as_secs() });
            }
            std::thread::sleep(if waited < SHORT_TICK { SHORT_PAUSE } else { LONG_PAUSE });
        }
        Ok(())
    }

    /// Suppresses all heartbeats until the machine is restarted. The machine must run a kernel that was built with
    /// `faults`.
    #[cfg(feature = "faults")]
    pub fn mute(&self) {
        self.inner.control(C_MUTE, 1);
    }

    /// Shuts the machine down at a tick boundary.
    pub fn shutdown(mut self) -> Result<Ended> {
        self.end().unwrap_or_else(|| Err(gone()))
    }

    fn end(&mut self) -> Option<Result<Ended>> {
        self.inner.stop.store(true, Ordering::Relaxed);
        let service = self.service.take()?;
        service.thread().unpark();
        Some(service.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.end() {
            tracing::warn!("{error}");
        }
    }
}

pub(crate) fn gone() -> Error {
    Error::Usage("the machine has ended".to_owned())
}
