//! A mapper that takes records from many threads and tasks.

use crate::command::Output;
use crate::error::{Error, Result};
use crate::mapper::Mapper;
use bytes::Bytes;
use futures_channel::oneshot;
use futures_util::stream::{Stream, StreamExt};
use gpu_run_map::PendingOn;
use gpu_run_run::Job;
use std::collections::VecDeque;
use std::fmt;
use std::sync::mpsc;

/// Runs one instance of a program for each record that anybody sends: what was sent while the device was busy runs together.
///
/// Clones are the same service. It ends with the last of them.
///
/// ```
/// # use gpu_run::{Config, Engine, Mapper, Module};
/// # let engine = Engine::new(&Config::new().device("cpu").no_cache())?;
/// # let module = Module::new(&engine, r#"(module (func (export "_start")))"#)?;
/// # futures_executor::block_on(async {
/// let service = Mapper::builder(&module).build()?.serve()?;
/// let output = service.run("a record").await?;
/// assert!(output.status.success());
/// # Ok::<(), gpu_run::Error>(()) })?;
/// # Ok::<(), gpu_run::Error>(())
/// ```
#[derive(Clone)]
pub struct Service {
    requests: mpsc::Sender<Request>,
    batch: usize,
}

struct Request {
    record: Bytes,
    reply: oneshot::Sender<Result<Output>>,
}

impl Mapper {
    /// Starts a thread that takes records from anybody.
    pub fn serve(self) -> Result<Service> {
        let (requests, queue) = mpsc::channel();
        let batch = self.batch();
        let serve = move || Server { mapper: self, queue, next: 0, under_way: VecDeque::new() }.run();
        match std::thread::Builder::new().name("gpu-run service".into()).spawn(serve) {
            Ok(_) => Ok(Service { requests, batch }),
            Err(source) => Err(Error::Io { what: "cannot start a thread".into(), source }),
        }
    }

    /// Runs the program for each record of a stream, and returns the outputs in the records' order.
    pub fn stream<S>(self, records: S) -> Result<impl Stream<Item = Result<Output>> + use<S>>
    where
        S: Stream,
        S::Item: Into<Bytes>,
    {
        let ahead = self.batches_at_once() * self.batch();
        let service = self.serve()?;
        Ok(records.map(move |record| service.send(record.into())).buffered(ahead))
    }
}

impl Service {
    /// Runs the program for a record. If nobody waits for the output any more, it is dropped.
    pub async fn run(&self, record: impl Into<Bytes>) -> Result<Output> {
        self.send(record.into()).await
    }

    /// Sends a record at once; the future waits for the output.
    fn send(&self, record: Bytes) -> impl Future<Output = Result<Output>> + use<> {
        let (reply, output) = oneshot::channel();
        // If the thread is gone, so is the other end of the reply.
        let _ = self.requests.send(Request { record, reply });
        async { output.await.unwrap_or_else(|_| Err(Error::Internal("the service's thread has ended".into()))) }
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("batch", &self.batch).finish_non_exhaustive()
    }
}

/// The service's thread.
struct Server {
    mapper: Mapper,
    queue: mpsc::Receiver<Request>,
    /// The number of the next record.
    next: u64,
    under_way: VecDeque<Batch>,
}

struct Batch {
    pending: PendingOn,
    /// The number of the next record whose output comes, and who waits for it and those after it.
    number: u64,
    replies: VecDeque<oneshot::Sender<Result<Output>>>,
}

impl Server {
    fn run(mut self) {
        let mut is_open = true;
        while is_open || !self.under_way.is_empty() {
            if is_open && self.under_way.len() < self.mapper.batches_at_once() {
                let requests = self.take(&mut is_open);
                if !requests.is_empty() {
                    self.begin(requests);
                    continue;
                }
            }
            if let Some(batch) = self.under_way.pop_front() {
                self.finish(batch);
            }
        }
    }

    /// Takes the requests that are there; waits for one if nothing else is to be done.
    fn take(&self, is_open: &mut bool) -> Vec<Request> {
        let mut requests = Vec::new();
        if self.under_way.is_empty() {
            match self.queue.recv() {
                Ok(request) => requests.push(request),
                Err(mpsc::RecvError) => *is_open = false,
            }
        }
        while requests.len() < self.mapper.batch() {
            match self.queue.try_recv() {
                Ok(request) => requests.push(request),
                Err(mpsc::TryRecvError::Empty) => break,
                Err(mpsc::TryRecvError::Disconnected) => {
                    *is_open = false;
                    break;
                }
            }
        }
        requests
    }

    fn begin(&mut self, requests: Vec<Request>) {
        let number = self.next;
        self.next += requests.len() as u64;
        let (records, replies): (Vec<_>, VecDeque<_>) = requests.into_iter().map(|r| (r.record, r.reply)).unzip();
        let jobs: Vec<Job> = (number..).zip(records).map(|(number, record)| self.mapper.job(number, record)).collect();
        match self.mapper.begin(jobs) {
            Ok(pending) => self.under_way.push_back(Batch { pending, number, replies }),
            Err(error) => fail(replies, &error),
        }
    }

    fn finish(&self, mut batch: Batch) {
        loop {
            match self.mapper.next_part(&mut batch.pending) {
                Ok(None) => return,
                Ok(Some(part)) => {
                    for done in part.iter() {
                        let output = self.mapper.output(batch.number, done);
                        batch.number += 1;
                        batch.replies.pop_front().map(|reply| reply.send(Ok(output)));
                    }
                }
                Err(error) => return fail(batch.replies, &error),
            }
        }
    }
}

fn fail(replies: VecDeque<oneshot::Sender<Result<Output>>>, error: &Error) {
    for reply in replies {
        let _ = reply.send(Err(Error::Batch(error.to_string())));
    }
}
