//! What instances print without a host call. `abi::launch` describes an outbox and its annex.

use gpu_run_abi::launch::outbox;
use gpu_run_device::{Buffer, Device, Result, Shared, Tray};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::ops::Range;
use std::sync::Arc;

/// One outbox per slot, in shared memory, and their annexes, in device memory.
#[derive(Debug)]
pub struct Outboxes {
    shared: Shared,
    bytes: u64,
    annexes: Option<Annexes>,
    annex_bytes: u64,
}

#[derive(Debug)]
struct Annexes {
    memory: Buffer,
    trays: Arc<Trays>,
}

/// The trays through which annexes reach the host: one for each thread that reads some.
///
/// All trays are made before the first launch that has annexes, and none is freed before the last such launch: a GPU
/// frees such memory only when no kernel runs, and a kernel may wait for the thread that reads an annex.
#[derive(Debug, Default)]
pub struct Trays {
    free: Mutex<Vec<Tray>>,
    /// How many trays there are.
    made: Mutex<usize>,
    returned: Condvar,
}

/// Bytes of annexes that are read together, at most.
const MAX_TRAY_BYTES: u64 = 4 << 20;
/// Annexes with a gap of up to this many bytes are read together: a second transfer takes as long as reading the gap.
const MAX_GAP: u64 = 512 << 10;
/// More trays are of no use: together, 16 threads empty trays faster than the device fills one.
const MAX_TRAYS: usize = 16;

impl Trays {
    /// Makes the trays, if there are none.
    fn prepare(&self, device: &dyn Device) -> Result<()> {
        let mut made = self.made.lock();
        let wanted = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_TRAYS);
        while *made < wanted {
            match device.tray(MAX_TRAY_BYTES) {
                Ok(tray) => self.free().push(tray),
                // Fewer trays will do.
                Err(_) if *made > 0 => break,
                Err(error) => return Err(error),
            }
            *made += 1;
        }
        Ok(())
    }

    fn free(&self) -> MutexGuard<'_, Vec<Tray>> {
        self.free.lock()
    }

    /// Takes a tray; waits until one is free.
    fn take(&self) -> Tray {
        let mut free = self.free();
        loop {
            match free.pop() {
                Some(tray) => return tray,
                None => self.returned.wait(&mut free),
            }
        }
    }

    fn put(&self, tray: Tray) {
        self.free().push(tray);
        self.returned.notify_one();
    }
}

/// Reads outboxes one after the other, each with its annex. A thread may have only one reader at a time: a second one
/// might wait for the first one's tray.
#[derive(Debug)]
pub struct Reader<'a> {
    outboxes: &'a Outboxes,
    /// Annexes from this slot on are not read ahead.
    end: u64,
    /// Content of the outbox that was read last.
    bytes: Vec<u8>,
    /// Content of its annex, if it is longer than a tray.
    long: Vec<u8>,
    tray: Option<Tray>,
    /// The range of the annexes' memory that is on the tray.
    on_tray: Range<u64>,
}

impl Reader<'_> {
    /// Returns what the slot's instance printed. No length from the device is trusted.
    pub fn read(&mut self, slot: u64) -> Result<Records<'_>> {
        let Outboxes { shared, bytes: size, annex_bytes, .. } = self.outboxes;
        let first = slot * size;
        let used = u64::from(shared.load_u32(first + outbox::USED)).min(*size);
        self.bytes.resize(used.saturating_sub(outbox::HEAD) as usize, 0);
        shared.read(first + outbox::HEAD, &mut self.bytes);
        let begin = slot * annex_bytes;
        let annex = begin..begin + self.outboxes.annexed(slot);
        if !annex.is_empty() {
            self.fetch(slot, annex.clone())?;
        }
        Ok(Records { rest: &self.bytes, annex: self.fetched(annex) })
    }

    /// Fetches a slot's annex, unless it is on the tray already.
    fn fetch(&mut self, slot: u64, annex: Range<u64>) -> Result<()> {
        let Some(annexes) = &self.outboxes.annexes else { return Ok(()) };
        let tray = self.tray.get_or_insert_with(|| annexes.trays.take());
        if self.on_tray.start <= annex.start && annex.end <= self.on_tray.end {
            return Ok(());
        }
        self.on_tray = 0..0;
        if annex.end - annex.start <= MAX_TRAY_BYTES {
            let together = annex.start..self.outboxes.worth_reading(slot..self.end);
            tray.fetch(&annexes.memory, together.start, together.end - together.start)?;
            self.on_tray = together;
            return Ok(());
        }
        self.long.clear();
        for at in annex.clone().step_by(MAX_TRAY_BYTES as usize) {
            let part = tray.fetch(&annexes.memory, at, MAX_TRAY_BYTES.min(annex.end - at))?;
            self.long.extend_from_slice(part);
        }
        Ok(())
    }

    fn fetched(&self, annex: Range<u64>) -> &[u8] {
        let length = annex.end - annex.start;
        match &self.tray {
            _ if length == 0 => &[],
            Some(tray) if length <= MAX_TRAY_BYTES => {
                &tray.bytes()[(annex.start - self.on_tray.start) as usize..][..length as usize]
            }
            _ => &self.long,
        }
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        if let (Some(tray), Some(annexes)) = (self.tray.take(), &self.outboxes.annexes) {
            annexes.trays.put(tray);
        }
    }
}

