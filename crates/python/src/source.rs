//! Where records come from: an iterable, the lines of a file, a column of Arrow's.

use crate::capsule::Arrays;
use crate::failure;
use crate::text::{Column, bytes_of};
use bytes::{Bytes, BytesMut};
use pyo3::exceptions::{PyMemoryError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyString};
use std::fs::File;
use std::io::{BufRead, Read};
use std::path::PathBuf;

/// Bytes that are read of a file at once.
const READ: usize = 1 << 20;
/// Bytes of one line, at most.
const MAX_LINE: usize = 1 << 30;

pub(crate) enum Source {
    Iterator(Py<PyIterator>),
    Lines(Lines),
    Column(Column),
}

/// Records that were taken, and which are missing: a null is no run of the program.
#[derive(Default)]
pub(crate) struct Taken {
    pub(crate) records: Vec<Bytes>,
    /// The numbers of nulls.
    pub(crate) nulls: Vec<u64>,
    /// That there are no more, or why.
    pub(crate) end: Option<PyResult<()>>,
}

impl Source {
    /// A path is a file of lines, and so is what can be read.
    pub(crate) fn of(records: &Bound<'_, PyAny>, column: Option<String>) -> PyResult<Self> {
        let py = records.py();
        if let Some(arrays) = Arrays::of(records)? {
            return Ok(Self::Column(Column::new(arrays, column)));
        }
        if column.is_some() {
            let what = records.get_type().name()?;
            return Err(PyTypeError::new_err(format!("column= is for tables, but the records are of the type {what}")));
        }
        if records.is_instance_of::<PyString>() || records.hasattr(intern!(py, "__fspath__"))? {
            let path: PathBuf = records.extract()?;
            return Ok(Self::Lines(Lines::new(Reader::File(failure::with_path(File::open(&path), &path)?))));
        }
        if records.hasattr(intern!(py, "read"))? {
            return Ok(Self::Lines(Lines::new(Reader::Object(records.clone().unbind()))));
        }
        Ok(Self::Iterator(records.try_iter()?.unbind()))
    }

    /// Takes up to `most` records; `next` is the number of the first.
    pub(crate) fn take(&mut self, py: Python<'_>, next: u64, most: usize) -> Taken {
        let mut taken = Taken::default();
        let is_over = match self {
            Self::Iterator(iterator) => taken.of_iterator(iterator.bind(py), next, most),
            Self::Lines(lines) => taken.of_lines(py, lines, most),
            Self::Column(column) => {
                let mut number = next;
                let count = column.take(py, most, |record| {
                    match record {
                        Some(record) => taken.records.push(record),
                        None => taken.nulls.push(number),
                    }
                    number += 1;
                });
                count.map(|count| count < most)
            }
        };
        taken.end = is_over.map(|is_over| is_over.then_some(())).transpose();
        taken
    }
}

impl Taken {
    fn of_iterator(&mut self, iterator: &Bound<'_, PyIterator>, next: u64, most: usize) -> PyResult<bool> {
        // One allocation for all: a record is a part of it.
        let (mut all, mut ends) = (Vec::new(), Vec::with_capacity(most));
        let mut items = (next..).zip(iterator.clone().take(most));
        let ended = items.try_for_each(|(number, item)| {
            match bytes_of(&item?, number, |bytes| all.extend_from_slice(bytes))? {
                Some(()) => ends.push(all.len()),
                None => self.nulls.push(number),
            }
            PyResult::Ok(())
        });
        let (all, mut start) = (Bytes::from(all), 0);
        self.records.extend(ends.into_iter().map(|end| all.slice(std::mem::replace(&mut start, end)..end)));
        ended.map(|()| self.records.len() + self.nulls.len() < most)
    }

    fn of_lines(&mut self, py: Python<'_>, lines: &mut Lines, most: usize) -> PyResult<bool> {
        while self.records.len() < most {
            match lines.next(py)? {
                Some(line) => self.records.push(line),
                None => return Ok(true),
            }
        }
        Ok(false)
    }
}

enum Reader {
    File(File),
    /// Something of Python's that can be read.
    Object(Py<PyAny>),
}

/// Lines with their newlines, as `gpu-run map` has them: the last one gets one if it has none.
pub(crate) struct Lines {
    reader: Reader,
    held: BytesMut,
    /// Bytes of `held` without a newline.
    looked: usize,
    is_over: bool,
}

impl Lines {
    fn new(reader: Reader) -> Self {
        Self { reader, held: BytesMut::new(), looked: 0, is_over: false }
    }

    fn next(&mut self, py: Python<'_>) -> PyResult<Option<Bytes>> {
        loop {
            let mut rest = &self.held[self.looked..];
            self.looked += rest.skip_until(b'\n')?;
            if self.looked > 0 && self.held[self.looked - 1] == b'\n' {
                return Ok(Some(self.held.split_to(std::mem::take(&mut self.looked)).freeze()));
            }
            if self.looked > MAX_LINE {
                return Err(PyMemoryError::new_err(format!("a line is longer than {MAX_LINE} bytes")));
            }
            if self.is_over {
                if self.held.is_empty() {
                    return Ok(None);
                }
                self.held.extend_from_slice(b"\n");
                self.looked = 0;
                continue;
            }
            self.is_over = !self.fill(py)?;
        }
    }

    /// Reads more. Returns whether there was any.
    fn fill(&mut self, py: Python<'_>) -> PyResult<bool> {
        match &mut self.reader {
            Reader::File(file) => {
                let before = self.held.len();
                let held = &mut self.held;
                held.resize(before + READ, 0);
                let read = py.detach(|| {
                    loop {
                        match file.read(&mut held[before..]) {
                            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                            read => return read,
                        }
                    }
                });
                held.truncate(before + *read.as_ref().unwrap_or(&0));
                Ok(read? > 0)
            }
            Reader::Object(object) => {
                let read = object.bind(py).call_method1(intern!(py, "read"), (READ,))?;
                let held = &mut self.held;
                let count = bytes_of(&read, 0, |bytes| {
                    held.extend_from_slice(bytes);
                    bytes.len()
                })?;
                Ok(count.unwrap_or(0) > 0)
            }
        }
    }
}
