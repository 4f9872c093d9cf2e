//! Deals batches to devices: each new one to whichever is free, and those of a lost device to the others.
//!
//! Batches have numbers in the order of the input, and are written in that order. A device that is faster than the
//! others runs ahead, but only until as many batches are dealt and not written as the window allows: so the memory that
//! waits behind a slow device is bounded. A batch that was dealt is always finished, whatever the window: so the batch
//! whose turn it is to be written never waits for one behind it.
//!
//! One lock, one condition: a few threads wait for batches of thousands of records.

use crate::batch::{MAX_LOSSES_OF_BATCH, Tuning};
use crate::error::Error;
use crate::input::reader::Batch;
use crate::observer::LostDevice;
use crate::runner::{DeviceLost, RanPart, Work};
use gpu_run_device::Properties;
use gpu_run_run::RunStats;
use parking_lot::{Condvar, Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Batches that may be dealt and not written, for each of several devices: one that runs, one that waits to run, and
/// two that wait for those of slower devices.
const WINDOW_PER_DEVICE: u64 = 4;
/// For a single device: one that is written, one that runs, and one that waits to run.
const WINDOW_OF_ONE: u64 = 3;

/// Returns how many batches can be under way when a launch hangs, and be suspected: those that were dealt, and one that
/// was read.
pub(crate) fn suspected_batches(devices: usize) -> u64 {
    window(devices) + 1
}

fn window(devices: usize) -> u64 {
    if devices == 1 { WINDOW_OF_ONE } else { WINDOW_PER_DEVICE * devices as u64 }
}

/// What one device did of a map.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// The device's id and its name.
    pub device: String,
    pub name: String,
    /// Records and batches that it ran. Of a batch that it was lost with, the records that had finished count.
    pub records: u64,
    pub batches: u64,
    /// Time from the begin to the end of its launches, summed over all of them.
    pub run: Duration,
    /// Whether it was lost, and others continued.
    pub is_lost: bool,
}

impl Share {
    pub(crate) fn of(device: &Properties) -> Self {
        Self { device: device.id.clone(), name: device.name.clone(), ..Self::default() }
    }

    /// Adds the shares of the same devices in an earlier process; those of other devices are put behind.
    pub(crate) fn add_earlier(shares: &mut Vec<Self>, earlier: &[Self]) {
        for before in earlier {
            match shares.iter_mut().find(|share| share.device == before.device) {
                Some(share) => {
                    share.records += before.records;
                    share.batches += before.batches;
                    share.run += before.run;
                }
                None => shares.push(before.clone()),
            }
        }
    }
}

pub(crate) struct Dealer {
    state: Mutex<State>,
    changed: Condvar,
    /// Ends everything when it becomes true.
    interrupt: Option<Arc<AtomicBool>>,
}

/// How often the writer looks for an interrupt while there is nothing to write.
const INTERRUPT_LOOK: Duration = Duration::from_millis(20);

/// What a device is to run next.
pub(crate) enum Dealt {
    New(u64, Batch),
    /// A batch of a lost device, or the rest of one.
    Again(Work),
}

/// How an offered batch was received.
pub(crate) enum Offered {
    Taken,
    /// No device is free.
    Busy(Batch),
    /// Nobody takes batches any more.
    Over,
}

/// What the writer is told.
pub(crate) enum News {
    /// The next part in the order of the input.
    Ran(Box<RanPart>),
    /// A device is lost, and others continue.
    Lost(LostDevice),
    /// There is nothing more to write, because of this.
    Over(Over),
}

/// Why nothing more is run.
pub(crate) enum Over {
    /// All of the input has run.
    Finished,
    /// No device is left, or a batch loses all that it is given to.
    Lost(DeviceLost),
    /// A launch did not end, not even after it was stopped.
    Hung,
    Interrupted,
    Failed(Error),
}

struct State {
    devices: Vec<Device>,
    window: u64,
    /// One of the records before this one hangs: their batches run one at a time.
    suspects: u64,
    /// A batch that the reader gives.
    given: Option<Batch>,
    /// The reader has ended, perhaps with an error.
    read: Option<Result<(), Error>>,
    /// How many batches were dealt, and the first record of the last one.
    dealt: u64,
    last: u64,
    /// The number of the batch that is being written.
    front: u64,
    /// Parts of batches that have run and were not written, by number.
    ran: BTreeMap<u64, VecDeque<RanPart>>,
    /// Batches that lost their device, by number.
    again: BTreeMap<u64, (Work, DeviceLost)>,
    /// The first batch that could not be run, and why.
    failed: Option<(u64, Error)>,
    /// Devices that were lost, for the writer to report.
    lost: VecDeque<LostDevice>,
    over: Option<Over>,
    spent: RunStats,
}

struct Device {
    share: Share,
    /// Batches that it was dealt and has not finished.
    under_way: u32,
    /// Whether its thread waits for a batch.
    waits: bool,
    tuning: Option<Tuning>,
}

