//! A gang on a device: threads that share one memory, launched and stopped.
//!
//! Only the memory's *image* lasts (`abi::gang`). It is made once, from the module's data; each launch continues with
//! what the last one left, and the host can read and write the image even while a launch runs. Host and threads
//! communicate through the *bus*, memory that both see. A launch returns at once; several can be queued, and each
//! begins when the one before it is over.
//!
//! A thread that traps stops the launch in an orderly way: the other threads exit at their next barrier, sleep, or
//! check of the stop word. [`Running::wait`] then returns which thread trapped and where, and the gang runs no launches
//! until [`Gang::recover`].

use crate::memory::{GangMemory, HostChannels, gang_place};
use gpu_run_abi::gang::offset;
use gpu_run_abi::{Build, GangSizes, TrapCode, TrapRecord};
use gpu_run_compiler::{CompileOptions, Compiled, Compiler, Entry, Error, Program, Trap, stack_limit};
use gpu_run_device::{Arg, Device, Grid, Launched, Queue, Rest, Shared};
use gpu_run_wasm::GANG;
use gpu_run_wasm::slot::GangPlace;
use std::sync::Arc;

/// Registers of a multiprocessor, which the threads of a workgroup share.
const MULTIPROCESSOR_REGISTERS: u32 = 65536;
/// Registers of one thread, at most.
const MAX_REGISTERS: u32 = 255;
/// Stack of a thread, in bytes, on a device where unused stack costs nothing.
const STACK_BYTES: u32 = 256 << 10;
/// The same on a GPU, which sets a stack aside for every thread it can hold.
const GPU_STACK_BYTES: u32 = 32 << 10;

/// The sizes of a gang. All of them are compiled into its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GangOptions {
    /// Threads of a workgroup.
    pub threads: u32,
    /// Workgroups; all of them run at once.
    pub groups: u32,
    /// Bytes of each thread's shadow stack, a multiple of 16.
    pub stack_bytes: u32,
    /// Bytes of the image: whole pages of 64 KiB, at least as many as the initial size of the module's memory.
    pub image_bytes: u64,
    /// Bytes of the bus, a multiple of 16.
    pub bus_bytes: u64,
    /// By default, wasm's atomic operations have one order for all threads, which costs two fences each. Relaxed ones
    /// order nothing but themselves: the module must then call `gpu.fence`, or `gpu.barrier` within a workgroup,
    /// wherever one thread is to see what another wrote before.
    pub relaxed: bool,
}

impl Default for GangOptions {
    fn default() -> Self {
        Self { threads: 1024, groups: 1, stack_bytes: 4096, image_bytes: 1 << 20, bus_bytes: 1 << 16, relaxed: false }
    }
}

impl GangOptions {
    pub(crate) fn compile_options(&self) -> CompileOptions {
        let sizes = GangSizes {
            threads: self.threads,
            groups: self.groups,
            image_bytes: self.image_bytes,
            stack_bytes: self.stack_bytes.into(),
            bus_bytes: self.bus_bytes,
        };
        let registers = (MULTIPROCESSOR_REGISTERS / self.threads.max(1) / 8 * 8).min(MAX_REGISTERS);
        let build = Build::Gang { sizes, relaxed: self.relaxed };
        CompileOptions { registers: Some(registers), ..CompileOptions::new(build, Entry::Exports) }
    }

    /// Returns the PTX of a module, without a device.
    pub fn ptx(&self, wasm: &[u8]) -> Result<String, Error> {
        Ok(Compiled::new(wasm, &self.compile_options())?.ptx().to_owned())
    }
}

/// A module compiled as a gang, on a device.
#[derive(Debug)]
pub struct GangProgram {
    pub(crate) program: Arc<Program>,
    pub(crate) device: Arc<dyn Device>,
    pub(crate) place: GangPlace,
}

impl GangProgram {
    /// Compiles a module, or finds it in the compiler's cache. Its exported functions without parameters and results are
    /// the entries. `name` is its label in the cache.
    pub fn compile(
        compiler: &Compiler,
        device: &Arc<dyn Device>,
        wasm: Arc<Vec<u8>>,
        options: &GangOptions,
        name: &str,
    ) -> Result<Arc<Self>, Error> {
        let request = compiler.request(device, wasm, &options.compile_options(), name)?;
        let (program, _) = compiler.load(&request)?;
        let place = gang_place(program.compiled())?;
        Ok(Arc::new(Self { program, device: device.clone(), place }))
    }

