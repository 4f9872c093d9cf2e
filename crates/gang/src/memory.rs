//! A gang's memory on a device: region and image, and their initial content (`abi::gang`).

use gpu_run_abi::gang::{Record, offset};
use gpu_run_abi::layout::{GUARD, Header, MEMORY_TAIL};
use gpu_run_compiler::Compiled;
use gpu_run_compiler::Error;
use gpu_run_device::{Buffer, Device, Shared};
use gpu_run_wasm::slot::GangPlace;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of slots that are written at once.
const WRITE_BYTES: usize = 4 << 20;
/// Bytes of the smallest page.
const MIN_PAGE: usize = 4096;
/// Bytes of the memory that the first trap is reported in.
const REPORT_BYTES: u64 = 64;

pub(crate) fn gang_place(compiled: &Compiled) -> Result<GangPlace, Error> {
    compiled.slots.gang().ok_or_else(|| Error::Internal("it was compiled as a batch".into()))
}

/// Where a gang lies on the device.
#[derive(Debug)]
pub(crate) struct GangMemory {
    pub(crate) place: GangPlace,
    /// Region and memory, with space to align the region.
    pub(crate) buffer: Arc<Buffer>,
    /// The offset in `buffer` where the region begins.
    pub(crate) region: u64,
    pub(crate) channels: HostChannels,
    /// Passive segments.
    _constants: Option<Buffer>,
}

/// The memory that a gang and the host both see. A gang leaves it to its successor.
#[derive(Clone, Debug)]
pub(crate) struct HostChannels {
    pub(crate) bus: Arc<Shared>,
    /// Where the first trap is reported.
    pub(crate) report: Arc<Shared>,
}

impl HostChannels {
    pub(crate) fn new(device: &dyn Device, place: &GangPlace) -> Result<Self, Error> {
        let bus = Arc::new(device.share(place.sizes.bus_bytes.max(16))?);
        Ok(Self { bus, report: Arc::new(device.share(REPORT_BYTES)?) })
    }
}

impl GangMemory {
    /// Returns the bytes of a gang's memory on the device.
    pub(crate) fn bytes(place: &GangPlace) -> u64 {
        2 * place.region + place.memory_bytes + GUARD + MEMORY_TAIL
    }

    /// Writes a gang's record, its slots, and the module's data in its image. The parts `cleared` of the image are
    /// zeroed first; the rest stays as it was in the buffer.
    pub(crate) fn new(
        device: &dyn Device,
        compiled: &Compiled,
        buffer: Arc<Buffer>,
        channels: HostChannels,
        cleared: &[Range<u64>],
    ) -> Result<Self, Error> {
        if let Some(code) = compiled.initial.trap {
            return Err(Error::Usage(format!("its data does not fit its memory: {}", code.message())));
        }
        let place = gang_place(compiled)?;
        let region = buffer.address().next_multiple_of(place.region) - buffer.address();
        let bytes = &compiled.initial.constants;
        let constants = (!bytes.is_empty()).then(|| device.allocate_filled(bytes)).transpose()?;
        buffer.write(region, Record::new(channels.bus.address(), channels.report.address()).bytes())?;
        let address = constants.as_ref().map_or(0, Buffer::address);
        let memory = Self { place, buffer, region, channels, _constants: constants };
        memory.write_slots(compiled, address)?;
        for part in cleared {
            // By writing: while a kernel fills the GPU, no other way of clearing works.
            memory.buffer.write(memory.image_at() + part.start, &vec![0; (part.end - part.start) as usize])?;
        }
        for piece in compiled.initial.memories.first().map_or(&[][..], |memory| &memory.pieces) {
            let bytes: Vec<u8> = piece.words.iter().flat_map(|word| word.to_le_bytes()).collect();
            memory.buffer.write(memory.image_at() + piece.at, &bytes)?;
        }
        Ok(memory)
    }

    pub(crate) fn image_at(&self) -> u64 {
        self.region + self.place.region
    }

    /// Touches every page of the image, on a device whose memory costs nothing until it is touched, so that this need
    /// not happen later, when time is short. The content does not change.
    pub(crate) fn touch(&self) -> Result<(), Error> {
        let pages = (self.image_at()..self.image_at() + self.place.sizes.image_bytes).step_by(MIN_PAGE);
        for at in pages {
            let mut byte = [0];
            self.buffer.read(at, &mut byte)?;
            self.buffer.write(at, &byte)?;
        }
        Ok(())
    }

    /// Sets or clears the stop word. It lies in device memory, where threads can check it cheaply.
    pub(crate) fn set_stop(&self, stop: bool) -> Result<(), Error> {
        Ok(self.buffer.write(self.region + offset::STOP, &u32::from(stop).to_le_bytes())?)
    }

    /// Writes every thread's slot: header, globals and tables. Slots differ in their thread's number only.
    fn write_slots(&self, compiled: &Compiled, constants: u64) -> Result<(), Error> {
        let place = self.place;
        let slot_bytes = place.slot_bytes as usize;
        let mut slot = vec![0; slot_bytes];
        let mut put = |at: u64, word: u64| slot[at as usize..][..8].copy_from_slice(&word.to_le_bytes());
        for (at, word) in &compiled.initial.words {
            put(*at, *word);
        }
        for (place, elements) in compiled.slots.tables.iter().zip(&compiled.initial.tables) {
            put(place.length, elements.len() as u64);
            for (at, element) in (place.at..).step_by(8).zip(elements) {
                put(at, *element);
            }
        }
        let header = Header {
            memory_bytes: place.memory_bytes,
            memory_limit: place.memory_bytes,
            // A gang's memory never grows, and its tables have their own limits.
            growth_left: u64::MAX,
            memory_fast: place.memory_bytes.saturating_sub(GUARD),
            stop: self.buffer.address() + self.region + offset::STOP,
            constants,
            ..Header::default()
        };
        let count = place.threads();
        let together = (WRITE_BYTES / slot_bytes).max(1) as u64;
        for first in (0..count).step_by(together as usize) {
            let mut bytes = Vec::new();
            for index in first..count.min(first + together) {
                let header = Header { index, ..header };
                slot[..size_of::<Header>()].copy_from_slice(bytemuck::bytes_of(&header));
                bytes.extend(&slot);
            }
            self.buffer.write(self.region + place.slot(first), &bytes)?;
        }
        Ok(())
    }
}