impl Dealer {
    /// `shares` are those of the devices, still empty. `spent` is what processes before this one have spent. One of the
    /// records before `suspects` hangs.
    pub(crate) fn new(shares: Vec<Share>, spent: RunStats, suspects: u64) -> Self {
        let window = window(shares.len());
        // A thread that has not come to wait yet is about to: no other device is to get two batches before it has one.
        let device = |share| Device { share, under_way: 0, waits: true, tuning: None };
        let state = State {
            devices: shares.into_iter().map(device).collect(),
            window,
            suspects,
            given: None,
            read: None,
            dealt: 0,
            last: 0,
            front: 0,
            ran: BTreeMap::new(),
            again: BTreeMap::new(),
            failed: None,
            lost: VecDeque::new(),
            over: None,
            spent,
        };
        Self { state: Mutex::new(state), changed: Condvar::new(), interrupt: None }
    }

    /// Ends everything when the flag becomes true.
    pub(crate) fn interrupted_by(self, interrupt: Option<Arc<AtomicBool>>) -> Self {
        Self { interrupt, ..self }
    }

    // ---- for the reader ----

    /// Gives a batch, and waits until a device takes it. Returns whether anybody takes more.
    pub(crate) fn give(&self, batch: Batch) -> bool {
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, |state| state.given.is_some() && state.over.is_none());
        state.given = Some(batch);
        self.changed.notify_all();
        self.changed.wait_while(&mut state, |state| state.given.is_some() && state.over.is_none());
        state.over.is_none()
    }

    /// Gives a batch if a device can take it now.
    pub(crate) fn offer(&self, batch: Batch) -> Offered {
        let mut state = self.state.lock();
        if state.over.is_some() {
            return Offered::Over;
        }
        let is_free = |device: &Device| device.waits && !device.share.is_lost;
        let free = state.devices.iter().filter(|device| is_free(device)).count();
        if state.given.is_some() || free <= state.again.len() || !state.is_open() {
            return Offered::Busy(batch);
        }
        state.given = Some(batch);
        self.changed.notify_all();
        Offered::Taken
    }

    /// Nothing more is given.
    pub(crate) fn end_of_input(&self, read: Result<(), Error>) {
        self.change(|state| state.read = Some(read));
    }

    // ---- for the threads of a device ----

    /// Waits until there is a batch for this device. Returns `None` if there is none for it any more.
    pub(crate) fn take(&self, device: usize) -> Option<Dealt> {
        let mut state = self.state.lock();
        state.devices[device].waits = true;
        let dealt = loop {
            if state.is_over_for(device) {
                break None;
            }
            if state.is_next(device)
                && let Some(dealt) = state.deal()
            {
                state.devices[device].under_way += 1;
                break Some(dealt);
            }
            self.changed.wait(&mut state);
        };
        state.devices[device].waits = false;
        self.changed.notify_all();
        dealt
    }

    /// Hands on a part of a batch that this device has run. If the batch is being written, waits until the part before
    /// was taken. Returns whether anybody takes more.
    pub(crate) fn put(&self, device: usize, number: u64, part: RanPart, stats: &RunStats) -> bool {
        let mut state = self.state.lock();
        state.spent.add(stats);
        let Share { records, batches, run, .. } = &mut state.devices[device].share;
        *records += part.records.len() as u64;
        *batches += u64::from(part.mark.is_some());
        *run += stats.run;
        let must_wait = |state: &mut State| {
            state.over.is_none() && state.front == number && state.ran.get(&number).is_some_and(|ran| !ran.is_empty())
        };
        self.changed.wait_while(&mut state, must_wait);
        state.ran.entry(number).or_default().push_back(part);
        self.changed.notify_all();
        state.over.is_none()
    }

    /// This device has run all of a batch.
    pub(crate) fn finish(&self, device: usize) {
        self.change(|state| state.devices[device].under_way -= 1);
    }

    /// This device could not run a batch, of which this is left. If it is lost, another one runs that; if it is not, the
    /// map ends with the batch before.
    pub(crate) fn fail(&self, device: usize, work: Work, error: Error) {
        self.change(|state| {
            state.devices[device].under_way -= 1;
            let is_any_lost = state.devices.iter().any(|device| device.share.is_lost);
            match error {
                Error::DeviceLost(lost) => state.lose(device, work, lost),
                // A fault on one GPU may have poisoned the process, in which the others then fail in other ways. If this
                // is something else, it shows again in the process after this one.
                Error::Engine(error) if is_any_lost => {
                    let lost = work.lost(&error);
                    state.lose(device, work, lost);
                }
                error if state.failed.as_ref().is_none_or(|(first, _)| work.number < *first) => {
                    state.failed = Some((work.number, error));
                }
                _ => {}
            }
        });
    }

    /// Keeps what this device's engine has learned.
    pub(crate) fn keep(&self, device: usize, tuning: Option<Tuning>) {
        self.state.lock().devices[device].tuning = tuning;
    }

    /// Nothing more is to be run or written.
    pub(crate) fn abort(&self, error: Error) {
        self.change(|state| state.end(Over::Failed(error)));
    }

    /// A launch hangs. What has run by now can still be written.
    pub(crate) fn hang(&self) {
        self.change(|state| state.end(Over::Hung));
    }

    // ---- for the writer ----

    /// Waits for what there is to write next.
    pub(crate) fn next(&self) -> News {
        let mut state = self.state.lock();
        loop {
            // Instances that the interrupt has ended are not to be written.
            if self.interrupt.as_ref().is_some_and(|interrupt| interrupt.load(Ordering::Relaxed)) {
                state.end(Over::Finished);
                self.changed.notify_all();
                return News::Over(Over::Interrupted);
            }
            if let Some(lost) = state.lost.pop_front() {
                return News::Lost(lost);
            }
            if let Some(part) = state.pop() {
                self.changed.notify_all();
                return News::Ran(Box::new(part));
            }
            if let Some(over) = state.over.take() {
                // It stays over, for all other threads.
                state.over = Some(Over::Finished);
                return News::Over(over);
            }
            // The last device's batches all end first, so that what they had finished is written.
            if state.devices.iter().all(|device| device.share.is_lost)
                && state.under_way() == 0
                && let Some((_, (_, lost))) = state.again.pop_first()
            {
                state.end(Over::Lost(lost));
                continue;
            }
            let front = state.front;
            if let Some((_, error)) = state.failed.take_if(|(number, _)| *number == front) {
                state.end(Over::Failed(error));
                continue;
            }
            if state.is_finished() {
                let read = state.read.replace(Ok(()));
                state.end(Over::Finished);
                self.changed.notify_all();
                return News::Over(read.unwrap_or(Ok(())).map_or_else(Over::Failed, |()| Over::Finished));
            }
            match self.interrupt {
                Some(_) => drop(self.changed.wait_for(&mut state, INTERRUPT_LOOK)),
                None => self.changed.wait(&mut state),
            }
        }
    }

    /// Nobody writes any more.
    pub(crate) fn close(&self) {
        self.change(|state| state.end(Over::Finished));
    }

    /// Returns what all launches have spent, and each device's share.
    pub(crate) fn spent(&self) -> (RunStats, Vec<Share>) {
        let state = self.state.lock();
        (state.spent.clone(), state.devices.iter().map(|device| device.share.clone()).collect())
    }

    /// Returns what was learned about the program on each device.
    pub(crate) fn tunings(&self) -> Vec<Option<Tuning>> {
        self.state.lock().devices.iter().map(|device| device.tuning.clone()).collect()
    }

    fn change(&self, change: impl FnOnce(&mut MutexGuard<'_, State>)) {
        change(&mut self.state.lock());
        self.changed.notify_all();
    }
}

