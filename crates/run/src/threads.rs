//! Runs a program with threads: one context, a slot for each thread, and one memory that all slots share
//! (`gpu_run_abi::threads`).
//!
//! The GPU threads are launched together and parked; the program starts and ends threads on the device, without the host.
//! Host calls come from all threads at once, and are answered one after the other.

use crate::allowance::Sizes;
use crate::bus::{BatchHost, Callers};
use crate::outcome::{self, Outcome, RunOptions, RunStats};
use crate::slots::{LaunchBuffers, Run, Slots};
use crate::transcript::Answered;
use gpu_run_abi::Launch;
use gpu_run_abi::hostcall::Call;
use gpu_run_abi::launch::answers;
use gpu_run_abi::layout::{MAX_PAGES, MEMORY_TAIL, PAGE, SLOT_ALIGN, WORD};
use gpu_run_abi::threads::{BUCKETS, Bucket, RECORD_BYTES, Record, Waiter};
use gpu_run_compiler::{Compiled, Error, Program, Value};
use gpu_run_device::Buffer;
use gpu_run_wasi::{Context, Out};
use gpu_run_wasm::words;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// How the threads of a program lie on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadPlacement {
    /// 32 threads share a warp: threads that do the same share its instructions.
    Lane,
    /// Each thread has a warp of its own: threads that do different things do not wait for each other.
    Warp,
}

/// What the threads of a program did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadStats {
    /// Threads that the program started, without the one it began with.
    pub started: u64,
    /// The most threads that ran at once, without the one the program began with.
    pub most_running: u64,
}

/// Runs a program whose threads, with the one it begins with, are at most `threads`.
pub fn run_threads(
    program: &Arc<Program>,
    function: &str,
    args: &[Value],
    context: Context,
    threads: u32,
    placement: ThreadPlacement,
    options: &RunOptions,
) -> Result<(Outcome, ThreadStats, RunStats), Error> {
    let (compiled, device) = (program.compiled(), program.device());
    let (selector, words_of_args) = compiled.arguments(function, args)?;
    let memory = ThreadsMemory::new(program, u64::from(threads), options.max_memory)?;
    let stack_bytes = device.properties().stack_bytes;
    let sizes = Sizes {
        memories: Vec::new(),
        slot_bytes: (compiled.slots.memory + MEMORY_TAIL).next_multiple_of(SLOT_ALIGN),
        growth_left: u64::MAX / 2,
        shared_memory: Some(memory.guest_address()),
    };
    let mut slots = Slots::new(program, threads.into(), sizes, stack_bytes)?;
    slots.set_lanes(Some(match placement {
        ThreadPlacement::Lane => 32,
        ThreadPlacement::Warp => 1,
    }));
    slots.set_arguments(&words_of_args)?;
    let buffers = LaunchBuffers::new(device, compiled, threads as usize)?;
    let launch = Launch { answers: answers::CLOCK, threads: memory.guest_address(), ..Launch::default() };
    buffers.write(&slots.describe(launch))?;
    let host = Arc::new(SharedContext(Mutex::new(SharedCalls { context, since: HashMap::new() })));
    let began = Instant::now();
    let run = Run::fresh(selector, options.deadline);
    let (_, hostcalls) = slots.launch(run, Callers::Batch(threads as usize, host), &buffers)?;
    let took = began.elapsed();

    let types = compiled.results(selector);
    let endings = buffers.endings(threads as usize, words(types) as usize)?;
    let record = memory.record()?;
    // The thread that ended the program decides how it ended; the others were stopped.
    let ended_by = record.ended_by.clamp(1, threads.into()) as usize - 1;
    let outcome = outcome::outcome(compiled, ended_by, &endings, types)?;
    let stats = RunStats {
        instances: 1,
        launches: 1,
        hostcalls,
        run: took,
        device_bytes: slots.device_bytes() + memory.buffer.len(),
        ..RunStats::default()
    };
    let threads = ThreadStats { started: record.started, most_running: record.most_running };
    Ok((outcome, threads, stats))
}