    /// Returns the functions that a launch can run.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        self.program.compiled().entries.iter().map(|entry| entry.name.as_str())
    }

    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    fn selector(&self, entry: &str) -> Result<u32, Error> {
        let found = self.program.compiled().entry(0, entry).map(|(selector, _)| selector);
        found.ok_or_else(|| {
            let all: Vec<_> = self.entries().collect();
            Error::Usage(format!(
                "it exports no function `{entry}` without parameters and results; it has {}",
                all.join(", ")
            ))
        })
    }
}

/// A gang's memory on its device, and the queue of its launches.
#[derive(Debug)]
pub struct Gang {
    /// Declared before the memory, so that it is dropped first: dropping it waits for launches.
    queue: Box<dyn Queue>,
    shared: Arc<State>,
    /// Whether another gang has its memory now.
    retired: bool,
}

/// What a launch needs even after its [`Gang`] is dropped.
#[derive(Debug)]
struct State {
    program: Arc<GangProgram>,
    memory: GangMemory,
}

impl State {
    fn stop(&self) {
        if let Err(error) = self.memory.set_stop(true) {
            tracing::warn!("cannot stop a gang: {error}");
        }
    }

    /// Returns the first trap since the record was cleared, and the thread's number in the grid.
    fn trap(&self) -> Option<(Trap, u64)> {
        let GangMemory { place, buffer, region, channels, .. } = &self.memory;
        let trap = TrapRecord::unpack(channels.report.load_u64(offset::TRAP))?;
        let trapped = channels.report.load_u64(offset::TRAPPED);
        let first = buffer.address() + region + place.slot(0);
        let thread = trapped.saturating_sub(first) / place.slot_bytes;
        Some((self.program.program.compiled().trap(trap, None), thread))
    }
}

impl Gang {
    /// Allocates a gang's memory on the program's device and fills it with the module's data.
    pub fn new(program: Arc<GangProgram>) -> Result<Self, Error> {
        let (device, place) = (&program.device, &program.place);
        let channels = HostChannels::new(&**device, place)?;
        let buffer = Arc::new(device.allocate(GangMemory::bytes(place))?);
        let memory = GangMemory::new(&**device, program.program.compiled(), buffer, channels, &[])?;
        Self::of(program, memory)
    }

    /// Makes a gang of a program and memory that is ready for it.
    pub(crate) fn of(program: Arc<GangProgram>, memory: GangMemory) -> Result<Self, Error> {
        let queue = program.program.module().clone().queue()?;
        Ok(Self { queue, shared: Arc::new(State { program, memory }), retired: false })
    }

    pub(crate) fn memory(&self) -> &GangMemory {
        &self.shared.memory
    }

    /// Notes that its memory belongs to another gang from now on.
    pub(crate) fn retire(&mut self) {
        self.retired = true;
    }

    /// Returns the memory that host and threads both see.
    pub fn bus(&self) -> &Arc<Shared> {
        &self.shared.memory.channels.bus
    }

    pub fn program(&self) -> &Arc<GangProgram> {
        &self.shared.program
    }

    pub fn image_bytes(&self) -> u64 {
        self.shared.program.place.sizes.image_bytes
    }

    /// Returns the present image. It is consistent if no launch runs.
    pub fn read_image(&self) -> Result<Vec<u8>, Error> {
        let mut image = vec![0; self.image_bytes() as usize];
        self.read(0, &mut image)?;
        Ok(image)
    }

