//! A machine that is up: posting events, taking what comes back, looking at it, keeping it, ending it.

use crate::boot::Settings;
use crate::checkpoint::{Checkpoint, Hash};
use crate::error::{Error, Result};
use crate::event::{self, Event};
use crate::exchange::Change;
use crate::feed::Feed;
use crate::image::Image;
use crate::layout::*;
use crate::log::Log;
use crate::ring::Ring;
use crate::status::{self, Lanes, State};
use gpu_run_compiler::Compiler;
use gpu_run_device::Shared;
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

/// A machine on a device. Dropping it ends it.
#[derive(Debug)]
pub struct Machine {
    inner: Arc<Inner>,
    service: Option<JoinHandle<Result<Ended>>>,
}

/// What is left of a machine.
#[derive(Debug)]
pub struct Ended {
    pub checkpoint: Checkpoint,
    pub hash: Hash,
    /// The last it said of itself, up to when it was asked to end.
    pub state: State,
}

/// What callers and the machine's thread share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) bus: Arc<Shared>,
    pub(crate) settings: Settings,
    /// The code that runs.
    image: Mutex<Image>,
    pub(crate) seat: Seat,
    /// What ran before, whose memory the next code may have; held while one is loaded.
    pub(crate) spare: Mutex<Option<Gang>>,
    pub(crate) loading: Mutex<()>,
    pub(crate) loads: AtomicU32,
    /// The last load's gap, in nanoseconds.
    pub(crate) load_gap: AtomicU64,
    pub(crate) inbox: Mutex<Inbox>,
    pub(crate) outbox: Mutex<Outbox>,
    pub(crate) lanes: Mutex<Lanes>,
    pub(crate) wishes: Mutex<Vec<Wish>>,
    /// What a person should know.
    pub(crate) notices: Mutex<Vec<String>>,
    pub(crate) stop: AtomicBool,
    pub(crate) restarts: AtomicU32,
    /// Processor time of the machine's thread, in nanoseconds.
    pub(crate) host_cpu: AtomicU64,
    /// Launches, waits and copies of this process when the machine was up.
    launches: AtomicU64,
    waits: AtomicU64,
    copies: AtomicU64,
}

/// What callers ask of the machine's thread.
#[derive(Debug)]
pub(crate) enum Wish {
    Checkpoint(SyncSender<Result<Arc<Checkpoint>>>),
    Feed(Feed, SyncSender<Result<()>>),
    /// Ticks may begin below this.
    Limit(u64),
    Load(Box<Change>),
}

/// The way in.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    /// Messages put into the ring.
    pub(crate) head: u32,
    /// Events that no tick is known to have taken yet, and whether they are in the log.
    pub(crate) pending: VecDeque<(Event, bool)>,
    /// Events come from a log: nothing can be posted between them.
    pub(crate) feeding: bool,
}

/// The ways out.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    out: u32,
    pong: u32,
    debug: u32,
    /// Messages whose code is gone.
    messages: Vec<String>,
}

impl Inbox {
    pub(crate) fn waiting(&self, bus: &Shared) -> u32 {
        self.head.wrapping_sub(bus.load_u64(IN_TAKEN as u64) as u32)
    }

    pub(crate) fn room(&self, bus: &Shared) -> u32 {
        IN.capacity() - self.waiting(bus)
    }

    /// There is room.
    pub(crate) fn put(&mut self, bus: &Shared, event: &Event, recorded: bool) {
        // Before the machine can take it.
        if event.kind != event::PING && event.kind != event::MARK {
            self.pending.push_back((*event, recorded));
        }
        IN.put(bus, self.head, event);
        self.head = self.head.wrapping_add(1);
    }
}

impl Inner {
    pub(crate) fn new(gang: &Gang, settings: Settings, image: Image) -> Self {
        Self {
            bus: gang.bus().clone(),
            settings,
            image: Mutex::new(image),
            seat: gang.seat(),
            spare: Mutex::default(),
            loading: Mutex::default(),
            loads: AtomicU32::new(0),
            load_gap: AtomicU64::new(0),
            inbox: Mutex::default(),
            outbox: Mutex::default(),
            lanes: Mutex::default(),
            wishes: Mutex::default(),
            notices: Mutex::default(),
            stop: AtomicBool::new(false),
            restarts: AtomicU32::new(0),
            host_cpu: AtomicU64::new(0),
            launches: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            copies: AtomicU64::new(0),
        }
    }

