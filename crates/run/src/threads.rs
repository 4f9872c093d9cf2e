//! Runs a program with threads: one context, a slot for each thread, and one memory that all slots share
//! (`gpu_run_abi::threads`).
//!
//! The GPU's threads are launched together and parked; the program starts and ends threads on the device, without the
//! host. Host calls come from all threads at once, and are answered one after the other.

use crate::allowance::Sizes;
use crate::bus::{BatchHost, Callers};
use crate::outcome::{self, End, Outcome, RunOptions, RunStats};
use crate::remains::{Remains, Whose};
use crate::seen::{Onlooker, SeenThreads, Threads};
use crate::slots::{LaunchBuffers, Run, SlotReader, Slots};
use crate::transcript::Answered;
use gpu_run_abi::hostcall::Call;
use gpu_run_abi::launch::answers;
use gpu_run_abi::layout::{MAX_PAGES, MEMORY_TAIL, PAGE, SLOT_ALIGN, WORD};
use gpu_run_abi::threads::{BUCKETS, Bucket, LANES, Mailbox, RECORD_BYTES, Record, Waiter, Warp};
use gpu_run_abi::{Launch, TrapCode};
use gpu_run_compiler::{Compiled, Error, Program, Trap, Value};
use gpu_run_device::{Buffer, Grid};
use gpu_run_wasi::{Awaited, Context, Out, Waiting};
use gpu_run_wasm::{THREADS, words};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// The most threads of a program, unless more are asked for.
const USUAL_THREADS: u64 = 16 << 10;
/// On `cpu`: threads for each core, and at least this many.
const THREADS_PER_CORE: u64 = 4;
const LEAST_THREADS: u64 = 64;
/// The most programs with threads that run at once: the host has a thread for each.
const MOST_AT_ONCE: u64 = 32;
/// How often an onlooker is shown the threads.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// How the threads of a program lie on a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadPlacement {
    /// The first threads have a warp each, in as many warps as leave room for the others, which share warps.
    #[default]
    Auto,
    /// 32 threads share a warp: threads that do the same share its instructions.
    Lane,
    /// Each thread has a warp of its own: threads that do different things do not wait for each other.
    Warp,
}

/// What the threads of a program did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadStats {
    /// The most threads that could run at once, with the one the program begins with.
    pub limit: u64,
    /// Threads that the program started, without the one it begins with.
    pub started: u64,
    /// The most of them that ran at once.
    pub most_running: u64,
    /// Warps that several threads started in together, and how many of the threads did.
    pub shared_warps: u64,
    pub in_shared_warps: u64,
}

