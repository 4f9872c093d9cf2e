#![allow(clippy::unwrap_used)] // in a test, that is an assertion

use super::*;
use gpu_run_wasi::{Builder, Stdio};

/// Instances that are given nothing.
struct Nothing;

impl BatchHost for Nothing {
    fn heard(&self, _: u32) {}
    fn context(&self, _: u32) -> Option<Context> {
        Some(Builder::new().build(Stdio::null()))
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
        self.send(Request { slot, op: Call::clock_time_get as u16, args: [1, 0] });
    }

    fn send(&mut self, request: Request) {
        let lap = (self.tickets >> self.bus.ring_mask().count_ones()) + 1;
        let place = u64::from(self.tickets) & self.bus.ring_mask();
        self.bus.store_words(RING_AT + place * Request::BYTES, request.pack(lap as u16));
        self.tickets += 1;
    }

    fn reply(&self, slot: u32, sequence: u16) -> bus::Reply {
        bus::Reply::unpack(self.bus.load_words(self.bus.reply(slot)), sequence).unwrap()
    }
}

#[test]
fn input_without_end_is_not_taken() {
    let mut device = Device::new(1);
    device.bus.begin(Callers::Batch(1, Arc::new(Nothing)), None).unwrap();
    let (port, payload) = (device.bus.port(0), device.bus.payload());
    let packets = bus::MAX_INPUT as u64 / payload;
    for sequence in 1..=packets + 3 {
        device.bus.shared.store_u64(port + offset::LENGTH, u64::MAX);
        device.send(Request { slot: 0, op: Call::fd_write as u16 | op::PORT | op::MORE, args: [1, 0] });
        assert!(device.bus.service());
        let refused = device.reply(0, sequence as u16).status & bus::Reply::TRAP != 0;
        assert_eq!(refused, sequence == packets + 1, "packet {sequence}");
        let held = device.bus.lock().lanes[0].as_ref().unwrap().input.capacity();
        assert!(held <= bus::MAX_INPUT * 2, "{held} bytes");
    }
}

/// What an instance did by itself, and what it printed through the bus.
#[derive(Default)]
struct Diary(Mutex<Vec<String>>);

impl BatchHost for Diary {
    fn heard(&self, _: u32) {
        self.0.lock().push("heard".into());
    }
    fn context(&self, _: u32) -> Option<Context> {
        None
    }
    fn print(&self, _: u32, is_stderr: bool, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().push(format!("{is_stderr} {}", bytes.len()));
        Ok(bytes.len())
    }
}

#[test]
fn what_came_before_a_long_write_is_heard_before_it() {
    let (mut device, diary) = (Device::new(1), Arc::new(Diary::default()));
    device.bus.begin(Callers::Batch(1, diary.clone()), None).unwrap();
    let (port, payload) = (device.bus.port(0), device.bus.payload());
    device.bus.shared.store_u64(port + offset::LENGTH, payload);
    let write = Call::fd_write as u16 | op::PORT;
    // The flag is sent once: with the first packet.
    for (op, fd) in [(write | op::MORE | op::UNHEARD, 0), (write | op::OWN, 1), (write | op::OWN | op::UNHEARD, 2)] {
        device.send(Request { slot: 0, op, args: [fd, 0] });
        assert!(device.bus.service());
    }
    assert_eq!(device.reply(0, 3), bus::Reply { status: 0, result: payload });
    let said = diary.0.lock().clone();
    assert_eq!(said, ["heard", &format!("false {}", 2 * payload), "heard", &format!("true {payload}")]);
}

#[test]
fn few_calls_and_many_are_each_answered_once_from_run_to_run() {
    let mut device = Device::new(1000);
    for count in [1, 10, MAX_SERIAL_CALLS as u32, 1000] {
        device.bus.begin(Callers::Batch(1000, Arc::new(Nothing)), None).unwrap();
        assert!(!device.bus.service(), "nobody has asked");
        for sequence in 1..=3 {
            (0..count).for_each(|slot| device.ask(slot * 7 % 1000));
            assert!(device.bus.service());
            let replies: Vec<_> = (0..count).map(|slot| device.reply(slot * 7 % 1000, sequence)).collect();
            assert!(replies.iter().all(|reply| reply.status == 0 && reply.result > 0), "{replies:?}");
        }
        assert_eq!(device.bus.end().1, 3 * u64::from(count));
        assert!((0..1000).all(|slot| device.bus.load_words(device.bus.reply(slot)) == [0; bus::Reply::WORDS]));
    }
}

#[test]
fn a_slot_that_is_none_and_a_call_that_is_none_harm_nobody() {
    let mut device = Device::new(4);
    device.bus.begin(Callers::Batch(3, Arc::new(Nothing)), None).unwrap();
    device.ask(3);
    device.send(Request { slot: 1, op: op::NUMBER, args: [0; ARGS_AT_HAND] });
    device.ask(2);
    device.bus.service();
    assert_eq!(device.reply(1, 1).status, bus::Reply::TRAP);
    assert_eq!(device.reply(2, 1).status, 0);
    assert_eq!(device.bus.end().1, 1);
}

/// Instances with a socket, and how often their calls were tried.
struct Counted(Mutex<Option<std::os::unix::net::UnixStream>>, AtomicU64);

impl BatchHost for Counted {
    fn heard(&self, _: u32) {}
    fn context(&self, _: u32) -> Option<Context> {
        let mut builder = Builder::new();
        builder.preopen_socket(self.0.lock().take().unwrap()).unwrap();
        Some(builder.build(Stdio::null()))
    }
    fn answered(&self, _: u32, _: Call, _: &[u64], _: &[u8], _: &mut Out) -> Answered {
        self.1.fetch_add(1, Ordering::SeqCst);
        Answered::Never
    }
}

#[test]
fn a_bus_that_rests_asks_now_and_then_and_answers_when_it_is_rung() {
    use std::io::Write;
    let (mut ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let host = Arc::new(Counted(Mutex::new(Some(theirs)), AtomicU64::new(0)));
    let mut device = Device::new(1);
    device.bus.begin(Callers::Batch(1, host.clone()), None).unwrap();
    assert_eq!(device.bus.rests_until(), None);
    // The socket is descriptor 3.
    device.send(Request { slot: 0, op: Call::fd_read as u16, args: [3, 100] });
    assert!(device.bus.service());
    let began = Instant::now();
    while device.bus.rests_until().is_none() {
        assert!(!device.bus.service());
        assert!(began.elapsed() < Duration::from_secs(60), "it never rests");
    }
    let (before, began) = (host.1.load(Ordering::SeqCst), Instant::now());
    let mut asked = 0u64;
    while began.elapsed() < Duration::from_millis(200) {
        assert!(!device.bus.service());
        asked += 1;
    }
    let tries = host.1.load(Ordering::SeqCst) - before;
    assert!(tries < 60 && tries * 10 < asked, "{tries} tries of {asked}");
    ours.write_all(b"hey").unwrap();
    let began = Instant::now();
    while !device.bus.service() {
        assert!(began.elapsed() < Duration::from_secs(60), "nobody answers");
    }
    assert_eq!(device.reply(0, 1).status & bus::Reply::ERRNO, 0);
    assert_eq!(device.bus.rests_until(), None);
}