    pub(crate) fn control(&self, which: u32, value: u64) {
        self.bus.store_u64((CONTROL + which * 8) as u64, value);
    }

    /// From here on launches and waits count.
    pub(crate) fn is_up(&self) {
        self.launches.store(gpu_run_device::launches(), Ordering::Relaxed);
        self.waits.store(gpu_run_device::waits(), Ordering::Relaxed);
        self.copies.store(gpu_run_device::copies(), Ordering::Relaxed);
    }

    pub(crate) fn image(&self) -> Image {
        self.image.lock().clone()
    }

    /// Other code runs; what the one before said is put into words while they are known. Gives that one.
    pub(crate) fn set_image(&self, image: Image) -> Image {
        let mut outbox = self.outbox.lock();
        let messages = self.read_messages(&mut outbox);
        outbox.messages.extend(messages);
        std::mem::replace(&mut *self.image.lock(), image)
    }

    fn read_messages(&self, outbox: &mut Outbox) -> Vec<String> {
        let (image, mut messages) = (self.image(), Vec::new());
        while let Some(message) = DEBUG.get(&self.bus, outbox.debug) {
            outbox.debug = outbox.debug.wrapping_add(1);
            let text = image.text(message.key, message.id).unwrap_or_else(|| "?".to_owned());
            let text = text.replacen("{}", &message.a.to_string(), 1).replacen("{}", &message.b.to_string(), 1);
            messages.push(format!("[{}:{}] {text}", message.flags, message.kind));
        }
        messages
    }

    pub(crate) fn notice(&self, text: String) {
        tracing::warn!("{text}");
        self.notices.lock().push(text);
    }