/// Runs a program with at most `threads` threads, counting the one it begins with; `None`: as many as usual.
pub fn run_threads(
    program: &Arc<Program>,
    function: &str,
    args: &[Value],
    context: Context,
    threads: Option<u32>,
    placement: ThreadPlacement,
    options: &RunOptions,
) -> Result<(Outcome, RunStats), Error> {
    let (compiled, device) = (program.compiled(), program.device());
    let (selector, words_of_args) = compiled.arguments(function, args)?;
    let places = Places::new(program, threads.map(u64::from), placement)?;
    let memory = ThreadsMemory::new(program, &places, options.max_memory)?;
    let stack_bytes = device.properties().stack_bytes;
    let sizes = Sizes {
        memories: Vec::new(),
        slot_bytes: (compiled.slots.memory + MEMORY_TAIL).next_multiple_of(SLOT_ALIGN),
        growth_left: u64::MAX / 2,
        shared_memory: Some(memory.guest_address()),
    };
    let mut slots = Slots::new(program, places.threads, sizes, stack_bytes)?;
    slots.run_together(Grid { workgroups: places.warps as u32, threads: places.lanes as u32, stack_bytes });
    slots.lower_stack_if_need_be();
    slots.stop_when(options.interrupt.clone());
    slots.set_arguments(&words_of_args)?;
    let common = options.common_of(program)?;
    let first = common.first();
    let buffers = LaunchBuffers::new(device, compiled, places.threads as usize, common)?;
    let launch = Launch {
        answers: answers::CLOCK,
        threads: memory.guest_address(),
        most_threads: places.threads,
        first,
        ..Launch::default()
    };
    buffers.write(&slots.describe(launch))?;
    let memory = Arc::new(memory);
    let context = context.with_parallelism(places.threads as u32);
    let calls = SharedCalls { context, waiting: HashMap::new(), memory: memory.clone() };
    let host = Arc::new(SharedContext(Mutex::new(calls)));
    let began = Instant::now();
    let run = Run::fresh(selector, options.deadline);
    let reader = slots.reader();
    let callers = Callers::Batch(places.threads as usize, host);
    let look = || memory.look(compiled, &reader, |threads, in_use| threads.running(in_use));
    let (_, hostcalls) = watched(options.onlooker.as_deref(), look, || slots.launch(run, callers, &buffers))?;
    let took = began.elapsed();

    let types = compiled.results(selector);
    let endings = buffers.endings(places.threads as usize, words(types) as usize)?;
    let record = memory.record()?;
    // The thread that ended the program decides how it ended; the others were stopped.
    let ended_by = record.ended_by.clamp(1, places.threads) as usize - 1;
    let mut outcome = outcome::outcome(compiled, ended_by, &endings, types)?;
    if let Some((examiner, trap)) = options.examines(&outcome.end) {
        let held = examiner.held();
        let _held = held.as_ref().map(|held| held.lock());
        let read = |_, at, bytes: &mut [u8]| Ok(memory.buffer.read(memory.guest + at, bytes)?);
        let seen = memory.look(compiled, &reader, |threads, in_use| threads.remains(ended_by, in_use, &endings));
        let remains = seen.flatten().map(|threads| {
            let memories = vec![record.length];
            Remains { trap, compiled, threads, memories, read: &read }
        });
        examiner.examines(Whose::Instance(0), remains.as_ref());
    }
    if let End::Trapped(trap) = &mut outcome.end {
        let stopped = &mut outcome.threads;
        memory.look(compiled, &reader, |threads, in_use| match trap.code {
            // No thread did anything wrong. Of a single one, the trap's own place says more.
            TrapCode::Interrupted if in_use.len() > 1 => {
                **trap = Trap::nowhere(trap.code);
                *stopped = Some(threads.stopped(in_use, &endings));
            }
            TrapCode::Interrupted => {}
            _ => trap.thread = Some(threads.label(ended_by).to_string()),
        })?;
    }
    let threads = ThreadStats {
        limit: places.threads,
        started: record.started,
        most_running: record.most_running,
        shared_warps: record.fillings,
        in_shared_warps: record.filled,
    };
    let stats = RunStats {
        instances: 1,
        launches: 1,
        hostcalls,
        run: took,
        device_bytes: slots.device_bytes() + memory.buffer.len(),
        threads: Some(threads),
        ..RunStats::default()
    };
    Ok((outcome, stats))
}

/// Runs `launch`; meanwhile, shows the onlooker now and then what `look` returns.
fn watched<T: Send>(
    onlooker: Option<&dyn Onlooker>,
    look: impl Fn() -> Result<SeenThreads, Error> + Send,
    launch: impl FnOnce() -> T,
) -> T {
    let (end, ended) = mpsc::channel::<()>();
    let watch = move |onlooker: &dyn Onlooker| {
        while ended.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
            if onlooker.is_looking() {
                match look() {
                    Ok(threads) => onlooker.sees(&threads),
                    Err(error) => tracing::debug!("cannot look at the threads: {error}"),
                }
            }
        }
    };
    std::thread::scope(|scope| {
        if let Some(onlooker) = onlooker {
            scope.spawn(move || watch(onlooker));
        }
        let launched = launch();
        drop(end);
        launched
    })
}

/// How many threads there can be, and which lanes run them.
struct Places {
    threads: u64,
    /// Warps, of so many lanes.
    warps: u64,
    lanes: u64,
    /// How many threads may have a warp each.
    alone: u64,
}

/// Returns how many programs with so many threads each run at once.
pub fn programs_at_once(program: &Program, threads: Option<u32>, placement: ThreadPlacement) -> Result<usize, Error> {
    let device = program.device();
    if !device.is_gpu() {
        return Ok(device.properties().processors as usize);
    }
    let places = Places::new(program, threads.map(u64::from), placement)?;
    let warps = u64::from(program.module().most_together(THREADS, places.lanes as u32)?);
    Ok((warps / places.warps).clamp(1, MOST_AT_ONCE) as usize)
}

