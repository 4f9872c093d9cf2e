//! Batches on several devices, for a thread that begins them and finishes them itself.
//!
//! A batch goes to the device that has the fewest. Its results are asked for in the order of the batches, so a device
//! that is slower than the others holds them up. If a device is lost, the others run what is left of its batches.

use super::mapper::Mapper;
use super::pending::Pending;
use super::results::Results;
use gpu_run_compiler::Error;
use gpu_run_run::{Job, RunStats};
use std::fmt;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Batches of a device at once. A third would be launched when its results are asked for.
const BATCHES_AT_ONCE: usize = 2;
/// A batch that has lost so many devices is not given to another: it is the batch's fault, more likely than theirs.
pub(crate) const MAX_LOSSES_OF_BATCH: u32 = 2;

/// One program, loaded on several devices.
#[derive(Debug)]
pub struct Mappers {
    members: Vec<Arc<Member>>,
}

#[derive(Debug)]
struct Member {
    mapper: Mapper,
    under_way: AtomicUsize,
    is_lost: AtomicBool,
}

/// A batch that was begun on one of the devices.
pub struct PendingOn {
    on: On,
    jobs: Arc<Vec<Job>>,
    /// Jobs whose results were returned.
    done: usize,
    losses: u32,
    timeout: Option<Duration>,
}

/// A batch on its device. When it is dropped, the device has one batch less.
struct On {
    pending: Pending,
    member: Arc<Member>,
}

impl Drop for On {
    fn drop(&mut self) {
        self.member.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for PendingOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingOn").field("jobs", &self.jobs.len()).field("done", &self.done).finish_non_exhaustive()
    }
}

impl Mappers {
    /// Each mapper has another device; there must be one.
    pub fn new(mappers: Vec<Mapper>) -> Self {
        let member = |mapper| Member { mapper, under_way: AtomicUsize::new(0), is_lost: AtomicBool::new(false) };
        Self { members: mappers.into_iter().map(member).map(Arc::new).collect() }
    }

    /// Returns how many batches can be under way before the first one is finished.
    pub fn at_once(&self) -> usize {
        BATCHES_AT_ONCE * self.members.len()
    }

    /// Begins a batch. It waits for no other.
    pub fn begin(&self, jobs: Vec<Job>, timeout: Option<Duration>) -> Result<PendingOn, Error> {
        let (jobs, mut losses) = (Arc::new(jobs), 0);
        let on = self.place(&jobs, timeout, &mut losses)?;
        Ok(PendingOn { on, jobs, done: 0, losses, timeout })
    }

    /// Waits for the next jobs of a batch and returns how they ended; `None` after the last. An error means that the
    /// batch failed as a whole, or that no device is left to run it.
    pub fn next_part(&self, batch: &mut PendingOn) -> Result<Option<Results>, Error> {
        loop {
            match batch.on.pending.next_part() {
                Ok(part) => {
                    batch.done += part.as_ref().map_or(0, Results::len);
                    return Ok(part);
                }
                Err(error) if error.is_device_lost() => {
                    self.lose(&batch.on.member, &mut batch.losses, error)?;
                    batch.jobs = Arc::new(batch.jobs[mem::take(&mut batch.done)..].to_vec());
                    batch.on = self.place(&batch.jobs, batch.timeout, &mut batch.losses)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the statistics of a batch since the last call.
    pub fn take_stats(&self, batch: &mut PendingOn) -> RunStats {
        batch.on.pending.take_stats()
    }

    /// Begins jobs on the device with the fewest batches. Where there are two already, they are launched later: the
    /// thread that must finish those is this one.
    fn place(&self, jobs: &Arc<Vec<Job>>, timeout: Option<Duration>, losses: &mut u32) -> Result<On, Error> {
        loop {
            let usable = self.members.iter().filter(|member| !member.is_lost.load(Ordering::Relaxed));
            let Some(member) = usable.min_by_key(|member| member.under_way.load(Ordering::Relaxed)) else {
                return Err(Error::Device(gpu_run_device::Error::Fault("all devices are lost".to_owned())));
            };
            let begun = match member.under_way.load(Ordering::Relaxed) {
                ..BATCHES_AT_ONCE => member.mapper.begin(jobs.clone(), timeout),
                _ => member.mapper.begin_later(jobs.clone(), timeout),
            };
            match begun {
                Ok(pending) => {
                    member.under_way.fetch_add(1, Ordering::Relaxed);
                    return Ok(On { pending, member: member.clone() });
                }
                Err(error) if error.is_device_lost() => self.lose(member, losses, error)?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Notes that a device is lost. Returns the error if no other is to run the batch.
    fn lose(&self, lost: &Member, losses: &mut u32, error: Error) -> Result<(), Error> {
        lost.is_lost.store(true, Ordering::Relaxed);
        *losses += 1;
        let is_any_left = self.members.iter().any(|member| !member.is_lost.load(Ordering::Relaxed));
        if is_any_left && *losses < MAX_LOSSES_OF_BATCH { Ok(()) } else { Err(error) }
    }
}
