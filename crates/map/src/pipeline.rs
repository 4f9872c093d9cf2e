//! A map that runs: threads that hand batches of records on, in one direction.
//!
//! ```text
//!    argument
//! 1  cli/src/map/mod.rs    map                 arguments become Options, Input, Output
//! 2  map.rs                Map::open, begin    input and output are opened; the journal exists
//! 3  input/reader.rs       Reader::run         bytes ▶ records ▶ batches             thread "reader"
//! 4  dealer.rs             Dealer::take        each batch to a device that is free
//! 5  runner/mod.rs         Runner::begin       record ▶ job; the batch is launched    thread "runner" of each device
//! 6  batch/mapper.rs       Mapper::begin       (runs on the device; with threads: runner/gangs.rs)
//! 7  runner/mod.rs         Running::next_part  results ▶ outcome of each record       thread "collector" of each device
//! 8  dealer.rs             Dealer::put, next   parts of batches, in order again
//! 9  output/writer.rs      Writer::write       outcomes in order; failures reported   the caller's thread
//! 10 output/target.rs      Target::put         bytes of output; the journal follows
//!    output
//! ```
//!
//! While one batch is written, each device runs one, and another waits to run there. A faster device may be a few
//! batches ahead of the writer ([`Dealer`]); nothing else is in memory. If a device is lost, the others run its batches.
//! If the last one is lost, or a launch hangs, another process continues after the records that were written
//! ([`handover`](crate::handover)).

use crate::batch::Tuning;
use crate::dealer::{Dealer, Dealt, News, Over};
use crate::error::Error;
use crate::input::reader::Reader;
use crate::output::SharedWriter;
use crate::output::writer::{Flow, StopReason};
use crate::runner::{DeviceLost, Engine, Finish, Runner, Running};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{self, JoinHandle};

/// How the threads ended, if not with an error.
pub(crate) enum PipelineEnd {
    /// All records are written. With it, what was learned about the program on each device.
    Finished(Vec<Option<Tuning>>),
    /// A record failed, and the map was to stop there; or it was interrupted.
    Stopped,
    /// No device is left that could continue.
    DeviceLost(DeviceLost),
    /// A launch did not end, not even after it was stopped.
    Hung,
}

/// Reads, runs and writes until the input ends or something fails. The dealer knows as many devices as there are
/// runners.
pub(crate) fn run<E>(
    reader: Reader,
    runners: Vec<Runner<E>>,
    max_records: usize,
    writer: &SharedWriter,
    dealer: &Arc<Dealer>,
) -> Result<PipelineEnd, Error>
where
    E: Engine<Pending: Send> + Send + 'static,
{
    let written =
        start(reader, runners, max_records, dealer).and_then(|threads| Ok((threads, write_all(dealer, writer)?)));
    // Whoever still reads or runs is not waited for: it may be reading from a pipe, or running for long.
    dealer.close();
    let threads = match written {
        Ok((threads, Written::All)) => threads,
        Ok((_, Written::UpToFailure)) => {
            writer.end(StopReason::RecordFailed);
            return Ok(PipelineEnd::Stopped);
        }
        Ok((_, Written::UpToLoss(lost))) => return Ok(PipelineEnd::DeviceLost(lost)),
        Ok((_, Written::UpToInterrupt)) => {
            writer.end(StopReason::Interrupted);
            return Ok(PipelineEnd::Stopped);
        }
        Ok((_, Written::UpToHang)) => return Ok(PipelineEnd::Hung),
        Err((reason, error)) => {
            writer.end(reason);
            return Err(error);
        }
    };
    // All of them have reported to the dealer how they ended.
    threads.into_iter().for_each(|thread| _ = thread.join());
    writer.writing().finish()?;
    Ok(PipelineEnd::Finished(dealer.tunings()))
}

/// An error, and what it is reported as.
type Stopping = (StopReason, Error);