    pub(crate) fn state(&self) -> State {
        let mut lanes = self.lanes.lock();
        lanes.look(&self.bus);
        State {
            waiting: self.inbox.lock().waiting(&self.bus),
            launches: gpu_run_device::launches() - self.launches.load(Ordering::Relaxed),
            waits: gpu_run_device::waits() - self.waits.load(Ordering::Relaxed),
            copies: gpu_run_device::copies() - self.copies.load(Ordering::Relaxed),
            restarts: self.restarts.load(Ordering::Relaxed),
            loads: self.loads.load(Ordering::Relaxed),
            load_gap: Duration::from_nanos(self.load_gap.load(Ordering::Relaxed)),
            host_cpu: Duration::from_nanos(self.host_cpu.load(Ordering::Relaxed)),
            ..status::read(&self.bus, &lanes)
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

    /// Puts an event into the machine's ring: a few stores. Says so if there is no room.
    pub fn post(&self, event: Event) -> Result<()> {
        if event.kind == event::MARK {
            return Err(Error::Usage("a mark is no event".to_owned()));
        }
        let bus = &self.inner.bus;
        let mut inbox = self.inner.inbox.lock();
        if inbox.feeding || inbox.room(bus) == 0 {
            return Err(Error::Full { waiting: inbox.waiting(bus) });
        }
        inbox.put(bus, &event, false);
        Ok(())
    }

    /// What has come back since it was last asked for: answers to pings, then answers of ticks, each in order.
    pub fn take_events(&self) -> Vec<Event> {
        let bus = &self.inner.bus;
        let mut outbox = self.inner.outbox.lock();
        let Outbox { out, pong, .. } = &mut *outbox;
        let mut events = Vec::new();
        for (ring, taken, word) in [(PONG, pong, C_PONG_TAKEN), (OUT, out, C_OUT_TAKEN)] {
            let before = *taken;
            while let Some(event) = ring.get(bus, *taken) {
                events.push(event);
                *taken = taken.wrapping_add(1);
            }
            if *taken != before {
                self.inner.control(word, *taken as u64);
            }
        }
        events
    }

    /// Messages of a debug kernel, with the thread each is from: `[0:17] no room for 3`.
    pub fn debug_messages(&self) -> Vec<String> {
        let mut outbox = self.inner.outbox.lock();
        let mut messages = std::mem::take(&mut outbox.messages);
        messages.extend(self.inner.read_messages(&mut outbox));
        messages
    }

    /// The machine as it is, by its last heartbeat.
    pub fn state(&self) -> State {
        self.inner.state()
    }

    /// The code that it runs.
    pub fn image(&self) -> Image {
        self.inner.image()
    }

    /// What a person should know since this was last asked: restarts, phases that do not get on.
    pub fn notices(&self) -> Vec<String> {
        std::mem::take(&mut *self.inner.notices.lock())
    }

    /// Whether it is up: not when it has failed.
    pub fn is_up(&self) -> bool {
        self.service.as_ref().is_some_and(|service| !service.is_finished())
    }

    /// Has the machine's thread look now.
    pub(crate) fn wake(&self) {
        if let Some(service) = &self.service {
            service.thread().unpark();
        }
    }

    /// Lets a machine go that was held.
    pub fn go(&self) {
        self.inner.wishes.lock().push(Wish::Limit(u64::MAX));
    }

    /// The machine as it is between two ticks.
    pub fn snapshot(&self) -> Result<Arc<Checkpoint>> {
        let (answer, answered) = sync_channel(1);
        self.inner.wishes.lock().push(Wish::Checkpoint(answer));
        answered.recv().unwrap_or_else(|_| Err(gone()))
    }

    /// Keeps the machine as it is between two ticks; when this returns it is on disk.
    pub fn checkpoint(&self, path: &Path) -> Result<Arc<Checkpoint>> {
        let checkpoint = self.snapshot()?;
        checkpoint.write(path)?;
        Ok(checkpoint)
    }

    /// Does what a log says, tick for tick and with the code that each of them ran with, from where a held machine is. Then it goes on by itself and with its own code, or stays
    /// where the log ends. `recorded`: these events are in the machine's own log already.
    pub fn replay(&self, compiler: &Compiler, log: &Log, then_free: bool, recorded: bool) -> Result<()> {
        let tick = self.snapshot()?.tick();
        if tick < log.from {
            return Err(Error::Usage(format!(
                "the log begins with tick {} and the machine is at {tick}: resume it from a checkpoint of tick {} or later",
                log.from, log.from
            )));
        }
        let own = self.image();
        let stretches = log.stretches(tick);
        for (index, (code, from, to)) in stretches.iter().enumerate() {
            if let Some(hash) = code.filter(|hash| *hash != self.image().hash()) {
                self.load_as(compiler, &log.image(hash)?, !recorded)?;
            }
            let ticks = log.ticks.iter().filter(|(tick, _)| tick < to).cloned();
            let mut feed = Feed::new(ticks, *from, *to);
            feed.more = index + 1 < stretches.len();
            (feed.then_free, feed.recorded) = (then_free && !feed.more, recorded);
            let (answer, answered) = sync_channel(1);
            self.inner.wishes.lock().push(Wish::Feed(feed, answer));
            answered.recv().unwrap_or_else(|_| Err(gone()))?;
        }
        if then_free && own != self.image() {
            self.load(compiler, &own)?;
        }
        Ok(())
    }

    /// Lets a held machine do ticks up to this one, and waits for it.
    pub fn run_to(&self, tick: u64, patience: Duration) -> Result<()> {
        self.inner.wishes.lock().push(Wish::Limit(tick));
        let since = Instant::now();
        while self.state().tick < tick {
            if !self.is_up() {
                return Err(gone());
            }
            if since.elapsed() > patience {
                return Err(Error::Slow { what: "come to its tick", seconds: patience.as_secs() });
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(())
    }

    /// No heartbeat reaches the host any more, until the machine is started again. It has to run a kernel that was built with `faults`.
    #[cfg(feature = "faults")]
    pub fn mute(&self) {
        self.inner.control(C_MUTE, 1);
    }

    /// Ends the machine at a tick boundary.
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
