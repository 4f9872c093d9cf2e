//! Launches, one after the other, on a thread of their own.
//!
//! While one runs, whoever ordered it reads the results of the last and makes the next ready: the device waits for
//! neither. An order comes with the [`Desk`] it is made on and brings it back when its launch has ended. There are two desks, so that one
//! launch runs while another's results are read; who orders a third waits.
//!
//! The thread makes the slots when a launch needs them. Several lines share a device's memory ([`SlotSpace`]): where it does not suffice, those that do not
//! launch now give their slots up, and make them again at their next launch.

use crate::batch::{Batch, LaunchBuffers, Run};
use crate::bus::{Guests, Quiet};
use crate::error::Error;
use crate::inputs::Strings;
use crate::outbox::Outboxes;
use gpu_run_abi::Launch;
use gpu_run_device::Buffer;
use rustix::time::{ClockId, clock_gettime};
use std::any::Any;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What a launch has to itself.
pub(crate) struct Desk {
    pub(crate) buffers: LaunchBuffers,
    /// Stdin of all instances; grows.
    pub(crate) inputs: Buffer,
    /// Arguments and environment of the last launch: what comes after may have others.
    pub(crate) strings: Option<Arc<Strings>>,
    pub(crate) outboxes: Arc<Outboxes>,
}

/// Called before every launch; what it gives is dropped after it.
pub type Watch = Arc<dyn Fn() -> Box<dyn Any> + Send + Sync>;

/// Makes slots for so many instances.
pub(crate) type MakeSlots = Box<dyn Fn(u64) -> Result<Batch, Error> + Send>;
type Slots = Arc<Mutex<Option<Batch>>>;

/// The thread that launches.
pub(crate) struct Line {
    orders: Mutex<Option<Sender<Placed>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// The slots of all lines that share a device's memory.
///
/// Who makes slots takes the turn first, then its own slots, then the others'. Who launches has its own slots only, and waits for nobody else's.
#[derive(Default)]
pub(crate) struct SlotSpace {
    turn: Mutex<()>,
    all: Mutex<Vec<Weak<Mutex<Option<Batch>>>>>,
}

impl SlotSpace {
    fn add(&self, slots: &Slots) {
        let mut all = lock(&self.all);
        all.retain(|slots| slots.strong_count() > 0);
        all.push(Arc::downgrade(slots));
    }

    /// Has all but these give up their memory, when their launches have ended. For who has the turn.
    fn vacate(&self, except: Option<&Slots>) {
        let all: Vec<_> = lock(&self.all).iter().filter_map(Weak::upgrade).collect();
        for slots in all.iter().filter(|slots| except.is_none_or(|except| !Arc::ptr_eq(slots, except))) {
            drop(lock(slots).take());
        }
    }

    /// Has all give up their memory, when their launches have ended.
    pub(crate) fn vacate_all(&self) {
        let _turn = lock(&self.turn);
        self.vacate(None);
    }
}

pub(crate) struct Order {
    pub(crate) desk: Box<Desk>,
    pub(crate) count: usize,
    /// Slots to make, if there are none.
    pub(crate) slots: usize,
    pub(crate) guests: Arc<dyn Quiet>,
    pub(crate) launch: Launch,
    pub(crate) selector: u32,
    pub(crate) stack: u32,
    /// Memories are cleared before, up to this guest address.
    pub(crate) cleared: u64,
    pub(crate) timeout: Option<Duration>,
    pub(crate) watch: Option<Watch>,
}

/// An order, and whom to tell.
type Placed = (Order, Sender<Reply>);
type Reply = (Box<Desk>, Result<Report, Unlaunched>);

/// Why a launch did not end as one does.
#[derive(Debug)]
pub(crate) enum Unlaunched {
    /// The device has no memory for the slots: it was not begun.
    NoSlots,
    /// Nor for the stacks.
    NoStack,
    Failed(Error),
}

impl From<Error> for Unlaunched {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// What the host knows of a launch that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    pub(crate) hostcalls: u64,
    pub(crate) run: Duration,
    /// What still ran was asked to end.
    pub(crate) stopped: bool,
    /// What of a processor that took, on this thread.
    pub(crate) service: Duration,
    /// What the slots take.
    pub(crate) device_bytes: u64,
}

/// A launch that was ordered.
pub(crate) struct Ordered {
    reply: Receiver<Reply>,
}

impl Line {
    pub(crate) fn new(space: Arc<SlotSpace>, make: MakeSlots) -> Result<Self, Error> {
        let (orders, received) = mpsc::channel();
        let work = move || {
            let slots = Slots::default();
            space.add(&slots);
            let launcher = Launcher { space, slots, make };
            launcher.launch_all(&received);
        };
        let thread = std::thread::Builder::new().name("gpu-run launches".into()).spawn(work);
        let thread = thread.map_err(|e| Error::Internal(format!("cannot start a thread: {e}")))?;
        Ok(Self { orders: Mutex::new(Some(orders)), thread: Mutex::new(Some(thread)) })
    }

    /// Orders a launch of fresh instances. What still runs after its timeout is ended.
    pub(crate) fn order(&self, order: Order) -> Result<Ordered, (Box<Desk>, Error)> {
        let (reply, ordered) = mpsc::channel();
        let orders = lock(&self.orders);
        let refused = match &*orders {
            Some(orders) => orders.send((order, reply)).err().map(|refused| refused.0.0),
            None => Some(order),
        };
        match refused {
            None => Ok(Ordered { reply: ordered }),
            Some(order) => Err((order.desk, gone())),
        }
    }

