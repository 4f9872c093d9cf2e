//! The stream to the desktop.

use crate::wire::{self, ALIVE, BYTES, Record, VARIABLE};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::FromRawFd;

/// So many bytes of commands wait before they are sent.
const MANY: usize = 32 << 10;

/// One app's connection. What goes wrong when commands are sent is returned by the next call that waits.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: File,
    out: RefCell<Vec<u8>>,
    /// What came while an answer was awaited.
    later: RefCell<VecDeque<Record>>,
    failed: RefCell<Option<io::Error>>,
    next_widget: Cell<u32>,
}

impl Connection {
    pub(crate) fn open() -> io::Result<Self> {
        let descriptor = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok());
        let descriptor = descriptor.ok_or_else(|| {
            let why = "there is no desktop here: start this program with `gpu-run desktop`, which sets GPU_RUN_DESKTOP";
            io::Error::new(io::ErrorKind::NotFound, why)
        })?;
        // SAFETY: who sets the variable gives the program this descriptor, and nothing else in the program has it.
        #[expect(unsafe_code)]
        let stream = unsafe { File::from_raw_fd(descriptor) };
        Ok(Self::over(stream))
    }

    pub(crate) fn over(stream: File) -> Self {
        Self {
            stream,
            out: RefCell::default(),
            later: RefCell::default(),
            failed: RefCell::default(),
            next_widget: Cell::new(1),
        }
    }

    pub(crate) fn new_widget(&self) -> u32 {
        self.next_widget.replace(self.next_widget.get() + 1)
    }

    pub(crate) fn send(&self, record: Record) {
        self.send_with(record, &[]);
    }

    pub(crate) fn send_with(&self, record: Record, following: &[u8]) {
        let mut out = self.out.borrow_mut();
        out.extend(record.to_bytes());
        out.extend(following);
        if out.len() >= MANY {
            drop(out);
            if let Err(error) = self.flush() {
                self.failed.borrow_mut().get_or_insert(error);
            }
        }
    }

    pub(crate) fn send_text(&self, key: u32, text: &str, begins: bool) {
        wire::text(key, text, begins).into_iter().for_each(|record| self.send(record));
    }

    fn flush(&self) -> io::Result<()> {
        let out = self.out.take();
        (&self.stream).write_all(&out)
    }

    /// Returns the next record; `None` when the desktop has ended.
    pub(crate) fn receive(&self) -> io::Result<Option<Record>> {
        if let Some(record) = self.later.borrow_mut().pop_front() {
            return Ok(Some(record));
        }
        self.send(Record { kind: ALIVE, ..Record::default() });
        self.sent()?;
        self.read()
    }

    /// Sends a question, and returns the bytes of its answer.
    pub(crate) fn ask(&self, question: Record) -> io::Result<Vec<u8>> {
        self.send(question);
        self.sent()?;
        while let Some(record) = self.read()? {
            if record.kind == question.kind {
                let mut bytes = vec![0; record.following_answer()];
                (&self.stream).read_exact(&mut bytes)?;
                return Ok(bytes);
            }
            self.later.borrow_mut().push_back(record);
        }
        Err(io::ErrorKind::UnexpectedEof.into())
    }

    fn sent(&self) -> io::Result<()> {
        self.failed.take().map_or(Ok(()), Err)?;
        self.flush()
    }

    fn read(&self) -> io::Result<Option<Record>> {
        let mut bytes = [0; BYTES];
        let mut filled = 0;
        while filled < BYTES {
            match (&self.stream).read(&mut bytes[filled..]) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(more) => filled += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Some(Record::from_bytes(&bytes)))
    }
}