/// The smallest and the largest size of an outbox, in bytes.
const BYTES: [u64; 2] = [512, 16 << 10];

/// One write of an instance.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    pub is_stderr: bool,
    pub bytes: &'a [u8],
}

impl Outboxes {
    /// `total` is about what all outboxes take together; each has an annex of `annex_bytes` bytes.
    pub fn new(device: &dyn Device, slots: u64, total: u64, annex_bytes: u64, trays: &Arc<Trays>) -> Result<Self> {
        let bytes = (total / slots.max(1)).clamp(BYTES[0], BYTES[1]) & !63;
        let annexes = match annex_bytes {
            0 => None,
            _ => {
                trays.prepare(device)?;
                Some(Annexes { memory: device.allocate(slots * annex_bytes)?, trays: trays.clone() })
            }
        };
        Ok(Self { shared: device.share(slots * bytes)?, bytes, annexes, annex_bytes })
    }

    /// Returns the device address of slot 0's outbox, and the size of one outbox.
    pub fn place(&self) -> (u64, u64) {
        (self.shared.address(), self.bytes)
    }

    /// Returns the device address of slot 0's annex, and the size of one annex; zeros if there are none.
    pub fn annex(&self) -> (u64, u64) {
        self.annexes.as_ref().map_or((0, 0), |annexes| (annexes.memory.address(), self.annex_bytes))
    }

    /// Returns the bytes that an instance can print without a host call.
    pub fn room(&self) -> u64 {
        self.bytes - outbox::HEAD + self.annex_bytes
    }

    /// Returns the bytes of stdin that the slot's instance has not read yet.
    pub fn stdin_left(&self, slot: u64) -> u32 {
        self.shared.load_u32(slot * self.bytes + outbox::STDIN_LEFT)
    }

    /// Returns a reader of the slots before `end`.
    pub fn reader(&self, end: u64) -> Reader<'_> {
        Reader { outboxes: self, end, bytes: Vec::new(), long: Vec::new(), tray: None, on_tray: 0..0 }
    }

    /// Returns the bytes in a slot's annex.
    fn annexed(&self, slot: u64) -> u64 {
        u64::from(self.shared.load_u32(slot * self.bytes + outbox::ANNEX_USED)).min(self.annex_bytes)
    }

    /// Returns where a transfer that begins with the first slot's annex ends: it includes the annexes that follow
    /// closely.
    fn worth_reading(&self, slots: Range<u64>) -> u64 {
        let used = |slot: u64| slot * self.annex_bytes..slot * self.annex_bytes + self.annexed(slot);
        let Range { start, mut end } = used(slots.start);
        for next in (slots.start + 1..slots.end).map(used).filter(|next| !next.is_empty()) {
            if next.end - start > MAX_TRAY_BYTES || next.start - end > MAX_GAP {
                break;
            }
            end = next.end;
        }
        end
    }

    /// Empties the slot's outbox, for an instance that continues.
    pub fn clear(&self, slot: u64) {
        self.shared.store_u64(slot * self.bytes + outbox::USED, outbox::EMPTY);
    }
}

/// The writes in an outbox, in order, then those in its annex.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    rest: &'a [u8],
    annex: &'a [u8],
}