    /// Launches what was ordered, and nothing more: when this returns, the slots are free.
    pub(crate) fn close(&self) {
        lock(&self.orders).take();
        let thread = lock(&self.thread).take();
        // If it panicked, whoever waited for a reply was told.
        let _ = thread.map(JoinHandle::join);
    }
}

impl Ordered {
    /// Waits until the launch has ended. Without a desk, the thread is gone.
    pub(crate) fn wait(self) -> (Option<Box<Desk>>, Result<Report, Unlaunched>) {
        match self.reply.recv() {
            Ok((desk, result)) => (Some(desk), result),
            Err(_) => (None, Err(gone().into())),
        }
    }
}

fn gone() -> Error {
    Error::Internal("the thread that launches has ended".into())
}

/// What the thread has.
struct Launcher {
    space: Arc<SlotSpace>,
    slots: Slots,
    make: MakeSlots,
}

impl Launcher {
    fn launch_all(&self, orders: &Receiver<Placed>) {
        for (order, reply) in orders {
            let result = self.launch(&order);
            tracing::debug!(count = order.count, ?result, "launch done");
            // Nobody may care any more.
            let _ = reply.send((order.desk, result));
        }
    }

    fn launch(&self, order: &Order) -> Result<Report, Unlaunched> {
        let mut turn = None;
        loop {
            let mut slots = lock(&self.slots);
            if slots.as_ref().is_none_or(|batch| batch.capacity() < order.count as u64) {
                if turn.is_none() {
                    drop(slots);
                    turn = Some(lock(&self.space.turn));
                    slots = lock(&self.slots);
                }
                drop(slots.take());
                *slots = Some(self.make(order.slots)?);
            }
            let Some(batch) = &mut *slots else { return Err(Unlaunched::NoSlots) };
            match begin(batch, order) {
                Err(error) if error.is_shortage() && turn.is_none() => {
                    drop(slots);
                    turn = Some(lock(&self.space.turn));
                    self.space.vacate(Some(&self.slots));
                }
                Err(error) if error.is_shortage() => return Err(Unlaunched::NoStack),
                result => return Ok(result?),
            }
        }
    }

    /// For who has the turn, and its own slots.
    fn make(&self, capacity: usize) -> Result<Batch, Unlaunched> {
        let make = || match (self.make)(capacity as u64) {
            Err(error) if error.is_shortage() => Err(Unlaunched::NoSlots),
            made => Ok(made?),
        };
        match make() {
            Err(Unlaunched::NoSlots) => {
                self.space.vacate(Some(&self.slots));
                make()
            }
            made => made,
        }
    }
}

fn begin(batch: &mut Batch, order: &Order) -> Result<Report, Error> {
    batch.set_stack(order.stack);
    batch.clear(order.count as u64, order.cleared)?;
    order.desk.buffers.write(&batch.describe(Launch { cleared: order.cleared, ..order.launch }))?;
    let watched = order.watch.as_ref().map(|watch| watch());
    let busy = processor_time();
    let deadline = order.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let guests = Guests::Quiet(order.count, order.guests.clone());
    let (_, hostcalls) = batch.launch(Run::fresh(order.selector, deadline), guests, &order.desk.buffers)?;
    drop(watched);
    Ok(Report {
        hostcalls,
        run: batch.ran(),
        stopped: batch.stopped(),
        service: processor_time().saturating_sub(busy),
        device_bytes: batch.device_bytes(),
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What this thread has had of a processor.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// The desks there are; made when they are needed, so that one batch alone costs one.
#[derive(Default)]
pub(crate) struct Desks {
    state: Mutex<Free>,
    returned: Condvar,
}

/// How many there can be.
const MAX_DESKS: usize = 2;

#[derive(Default)]
#[allow(clippy::vec_box)] // a desk is boxed everywhere: it travels through channels and errors
struct Free {
    /// Those that no launch is made on.
    desks: Vec<Box<Desk>>,
    made: usize,
    /// Those that never come back.
    lost: usize,
}

impl Desks {
    /// One of them; waits until there is one.
    pub(crate) fn take(&self, make: impl FnOnce() -> Result<Desk, Error>) -> Result<Box<Desk>, Error> {
        let none = |free: &mut Free| free.desks.is_empty() && free.made == MAX_DESKS && free.lost == 0;
        let state = self.returned.wait_while(self.lock(), none).unwrap_or_else(PoisonError::into_inner);
        self.take_from(state, make).unwrap_or_else(|| Err(gone()))
    }

    /// One, if there is one now.
    pub(crate) fn take_now(&self, make: impl FnOnce() -> Result<Desk, Error>) -> Option<Result<Box<Desk>, Error>> {
        self.take_from(self.lock(), make)
    }

    fn take_from(
        &self,
        mut free: MutexGuard<'_, Free>,
        make: impl FnOnce() -> Result<Desk, Error>,
    ) -> Option<Result<Box<Desk>, Error>> {
        if let Some(desk) = free.desks.pop() {
            return Some(Ok(desk));
        }
        if free.made == MAX_DESKS {
            return None;
        }
        free.made += 1;
        drop(free);
        Some(make().map(Box::new).inspect_err(|_| {
            self.lock().made -= 1;
            self.returned.notify_all();
        }))
    }

    /// Brings one back; `None` is one that went with its thread.
    pub(crate) fn put(&self, desk: Option<Box<Desk>>) {
        let mut free = self.lock();
        free.lost += usize::from(desk.is_none());
        free.desks.extend(desk);
        drop(free);
        self.returned.notify_all();
    }

    /// Waits until all are back.
    pub(crate) fn wait_for_all(&self) {
        let away = |free: &mut Free| free.desks.len() + free.lost < free.made;
        drop(self.returned.wait_while(self.lock(), away));
    }

    fn lock(&self) -> MutexGuard<'_, Free> {
        lock(&self.state)
    }
}
