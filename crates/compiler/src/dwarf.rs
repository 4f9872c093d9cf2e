//! Functions and source lines, from the DWARF in a module.
//!
//! DWARF is a program of sorts, and whoever made the module may have made it say anything: lists that thousands of units
//! share, paths that each file repeats, functions within functions without end. So all of it is read through [`Metered`],
//! which fails once a lookup has done more than it may. What a lookup keeps, it has read, so that its memory is limited,
//! too.

use addr2line::Context;
use gimli::{EndianSlice, LittleEndian, Reader, ReaderOffsetId, Result};
use rustix::time::{ClockId, clock_gettime};
use std::borrow::Cow;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What a lookup may read: `WORK_PER_BYTE` for each byte of DWARF, but at least `LEAST_WORK` and at most `MOST_WORK`. A
/// unit is a number, or eight bytes of a string.
const WORK_PER_BYTE: u64 = 4;
const LEAST_WORK: u64 = 4 << 20;
const MOST_WORK: u64 = 16 << 20;
/// How long a lookup may compute: attributes without bytes are not counted. What others compute does not matter.
pub(crate) const MAX_TIME: Duration = Duration::from_secs(3);
/// How many readings are done between two looks at the time.
const READINGS_PER_LOOK: u64 = 32;
/// How many units there may be: each takes some hundred bytes of memory.
const MAX_UNITS: usize = 1 << 16;
/// How deep functions may be inlined in each other: `addr2line` calls itself for each level.
const MAX_INLINED: usize = 128;

/// The DWARF sections of a module. They are parsed for each lookup.
#[derive(Debug, Default)]
pub(crate) struct Dwarf {
    sections: Vec<(String, Box<[u8]>)>,
    /// Whether a lookup did more than it may: there are no others then.
    is_given_up: AtomicBool,
}

/// Where an instruction comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) file: String,
    pub(crate) line: u32,
    pub(crate) column: Option<u32>,
}

/// A function that an address is in: a function of the module, or one that was inlined there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SourceFrame {
    /// The function's name, as the linker sees it.
    pub(crate) name: Option<String>,
    pub(crate) source: Option<Source>,
}

type Slice<'a> = EndianSlice<'a, LittleEndian>;

impl Dwarf {
    pub(crate) fn new<'a>(sections: impl Iterator<Item = (&'a str, &'a [u8])>) -> Self {
        let sections = sections.map(|(name, data)| (name.to_owned(), data.into())).collect();
        Self { sections, is_given_up: AtomicBool::new(false) }
    }

    /// Returns the source of the instruction at an address, which counts from the code section's contents.
    pub(crate) fn source(&self, address: u64) -> Option<Source> {
        self.look(MAX_TIME, |context, _| source(context.find_location(address).ok()??))?
    }

    /// Returns for each address the functions it is in, the innermost first; nothing for what is no address, and nothing at all if
    /// that would take longer than `time`.
    pub(crate) fn frames(&self, addresses: &[Option<u64>], time: Duration) -> Vec<Vec<SourceFrame>> {
        let found = self.look(time, |context, dwarf| match is_shallow(dwarf) {
            true => addresses.iter().map(|address| frames(context, *address).unwrap_or_default()).collect(),
            false => Vec::new(),
        });
        let mut found = found.unwrap_or_default();
        found.resize(addresses.len(), Vec::new());
        found
    }

    /// Parses the sections, and calls `with` for lookups that together do no more than they may.
    fn look<T>(
        &self,
        time: Duration,
        with: impl FnOnce(&Context<Metered<'_>>, &gimli::Dwarf<Metered<'_>>) -> T,
    ) -> Option<T> {
        if self.sections.is_empty() || self.is_given_up.load(Ordering::Relaxed) {
            return None;
        }
        let bytes: u64 = self.sections.iter().map(|(_, data)| data.len() as u64).sum();
        let meter = Meter {
            left: Cell::new((WORK_PER_BYTE * bytes).clamp(LEAST_WORK, MOST_WORK)),
            readings: Cell::new(0),
            until: computed() + time.min(MAX_TIME),
        };
        let section = |id: gimli::SectionId| -> Result<Metered<'_>> {
            let data = self.sections.iter().find(|(name, _)| name == id.name()).map(|(_, data)| &**data);
            Ok(Metered { slice: Slice::new(data.unwrap_or_default(), LittleEndian), meter: &meter })
        };
        let load = || gimli::Dwarf::load(section).ok();
        let found = load().zip(load()).and_then(|(dwarf, same)| {
            let context = has_few_units(&same).then(|| Context::from_dwarf(dwarf).ok())??;
            Some(with(&context, &same))
        });
        // Who had less time says nothing about the others.
        if meter.is_spent() && time >= MAX_TIME {
            self.is_given_up.store(true, Ordering::Relaxed);
            tracing::warn!("the module's debug information takes too long to read, and is not used");
        }
        found
    }
}

fn has_few_units(dwarf: &gimli::Dwarf<Metered<'_>>) -> bool {
    let mut units = dwarf.units();
    (0..=MAX_UNITS).any(|_| !matches!(units.next(), Ok(Some(_))))
}

