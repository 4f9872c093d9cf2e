//! The host side of the bus; `abi::bus` describes the protocol.
//!
//! [`Bus::service`] reads the ring from where it stopped, performs the calls it finds and answers them. It may be called from any thread at any time: one
//! caller at a time does the work, the others are told there is nothing to do. A call that would block is put aside and tried again; nothing here ever waits.

use gpu_run_abi::bus::{ARGS, Port, RingEntry, offset, op, reply};
use gpu_run_abi::hostcall::{Call, Move};
use gpu_run_abi::layout::WORD;
use gpu_run_device::{Device, Result, Shared};
use gpu_run_wasi::{Context, Errno, Out, Reply};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Shared memory: the stop word, then the ring, then a port for each slot.
pub(crate) struct Bus {
    shared: Shared,
    ring_entries: u64,
    /// Bytes of payload in a port.
    payload: u64,
    deadline: Option<Instant>,
    stopped: AtomicBool,
    state: Mutex<State>,
}

const STOP_AT: u64 = 0;
const RING_AT: u64 = 64;

/// Who calls: instances with their contexts, or so many quiet ones.
pub(crate) enum Guests {
    Contexts(Vec<Context>),
    Quiet(usize, Arc<dyn Quiet>),
}

impl Guests {
    pub(crate) fn count(&self) -> usize {
        match self {
            Guests::Contexts(contexts) => contexts.len(),
            Guests::Quiet(count, _) => *count,
        }
    }
}

#[derive(Default)]
struct State {
    /// By slot; a quiet instance has none until it calls.
    lanes: Vec<Option<Box<Lane>>>,
    quiet: Option<Arc<dyn Quiet>>,
    /// Where in the ring the next entry is expected: the ticket it will carry.
    next: u32,
    /// Slots whose port was used.
    touched: Vec<u32>,
    /// Slots whose call could not be answered yet.
    waiting: Vec<u32>,
    calls: u64,
    out: Out,
}

/// A port and its payload, in whole lines.
fn port_bytes(payload: u64) -> u64 {
    (size_of::<Port>() as u64 + payload).next_multiple_of(64)
}

/// Instances that the host hears of only when they ask for what the device has no answer to.
pub(crate) trait Quiet: Send + Sync {
    /// The instance in `slot` calls: what it did by itself until now comes first.
    fn heard(&self, slot: u32);
    /// What it sees of the host, for its first call.
    fn context(&self, slot: u32) -> Context;
}

/// One instance as the bus sees it.
struct Lane {
    /// Gone once the instance has exited: what it held open is closed, and whoever waits for the end of its output knows.
    context: Option<Context>,
    exited: bool,
    sequence: u32,
    /// Input of the call that is coming in.
    input: Vec<u8>,
    /// Output of the last call, and how much of it was sent.
    output: Vec<u8>,
    sent: usize,
    /// The call that waits, and until when.
    pending: Option<(Call, [u64; ARGS], Option<Instant>)>,
}

impl Lane {
    fn new(context: Option<Context>) -> Box<Self> {
        Box::new(Lane {
            context,
            exited: false,
            sequence: 0,
            input: Vec::new(),
            output: Vec::new(),
            sent: 0,
            pending: None,
        })
    }
}

impl Bus {
    pub(crate) fn new(device: &dyn Device, slots: u64) -> Result<Self> {
        let ring_entries = slots.next_power_of_two();
        // One instance has room for a whole buffered write; many share what a few hold.
        let payload = ((4 << 20) / slots.max(1)).clamp(512, 64 << 10) & !(WORD - 1);
        let bytes = RING_AT + ring_entries * RingEntry::BYTES + 64 + slots * port_bytes(payload);
        let shared = device.share(bytes)?;
        Ok(Self {
            shared,
            ring_entries,
            payload,
            deadline: None,
            stopped: AtomicBool::new(false),
            state: Mutex::default(),
        })
    }

    // What the slots' headers say of the bus.