    /// Reads a part of the image. Waits for the copy, but for no launch.
    ///
    /// # Panics
    /// If the range is not inside the image.
    pub fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), Error> {
        self.check(at, bytes.len() as u64);
        Ok(self.shared.memory.buffer.read(self.shared.memory.image_at() + at, bytes)?)
    }

    /// Like [`Gang::read`], into memory that the device writes by itself: the fastest way out.
    ///
    /// # Panics
    /// If one of the ranges is not inside its memory.
    pub fn read_to(&self, at: u64, shared: &Shared, to: u64, length: u64) -> Result<(), Error> {
        self.check(at, length);
        Ok(self.shared.memory.buffer.read_to(self.shared.memory.image_at() + at, shared, to, length)?)
    }

    /// Replaces the whole image. No launch may be running.
    pub fn write_image(&self, image: &[u8]) -> Result<(), Error> {
        if image.len() as u64 != self.image_bytes() {
            let (given, wanted) = (image.len(), self.image_bytes());
            return Err(Error::Usage(format!("the image has {given} bytes, but this gang's images have {wanted}")));
        }
        self.write(0, image)
    }

    /// Writes a part of the image.
    ///
    /// # Panics
    /// If the range is not inside the image.
    pub fn write(&self, at: u64, bytes: &[u8]) -> Result<(), Error> {
        self.check(at, bytes.len() as u64);
        Ok(self.shared.memory.buffer.write(self.shared.memory.image_at() + at, bytes)?)
    }

    fn check(&self, at: u64, length: u64) {
        let size = self.image_bytes();
        assert!(at.checked_add(length).is_some_and(|end| end <= size), "{at}+{length} is outside an image of {size}");
    }

    /// Makes every thread run an entry, after the launches before this one. Returns at once.
    pub fn launch(&mut self, entry: &str) -> Result<Running, Error> {
        let selector = self.shared.program.selector(entry)?;
        let (sizes, device) = (self.shared.program.place.sizes, self.shared.program.device.properties());
        let stack_bytes = if device.overcommits { STACK_BYTES } else { device.stack_bytes.min(GPU_STACK_BYTES) };
        let grid = Grid { workgroups: sizes.groups, threads: sizes.threads, stack_bytes };
        let args = [
            Arg::U64(self.shared.memory.buffer.address() + self.shared.memory.region),
            Arg::U32(selector),
            Arg::U32(stack_limit(stack_bytes)),
        ];
        let launched = self.queue.launch(GANG, grid, &args)?;
        Ok(Running { launched, shared: self.shared.clone() })
    }

    /// Makes `rest` say when the launches that follow may rest.
    pub fn rest_with(&mut self, rest: &Rest) {
        self.queue.rest_with(rest);
    }

    /// Stops the launch that runs, and those that are queued, soon: threads exit where they check the stop word.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Returns a handle that can stop the gang from another thread.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.shared.clone())
    }

    /// Makes launches possible again after a stop or a trap, once all launches are over. The image stays as they left
    /// it.
    pub fn recover(&self) -> Result<(), Error> {
        let memory = &self.shared.memory;
        memory.set_stop(false)?;
        memory.channels.report.store_u64(offset::TRAP, 0);
        Ok(memory.buffer.write(memory.region + offset::TRAP, &[0; 16])?)
    }
}

impl Drop for Gang {
    fn drop(&mut self) {
        // Dropping the queue waits for its launches.
        if !self.retired {
            self.stop();
        }
    }
}

/// Stops a gang from any thread.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<State>);

impl Stopper {
    pub fn stop(&self) {
        self.0.stop();
    }
}

/// A launch that may still run.
#[derive(Debug)]
pub struct Running {
    launched: Box<dyn Launched>,
    shared: Arc<State>,
}

impl Running {
    /// Returns whether the launch is over, well or not.
    pub fn is_done(&self) -> Result<bool, Error> {
        Ok(self.launched.is_done()?)
    }

    /// Waits until the launch is over. Returns whether every thread returned from the entry, or else the first trap:
    /// [`TrapCode::Interrupted`] if the gang was stopped.
    pub fn wait(&self) -> Result<Result<(), GangTrap>, Error> {
        self.launched.wait()?;
        Ok(self.trap().map_or(Ok(()), Err))
    }

    /// Returns the first trap so far, of this launch or of one before it.
    pub fn trap(&self) -> Option<GangTrap> {
        self.shared.trap().map(|(trap, thread)| GangTrap { trap, thread })
    }
}

/// A thread's trap, which stopped its gang.
#[derive(Clone, Debug, PartialEq)]
pub struct GangTrap {
    pub trap: Trap,
    /// The thread's number in the grid.
    pub thread: u64,
}

impl GangTrap {
    /// Returns whether the gang was only stopped from outside, and nothing went wrong.
    pub fn is_stop(&self) -> bool {
        self.trap.code == TrapCode::Interrupted
    }
}

impl std::fmt::Display for GangTrap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "thread {}: {}", self.thread, self.trap)
    }
}
