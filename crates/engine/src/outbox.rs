//! What instances wrote to stdout and stderr without asking: `abi::launch` describes an outbox and its annex.

use gpu_run_abi::launch::local;
use gpu_run_device::{Buffer, Device, Result, Shared};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// One for each slot, in memory both sides see; and their annexes, in the device's.
#[derive(Debug)]
pub(crate) struct Outboxes {
    shared: Shared,
    bytes: u64,
    annexes: Option<Annexes>,
    annex_bytes: u64,
}

#[derive(Debug)]
struct Annexes {
    memory: Buffer,
    device: Arc<dyn Device>,
    /// Where a GPU puts annexes by itself, several times faster than to any other memory of the host: one for each thread that reads.
    trays: Mutex<Vec<Shared>>,
}

impl Annexes {
    fn trays(&self) -> std::sync::MutexGuard<'_, Vec<Shared>> {
        self.trays.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads outboxes one after the other, each with its annex.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    outboxes: &'a Outboxes,
    /// Annexes from this slot's on are not read ahead.
    end: u64,
    /// What was read last.
    bytes: Vec<u8>,
    tray: Option<Shared>,
    /// What of the annexes is on the tray.
    on_tray: Range<u64>,
}

/// Annexes that are read together take no more than this, if they are more than one; and are full by so much. To ask for one takes as long as half a MiB.
const TRAY: u64 = 8 << 20;
const FULL: u64 = 2;

impl Reader<'_> {
    /// What the slot's instance wrote. No length is believed.
    pub(crate) fn read(&mut self, slot: u64) -> Result<Records<'_>> {
        let Outboxes { shared, bytes: size, .. } = self.outboxes;
        let first = slot * size;
        let used = u64::from(shared.load_u32(first + local::OUTBOX_USED)).min(*size);
        let used = used.saturating_sub(local::OUTBOX_HEAD) as usize;
        let annexed = self.outboxes.annexed(slot) as usize;
        self.bytes.resize(used + annexed, 0);
        shared.read(first + local::OUTBOX_HEAD, &mut self.bytes[..used]);
        if annexed > 0 {
            self.read_annex(slot, used)?;
        }
        Ok(Records { rest: &self.bytes })
    }

    /// Reads a slot's annex behind the bytes that are there.
    fn read_annex(&mut self, slot: u64, behind: usize) -> Result<()> {
        let Some(annexes) = &self.outboxes.annexes else { return Ok(()) };
        let bytes = &mut self.bytes[behind..];
        let at = slot * self.outboxes.annex_bytes;
        if annexes.device.properties().overcommits {
            // The host's memory is the device's.
            return annexes.memory.read(at, bytes);
        }
        let end = at + bytes.len() as u64;
        if !(self.on_tray.contains(&at) && end <= self.on_tray.end) {
            self.on_tray = at..self.outboxes.worth_reading(slot..self.end);
            let length = self.on_tray.end - at;
            let free = self.tray.take().or_else(|| annexes.trays().pop()).filter(|tray| tray.len() >= length);
            let tray = free.map_or_else(|| annexes.device.share(length.next_power_of_two()), Ok)?;
            annexes.memory.read_to(at, &tray, 0, length)?;
            self.tray = Some(tray);
        }
        if let Some(tray) = &self.tray {
            tray.read(at - self.on_tray.start, bytes);
        }
        Ok(())
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        if let (Some(tray), Some(annexes)) = (self.tray.take(), &self.outboxes.annexes) {
            annexes.trays().push(tray);
        }
    }
}

/// How small and how large one is.
const BYTES: [u64; 2] = [512, 16 << 10];

/// One write of an instance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    pub(crate) is_stderr: bool,
    pub(crate) bytes: &'a [u8],
}

impl Outboxes {
    /// `total` is about what all outboxes take together; each has an annex of so many bytes.
    pub(crate) fn new(device: &Arc<dyn Device>, slots: u64, total: u64, annex_bytes: u64) -> Result<Self> {
        let bytes = (total / slots.max(1)).clamp(BYTES[0], BYTES[1]) & !63;
        let annexes = match annex_bytes {
            0 => None,
            _ => {
                let (memory, trays) = (device.allocate(slots * annex_bytes)?, Mutex::default());
                Some(Annexes { memory, device: device.clone(), trays })
            }
        };
        Ok(Self { shared: device.share(slots * bytes)?, bytes, annexes, annex_bytes })
    }