impl Records<'_> {
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty() && self.annex.is_empty()
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        if self.rest.is_empty() {
            self.rest = std::mem::take(&mut self.annex);
        }
        let (head, rest) = self.rest.split_first_chunk()?;
        let head = u32::from_le_bytes(*head);
        let (bytes, _) = rest.split_at_checked((head & !outbox::STDERR) as usize)?;
        self.rest = rest.get(bytes.len().next_multiple_of(4)..).unwrap_or_default();
        Some(Record { is_stderr: head & outbox::STDERR != 0, bytes })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // in a test, that is an assertion
    use super::*;

    /// Where the reads end that begin at each of so many slots, but for the last.
    fn ends(annex: u64, used: &[u64]) -> Vec<u64> {
        let slots = used.len() as u64;
        let outboxes = Outboxes::new(&*gpu_run_device::open("cpu").unwrap(), slots, 0, annex, &Arc::default()).unwrap();
        for (slot, used) in (0..).zip(used) {
            outboxes.shared.store_u32(slot * outboxes.bytes + outbox::ANNEX_USED, *used as u32);
        }
        (0..slots - 1).map(|slot| outboxes.worth_reading(slot..slots - 1)).collect()
    }

    #[test]
    fn annexes_are_read_together_while_they_are_near_and_fit_the_tray() {
        let annex = MAX_TRAY_BYTES / 8 * 3;
        let ended = ends(annex, &[annex, annex - MAX_GAP, annex, annex - MAX_GAP - 4, annex * 2, 0]);
        // The third does not fit beside the first, the fourth ends too far from the fifth, the fifth has no more than there is, and the sixth is not asked for.
        let (second, fourth) = (2 * annex - MAX_GAP, 4 * annex - MAX_GAP - 4);
        assert_eq!(ended, [second, fourth, fourth, fourth, 5 * annex]);
    }

    #[test]
    fn small_annexes_are_read_together_however_empty_they_are() {
        let ended = ends(4096, &[1028, 0, 4, 0, 0, 1028, 0, 0]);
        assert_eq!(ended, [[5 * 4096 + 1028; 6].as_slice(), &[6 * 4096]].concat());
    }

    #[test]
    fn an_annex_longer_than_a_tray_is_read_whole_and_so_are_its_neighbours() {
        let annex = 2 * MAX_TRAY_BYTES + 4096;
        let outboxes = Outboxes::new(&*gpu_run_device::open("cpu").unwrap(), 3, 0, annex, &Arc::default()).unwrap();
        let written = |slot: u64, length: u64| -> Vec<u8> { (0..length).map(|at| (at * 7 + slot) as u8).collect() };
        let lengths = [5000, annex - 4, MAX_TRAY_BYTES];
        for (slot, length) in (0..).zip(lengths) {
            let used = length + outbox::RECORD_HEAD;
            let record = [&(length as u32).to_le_bytes()[..], &written(slot, length)].concat();
            outboxes.annexes.as_ref().unwrap().memory.write(slot * annex, &record[..used.min(annex) as usize]).unwrap();
            outboxes.shared.store_u32(slot * outboxes.bytes + outbox::ANNEX_USED, used as u32);
        }
        let mut reader = outboxes.reader(3);
        // The second one is not on the tray: what was there is not taken for it, nor for the first.
        for slot in [0, 1, 0, 2, 1] {
            let records = reader.read(slot).unwrap();
            let bytes: Vec<_> = records.flat_map(|record| record.bytes.to_vec()).collect();
            assert!(bytes == written(slot, lengths[slot as usize]), "of slot {slot}");
        }
    }

    #[test]
    fn a_record_that_claims_more_than_there_is_ends_the_outbox() {
        let record = |head: u32, bytes: &[u8]| [&head.to_le_bytes(), bytes].concat();
        let good = [record(5, b"hello\0\0\0"), record(outbox::record(true, 2), b"no")].concat();
        let seen = |bytes: &[u8]| -> Vec<(bool, Vec<u8>)> {
            Records { rest: bytes, annex: &[] }.map(|record| (record.is_stderr, record.bytes.to_vec())).collect()
        };
        assert_eq!(seen(&good), [(false, b"hello".to_vec()), (true, b"no".to_vec())]);
        let bad = [good.clone(), vec![0; 2], record(1 << 30, b"x")].concat();
        assert_eq!(seen(&bad), [(false, b"hello".to_vec()), (true, b"no".to_vec())]);
        assert_eq!(seen(&[1, 2, 3]), []);
    }
}
