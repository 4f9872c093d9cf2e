//! The host side of the bus; `abi::bus` describes the protocol.
//!
//! [`Bus::service`] reads the ring from where it stopped, performs the calls it finds and replies. Any thread may call
//! it at any time: one caller at a time does the work; for the others it returns `false` at once. If many instances
//! have called, all cores answer them. A call that would block is put aside and retried; nothing here ever waits. If nothing was
//! answered for a while, the bus *rests*: what the calls wait for is left to a [`Watch`], which rings when it is there, and the calls
//! are retried only now and then.

use crate::own_calls::OwnCalls;
use crate::transcript::Answered;
use gpu_run_abi::bus::{self, ARGS, ARGS_AT_HAND, Port, Request, offset, op};
use gpu_run_abi::hostcall::{Call, Move};
use gpu_run_abi::layout::WORD;
use gpu_run_device::{Buffer, Device, Result, Shared};
use gpu_run_wasi::{Awaited, CallsFetch, Context, Errno, Out, Reply, Watch};
use parking_lot::{Mutex, MutexGuard};
use rayon::prelude::*;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Shared memory with the ring, the replies, and a port for each slot; and the stop word.
pub struct Bus {
    shared: Shared,
    /// The stop word. It lies in device memory, because every loop reads it now and then: while thousands of threads
    /// read host memory, one such read takes a GPU 30 µs.
    stop: Buffer,
    ring_entries: u64,
    /// Bytes of payload in a port.
    payload: u64,
    deadline: Option<Instant>,
    /// The run is stopped when this becomes true, too.
    interrupt: Option<Arc<AtomicBool>>,
    stopped: AtomicBool,
    watch: Watch,
    /// What the instances have noted of their calls, and may ask for.
    own_calls: Option<OwnCalls>,
    state: Mutex<State>,
}

const RING_AT: u64 = 0;
/// Bytes of a cache line, on both sides.
const CACHE_LINE: u64 = 128;
/// Fewer calls than this are answered by one core: waking others up would take longer.
const MAX_SERIAL_CALLS: usize = 256;
/// Calls that a core takes at a time.
const CALLS_PER_CORE: usize = 64;
/// From this many instances on, all cores release the instances' contexts.
const MANY_LEFT: usize = 1024;
/// From this many waiting calls on, each of which asks the system whether it can be answered, they are retried with pauses: this many
/// times as long as a retry takes.
const FEW_WAITING: usize = 8;
const RETRY_PAUSE: u32 = 4;
/// How long nothing must have been answered before the bus rests, and how many calls may wait then.
const CALM: Duration = Duration::from_millis(2);
const MAX_WATCHED: usize = 4096;
/// The longest time between two retries of a bus that rests. It is a quarter of the time for which the bus has waited, if that is
/// less: not everything that a call may wait for rings.
const MAX_REST: Duration = Duration::from_millis(20);
/// Calls that are taken out of the ring at once, at most.
const MAX_TAKEN: usize = 16 << 10;

/// Bytes of an instance's buffer that are kept from call to call.
const BUFFER_KEPT: usize = 16 << 10;

/// The instances of a launch: each with its context, or a number of instances whose host side is made at their first
/// call.
pub enum Callers {
    Contexts(Vec<Context>),
    Batch(usize, Arc<dyn BatchHost>),
}

impl Callers {
    pub fn count(&self) -> usize {
        match self {
            Callers::Contexts(contexts) => contexts.len(),
            Callers::Batch(count, _) => *count,
        }
    }
}

#[derive(Default)]
struct State {
    /// By slot. An instance of a [`BatchHost`] has none until it calls.
    lanes: Vec<Option<Box<CallerState>>>,
    quiet: Option<Arc<dyn BatchHost>>,
    /// The ticket that the ring's next entry will carry.
    next: u32,
    /// Requests that are being answered.
    ready: Vec<Request>,
    /// Slots that have called in this run.
    touched: Vec<u32>,
    /// Slots whose call could not be answered yet, and when all of them may be retried again.
    waiting: Vec<u32>,
    retry_at: Option<Instant>,
    /// Since when nothing was answered.
    calm_since: Option<Instant>,
    /// When the waiting calls are retried while the bus rests.
    rests_until: Option<Instant>,
    calls: u64,
    out: Out,
}