impl Places {
    fn new(program: &Program, wanted: Option<u64>, placement: ThreadPlacement) -> Result<Self, Error> {
        let device = program.device();
        let is_apart = !device.is_gpu() || placement == ThreadPlacement::Warp;
        let lanes = if is_apart { 1 } else { LANES };
        let processors = u64::from(device.properties().processors);
        let most_warps = u64::from(program.module().most_together(THREADS, lanes as u32)?);
        let most = most_warps * lanes;
        let usual = match device.is_gpu() {
            true => USUAL_THREADS,
            false => (THREADS_PER_CORE * processors).max(LEAST_THREADS),
        };
        let threads = wanted.unwrap_or(usual.min(most));
        if threads > most {
            let hint =
                if device.is_gpu() && is_apart { "; with --thread-placement lane, there can be more" } else { "" };
            let message = format!(
                "--threads {threads}: {} holds at most {most} threads of this program{hint}",
                device.properties().id
            );
            return Err(Error::Limit(message));
        }
        let alone = match (is_apart, placement) {
            (true, _) => u64::MAX,
            (false, ThreadPlacement::Lane) => 0,
            // As many as leave room for all others, 32 in a warp.
            (false, _) => (most - threads) / (LANES - 1),
        };
        // Even if no two threads ever share a warp, as many can run as there are warps. The first has one of its own.
        let warps = most_warps.min(threads.max(2));
        Ok(Self { threads, warps: if is_apart { threads } else { warps }, lanes, alone })
    }
}

/// The memory that threads share, and what lies before it.
struct ThreadsMemory {
    buffer: Buffer,
    /// Where guest byte 0 is in the buffer, the lists of free slots, and the waiters.
    guest: u64,
    next_slots: u64,
    waiters: u64,
    threads: usize,
}

impl ThreadsMemory {
    fn new(program: &Program, places: &Places, max_memory: Option<u64>) -> Result<Self, Error> {
        let (compiled, device) = (program.compiled(), program.device());
        let limit = limit(compiled, max_memory)?;
        let &Places { threads, warps, lanes, alone } = places;
        let mut at = 0;
        let [mailboxes, warps_at, next_slots, waiters, buckets] = [
            (size_of::<Mailbox>() as u64, warps * lanes),
            (size_of::<Warp>() as u64, warps),
            (WORD, threads),
            (size_of::<Waiter>() as u64, threads),
            (size_of::<Bucket>() as u64, BUCKETS),
        ]
        .map(|(bytes, count)| {
            let begins = at;
            at += bytes * count;
            begins
        });
        let guest = (at + RECORD_BYTES).next_multiple_of(SLOT_ALIGN);
        let buffer = device.allocate(guest + limit + MEMORY_TAIL)?;
        let address = buffer.address();
        // Slot 0 and warp 0 are in use; the others are in the lists, in order.
        let first = |count: u64| if count > 1 { 2 } else { 0 };
        let next = |entry: u64, count: u64| if entry + 1 < count { entry + 2 } else { 0 };
        let record = Record {
            length: compiled.initial.memories.first().map_or(0, |memory| memory.length),
            limit,
            free_slots: first(threads),
            next_slots: address + next_slots,
            free_warps: first(warps),
            warps: address + warps_at,
            warp_count: warps,
            mailboxes: address + mailboxes,
            most_alone: alone,
            buckets: address + buckets,
            waiters: address + waiters,
            ..Record::default()
        };
        buffer.write(guest - RECORD_BYTES, record.bytes())?;
        let list: Vec<u64> = (0..threads).map(|slot| next(slot, threads)).collect();
        buffer.write(next_slots, bytemuck::cast_slice(&list))?;
        let busy = |warp: u64| if warp == 0 { 1 } else { 0 };
        let list: Vec<Warp> =
            (0..warps).map(|warp| Warp { busy: busy(warp), next: next(warp, warps), ..Warp::default() }).collect();
        buffer.write(warps_at, bytemuck::cast_slice(&list))?;
        for piece in compiled.initial.memories.first().map_or(&[][..], |memory| &memory.pieces) {
            buffer.write(guest + piece.at, bytemuck::cast_slice(&piece.words))?;
        }
        Ok(Self { buffer, guest, next_slots, waiters, threads: threads as usize })
    }

    fn guest_address(&self) -> u64 {
        self.buffer.address() + self.guest
    }

