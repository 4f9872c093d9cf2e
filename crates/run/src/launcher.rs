//! Launches, one after the other, on a thread of their own.
//!
//! While one launch runs, the thread that ordered it reads the results of the previous launch and prepares the next:
//! the device waits for neither. An order carries the [`LaunchSlot`] that its launch uses, and the reply brings it
//! back. There are two launch slots, so that one launch runs while the host reads another's results; a thread
//! that orders a third launch waits.
//!
//! The launcher's thread makes the slots when a launch needs them. Several launchers share a device's memory
//! ([`SlotSpace`]): if it does not suffice, those that do not launch now give up their slots, and make them again at
//! their next launch.

use crate::bus::{BatchHost, Callers};
use crate::inputs::Strings;
use crate::outbox::Outboxes;
use crate::slots::{LaunchBuffers, Run, Slots};
use gpu_run_abi::Launch;
use gpu_run_compiler::Error;
use gpu_run_device::Buffer;
use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::time::{ClockId, clock_gettime};
use std::any::Any;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The memory that one launch has to itself.
pub struct LaunchSlot {
    pub buffers: LaunchBuffers,
    /// Stdin of all instances; grows.
    pub inputs: Buffer,
    /// Arguments and environment of the last launch; kept alive here, because a later launch may have others.
    pub strings: Option<Arc<Strings>>,
    pub outboxes: Arc<Outboxes>,
}

/// Called before every launch; the value it returns is dropped after the launch.
pub type Watch = Arc<dyn Fn() -> Box<dyn Any> + Send + Sync>;

/// Makes slots for this many instances.
pub type MakeSlots = Box<dyn Fn(u64) -> Result<Slots, Error> + Send>;
type SharedSlots = Arc<Mutex<Option<Slots>>>;

/// The thread that launches.
pub struct Launcher {
    slots: SharedSlots,
    orders: Mutex<Option<Sender<Placed>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// The slots of all launchers that share a device's memory.
///
/// Lock order: a thread that makes slots takes `turn` first, then its own slots, then the slots of others. A thread
/// that launches locks its own slots only, and waits for no others.
#[derive(Default)]
pub struct SlotSpace {
    turn: Mutex<()>,
    all: Mutex<Vec<Weak<Mutex<Option<Slots>>>>>,
}

impl SlotSpace {
    fn add(&self, slots: &SharedSlots) {
        let mut all = self.all.lock();
        all.retain(|slots| slots.strong_count() > 0);
        all.push(Arc::downgrade(slots));
    }

    /// Frees all slots but `except`, each once its launch is over. The caller holds `turn`.
    fn vacate(&self, except: Option<&SharedSlots>) {
        let all: Vec<_> = self.all.lock().iter().filter_map(Weak::upgrade).collect();
        for slots in all.iter().filter(|slots| except.is_none_or(|except| !Arc::ptr_eq(slots, except))) {
            drop(slots.lock().take());
        }
    }

    /// Frees all slots, each once its launch is over.
    pub fn vacate_all(&self) {
        let _turn = self.turn.lock();
        self.vacate(None);
    }
}

pub struct LaunchOrder {
    pub launch_slot: Box<LaunchSlot>,
    pub count: usize,
    /// Slots to make, if there are none yet.
    pub slots: usize,
    pub guests: Arc<dyn BatchHost>,
    pub launch: Launch,
    /// The instances' numbers; none if the program does not ask for them.
    pub numbers: Vec<u64>,
    pub selector: u32,
    pub stack: u32,
    /// Memories are cleared up to this guest address before the launch.
    pub cleared: u64,
    pub timeout: Option<Duration>,
    pub watch: Option<Watch>,
}

/// An order, and where its reply goes.
type Placed = (LaunchOrder, Sender<Reply>);
type Reply = (Box<LaunchSlot>, Result<LaunchReport, LaunchError>);

/// Why a launch failed.
#[derive(Debug)]
pub enum LaunchError {
    /// The device has no memory for the slots; the launch did not begin.
    NoSlots,
    /// The device has no memory for the stacks; the launch did not begin.
    NoStack,
    Failed(Error),
}

impl From<Error> for LaunchError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// What the host knows of a launch that is over.
#[derive(Clone, Copy, Debug)]
pub struct LaunchReport {
    pub hostcalls: u64,
    pub run: Duration,
    /// Whether the timeout passed, and instances that still ran were stopped.
    pub stopped: bool,
    /// Processor time that the launch took on this thread.
    pub service: Duration,
    /// Bytes that the slots take.
    pub device_bytes: u64,
}

/// A launch that was ordered.
pub struct PendingLaunch {
    reply: Receiver<Reply>,
}

impl Launcher {
    pub fn new(space: Arc<SlotSpace>, make: MakeSlots) -> Result<Self, Error> {
        let (orders, received) = mpsc::channel();
        let shared = SharedSlots::default();
        let slots = shared.clone();
        let work = move || {
            space.add(&slots);
            let launcher = LaunchThread { space, slots, make };
            launcher.launch_all(&received);
        };
        let thread = std::thread::Builder::new().name("gpu-run launches".into()).spawn(work);
        let thread = thread.map_err(|e| Error::Internal(format!("cannot start a thread: {e}")))?;
        Ok(Self { slots: shared, orders: Mutex::new(Some(orders)), thread: Mutex::new(Some(thread)) })
    }