/// Returns the bytes of a port with its payload: a multiple of 64.
fn port_bytes(payload: u64) -> u64 {
    (size_of::<Port>() as u64 + payload).next_multiple_of(64)
}

/// The host side of a batch. It hears of an instance only when the instance makes a call that the device cannot answer.
pub trait BatchHost: Send + Sync {
    /// The instance in `slot` has printed or read stdin on the device since its last packet: the host takes note of
    /// that before it handles the packet.
    fn heard(&self, slot: u32);
    /// Returns the context for the instance's first call; `None` if the instance has exited.
    fn context(&self, slot: u32) -> Option<Context>;
    /// Returns the answer to the call, if the batch has it without the instance's context: from an earlier run of the
    /// instance, or from a context that all share.
    fn answered(&self, _slot: u32, _call: Call, _words: &[u64], _input: &[u8], _out: &mut Out) -> Answered {
        Answered::Never
    }
    /// Returns whether the instance was just denied something that a rerun can give it. It is stopped then.
    fn is_denied(&self, _slot: u32) -> bool {
        false
    }
    /// Returns whether the instance may write to its own stdout or stderr in several packets. If not, it is stopped
    /// before it sends them.
    fn may_print(&self, _slot: u32) -> bool {
        true
    }
    /// Takes what the instance writes to its own stdout or stderr. Such a write needs no context, and no transcript
    /// keeps it.
    fn print(&self, _slot: u32, _is_stderr: bool, _bytes: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Called with the reply to a call, for the transcript.
    fn answer(&self, _slot: u32, _call: Call, _words: &[u64], _input: &[u8], _reply: &Reply, _out: &Out) {}
    /// Adds the sockets that a call waits for, if the batch has answered that it waits.
    fn awaited(&self, _slot: u32, _call: Call, _words: &[u64], _input: &[u8], _awaited: &mut Vec<Awaited>) {}
    /// Takes back the context of an instance that has not exited, when the run is over.
    fn left(&self, _slot: u32, _context: Context) {}
}

/// One instance as the bus sees it.
#[derive(Default)]
struct CallerState {
    /// `None` once the instance has exited: its descriptors are closed, so that whoever reads its output sees the end.
    context: Option<Context>,
    exited: bool,
    sequence: u32,
    /// Input of the call whose packets are arriving.
    input: Vec<u8>,
    /// Output of the last call, and how many bytes of it were sent.
    output: Vec<u8>,
    sent: usize,
    /// The call that could not be answered yet, and when it can be at the latest.
    pending: Option<(Call, [u64; ARGS])>,
    due: Option<Instant>,
}

impl Bus {
    pub fn new(device: &dyn Device, slots: u64) -> Result<Self> {
        // The ring and the replies share no cache line: the device writes the ring, the host the replies.
        let ring_entries = slots.next_power_of_two().max(CACHE_LINE / Request::BYTES);
        // A single instance gets a payload for a whole buffered write; many instances share 4 MiB, at 512 bytes or more
        // each.
        let payload = ((4 << 20) / slots.max(1)).clamp(512, 64 << 10) & !(WORD - 1);
        const { assert!(64 << 10 <= bus::Reply::MAX_PAYLOAD) };
        let bytes = RING_AT + ring_entries * (Request::BYTES + bus::Reply::BYTES) + slots * port_bytes(payload);
        let (shared, stop) = (device.share(bytes)?, device.allocate(WORD)?);
        let (deadline, interrupt, stopped, state) = (None, None, AtomicBool::new(false), Mutex::default());
        let bell = device.bell();
        let watch = Watch::new(move || bell.ring());
        Ok(Self { shared, stop, ring_entries, payload, deadline, interrupt, stopped, watch, own_calls: None, state })
    }

    pub(crate) fn with_own_calls(self, own_calls: Option<OwnCalls>) -> Self {
        Self { own_calls, ..self }
    }

    // What the slots' headers contain of the bus.

    pub fn stop_address(&self) -> u64 {
        self.stop.address()
    }
    pub fn ring_address(&self) -> u64 {
        self.shared.address() + RING_AT
    }
    pub fn ring_mask(&self) -> u64 {
        self.ring_entries - 1
    }
    pub fn payload(&self) -> u64 {
        self.payload
    }
    /// The address of slot 0's port.
    pub fn ports_address(&self) -> u64 {
        self.shared.address() + self.port(0)
    }
    pub fn port_bytes(&self) -> u64 {
        port_bytes(self.payload)
    }
    fn port(&self, slot: u64) -> u64 {
        self.reply(0) + self.ring_entries * bus::Reply::BYTES + slot * self.port_bytes()
    }
    fn reply(&self, slot: u32) -> u64 {
        RING_AT + self.ring_entries * Request::BYTES + u64::from(slot) * bus::Reply::BYTES
    }

