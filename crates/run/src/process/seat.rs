//! Where processes of a program run: device memory, buffers and a bus, used by one process after the other.

use super::Loaded;
use crate::allowance::{Bounds, Limits};
use crate::bus::Callers;
use crate::common::{Common, CommonMemory};
use crate::instances::examine;
use crate::outcome::{self, End, Outcome, RunOptions};
use crate::slots::{FreshCopy, LaunchBuffers, Run, Slots};
use gpu_run_abi::Launch;
use gpu_run_abi::launch::answers;
use gpu_run_abi::layout::{PAGE, WORD};
use gpu_run_compiler::{Error, Program};
use gpu_run_wasi::Context;
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Each process may have this part of the device's free memory, where memory costs something before it is touched.
const MEMORY_PART: u64 = 64;

/// How long a comparison of the device's clock with the host's is good enough: it takes a fifth of a start.
const CLOCKS_AGREE_FOR: Duration = Duration::from_secs(1);

/// The seats of a program.
pub(super) struct Seats {
    program: Arc<Program>,
    max_memory: Option<u64>,
    /// Bytes of stack of the first seat. No other has more: a GPU gives larger stacks only when no kernel runs, and how much
    /// memory is free for them changes meanwhile.
    stack: OnceLock<u32>,
    free: Mutex<Vec<Seat>>,
}

impl Seats {
    pub(super) fn new(program: Arc<Program>, max_memory: Option<u64>) -> Self {
        Self { program, max_memory, stack: OnceLock::new(), free: Mutex::default() }
    }

    /// Makes seats until so many are free, and has the device reserve what their launches take.
    pub(super) fn prepare(&self, count: usize) -> Result<(), Error> {
        while self.free.lock().len() < count {
            let seat = self.make()?;
            self.free.lock().push(seat);
        }
        Ok(())
    }

    fn make(&self) -> Result<Seat, Error> {
        let common = CommonMemory::new(&self.program, Common::default())?;
        let seat = Seat::new(&self.program, self.max_memory, self.stack.get().copied(), Arc::new(common))?;
        self.stack.get_or_init(|| seat.slots.stack());
        Ok(seat)
    }

    /// Takes a seat. Seats are made when they are needed, and stay: a GPU frees no memory while a kernel runs.
    pub(super) fn take(&self) -> Result<Seat, Error> {
        let free = self.free.lock().pop();
        free.map_or_else(|| self.make(), Ok)
    }

    /// A seat that cannot be made ready for the next process is given up.
    pub(super) fn give_back(&self, mut seat: Seat) {
        if self.program.compiled().asks_device {
            // What it left in the shared buffer is not the next one's to see.
            return;
        }
        match seat.renew() {
            Ok(()) => self.free.lock().push(seat),
            Err(error) => tracing::warn!("a process left a seat that cannot be used again: {error}"),
        }
    }
}

/// A slot for one process. It holds a fresh instance whenever none runs, so that a start need not make one.
pub(super) struct Seat {
    slots: Slots,
    buffers: LaunchBuffers,
    fresh: FreshCopy,
    /// Bytes of memory that the last process had.
    used: u64,
}

impl Seat {
    /// Its process has at most `most_stack` bytes of stack, if that is given.
    pub(super) fn new(
        program: &Program,
        max_memory: Option<u64>,
        most_stack: Option<u32>,
        common: Arc<CommonMemory>,
    ) -> Result<Self, Error> {
        let (device, compiled) = (program.device(), program.compiled());
        let bounds = Bounds::new(device, compiled, max_memory, &Limits::default())?;
        let free = device.free_bytes()?;
        let mut allowance = bounds.resident(compiled, free);
        let stack = allowance.stack.min(most_stack.unwrap_or(u32::MAX));
        if !device.properties().overcommits {
            let least = compiled.initial.memories.iter().map(|memory| memory.length).max().unwrap_or(0);
            let share = least.saturating_add(free / MEMORY_PART / PAGE * PAGE);
            allowance.memory = allowance.memory.min(share);
        }
        let mut slots = Slots::new(program, 1, bounds.sizes(compiled, allowance, true)?, stack)?;
        slots.lower_stack_if_need_be();
        let mut buffers = LaunchBuffers::new(device, compiled, 1, common)?;
        buffers.compare_clocks_after(CLOCKS_AGREE_FOR);
        buffers.write(&slots.describe(Launch { answers: answers::CLOCK, ..Launch::default() }))?;
        // On a GPU, this also reserves what launches take: while others run, it could not be done.
        let fresh = slots.fresh(device, &buffers)?;
        Ok(Self { slots, buffers, fresh, used: 0 })
    }

    /// Makes the seat ready for the next process.
    pub(super) fn renew(&mut self) -> Result<(), Error> {
        self.slots.renew(&self.fresh, self.used, &self.buffers)
    }

    pub(super) fn device_bytes(&self) -> u64 {
        self.slots.device_bytes()
    }

    /// Runs a process. Returns how it ended, and how many host calls it made. What it held open is closed then.
    pub(super) fn run(
        &mut self,
        loaded: &Loaded,
        context: Context,
        options: &RunOptions,
    ) -> Result<(Outcome, u64), Error> {
        let Loaded { program, function, arguments } = loaded;
        let compiled = program.compiled();
        let (selector, words) = compiled.arguments(function, arguments)?;
        if let Some(code) = compiled.initial.trap {
            let outcome = Outcome { end: End::trapped(code), results: Vec::new(), denied: None, threads: None };
            return Ok((outcome, 0));
        }
        for (i, word) in words.into_iter().enumerate() {
            self.slots.write_word(0, compiled.slots.arguments + WORD * i as u64, word)?;
        }
        self.slots.stop_when(options.interrupt.clone());
        let run = Run { fresh: false, ..Run::fresh(selector, options.deadline) };
        let (_, hostcalls) = self.slots.launch(run, Callers::Contexts(vec![context]), &self.buffers)?;
        let types = compiled.results(selector);
        let endings = self.buffers.endings(1, gpu_run_wasm::words(types) as usize)?;
        self.used = endings.get(0).memory_bytes;
        let mut outcome = outcome::outcome(compiled, 0, &endings, types)?;
        outcome.denied = crate::allowance::Denied::growth(compiled, options.max_memory, &endings.get(0));
        if let Some((examiner, trap)) = options.examines(&outcome.end) {
            examine(examiner, 0, (&self.slots, 0), trap, endings.calls(0).as_ref());
        }
        Ok((outcome, hostcalls))
    }
}
