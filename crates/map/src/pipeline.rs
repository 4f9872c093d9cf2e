//! A map that runs: four threads that hand batches of records on, in one direction.
//!
//! ```text
//!    argument
//! 1  cli/src/map/mod.rs    map                 arguments become Options, Input, Output
//! 2  map.rs                Map::open, begin    input and output are opened; the journal exists
//! 3  input/reader.rs       Reader::run         bytes ▶ records ▶ batches             thread "reader"
//! 4  runner/mod.rs         Runner::begin       record ▶ job; the batch is launched    thread "runner"
//! 5  batch/mapper.rs       Mapper::begin       (runs on the device; with threads: runner/gangs.rs)
//! 6  runner/mod.rs         Running::next_part  results ▶ outcome of each record       thread "collector"
//! 7  output/writer.rs      Writer::write       outcomes in order; failures reported   the caller's thread
//! 8  output/target.rs      Target::put         bytes of output; the journal follows
//!    output
//! ```
//!
//! Batches pass from one thread to the next without a queue in between. While one batch is written, the next one runs,
//! another waits to run, and the one after it is read; nothing else is in memory. If the device is lost or a launch
//! hangs, another process continues after the records that were written ([`handover`](crate::handover)).

use crate::batch::Tuning;
use crate::error::Error;
use crate::input::reader::{Batch, Reader};
use crate::output::SharedWriter;
use crate::output::writer::{Flow, StopReason};
use crate::runner::{DeviceLost, Engine, Finish, RanPart, Runner, Running};
use gpu_run_run::RunStats;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{self, JoinHandle};

/// How the threads ended, if not with an error.
pub(crate) enum PipelineEnd {
    /// All records are written. With it, what was learned about the program.
    Finished(Option<Tuning>),
    /// A record failed, and the map was to stop there.
    Stopped,
    DeviceLost(DeviceLost),
    /// A launch did not end, not even after it was stopped.
    Hung,
}

/// A message to the writer.
enum Message {
    Ran(Box<RanPart>),
    Hung,
}

/// Tells the writer that a launch hangs, as long as there is something to write.
#[derive(Clone, Default)]
pub(crate) struct HangAlarm(Arc<Mutex<Option<SyncSender<Message>>>>);

impl HangAlarm {
    fn set(&self, writer: Option<SyncSender<Message>>) {
        *self.0.lock() = writer;
    }

    pub(crate) fn ring(&self) {
        // Not sent under the lock: sending may wait for the writer.
        let writer = self.0.lock().clone();
        let _ = writer.map(|writer| writer.send(Message::Hung));
    }
}

/// Reads, runs and writes until the input ends or something fails. What the launches spend is added to `spent`.
pub(crate) fn run<E>(
    reader: Reader,
    runner: Runner<E>,
    max_records: usize,
    writer: &SharedWriter,
    alarm: &HangAlarm,
    spent: &Arc<Mutex<RunStats>>,
) -> Result<PipelineEnd, Error>
where
    E: Engine<Pending: Send> + Send + 'static,
{
    let (threads, ran) = start(reader, runner, max_records, alarm.clone(), spent.clone())?;
    match write_all(&ran, writer) {
        Ok(Written::All) => {}
        // The other threads are not joined: they may be reading from a pipe, or running for long.
        Ok(Written::UpToFailure) => {
            writer.end(StopReason::RecordFailed);
            return Ok(PipelineEnd::Stopped);
        }
        Ok(Written::UpToHang) => {
            // Dropping the threads' results would wait for the launch that hangs.
            std::mem::forget(threads);
            return Ok(PipelineEnd::Hung);
        }
        Err(error) => {
            writer.end(StopReason::CannotWrite);
            return Err(error);
        }
    }
    let engine = match threads.join() {
        Ok(engine) => engine,
        Err(Error::DeviceLost(lost)) => return Ok(PipelineEnd::DeviceLost(lost)),
        Err(error) => {
            writer.end(StopReason::CannotRun);
            return Err(error);
        }
    };
    writer.writing().finish()?;
    Ok(PipelineEnd::Finished(engine.tuning()))
}

/// The threads that work for the writer.
struct Threads<E> {
    reader: JoinHandle<Result<(), Error>>,
    runner: JoinHandle<Result<E, Error>>,
    collector: JoinHandle<Result<(), Error>>,
}

fn start<E>(
    reader: Reader,
    runner: Runner<E>,
    max_records: usize,
    alarm: HangAlarm,
    spent: Arc<Mutex<RunStats>>,
) -> Result<(Threads<E>, Receiver<Message>), Error>
where
    E: Engine<Pending: Send> + Send + 'static,
{
    // No queue: a thread that sends waits until the other one receives.
    let (to_run, batches) = mpsc::sync_channel::<Batch>(0);
    let (to_collect, begun) = mpsc::sync_channel(0);
    let (to_write, ran) = mpsc::sync_channel::<Message>(0);
    alarm.set(Some(to_write.clone()));
    let reader = spawn("reader", move || reader.run(max_records, &to_run))?;
    let runner = spawn("runner", move || run_all(runner, &batches, &to_collect))?;
    let collector = spawn("collector", move || {
        let collected = collect_all(&begun, &to_write, &spent);
        alarm.set(None);
        collected
    })?;
    Ok((Threads { reader, runner, collector }, ran))
}

impl<E> Threads<E> {
    /// Joins the threads, the last of the pipeline first. After an error, it does not join the threads before it: the
    /// reader may wait for its input for ever.
    fn join(self) -> Result<E, Error> {
        join(self.collector)?;
        let engine = join(self.runner)?;
        join(self.reader)?;
        Ok(engine)
    }
}

fn run_all<E: Engine>(
    mut runner: Runner<E>,
    batches: &Receiver<Batch>,
    to_collect: &SyncSender<Running<E::Pending>>,
) -> Result<E, Error> {
    for batch in batches {
        if to_collect.send(runner.begin(batch)?).is_err() {
            break;
        }
    }
    Ok(runner.into_engine())
}

fn collect_all<P: Finish>(
    begun: &Receiver<Running<P>>,
    to_write: &SyncSender<Message>,
    spent: &Mutex<RunStats>,
) -> Result<(), Error> {
    for mut running in begun {
        while let Some((ran, stats)) = running.next_part()? {
            spent.lock().add(&stats);
            if to_write.send(Message::Ran(Box::new(ran))).is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// How much was written.
enum Written {
    All,
    UpToFailure,
    UpToHang,
}

fn write_all(ran: &Receiver<Message>, writer: &SharedWriter) -> Result<Written, Error> {
    let mut is_hung = false;
    // Parts that ran before the launch that hangs are still written.
    while let Ok(message) = if is_hung { ran.try_recv().map_err(drop) } else { ran.recv().map_err(drop) } {
        match message {
            Message::Ran(part) => {
                if writer.writing().write(*part)? == Flow::Stop {
                    return Ok(Written::UpToFailure);
                }
            }
            Message::Hung => is_hung = true,
        }
    }
    Ok(if is_hung { Written::UpToHang } else { Written::All })
}

fn spawn<T: Send + 'static>(
    name: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, Error> {
    thread::Builder::new().name(name.into()).spawn(work).map_err(|source| Error::StartThread { name, source })
}

fn join<T>(thread: JoinHandle<Result<T, Error>>) -> Result<T, Error> {
    thread.join().unwrap_or_else(|_| Err(Error::Internal("a thread of the map panicked")))
}