    /// Prepares a run of these instances, in slots from 0 on. The ring continues where the last run stopped.
    pub fn begin(&mut self, guests: Callers, deadline: Option<Instant>) -> Result<()> {
        if std::mem::take(self.stopped.get_mut()) {
            self.set_stop(false)?;
        }
        self.deadline = deadline;
        let lane = |context| Some(Box::new(CallerState { context: Some(context), ..CallerState::default() }));
        let mut state = self.lock();
        match guests {
            Callers::Contexts(contexts) => {
                (state.lanes, state.quiet) = (contexts.into_iter().map(lane).collect(), None);
            }
            Callers::Batch(count, quiet) => {
                // The lanes of the last run are all gone.
                state.lanes.resize_with(count, || None);
                state.quiet = Some(quiet);
            }
        }
        Ok(())
    }

    /// Stops runs when the flag becomes true.
    pub fn stop_when(&mut self, flag: Option<Arc<AtomicBool>>) {
        self.interrupt = flag;
    }

    fn set_stop(&self, stop: bool) -> Result<()> {
        self.stop.write(0, &u32::from(stop).to_le_bytes())
    }

    /// Ends a run. Returns the contexts and the number of calls. The replies that were used are reset, and no others:
    /// instances that never call cost nothing.
    pub fn end(&mut self) -> (Vec<Context>, u64) {
        // Every entry must be taken out of the ring, even that of an instance that has been stopped since.
        self.service();
        let mut state = self.lock();
        self.stir(&mut state);
        state.waiting.clear();
        let calls = std::mem::take(&mut state.calls);
        let (touched, quiet) = (std::mem::take(&mut state.touched), state.quiet.take());
        for slot in &touched {
            self.store_words(self.reply(*slot), [0; bus::Reply::WORDS]);
        }
        let Some(quiet) = quiet else {
            let lanes = std::mem::take(&mut state.lanes);
            return (lanes.into_iter().flatten().filter_map(|lane| lane.context).collect(), calls);
        };
        // Most instances never called and have no lane. The vector itself is kept for the next run.
        let left: Vec<_> =
            touched.into_iter().filter_map(|slot| Some((slot, state.lanes[slot as usize].take()?))).collect();
        drop(state);
        let leave = |(slot, lane): (u32, Box<CallerState>)| {
            if let Some(context) = lane.context {
                quiet.left(slot, context);
            }
        };
        match left.len() >= MANY_LEFT {
            true => left.into_par_iter().with_min_len(MANY_LEFT).for_each(leave),
            false => left.into_iter().for_each(leave),
        }
        (Vec::new(), calls)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Returns whether the run was stopped, because the deadline passed or somebody asked for it.
    pub fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Returns when the waiting calls are retried next, if the bus rests.
    pub fn rests_until(&self) -> Option<Instant> {
        self.state.try_lock()?.rests_until
    }

    /// Ends the rest.
    fn stir(&self, state: &mut State) {
        (state.calm_since, state.rests_until) = (None, None);
        self.watch.disarm();
    }

    /// No call could be answered. If that has been so for a while, the bus rests.
    fn calm(&self, state: &mut State, now: Instant) {
        let calm = now - *state.calm_since.get_or_insert(now);
        if calm < CALM || state.waiting.len() > MAX_WATCHED {
            return;
        }
        if state.rests_until.is_none() {
            // Something may have become ready before the watch looked.
            state.rests_until = self.arm(state).then_some(now);
            return;
        }
        let State { waiting, lanes, .. } = state;
        let due = waiting.iter().filter_map(|slot| lanes[*slot as usize].as_ref()?.due).min();
        let latest = now + (calm / 4).min(MAX_REST);
        state.rests_until = Some(due.map_or(latest, |due| due.min(latest)));
    }

    /// Leaves the sockets of all calls that wait to the watch.
    fn arm(&self, state: &mut State) -> bool {
        let State { waiting, lanes, quiet, .. } = state;
        let mut awaited = Vec::new();
        for slot in waiting {
            let Some(lane) = &mut lanes[*slot as usize] else { continue };
            let Some((call, words)) = lane.pending else { continue };
            let words = &words[..count_words(call)];
            match (&mut lane.context, &quiet) {
                (Some(context), _) => context.awaited(call, words, &lane.input, &mut awaited),
                (None, Some(quiet)) => quiet.awaited(*slot, call, words, &lane.input, &mut awaited),
                (None, None) => {}
            }
        }
        self.watch.arm(&awaited)
    }

    /// Answers all calls that can be answered. Returns whether there were any, or something else to notice.
    pub fn service(&self) -> bool {
        let is_asked = self.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed));
        let mut busy = false;
        if (is_asked || self.deadline.is_some_and(|deadline| Instant::now() >= deadline))
            && !self.stopped.swap(true, Ordering::Relaxed)
        {
            if let Err(error) = self.set_stop(true) {
                tracing::warn!("cannot stop the running instances: {error}");
            }
            // Instances that wait look at the stop word.
            busy = true;
        }
        let Some(mut state) = self.state.try_lock() else { return busy };
        let state = &mut *state;
        let mut is_stirred = self.watch.has_rung();
        while self.take_entries(state) {
            (busy, is_stirred) = (true, true);
            match state.ready.len() {
                ..MAX_SERIAL_CALLS => self.answer(state),
                _ => self.answer_many(state),
            }
        }
        if is_stirred {
            self.stir(state);
        }
        if state.waiting.is_empty() {
            return busy;
        }
        let began = Instant::now();
        let is_due = match state.rests_until {
            Some(at) => began >= at,
            None => state.waiting.len() < FEW_WAITING || state.retry_at.is_none_or(|at| began >= at),
        };
        if is_due {
            let answers = self.retry(state);
            busy |= answers;
            let now = Instant::now();
            state.retry_at = now.checked_add((now - began) * RETRY_PAUSE);
            match answers {
                true => self.stir(state),
                false => self.calm(state, now),
            }
        }
        busy
    }