impl State {
    fn end(&mut self, over: Over) {
        self.over.get_or_insert(over);
    }

    /// Whether another new batch may be dealt.
    fn is_open(&self) -> bool {
        self.dealt - self.front < if self.last < self.suspects { 1 } else { self.window }
    }

    /// Whether this device is the one to get the next batch: no other one that waits has fewer.
    fn is_next(&self, device: usize) -> bool {
        let waiting = self.devices.iter().enumerate().filter(|(_, device)| device.waits && !device.share.is_lost);
        waiting.min_by_key(|(_, device)| device.under_way).is_some_and(|(first, _)| first == device)
    }

    fn deal(&mut self) -> Option<Dealt> {
        if let Some((_, (work, _))) = self.again.pop_first() {
            return Some(Dealt::Again(work));
        }
        let batch = if self.failed.is_none() && self.is_open() { self.given.take() } else { None }?;
        let number = self.dealt;
        (self.dealt, self.last) = (number + 1, batch.first);
        Some(Dealt::New(number, batch))
    }

    fn lose(&mut self, device: usize, mut work: Work, lost: DeviceLost) {
        let share = &mut self.devices[device].share;
        let is_news = !mem::replace(&mut share.is_lost, true);
        let id = share.device.clone();
        let others = self.devices.iter().filter(|device| !device.share.is_lost);
        let others: Vec<_> = others.map(|device| device.share.device.clone()).collect();
        let is_last = others.is_empty();
        if is_news && !is_last {
            self.lost.push_back(LostDevice { device: id, error: lost.error.clone(), others });
        }
        work.losses += 1;
        if work.losses >= MAX_LOSSES_OF_BATCH {
            self.end(Over::Lost(lost));
        } else {
            self.again.insert(work.number, (work, lost));
        }
    }

    fn under_way(&self) -> u32 {
        self.devices.iter().map(|device| device.under_way).sum()
    }

    /// Whether there is nothing more to do for this device. Until all batches have run, one may be lost by another.
    fn is_over_for(&self, device: usize) -> bool {
        let is_last_dealt = self.failed.is_some() || self.read.is_some() && self.given.is_none();
        let has_all_run = is_last_dealt && self.again.is_empty() && self.under_way() == 0;
        self.over.is_some() || self.devices[device].share.is_lost || has_all_run
    }

    fn is_finished(&self) -> bool {
        self.read.is_some() && self.given.is_none() && self.dealt == self.front
    }

    /// Takes the next part in order.
    fn pop(&mut self) -> Option<RanPart> {
        let part = self.ran.get_mut(&self.front)?.pop_front()?;
        if part.mark.is_some() {
            self.ran.remove(&self.front);
            self.front += 1;
        }
        Some(part)
    }
}
