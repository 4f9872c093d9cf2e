//! The outputs of many records, in order, while later records run.
//!
//! A thread of our own has the mapper. Python's side takes records from where they come from and sends them there, a few batches ahead of
//! the outputs that come back, so that the device always has work, and the input need not end.

use crate::array::{Array, Kind};
use crate::failure;
use crate::program::Idle;
use crate::source::{Source, Taken};
use crate::text;
use crate::work::{self, Inbox};
use gpu_run::{Error, Interrupt, Mapper, Output};
use parking_lot::Mutex;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

/// Batches that are sent before the outputs of the first come back: two that run, and one that is ready to.
const AHEAD: usize = 3;
/// Records that are sent at once.
const SENT: usize = 8192;
/// Outputs that are returned at once, at most.
const RETURNED: usize = 4096;
/// How often somebody is told how far it is.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// What the thread with the mapper says.
enum Message {
    /// The program is compiled; so many records run at once.
    Ready(usize),
    Outputs(Vec<Output>),
    /// All is done, with the mapper for whoever comes next; or something failed.
    End(Box<Result<Idle, Error>>),
}

/// The records as the mapper takes them.
struct Sent {
    records: Receiver<Vec<bytes::Bytes>>,
    present: std::vec::IntoIter<bytes::Bytes>,
    back: Back,
}

/// Outputs on their way back. Before the thread waits for records, it lets go of those it has.
#[derive(Clone)]
struct Back(Arc<Mutex<(Vec<Output>, Sender<Message>)>>);

impl Back {
    fn put(&self, output: Output) -> bool {
        let mut back = self.0.lock();
        back.0.push(output);
        back.0.len() < RETURNED || Self::send(&mut back)
    }

    fn flush(&self) -> bool {
        Self::send(&mut self.0.lock())
    }

    /// Returns whether somebody still waits for outputs.
    fn send((outputs, messages): &mut (Vec<Output>, Sender<Message>)) -> bool {
        outputs.is_empty() || messages.send(Message::Outputs(std::mem::take(outputs))).is_ok()
    }
}

impl Iterator for Sent {
    type Item = bytes::Bytes;

    fn next(&mut self) -> Option<bytes::Bytes> {
        loop {
            if let Some(record) = self.present.next() {
                return Some(record);
            }
            if !self.back.flush() {
                return None;
            }
            self.present = self.records.recv().ok()?.into_iter();
        }
    }
}

/// Runs the records that come through the mapper.
fn run(mapper: &mut Mapper, records: Receiver<Vec<bytes::Bytes>>, messages: &Sender<Message>) -> Result<(), Error> {
    let back = Back(Arc::new(Mutex::new((Vec::new(), messages.clone()))));
    let sent = Sent { records, present: Vec::new().into_iter(), back: back.clone() };
    for output in mapper.map(sent) {
        if !back.put(output?) {
            break;
        }
    }
    back.flush();
    Ok(())
}

/// What becomes of an output.
pub(crate) struct Shape {
    pub(crate) as_text: bool,
    pub(crate) strips_newline: bool,
    pub(crate) returns_errors: bool,
}

struct Flow {
    source: Option<Source>,
    /// `None` once all records were sent.
    records: Option<Sender<Vec<bytes::Bytes>>>,
    messages: Inbox<Message>,
    interrupt: Interrupt,
    batch: Option<usize>,
    /// Records that were taken, that were sent, and whose outputs came back.
    taken: u64,
    sent: usize,
    came: usize,
    nulls: VecDeque<u64>,
    ready: VecDeque<Output>,
    /// The number of the next output.
    next: u64,
    /// What went wrong with the input: the outputs of the records before it come first.
    input_error: Option<PyErr>,
    failed: u64,
    progress: Option<Py<PyAny>>,
    told: Option<Instant>,
    is_over: bool,
}

impl Flow {
    fn new(source: Source, mut idle: Idle, progress: Option<Py<PyAny>>) -> PyResult<Self> {
        let (sender, records) = mpsc::channel();
        let (messages, inbox) = mpsc::channel();
        let interrupt = idle.interrupt().clone();
        work::spawn(move || {
            let end = idle.mapper().and_then(|mapper| {
                let _ = messages.send(Message::Ready(mapper.batch()));
                run(mapper, records, &messages)
            });
            let _ = messages.send(Message::End(Box::new(end.map(|()| idle))));
        })?;
        Ok(Self {
            source: Some(source),
            records: Some(sender),
            messages: Inbox::new(inbox),
            interrupt,
            batch: None,
            taken: 0,
            sent: 0,
            came: 0,
            nulls: VecDeque::new(),
            ready: VecDeque::new(),
            next: 0,
            input_error: None,
            failed: 0,
            progress,
            told: None,
            is_over: false,
        })
    }

    /// Sends records, as many as are to be ahead.
    fn feed(&mut self, py: Python<'_>) -> PyResult<()> {
        let Some(batch) = self.batch else { return Ok(()) };
        let ahead = batch.saturating_mul(AHEAD);
        while let Some(source) = &mut self.source
            && self.sent - self.came < ahead
            && self.nulls.len() < ahead
        {
            let Taken { records, nulls, end } = source.take(py, self.taken, batch.min(SENT));
            self.taken += (records.len() + nulls.len()) as u64;
            self.sent += records.len();
            self.nulls.extend(nulls);
            if let Some(sender) = &self.records
                && !records.is_empty()
            {
                // If the thread is gone, its last message says why.
                let _ = sender.send(records);
            }
            if let Some(end) = end {
                (self.source, self.records) = (None, None);
                match end {
                    // Ctrl-C, and what else is no ordinary mistake, is not put off.
                    Err(error) if !error.is_instance_of::<PyException>(py) => return Err(error),
                    end => self.input_error = end.err(),
                }
            }
        }
        Ok(())
    }

