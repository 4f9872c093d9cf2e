//! What instances wrote to stdout and stderr without asking: `abi::launch` describes an outbox and its annex.

use gpu_run_abi::launch::local;
use gpu_run_device::{Buffer, Device, Result, Shared};
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
    /// Where a GPU puts an annex by itself, several times faster than to any other memory of the host: one for each thread that reads.
    trays: Mutex<Vec<Shared>>,
}

impl Annexes {
    fn read(&self, at: u64, bytes: &mut [u8]) -> Result<()> {
        if self.device.properties().overcommits {
            // The host's memory is the device's.
            return self.memory.read(at, bytes);
        }
        let length = bytes.len() as u64;
        let free = self.lock().pop().filter(|tray| tray.len() >= length);
        let tray = free.map_or_else(|| self.device.share(length.next_power_of_two()), Ok)?;
        self.memory.read_to(at, &tray, 0, length)?;
        tray.read(0, bytes);
        self.lock().push(tray);
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Shared>> {
        self.trays.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// What is there, copied to `bytes`. No length is believed.
    pub(crate) fn read<'a>(&self, slot: u64, bytes: &'a mut Vec<u8>) -> Result<Records<'a>> {
        let first = slot * self.bytes;
        let used = u64::from(self.shared.load_u32(first + local::OUTBOX_USED)).min(self.bytes);
        let used = used.saturating_sub(local::OUTBOX_HEAD) as usize;
        let annexed = u64::from(self.shared.load_u32(first + local::OUTBOX_ANNEX_USED)).min(self.annex_bytes) as usize;
        bytes.resize(used + annexed, 0);
        let (outbox, annex) = bytes.split_at_mut(used);
        self.shared.read(first + local::OUTBOX_HEAD, outbox);
        if let Some(annexes) = self.annexes.as_ref().filter(|_| annexed > 0) {
            annexes.read(slot * self.annex_bytes, annex)?;
        }
        Ok(Records { rest: bytes })
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
    use super::*;

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
