//! Launches, one after the other, on a thread of their own.
//!
//! While one runs, whoever ordered it reads the results of the last and makes the next ready: the device waits for
//! neither. An order comes with the [`Desk`] it is made on and brings it back when its launch has ended. There are two desks, so that one
//! launch runs while another's results are read; who orders a third waits.

use crate::batch::{Batch, LaunchBuffers, Run};
use crate::bus::Guests;
use crate::error::Error;
use crate::inputs::Strings;
use crate::outbox::Outboxes;
use gpu_run_device::Buffer;
use rustix::time::{ClockId, clock_gettime};
use std::any::Any;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
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

/// The thread that launches.
pub(crate) struct Line {
    orders: Mutex<Option<Sender<Order>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Order {
    desk: Box<Desk>,
    count: usize,
    guests: Guests,
    selector: u32,
    timeout: Option<Duration>,
    watch: Option<Watch>,
    reply: Sender<(Box<Desk>, Result<Report, Error>)>,
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
}

/// A launch that was ordered.
pub(crate) struct Ordered {
    reply: Receiver<(Box<Desk>, Result<Report, Error>)>,
}

impl Line {
    pub(crate) fn new(batch: Batch) -> Result<Self, Error> {
        let (orders, received) = mpsc::channel();
        let work = move || launch_all(batch, &received);
        let thread = std::thread::Builder::new().name("gpu-run launches".into()).spawn(work);
        let thread = thread.map_err(|e| Error::Internal(format!("cannot start a thread: {e}")))?;
        Ok(Self { orders: Mutex::new(Some(orders)), thread: Mutex::new(Some(thread)) })
    }

    /// Orders a launch of `count` fresh instances. What still runs after `timeout` is ended.
    pub(crate) fn order(
        &self,
        desk: Box<Desk>,
        selector: u32,
        guests: Guests,
        timeout: Option<Duration>,
        watch: Option<Watch>,
    ) -> Result<Ordered, (Box<Desk>, Error)> {
        let (reply, ordered) = mpsc::channel();
        let order = Order { desk, count: guests.count(), guests, selector, timeout, watch, reply };
        let orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = match &*orders {
            Some(orders) => orders.send(order).err().map(|refused| refused.0),
            None => Some(order),
        };
        match refused {
            None => Ok(Ordered { reply: ordered }),
            Some(order) => Err((order.desk, gone())),
        }
    }

    /// Launches what was ordered, and nothing more: when this returns, the slots are free.
    pub(crate) fn close(&self) {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner).take();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // If it panicked, whoever waited for a reply was told.
        let _ = thread.map(JoinHandle::join);
    }
}

impl Ordered {
    /// Waits until the launch has ended. Without a desk, the thread is gone.
    pub(crate) fn wait(self) -> (Option<Box<Desk>>, Result<Report, Error>) {
        match self.reply.recv() {
            Ok((desk, result)) => (Some(desk), result),
            Err(_) => (None, Err(gone())),
        }
    }
}

fn gone() -> Error {
    Error::Internal("the thread that launches has ended".into())
}

fn launch_all(mut batch: Batch, orders: &Receiver<Order>) {
    for order in orders {
        let Order { desk, count, guests, selector, timeout, watch, reply } = order;
        let watched = watch.map(|watch| watch());
        let busy = processor_time();
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let result = batch.launch(Run::fresh(selector, deadline), guests, &desk.buffers);
        drop(watched);
        let result = result.map(|(_, hostcalls)| Report {
            hostcalls,
            run: batch.ran(),
            stopped: batch.stopped(),
            service: processor_time().saturating_sub(busy),
        });
        tracing::debug!(count, stopped = batch.stopped(), "launch done");
        // Nobody may care any more.
        let _ = reply.send((desk, result));
    }
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
const MOST: usize = 2;

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
        let none = |free: &mut Free| free.desks.is_empty() && free.made == MOST && free.lost == 0;
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
        if free.made == MOST {
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
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
