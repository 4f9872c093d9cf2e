#![allow(clippy::unwrap_used)] // in a test, that is an assertion

use super::*;
use gpu_run_wasi::{Builder, Stdio};

/// Instances that are given nothing.
struct Nothing;

impl Quiet for Nothing {
    fn heard(&self, _: u32) {}
    fn context(&self, _: u32) -> Context {
        Builder::new().build(Stdio::null())
    }
}

/// What the device would do.
struct Device {
    bus: Bus,
    tickets: u32,
}

impl Device {
    fn new(slots: usize) -> Self {
        Self { bus: Bus::new(&*gpu_run_device::cpu::open(), slots as u64).unwrap(), tickets: 0 }
    }

    /// Asks for the time on the monotonic clock.
    fn ask(&mut self, slot: u32) {
        let port = self.bus.port(slot.into());
        self.bus.shared.store_u64(port + offset::REQUEST_ARGS, 1);
        self.bus.shared.store_u64(port + offset::REQUEST_OP, Call::clock_time_get as u64);
        let lap = (self.tickets >> self.bus.ring_mask().count_ones()) + 1;
        let place = u64::from(self.tickets) & self.bus.ring_mask();
        self.bus.shared.store_u64(RING_AT + place * RingEntry::BYTES, RingEntry { lap, slot }.pack());
        self.tickets += 1;
    }

    /// The reply's sequence number, and the time.
    fn answer(&self, slot: u32) -> (u32, u64) {
        let word = self.bus.shared.load_u64(self.bus.reply_word(slot));
        assert_eq!((word >> 32) as u32, 8 << ReplyWord::PAYLOAD_SHIFT, "errno 0, no flags, 8 bytes");
        (word as u32, self.bus.shared.load_u64(self.bus.port(slot.into()) + offset::PAYLOAD))
    }
}

#[test]
fn few_calls_and_many_are_each_answered_once_from_run_to_run() {
    let mut device = Device::new(1000);
    for count in [1, 10, FEW as u32, 1000] {
        device.bus.begin(Guests::Quiet(1000, Arc::new(Nothing)), None);
        assert!(!device.bus.service(), "nobody has asked");
        for sequence in 1..=3 {
            (0..count).for_each(|slot| device.ask(slot * 7 % 1000));
            assert!(device.bus.service());
            let times: Vec<_> = (0..count).map(|slot| device.answer(slot * 7 % 1000)).collect();
            assert!(times.iter().all(|(seen, time)| *seen == sequence && *time > 0), "{times:?}");
        }
        assert_eq!(device.bus.end().1, 3 * u64::from(count));
        assert!((0..1000).all(|slot| device.bus.shared.load_u64(device.bus.reply_word(slot)) == 0));
    }
}

#[test]
fn a_slot_that_is_none_and_a_call_that_is_none_harm_nobody() {
    let mut device = Device::new(4);
    device.bus.begin(Guests::Quiet(3, Arc::new(Nothing)), None);
    device.ask(3);
    device.ask(1);
    device.bus.shared.store_u64(device.bus.port(1) + offset::REQUEST_OP, 0xffff);
    device.ask(2);
    device.bus.service();
    let word = device.bus.shared.load_u64(device.bus.reply_word(1));
    assert_eq!(word, ReplyWord { sequence: 1, status: ReplyWord::TRAP }.pack());
    assert_eq!(device.answer(2).0, 1);
    assert_eq!(device.bus.end().1, 1);
}

/// `cargo test -p gpu-run-engine calls_a_second -- --ignored --nocapture`
#[test]
#[ignore = "measures"]
fn calls_a_second_where_everyone_calls() {
    const SLOTS: u32 = 65_536;
    let mut device = Device::new(SLOTS as usize);
    device.bus.begin(Guests::Quiet(SLOTS as usize, Arc::new(Nothing)), None);
    for round in 0..6 {
        (0..SLOTS).for_each(|slot| device.ask(slot));
        let began = Instant::now();
        device.bus.service();
        let rate = f64::from(SLOTS) / began.elapsed().as_secs_f64();
        eprintln!("round {round}: {:.2} million calls a second", rate / 1e6);
    }
}