/// Returns whether no functions are inlined in each other deeper than they may be.
fn is_shallow(dwarf: &gimli::Dwarf<Metered<'_>>) -> bool {
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        // Where a unit is damaged, reading it again ends at the same place.
        if dwarf.unit(header).and_then(|unit| is_unit_shallow(&unit)) == Ok(false) {
            return false;
        }
    }
    true
}

fn is_unit_shallow(unit: &gimli::Unit<Metered<'_>>) -> Result<bool> {
    let mut entries = unit.entries_raw(None)?;
    // The depths of the inlined functions that the next entry is in.
    let mut inlined = Vec::new();
    while !entries.is_empty() {
        let depth = entries.next_depth();
        let Some(abbreviation) = entries.read_abbreviation()? else { continue };
        while inlined.last().is_some_and(|outer| *outer >= depth) {
            inlined.pop();
        }
        if abbreviation.tag() == gimli::DW_TAG_inlined_subroutine {
            inlined.push(depth);
        }
        if inlined.len() > MAX_INLINED {
            return Ok(false);
        }
        entries.skip_attributes(abbreviation.attributes())?;
    }
    Ok(true)
}

fn frames(context: &Context<Metered<'_>>, address: Option<u64>) -> Option<Vec<SourceFrame>> {
    let mut found = context.find_frames(address?).skip_all_loads().ok()?;
    let mut frames = Vec::new();
    while let Ok(Some(frame)) = found.next() {
        let name = frame.function.as_ref().and_then(|function| function.raw_name().ok()).map(Cow::into_owned);
        frames.push(SourceFrame { name, source: frame.location.and_then(source) });
    }
    Some(frames)
}

fn source(location: addr2line::Location<'_>) -> Option<Source> {
    let column = location.column.filter(|column| *column > 0);
    Some(Source { file: location.file?.to_owned(), line: location.line.filter(|line| *line > 0)?, column })
}

/// Returns how long the thread has computed.
pub(crate) fn computed() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// What a lookup may still do.
#[derive(Debug)]
struct Meter {
    left: Cell<u64>,
    readings: Cell<u64>,
    /// When it has to end, by the time that the thread has computed.
    until: Duration,
}

impl Meter {
    /// Takes one unit of work, and one for every eight of `bytes`.
    fn take(&self, bytes: usize) -> Result<()> {
        let readings = self.readings.get() + 1;
        self.readings.set(readings);
        if readings.is_multiple_of(READINGS_PER_LOOK) && computed() > self.until {
            self.left.set(0);
        }
        let left = self.left.get().saturating_sub(1 + bytes as u64 / 8);
        self.left.set(left);
        if left == 0 { Err(gimli::Error::Io) } else { Ok(()) }
    }

    fn is_spent(&self) -> bool {
        self.left.get() == 0
    }
}

/// A reader that takes what it reads from a [`Meter`].
#[derive(Clone, Copy, Debug)]
struct Metered<'a> {
    slice: Slice<'a>,
    meter: &'a Meter,
}

impl Reader for Metered<'_> {
    type Endian = LittleEndian;
    type Offset = usize;

    fn endian(&self) -> LittleEndian {
        LittleEndian
    }
    fn len(&self) -> usize {
        Reader::len(&self.slice)
    }
    fn empty(&mut self) {
        self.slice.empty();
    }
    fn truncate(&mut self, len: usize) -> Result<()> {
        self.slice.truncate(len)
    }
    fn offset_from(&self, base: &Self) -> usize {
        Reader::offset_from(&self.slice, &base.slice)
    }
    fn offset_id(&self) -> ReaderOffsetId {
        self.slice.offset_id()
    }
    fn lookup_offset_id(&self, id: ReaderOffsetId) -> Option<usize> {
        self.slice.lookup_offset_id(id)
    }
    fn find(&self, byte: u8) -> Result<usize> {
        let at = Reader::find(&self.slice, byte);
        self.meter.take(*at.as_ref().unwrap_or(&Reader::len(&self.slice)))?;
        at
    }
    fn skip(&mut self, len: usize) -> Result<()> {
        self.meter.take(0)?;
        self.slice.skip(len)
    }
    fn split(&mut self, len: usize) -> Result<Self> {
        self.meter.take(0)?;
        Ok(Self { slice: Reader::split(&mut self.slice, len)?, meter: self.meter })
    }
    fn to_slice(&self) -> Result<Cow<'_, [u8]>> {
        self.meter.take(Reader::len(&self.slice))?;
        self.slice.to_slice()
    }
    fn to_string(&self) -> Result<Cow<'_, str>> {
        self.meter.take(Reader::len(&self.slice))?;
        Reader::to_string(&self.slice)
    }
    fn to_string_lossy(&self) -> Result<Cow<'_, str>> {
        self.meter.take(Reader::len(&self.slice))?;
        Reader::to_string_lossy(&self.slice)
    }
    fn read_slice(&mut self, to: &mut [u8]) -> Result<()> {
        self.meter.take(0)?;
        self.slice.read_slice(to)
    }
}

#[cfg(test)]
#[path = "dwarf_tests.rs"]
mod tests;