    /// Orders a launch of fresh instances. Instances that still run after the order's timeout are stopped.
    pub fn order(&self, order: LaunchOrder) -> Result<PendingLaunch, (Box<LaunchSlot>, Error)> {
        let (reply, ordered) = mpsc::channel();
        let orders = self.orders.lock();
        let refused = match &*orders {
            Some(orders) => orders.send((order, reply)).err().map(|refused| refused.0.0),
            None => Some(order),
        };
        match refused {
            None => Ok(PendingLaunch { reply: ordered }),
            Some(order) => Err((order.launch_slot, gone())),
        }
    }

    /// Has the slots looked at, as the last launch left them, if they are still there. Waits for a launch that runs.
    pub fn look<T>(&self, look: impl FnOnce(&Slots) -> T) -> Option<T> {
        self.slots.lock().as_ref().map(look)
    }

    /// Runs the launches that were ordered and accepts no more. When this returns, the slots are free.
    pub fn close(&self) {
        self.orders.lock().take();
        let thread = self.thread.lock().take();
        // If the thread panicked, `PendingLaunch::wait` has returned an error.
        let _ = thread.map(JoinHandle::join);
    }
}

impl PendingLaunch {
    /// Waits until the launch is over. Returns no launch slot if the launcher's thread is gone.
    pub fn wait(self) -> (Option<Box<LaunchSlot>>, Result<LaunchReport, LaunchError>) {
        match self.reply.recv() {
            Ok((launch_slot, result)) => (Some(launch_slot), result),
            Err(_) => (None, Err(gone().into())),
        }
    }
}

fn gone() -> Error {
    Error::Internal("the thread that launches has ended".into())
}

/// The state of the launcher's thread.
struct LaunchThread {
    space: Arc<SlotSpace>,
    slots: SharedSlots,
    make: MakeSlots,
}

impl LaunchThread {
    fn launch_all(&self, orders: &Receiver<Placed>) {
        for (order, reply) in orders {
            let result = self.launch(&order);
            tracing::debug!(count = order.count, ?result, "launch done");
            // The receiver may be gone.
            let _ = reply.send((order.launch_slot, result));
        }
    }

    fn launch(&self, order: &LaunchOrder) -> Result<LaunchReport, LaunchError> {
        let mut turn = None;
        loop {
            let mut slots = self.slots.lock();
            if slots.as_ref().is_none_or(|batch| batch.capacity() < order.count as u64) {
                if turn.is_none() {
                    drop(slots);
                    turn = Some(self.space.turn.lock());
                    slots = self.slots.lock();
                }
                drop(slots.take());
                *slots = Some(self.make(order.slots)?);
            }
            let Some(batch) = &mut *slots else { return Err(LaunchError::NoSlots) };
            match begin(batch, order) {
                Err(error) if error.is_shortage() && turn.is_none() => {
                    drop(slots);
                    turn = Some(self.space.turn.lock());
                    self.space.vacate(Some(&self.slots));
                }
                Err(error) if error.is_shortage() => return Err(LaunchError::NoStack),
                result => return Ok(result?),
            }
        }
    }