    pub(crate) fn stop_address(&self) -> u64 {
        self.shared.address() + STOP_AT
    }
    pub(crate) fn ring_address(&self) -> u64 {
        self.shared.address() + RING_AT
    }
    pub(crate) fn ring_mask(&self) -> u64 {
        self.ring_entries - 1
    }
    pub(crate) fn payload(&self) -> u64 {
        self.payload
    }
    /// The address of slot 0's port.
    pub(crate) fn ports_address(&self) -> u64 {
        self.shared.address() + self.port(0)
    }
    pub(crate) fn port_bytes(&self) -> u64 {
        port_bytes(self.payload)
    }
    fn port(&self, slot: u64) -> u64 {
        let ports = (RING_AT + self.ring_entries * RingEntry::BYTES).next_multiple_of(64);
        ports + slot * self.port_bytes()
    }

    /// Gets ready for a run of these instances, in slots from 0. The ring goes on where the last run left it.
    pub(crate) fn begin(&mut self, guests: Guests, deadline: Option<Instant>) {
        self.shared.store_u32(STOP_AT, 0);
        self.stopped = AtomicBool::new(false);
        self.deadline = deadline;
        let (lanes, quiet) = match guests {
            Guests::Contexts(contexts) => (contexts.into_iter().map(|c| Some(Lane::new(Some(c)))).collect(), None),
            Guests::Quiet(count, quiet) => ((0..count).map(|_| None).collect(), Some(quiet)),
        };
        let mut state = self.lock();
        (state.lanes, state.quiet) = (lanes, quiet);
    }