    /// Takes entries out of the ring, up to a limit. Returns whether there were any.
    fn take_entries(&self, state: &mut State) -> bool {
        let before = state.next;
        while state.ready.len() < MAX_TAKEN {
            let place = u64::from(state.next) & self.ring_mask();
            let words = self.load_words(RING_AT + place * Request::BYTES);
            let lap = (state.next >> self.ring_mask().count_ones()).wrapping_add(1);
            let Some(request) = Request::unpack(words, lap as u16) else { break };
            state.next = state.next.wrapping_add(1);
            // The slot number comes from the device, so it is checked like everything else.
            if (request.slot as usize) < state.lanes.len() {
                state.ready.push(request);
            }
        }
        state.next != before
    }

    fn answer(&self, state: &mut State) {
        let State { lanes, quiet, ready, touched, waiting, calls, out, .. } = state;
        for request in ready.drain(..) {
            let lane = lanes[request.slot as usize].get_or_insert_default();
            if lane.sequence == 0 {
                touched.push(request.slot);
            }
            *calls += u64::from(self.packet(quiet.as_deref(), &request, lane, out));
            if lane.pending.is_some() {
                waiting.push(request.slot);
            }
        }
    }

    /// Like [`Bus::answer`], on all cores. Meanwhile, the lanes are taken out of the vector.
    fn answer_many(&self, state: &mut State) {
        let State { lanes, quiet, ready, touched, waiting, calls, .. } = state;
        // An instance that breaks the protocol could be here twice; the second time, it has no lane.
        let mut taken: Vec<(Request, Box<CallerState>)> =
            ready.drain(..).map(|request| (request, lanes[request.slot as usize].take().unwrap_or_default())).collect();
        touched.extend(taken.iter().filter(|(_, lane)| lane.sequence == 0).map(|(request, _)| request.slot));
        let (quiet, count) = (quiet.as_deref(), AtomicU64::new(0));
        taken.par_chunks_mut(CALLS_PER_CORE).for_each_init(Out::default, |out, chunk| {
            let calls = chunk.iter_mut().map(|(request, lane)| u64::from(self.packet(quiet, request, lane, out)));
            count.fetch_add(calls.sum(), Ordering::Relaxed);
        });
        *calls += count.into_inner();
        for (Request { slot, .. }, lane) in taken {
            if lane.pending.is_some() {
                waiting.push(slot);
            }
            lanes[slot as usize] = Some(lane);
        }
    }