    /// Makes slots. The caller holds `turn`, and the lock of its own slots.
    fn make(&self, capacity: usize) -> Result<Slots, LaunchError> {
        let make = || match (self.make)(capacity as u64) {
            Err(error) if error.is_shortage() => Err(LaunchError::NoSlots),
            made => Ok(made?),
        };
        match make() {
            Err(LaunchError::NoSlots) => {
                self.space.vacate(Some(&self.slots));
                make()
            }
            made => made,
        }
    }
}

fn begin(batch: &mut Slots, order: &LaunchOrder) -> Result<LaunchReport, Error> {
    batch.set_stack(order.stack);
    batch.clear(order.count as u64, order.cleared)?;
    let mut launch = batch.describe(Launch { cleared: order.cleared, ..order.launch });
    order.launch_slot.buffers.set_numbers(&mut launch, &order.numbers)?;
    order.launch_slot.buffers.write(&launch)?;
    let watched = order.watch.as_ref().map(|watch| watch());
    let busy = processor_time();
    let deadline = order.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let guests = Callers::Batch(order.count, order.guests.clone());
    let (_, hostcalls) = batch.launch(Run::fresh(order.selector, deadline), guests, &order.launch_slot.buffers)?;
    drop(watched);
    Ok(LaunchReport {
        hostcalls,
        run: batch.ran(),
        stopped: batch.stopped(),
        service: processor_time().saturating_sub(busy),
        device_bytes: batch.device_bytes(),
    })
}

/// Returns the processor time that this thread has used.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// A stage's launch slots. They are made when they are needed, so that a single batch pays for one only.
#[derive(Default)]
pub struct LaunchSlots {
    state: Mutex<Free>,
    returned: Condvar,
}

/// Launch slots of a stage, at most.
const MAX_LAUNCH_SLOTS: usize = 2;

#[derive(Default)]
#[allow(clippy::vec_box)] // a launch slot is boxed everywhere: it travels through channels and errors
struct Free {
    /// Launch slots that no launch uses.
    launch_slots: Vec<Box<LaunchSlot>>,
    made: usize,
    /// Launch slots that were lost with their thread.
    lost: usize,
}

impl LaunchSlots {
    /// Takes a launch slot; waits until one is free.
    pub fn take(&self, make: impl FnOnce() -> Result<LaunchSlot, Error>) -> Result<Box<LaunchSlot>, Error> {
        let none = |free: &mut Free| free.launch_slots.is_empty() && free.made == MAX_LAUNCH_SLOTS && free.lost == 0;
        let mut state = self.lock();
        self.returned.wait_while(&mut state, none);
        self.take_from(state, make).unwrap_or_else(|| Err(gone()))
    }

    /// Takes a launch slot, if one is free or can be made now.
    pub fn take_now(&self, make: impl FnOnce() -> Result<LaunchSlot, Error>) -> Option<Result<Box<LaunchSlot>, Error>> {
        self.take_from(self.lock(), make)
    }

    fn take_from(
        &self,
        mut free: MutexGuard<'_, Free>,
        make: impl FnOnce() -> Result<LaunchSlot, Error>,
    ) -> Option<Result<Box<LaunchSlot>, Error>> {
        if let Some(launch_slot) = free.launch_slots.pop() {
            return Some(Ok(launch_slot));
        }
        if free.made == MAX_LAUNCH_SLOTS {
            return None;
        }
        free.made += 1;
        drop(free);
        Some(make().map(Box::new).inspect_err(|_| {
            self.lock().made -= 1;
            self.returned.notify_all();
        }))
    }

    /// Gives a launch slot back; `None` stands for one that was lost with its thread.
    pub fn put(&self, launch_slot: Option<Box<LaunchSlot>>) {
        let mut free = self.lock();
        free.lost += usize::from(launch_slot.is_none());
        free.launch_slots.extend(launch_slot);
        drop(free);
        self.returned.notify_all();
    }

    /// Waits until all launch slots have been given back.
    pub fn wait_for_all(&self) {
        let away = |free: &mut Free| free.launch_slots.len() + free.lost < free.made;
        self.returned.wait_while(&mut self.lock(), away);
    }

    fn lock(&self) -> MutexGuard<'_, Free> {
        self.state.lock()
    }
}