    fn record(&self) -> Result<Record, Error> {
        let mut record = Record::default();
        self.buffer.read(self.guest - RECORD_BYTES, record.bytes_mut())?;
        Ok(record)
    }

    /// Has the threads seen, with the slots that are in use. They may run meanwhile.
    fn look<T>(
        &self,
        compiled: &Arc<Compiled>,
        slots: &SlotReader,
        see: impl FnOnce(&Threads<'_>, Vec<usize>) -> T,
    ) -> Result<T, Error> {
        let record = self.record()?;
        let guest = |at: u32, bytes: &mut [u8]| self.read_guest(record.length, at, bytes);
        let in_warp = |address: u64| self.threads_in_warp(&record, address);
        let waiters = self.waiters()?;
        let threads = Threads { compiled, slots, waiters, guest: &guest, in_warp: &in_warp };
        Ok(see(&threads, self.slots_in_use(&record)?))
    }

    /// Returns how many threads share the warp at a device address; 1 if none is there.
    fn threads_in_warp(&self, record: &Record, address: u64) -> u32 {
        let (bytes, mut warp) = (size_of::<Warp>() as u64, Warp::default());
        let at = address.wrapping_sub(record.warps);
        let is_one = at.is_multiple_of(bytes) && at / bytes < record.warp_count;
        let offset = address.wrapping_sub(self.buffer.address());
        let is_read = is_one && self.buffer.read(offset, bytemuck::bytes_of_mut(&mut warp)).is_ok();
        if is_read { warp.busy.count_ones().max(1) } else { 1 }
    }

    fn waiters(&self) -> Result<Vec<Waiter>, Error> {
        let mut waiters = vec![Waiter::default(); self.threads];
        self.buffer.read(self.waiters, bytemuck::cast_slice_mut(&mut waiters))?;
        Ok(waiters)
    }

    /// Returns the identifier of the thread in a slot, also while the program runs.
    fn id(&self, slot: u32) -> u64 {
        let mut waiter = Waiter::default();
        let at = self.waiters + u64::from(slot) * size_of::<Waiter>() as u64;
        // Without it, calls are still worth showing.
        self.buffer.read(at, bytemuck::bytes_of_mut(&mut waiter)).map_or(0, |()| waiter.id)
    }

    /// Returns the slots that are not in the list of free ones.
    fn slots_in_use(&self, record: &Record) -> Result<Vec<usize>, Error> {
        let mut next = vec![0u64; self.threads];
        self.buffer.read(self.next_slots, bytemuck::cast_slice_mut(&mut next))?;
        let mut is_free = vec![false; self.threads];
        let mut entry = record.free_slots as u32 as usize;
        // The program may have been stopped while it changed the list.
        while let Some(slot) = entry.checked_sub(1).filter(|slot| is_free.get(*slot) == Some(&false)) {
            is_free[slot] = true;
            entry = next[slot] as usize;
        }
        Ok((0..self.threads).filter(|slot| !is_free[*slot]).collect())
    }

    /// Reads guest memory, which is `length` bytes long; returns whether all of it is there.
    fn read_guest(&self, length: u64, at: u32, bytes: &mut [u8]) -> bool {
        let end = u64::from(at) + bytes.len() as u64;
        end <= length && self.buffer.read(self.guest + u64::from(at), bytes).is_ok()
    }
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
    /// The calls that are being repeated, by slot.
    waiting: HashMap<u32, Waiting>,
    memory: Arc<ThreadsMemory>,
}

impl BatchHost for SharedContext {
    fn heard(&self, _: u32) {}

    fn context(&self, _: u32) -> Option<Context> {
        None
    }

    fn answered(&self, slot: u32, call: Call, words: &[u64], input: &[u8], out: &mut Out) -> Answered {
        let SharedCalls { context, waiting, memory } = &mut *self.0.lock();
        context.name_caller(|| format!("[thread {}] ", memory.id(slot)));
        let mut own = waiting.remove(&slot);
        let reply = context.call_of(&mut own, call, words, input, out);
        waiting.extend(own.map(|own| (slot, own)));
        Answered::Was(reply)
    }

    fn awaited(&self, _: u32, call: Call, words: &[u64], input: &[u8], awaited: &mut Vec<Awaited>) {
        self.0.lock().context.awaited(call, words, input, awaited);
    }
}