    /// Handles a packet. Returns whether it was a call.
    fn packet(&self, quiet: Option<&dyn BatchHost>, request: &Request, lane: &mut CallerState, out: &mut Out) -> bool {
        let (slot, operation) = (request.slot, request.op);
        let port = self.port(slot.into());
        lane.sequence = lane.sequence.wrapping_add(1);
        if operation & op::PULL != 0 {
            self.deliver(lane, slot, 0, 0);
            return false;
        }
        let mut words = [0; ARGS];
        words[..ARGS_AT_HAND].copy_from_slice(&request.args);
        if operation & op::PORT != 0 {
            let length = self.shared.load_u64(port + offset::LENGTH).min(self.payload) as usize;
            let start = lane.input.len();
            if start + length > bus::MAX_INPUT {
                // No stub of ours sends that much.
                lane.input = Vec::new();
                lane.output.clear();
                self.deliver(lane, slot, bus::Reply::TRAP, 0);
                return false;
            }
            lane.input.resize(start + length, 0);
            self.shared.read(port + offset::PAYLOAD, &mut lane.input[start..]);
        }
        if let Some(quiet) = quiet.filter(|_| operation & op::UNHEARD != 0) {
            quiet.heard(slot);
        }
        if operation & op::MORE != 0 {
            if quiet.is_some_and(|quiet| operation & op::OWN != 0 && !quiet.may_print(slot)) {
                self.end_instance(lane, slot);
                return false;
            }
            lane.output.clear();
            self.deliver(lane, slot, 0, 0);
            return false;
        }
        let Some(call) = Call::from_number((operation & op::NUMBER).into()) else {
            self.deliver(lane, slot, bus::Reply::TRAP, 0);
            return false;
        };
        for (i, word) in words.iter_mut().enumerate().take(count_words(call)).skip(ARGS_AT_HAND) {
            *word = self.shared.load_u64(port + offset::ARGS + i as u64 * WORD);
        }
        if let Some(quiet) = quiet {
            if operation & op::OWN != 0 && call == Call::fd_write {
                self.print(quiet, lane, slot, words[0] == 2);
                return true;
            }
            if lane.context.is_none() && !lane.exited {
                lane.context = quiet.context(slot);
            }
        }
        self.perform(quiet, lane, slot, call, words, out);
        true
    }

    /// Takes what an instance writes to its own stdout or stderr.
    fn print(&self, quiet: &dyn BatchHost, lane: &mut CallerState, slot: u32, is_stderr: bool) {
        let printed = match quiet.is_denied(slot) {
            true => return self.end_instance(lane, slot),
            false => quiet.print(slot, is_stderr, &lane.input),
        };
        if quiet.is_denied(slot) {
            return self.end_instance(lane, slot);
        }
        empty(&mut lane.input);
        lane.output.clear();
        lane.sent = 0;
        match printed {
            Ok(count) => self.deliver(lane, slot, 0, count as u64),
            Err(error) => self.deliver(lane, slot, Errno::from(error) as u32 & bus::Reply::ERRNO, 0),
        }
    }

    /// Performs a call, for the first time or again.
    fn perform(
        &self,
        quiet: Option<&dyn BatchHost>,
        lane: &mut CallerState,
        slot: u32,
        call: Call,
        words: [u64; ARGS],
        out: &mut Out,
    ) {
        let asked = &words[..count_words(call)];
        let own_calls = || Some((self.own_calls.as_ref()?, CallsFetch::of(call, asked)?));
        if let Some((own_calls, (request, room))) = own_calls() {
            let reply = own_calls.answer(slot, request, room, out);
            return self.send(lane, slot, call, reply, out);
        }
        let before = quiet.map_or(Answered::Never, |quiet| quiet.answered(slot, call, asked, &lane.input, out));
        let answer = match before {
            Answered::Was(reply) => reply,
            Answered::Never => {
                let Some(context) = &mut lane.context else { return self.deliver(lane, slot, bus::Reply::TRAP, 0) };
                let reply = context.call(call, asked, &lane.input, out);
                if quiet.is_some_and(|quiet| quiet.is_denied(slot)) {
                    return self.end_instance(lane, slot);
                }
                if let Some(quiet) = quiet {
                    quiet.answer(slot, call, asked, &lane.input, &reply, out);
                }
                reply
            }
            Answered::Deviates | Answered::NoRoom => return self.end_instance(lane, slot),
        };
        if let Reply::Again { at } = answer {
            tracing::trace!(slot, call = call.function().name, ?at, "put aside");
            (lane.pending, lane.due) = (Some((call, words)), at);
            return;
        }
        self.send(lane, slot, call, answer, out);
    }