/// The memory that threads share, and what lies before it.
struct ThreadsMemory {
    buffer: Buffer,
    /// Where guest byte 0 is in the buffer.
    guest: u64,
}

impl ThreadsMemory {
    fn new(program: &Program, threads: u64, max_memory: Option<u64>) -> Result<Self, Error> {
        let (compiled, device) = (program.compiled(), program.device());
        let limit = limit(compiled, max_memory)?;
        let sizes = [WORD * threads, WORD * threads, size_of::<Waiter>() as u64 * threads, bucket_bytes()];
        let mut at = 0;
        let [mailboxes, next_parked, waiters, buckets] = sizes.map(|bytes| {
            at += bytes;
            at - bytes
        });
        let guest = (at + RECORD_BYTES).next_multiple_of(SLOT_ALIGN);
        let buffer = device.allocate(guest + limit + MEMORY_TAIL)?;
        let address = buffer.address();
        let initial = compiled.initial.memories.first().map_or(0, |memory| memory.length);
        let record = Record {
            length: initial,
            limit,
            threads,
            mailboxes: address + mailboxes,
            // Slot 1 is the first of the parked ones, if there is one.
            parked: if threads > 1 { 2 } else { 0 },
            next_parked: address + next_parked,
            buckets: address + buckets,
            waiters: address + waiters,
            ..Record::default()
        };
        buffer.write(guest - RECORD_BYTES, record.bytes())?;
        let next = |slot: u64| if slot + 1 < threads { slot + 2 } else { 0 };
        let list: Vec<u8> = (0..threads).flat_map(|slot| next(slot).to_le_bytes()).collect();
        buffer.write(next_parked, &list)?;
        for piece in compiled.initial.memories.first().map_or(&[][..], |memory| &memory.pieces) {
            let bytes: Vec<u8> = piece.words.iter().flat_map(|word| word.to_le_bytes()).collect();
            buffer.write(guest + piece.at, &bytes)?;
        }
        Ok(Self { buffer, guest })
    }

    fn guest_address(&self) -> u64 {
        self.buffer.address() + self.guest
    }

    fn record(&self) -> Result<Record, Error> {
        let mut record = Record::default();
        self.buffer.read(self.guest - RECORD_BYTES, record.bytes_mut())?;
        Ok(record)
    }
}

fn bucket_bytes() -> u64 {
    BUCKETS * size_of::<Bucket>() as u64
}

/// Returns the bytes that the memory may grow to.
fn limit(compiled: &Compiled, max_memory: Option<u64>) -> Result<u64, Error> {
    let declared =
        compiled.memories.first().and_then(|memory| memory.maximum).unwrap_or(MAX_PAGES).min(MAX_PAGES) * PAGE;
    let least = compiled.initial.memories.first().map_or(0, |memory| memory.length);
    let limit = declared.min(max_memory.unwrap_or(u64::MAX) / PAGE * PAGE);
    match limit < least {
        true => Err(Error::Limit(format!("its memory begins with {least} bytes, and the user allows {limit}"))),
        false => Ok(limit),
    }
}

/// The context of all threads.
struct SharedContext(Mutex<SharedCalls>);

struct SharedCalls {
    context: Context,
    /// When the calls that are being repeated were first made, by slot.
    since: HashMap<u32, Instant>,
}

impl BatchHost for SharedContext {
    fn heard(&self, _: u32) {}

    fn context(&self, _: u32) -> Option<Context> {
        None
    }

    fn answered(&self, slot: u32, call: Call, words: &[u64], input: &[u8], out: &mut Out) -> Answered {
        let SharedCalls { context, since } = &mut *self.0.lock();
        let mut first = since.remove(&slot);
        let reply = context.call_of(&mut first, call, words, input, out);
        since.extend(first.map(|first| (slot, first)));
        Answered::Was(reply)
    }
}
