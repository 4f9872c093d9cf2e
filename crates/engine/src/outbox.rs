//! What instances wrote to stdout and stderr without asking: `abi::launch` describes an outbox.

use gpu_run_abi::launch::local;
use gpu_run_device::{Device, Result, Shared};

/// One for each slot, in memory both sides see.
#[derive(Debug)]
pub(crate) struct Outboxes {
    shared: Shared,
    bytes: u64,
}

/// Memory that all outboxes take together, about.
const TOTAL: u64 = 64 << 20;

impl Outboxes {
    pub(crate) fn new(device: &dyn Device, slots: u64) -> Result<Self> {
        let bytes = (TOTAL / slots.max(1)).clamp(512, 16 << 10) & !63;
        Ok(Self { shared: device.share(slots * bytes)?, bytes })
    }

    /// What the device knows slot 0's by, and the size of one.
    pub(crate) fn place(&self) -> (u64, u64) {
        (self.shared.address(), self.bytes)
    }

    /// Bytes of stdin the slot's instance has not read yet.
    pub(crate) fn stdin_left(&self, slot: u64) -> u32 {
        self.shared.load_u32(slot * self.bytes + local::OUTBOX_STDIN_LEFT)
    }

    /// Gives what is there to `take`, which is told whether it is stderr's, and leaves the outbox empty. No length is believed.
    pub(crate) fn empty(&self, slot: u64, mut take: impl FnMut(bool, &[u8])) {
        let first = slot * self.bytes;
        let used = u64::from(self.shared.load_u32(first + local::OUTBOX_USED)).min(self.bytes);
        let mut at = local::OUTBOX_HEAD;
        let mut bytes = Vec::new();
        while at + local::RECORD_HEAD <= used {
            let head = self.shared.load_u32(first + at);
            at += local::RECORD_HEAD;
            let length = u64::from(head & !local::STDERR);
            if length > used - at {
                break;
            }
            bytes.resize(length as usize, 0);
            self.shared.read(first + at, &mut bytes);
            take(head & local::STDERR != 0, &bytes);
            at += length.next_multiple_of(4);
        }
        self.shared.store_u32(first + local::OUTBOX_USED, local::OUTBOX_HEAD as u32);
    }
}