fn start<E>(
    reader: Reader,
    runners: Vec<Runner<E>>,
    max_records: usize,
    dealer: &Arc<Dealer>,
) -> Result<Vec<JoinHandle<()>>, Stopping>
where
    E: Engine<Pending: Send> + Send + 'static,
{
    let spawn = |name, work: ThreadWork| spawn(name, dealer, work).map_err(|error| (StopReason::CannotRun, error));
    let mut threads =
        vec![spawn("reader", Box::new(move |dealer: &Dealer| dealer.end_of_input(reader.run(max_records, dealer))))?];
    for (device, runner) in runners.into_iter().enumerate() {
        // No queue: a thread that sends waits until the other one receives.
        let (to_collect, begun) = mpsc::sync_channel(0);
        threads.push(spawn("runner", Box::new(move |dealer: &Dealer| run_all(runner, device, dealer, &to_collect)))?);
        threads.push(spawn("collector", Box::new(move |dealer: &Dealer| collect_all(&begun, device, dealer)))?);
    }
    Ok(threads)
}

/// Runs what the dealer has for a device.
fn run_all<E: Engine>(
    mut runner: Runner<E>,
    device: usize,
    dealer: &Dealer,
    to_collect: &SyncSender<Running<E::Pending>>,
) {
    while let Some(dealt) = dealer.take(device) {
        let work = match dealt {
            Dealt::New(number, batch) => runner.work(number, batch),
            Dealt::Again(work) => work,
        };
        match runner.begin(work).map_err(|failed| *failed) {
            Ok(running) => {
                if to_collect.send(running).is_err() {
                    break;
                }
            }
            Err((work, error)) => dealer.fail(device, work, error),
        }
    }
    dealer.keep(device, runner.engine().tuning());
}

/// Waits for the batches of a device that were begun, and hands their parts on.
fn collect_all<P: Finish>(begun: &Receiver<Running<P>>, device: usize, dealer: &Dealer) {
    for mut running in begun {
        loop {
            match running.next_part() {
                Ok(Some((part, stats))) => {
                    if !dealer.put(device, running.number(), part, &stats) {
                        return;
                    }
                }
                Ok(None) => {
                    dealer.finish(device);
                    break;
                }
                Err(error) => {
                    dealer.fail(device, running.rest(), error);
                    break;
                }
            }
        }
    }
}

/// How much was written.
enum Written {
    All,
    UpToFailure,
    UpToLoss(DeviceLost),
    UpToHang,
    UpToInterrupt,
}

fn write_all(dealer: &Dealer, writer: &SharedWriter) -> Result<Written, Stopping> {
    loop {
        match dealer.next() {
            News::Ran(part) => {
                let flow = writer.writing().write(*part).map_err(|error| (StopReason::CannotWrite, error))?;
                if flow == Flow::Stop {
                    return Ok(Written::UpToFailure);
                }
            }
            News::Lost(lost) => writer.writing().observer().device_lost(&lost),
            News::Over(Over::Finished) => return Ok(Written::All),
            News::Over(Over::Lost(lost)) => return Ok(Written::UpToLoss(lost)),
            News::Over(Over::Interrupted) => return Ok(Written::UpToInterrupt),
            News::Over(Over::Hung) => return Ok(Written::UpToHang),
            News::Over(Over::Failed(error)) => return Err((StopReason::CannotRun, error)),
        }
    }
}

/// The work of a thread, which tells the dealer how it ends.
type ThreadWork = Box<dyn FnOnce(&Dealer) + Send>;

/// Starts a thread. If it panics, the dealer is told.
fn spawn(name: &'static str, dealer: &Arc<Dealer>, work: ThreadWork) -> Result<JoinHandle<()>, Error> {
    let dealer = dealer.clone();
    let work = move || {
        if catch_unwind(AssertUnwindSafe(|| work(&dealer))).is_err() {
            dealer.abort(Error::Internal("a thread of the map panicked"));
        }
    };
    thread::Builder::new().name(name.into()).spawn(work).map_err(|source| Error::StartThread { name, source })
}

#[cfg(test)]
#[path = "pipeline_tests.rs"]
mod tests;