    /// Ends a run: gives the contexts back, and says how many calls there were. What was used of the shared memory is as it was before, so that a run costs
    /// nothing for instances that never call.
    pub(crate) fn end(&mut self) -> (Vec<Context>, u64) {
        // Every entry must be taken out of the ring, also that of an instance that was stopped since.
        self.service();
        let mut state = self.lock();
        let State { lanes, touched, .. } = &mut *state;
        for slot in touched.drain(..) {
            self.shared.store_u32(self.port(slot.into()) + offset::REPLY_SEQUENCE, 0);
        }
        let contexts = std::mem::take(lanes).into_iter().flatten().filter_map(|lane| lane.context).collect();
        state.waiting.clear();
        state.quiet = None;
        (contexts, std::mem::take(&mut state.calls))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Whether the deadline ended the run.
    pub(crate) fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Answers what is there to answer. Says whether there was anything.
    pub(crate) fn service(&self) -> bool {
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
            && !self.stopped.swap(true, Ordering::Relaxed)
        {
            self.shared.store_u32(STOP_AT, 1);
        }
        let Ok(mut state) = self.state.try_lock() else { return false };
        let state = &mut *state;
        let mut busy = false;
        while let Some(slot) = self.next_entry(state) {
            self.packet(state, slot);
            busy = true;
        }
        if !state.waiting.is_empty() {
            busy |= self.retry(state);
        }
        busy
    }

    /// The slot that wrote the next entry of the ring, if it is there.
    fn next_entry(&self, state: &mut State) -> Option<u32> {
        let place = u64::from(state.next) & self.ring_mask();
        let entry = RingEntry::unpack(self.shared.load_u64(RING_AT + place * RingEntry::BYTES));
        let lap = (state.next >> self.ring_mask().count_ones()).wrapping_add(1);
        if entry.lap != lap {
            return None;
        }
        state.next = state.next.wrapping_add(1);
        // A slot number comes from the device: it is checked like everything else.
        ((entry.slot as usize) < state.lanes.len()).then_some(entry.slot)
    }

    fn packet(&self, state: &mut State, slot: u32) {
        let port = self.port(slot.into());
        let lane = state.lanes[slot as usize].get_or_insert_with(|| Lane::new(None));
        if lane.sequence == 0 {
            state.touched.push(slot);
        }
        lane.sequence = lane.sequence.wrapping_add(1);
        let operation = self.shared.load_u32(port + offset::REQUEST_OP);
        if operation & op::PULL != 0 {
            return self.deliver(lane, port, 0, 0);
        }
        let length = u64::from(self.shared.load_u32(port + offset::REQUEST_PAYLOAD)).min(self.payload) as usize;
        let start = lane.input.len();
        lane.input.resize(start + length, 0);
        self.shared.read(port + offset::PAYLOAD, &mut lane.input[start..]);
        if operation & op::MORE != 0 {
            lane.output.clear();
            return self.deliver(lane, port, 0, 0);
        }
        let Some(call) = Call::from_number(operation & op::NUMBER) else {
            return self.deliver(lane, port, reply::TRAP, 0);
        };
        let mut words = [0; ARGS];
        for (i, word) in words.iter_mut().enumerate() {
            *word = self.shared.load_u64(port + offset::REQUEST_ARGS + i as u64 * 8);
        }
        state.calls += 1;
        self.perform(state, slot, call, words);
    }

    /// Makes a call for the first time or again.
    fn perform(&self, state: &mut State, slot: u32, call: Call, words: [u64; ARGS]) {
        let port = self.port(slot.into());
        let Some(lane) = &mut state.lanes[slot as usize] else { return };
        let count = call.function().moves.iter().filter(|m| m.has_word()).count();
        if let Some(quiet) = &state.quiet {
            quiet.heard(slot);
            if lane.context.is_none() && !lane.exited {
                lane.context = Some(quiet.context(slot));
            }
        }
        let Some(context) = &mut lane.context else { return self.deliver(lane, port, reply::TRAP, 0) };
        let answer = context.call(call, &words[..count], &lane.input, &mut state.out);
        if let Reply::Again { at } = answer {
            lane.pending = Some((call, words, at));
            state.waiting.push(slot);
            return;
        }
        lane.input.clear();
        lane.output.clear();
        lane.sent = 0;
        match answer {
            Reply::Done(Errno::Success) => {
                pad_results(call, &state.out.bytes, &mut lane.output);
                self.deliver(lane, port, 0, state.out.split);
            }
            Reply::Done(errno) => self.deliver(lane, port, errno as u32, 0),
            Reply::Exit(code) => {
                lane.context = None;
                lane.exited = true;
                self.deliver(lane, port, reply::EXIT, code);
            }
            Reply::Again { .. } => unreachable!("handled above"),
        }
    }

    /// Tries the calls again that could not be answered: all that may have become possible.
    fn retry(&self, state: &mut State) -> bool {
        let before = state.waiting.len();
        for slot in std::mem::take(&mut state.waiting) {
            match state.lanes[slot as usize].as_mut().and_then(|lane| lane.pending.take()) {
                Some((call, words, at)) => {
                    tracing::trace!(slot, call = call.function().name, ?at, "tried again");
                    self.perform(state, slot, call, words);
                }
                None => debug_assert!(false, "slot {slot} waits for nothing"),
            }
        }
        state.waiting.len() < before
    }

    /// Sends a reply with as much of the output as fits.
    fn deliver(&self, lane: &mut Lane, port: u64, errno: u32, split: u32) {
        let rest = &lane.output[lane.sent..];
        let chunk = &rest[..rest.len().min(self.payload as usize)];
        self.shared.write(port + offset::PAYLOAD, chunk);
        self.shared.store_u32(port + offset::REPLY_ERRNO, errno);
        self.shared.store_u32(port + offset::REPLY_PAYLOAD, chunk.len() as u32);
        self.shared.store_u32(port + offset::REPLY_REMAINING, (rest.len() - chunk.len()) as u32);
        self.shared.store_u32(port + offset::REPLY_SPLIT, split);
        lane.sent += chunk.len();
        // Last: the instance may go on as soon as it sees this.
        self.shared.store_u32(port + offset::REPLY_SEQUENCE, lane.sequence);
    }
}

/// Results are padded to whole cells on the bus, so that what follows them begins at a cell's border.
fn pad_results(call: Call, bytes: &[u8], padded: &mut Vec<u8>) {
    let mut rest = bytes;
    for step in call.function().moves {
        if let Move::Result { bytes, .. } = step {
            let (result, after) = rest.split_at((*bytes as usize).min(rest.len()));
            padded.extend_from_slice(result);
            padded.resize(padded.len().next_multiple_of(WORD as usize), 0);
            rest = after;
        }
    }
    padded.extend_from_slice(rest);
}