    /// What the device knows slot 0's by, and the size of one.
    pub(crate) fn place(&self) -> (u64, u64) {
        (self.shared.address(), self.bytes)
    }

    /// The same of the annexes.
    pub(crate) fn annex(&self) -> (u64, u64) {
        self.annexes.as_ref().map_or((0, 0), |annexes| (annexes.memory.address(), self.annex_bytes))
    }

    /// Bytes that an instance can write without asking.
    pub(crate) fn room(&self) -> u64 {
        self.bytes - local::OUTBOX_HEAD + self.annex_bytes
    }

    /// Bytes of stdin the slot's instance has not read yet.
    pub(crate) fn stdin_left(&self, slot: u64) -> u32 {
        self.shared.load_u32(slot * self.bytes + local::OUTBOX_STDIN_LEFT)
    }

    /// For slots before this one.
    pub(crate) fn reader(&self, end: u64) -> Reader<'_> {
        Reader { outboxes: self, end, bytes: Vec::new(), tray: None, on_tray: 0..0 }
    }

    /// Bytes in a slot's annex.
    fn annexed(&self, slot: u64) -> u64 {
        u64::from(self.shared.load_u32(slot * self.bytes + local::OUTBOX_ANNEX_USED)).min(self.annex_bytes)
    }

    /// Where what is read ends, if the first slot's annex is and those behind it are full enough to be read with it.
    fn worth_reading(&self, slots: Range<u64>) -> u64 {
        let begin = slots.start * self.annex_bytes;
        let end_of = |slot: u64| slot * self.annex_bytes + self.annexed(slot);
        let is_worth = |slot: &u64| self.annexed(*slot) * FULL >= self.annex_bytes && end_of(*slot) - begin <= TRAY;
        let last = (slots.start + 1..slots.end).take_while(is_worth).last().unwrap_or(slots.start);
        end_of(last)
    }

    /// Leaves the slot's empty, for an instance that goes on.
    pub(crate) fn clear(&self, slot: u64) {
        self.shared.store_u64(slot * self.bytes + local::OUTBOX_USED, local::OUTBOX_EMPTY);
    }
}

/// The writes in an outbox, in order.
#[derive(Clone, Debug)]
pub(crate) struct Records<'a> {
    rest: &'a [u8],
}

impl Records<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let (head, rest) = self.rest.split_first_chunk()?;
        let head = u32::from_le_bytes(*head);
        let (bytes, _) = rest.split_at_checked((head & !local::STDERR) as usize)?;
        self.rest = rest.get(bytes.len().next_multiple_of(4)..).unwrap_or_default();
        Some(Record { is_stderr: head & local::STDERR != 0, bytes })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // in a test, that is an assertion
    use super::*;

    #[test]
    fn annexes_are_read_together_while_they_are_half_full_and_fit_the_tray() {
        let annex = 3 << 20;
        let outboxes = Outboxes::new(&gpu_run_device::open("cpu").unwrap(), 6, 0, annex).unwrap();
        for (slot, used) in [annex, annex / 2, annex, annex / 2 - 4, annex * 2, 0].into_iter().enumerate() {
            outboxes.shared.store_u32(slot as u64 * outboxes.bytes + local::OUTBOX_ANNEX_USED, used as u32);
        }
        // The third does not fit, the fourth is too empty, the fifth has no more than there is, and the sixth is not asked for.
        let ends: Vec<_> = (0..5).map(|slot| outboxes.worth_reading(slot..5)).collect();
        let end = |slot: u64, used: u64| slot * annex + used;
        assert_eq!(ends, [end(1, annex / 2), end(2, annex), end(2, annex), end(4, annex), end(4, annex)]);
    }

    #[test]
    fn a_record_that_claims_more_than_there_is_ends_the_outbox() {
        let record = |head: u32, bytes: &[u8]| [&head.to_le_bytes(), bytes].concat();
        let good = [record(5, b"hello\0\0\0"), record(local::record(true, 2), b"no")].concat();
        let seen = |bytes: &[u8]| -> Vec<(bool, Vec<u8>)> {
            Records { rest: bytes }.map(|record| (record.is_stderr, record.bytes.to_vec())).collect()
        };
        assert_eq!(seen(&good), [(false, b"hello".to_vec()), (true, b"no".to_vec())]);
        let bad = [good.clone(), vec![0; 2], record(1 << 30, b"x")].concat();
        assert_eq!(seen(&bad), [(false, b"hello".to_vec()), (true, b"no".to_vec())]);
        assert_eq!(seen(&[1, 2, 3]), []);
    }
}