    /// Sends the answer to a call.
    fn send(&self, lane: &mut CallerState, slot: u32, call: Call, answer: Reply, out: &Out) {
        empty(&mut lane.input);
        lane.output.clear();
        lane.sent = 0;
        match answer {
            Reply::Done(Errno::Success) => {
                pad_results(call, &out.bytes, &mut lane.output);
                let result = match lane.output.first_chunk() {
                    Some(first) if has_results(call) => {
                        // The first word of the results travels in the reply.
                        lane.sent = WORD as usize;
                        u64::from_le_bytes(*first)
                    }
                    _ => out.split.into(),
                };
                self.deliver(lane, slot, 0, result);
            }
            Reply::Done(errno) => self.deliver(lane, slot, errno as u32 & bus::Reply::ERRNO, 0),
            Reply::Exit(code) => {
                lane.context = None;
                lane.exited = true;
                self.deliver(lane, slot, bus::Reply::EXIT, code.into());
            }
            Reply::Refused => self.deliver(lane, slot, bus::Reply::TRAP, 0),
            Reply::Again { .. } => unreachable!("such a call is put aside"),
        }
    }

    /// Answers a call by stopping the instance.
    fn end_instance(&self, lane: &mut CallerState, slot: u32) {
        lane.input.clear();
        lane.output.clear();
        self.deliver(lane, slot, bus::Reply::TRAP, 0);
    }

    /// Retries all calls that could not be answered yet. Returns whether one could be answered now.
    fn retry(&self, state: &mut State) -> bool {
        let before = state.waiting.len();
        let quiet = state.quiet.clone();
        for slot in std::mem::take(&mut state.waiting) {
            let Some(lane) = &mut state.lanes[slot as usize] else { continue };
            let Some((call, words)) = lane.pending.take() else { continue };
            self.perform(quiet.as_deref(), lane, slot, call, words, &mut state.out);
            if lane.pending.is_some() {
                state.waiting.push(slot);
            }
        }
        state.waiting.len() < before
    }

    /// Sends a reply with as much of the output as fits.
    fn deliver(&self, lane: &mut CallerState, slot: u32, status: u32, result: u64) {
        let rest = &lane.output[lane.sent.min(lane.output.len())..];
        let chunk = &rest[..rest.len().min(self.payload as usize)];
        let more = if rest.len() > chunk.len() { bus::Reply::MORE } else { 0 };
        if !chunk.is_empty() {
            self.shared.write(self.port(slot.into()) + offset::PAYLOAD, chunk);
        }
        lane.sent += chunk.len();
        let bytes = chunk.len() as u32;
        if more == 0 {
            empty(&mut lane.output);
        }
        let status = status | more | bytes << bus::Reply::PAYLOAD_SHIFT;
        // Last: the instance may continue as soon as it sees this.
        self.store_words(self.reply(slot), bus::Reply { status, result }.pack(lane.sequence as u16));
    }

    fn load_words<const N: usize>(&self, at: u64) -> [u64; N] {
        std::array::from_fn(|i| self.shared.load_u64(at + i as u64 * WORD))
    }

    fn store_words<const N: usize>(&self, at: u64, words: [u64; N]) {
        (at..).step_by(WORD as usize).zip(words).for_each(|(at, word)| self.shared.store_u64(at, word));
    }
}

/// Empties a buffer, and frees a large one: thousands of instances may each have read or written a MiB once.
fn empty(buffer: &mut Vec<u8>) {
    buffer.clear();
    buffer.shrink_to(BUFFER_KEPT);
}

fn has_results(call: Call) -> bool {
    call.function().moves.iter().any(|step| matches!(step, Move::Result { .. }))
}

/// Returns how many argument words a call has.
fn count_words(call: Call) -> usize {
    call.function().moves.iter().filter(|m| m.has_word()).count().min(ARGS)
}

/// Pads results to whole words, so that the bytes after them begin at a cell's border.
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

#[cfg(test)]
#[path = "bus_tests.rs"]
mod tests;