    /// Returns the next output; the inner `None` is that of a null.
    fn next(&mut self, py: Python<'_>) -> PyResult<Option<(u64, Option<Output>)>> {
        loop {
            let number = self.next;
            if self.nulls.front() == Some(&number) {
                self.nulls.pop_front();
                self.next += 1;
                return Ok(Some((number, None)));
            }
            if let Some(output) = self.ready.pop_front() {
                self.next += 1;
                self.failed += u64::from(!output.status.success());
                return Ok(Some((number, Some(output))));
            }
            if self.is_over {
                return match self.input_error.take() {
                    Some(error) => Err(error),
                    None => Ok(None),
                };
            }
            self.feed(py)?;
            if self.nulls.front() == Some(&self.next) {
                continue;
            }
            match self.messages.wait(py, &self.interrupt)? {
                Some(Message::Ready(batch)) => self.batch = Some(batch),
                Some(Message::Outputs(outputs)) => {
                    self.came += outputs.len();
                    self.ready.extend(outputs);
                    self.feed(py)?;
                    self.tell(py, false)?;
                }
                Some(Message::End(end)) => {
                    self.is_over = true;
                    // Only now nobody can raise its interrupt any more.
                    end.map_err(failure::of)?.give_back();
                    self.tell(py, true)?;
                }
                None => return Err(failure::internal("the thread with the mapper panicked")),
            }
        }
    }

    fn tell(&mut self, py: Python<'_>, is_last: bool) -> PyResult<()> {
        let Some(progress) = &self.progress else { return Ok(()) };
        if is_last || self.told.is_none_or(|told| told.elapsed() >= TELL_EVERY) {
            let ready = self.ready.iter().filter(|output| !output.status.success()).count() as u64;
            let done = if is_last { self.taken } else { self.came as u64 };
            progress.call1(py, (done, self.failed + ready))?;
            self.told = Some(Instant::now());
        }
        Ok(())
    }

    fn stop(&mut self) {
        // Once all is done, the interrupt is that of the mapper's next user.
        if !self.is_over {
            self.interrupt.raise();
        }
        (self.source, self.records, self.is_over) = (None, None, true);
        self.nulls.clear();
        self.ready.clear();
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        // Whoever loses interest in the rest does not want it to run. At the end there is no rest.
        if !self.is_over {
            self.interrupt.raise();
        }
    }
}

/// What the program printed for each record, in the records' order.
#[pyclass(frozen, module = "gpu_run")]
pub(crate) struct Outputs {
    flow: Mutex<Flow>,
    shape: Shape,
}

impl Outputs {
    pub(crate) fn new(source: Source, idle: Idle, shape: Shape, progress: Option<Py<PyAny>>) -> PyResult<Self> {
        Ok(Self { flow: Mutex::new(Flow::new(source, idle, progress)?), shape })
    }

    fn shown<'py>(&self, py: Python<'py>, number: u64, output: &Output) -> PyResult<Bound<'py, PyAny>> {
        if !output.status.success() {
            return Err(failure::of_record(py, number, output)?);
        }
        let stdout = self.stripped(&output.stdout);
        if !self.shape.as_text {
            return Ok(PyBytes::new(py, stdout).into_any());
        }
        let text = std::str::from_utf8(stdout).map_err(|_| text::no_text(number))?;
        Ok(PyString::new(py, text).into_any())
    }

    fn stripped<'a>(&self, stdout: &'a [u8]) -> &'a [u8] {
        stdout.strip_suffix(b"\n").filter(|_| self.shape.strips_newline).unwrap_or(stdout)
    }

    /// Collects the outputs in an array of Arrow's. A failed record has none, if errors are to be returned.
    pub(crate) fn collect(self, py: Python<'_>, kind: Kind) -> PyResult<Array> {
        let flow = &mut *self.flow.lock();
        let (mut column, mut errors) = (kind.builder(), Vec::new());
        while let Some((number, output)) = flow.next(py)? {
            let Some(output) = output else {
                column.put_null();
                continue;
            };
            let error = match output.status.success() {
                true if column.put(self.stripped(&output.stdout))? => continue,
                true => text::no_text(number),
                false => failure::of_record(py, number, &output)?,
            };
            if !self.shape.returns_errors {
                return Err(error);
            }
            column.put_null();
            error.value(py).setattr("record", number)?;
            errors.push(error.into_value(py).into_any());
        }
        Ok(Array::new(column.finish(), errors))
    }
}

#[pymethods]
impl Outputs {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(mut flow) = self.flow.try_lock() else {
            return Err(PyValueError::new_err("another thread is waiting for the next output"));
        };
        let shown = match flow.next(py) {
            Ok(None) => return Ok(None),
            Ok(Some((_, None))) => return Ok(Some(py.None().into_bound(py))),
            Ok(Some((number, Some(output)))) => self.shown(py, number, &output),
            Err(error) => {
                flow.stop();
                return Err(error);
            }
        };
        match shown {
            Err(error) if self.shape.returns_errors => Ok(Some(error.into_value(py).into_bound(py).into_any())),
            Err(error) => {
                flow.stop();
                Err(error)
            }
            shown => shown.map(Some),
        }
    }

    /// Ends what still runs. The iterator has nothing more then.
    fn close(&self) -> PyResult<()> {
        let Some(mut flow) = self.flow.try_lock() else {
            return Err(PyValueError::new_err("another thread is waiting for the next output"));
        };
        flow.stop();
        Ok(())
    }
}
