//! A device with little memory, for tests: `cpu` with memory and stacks accounted as on a GPU.
//!
//! A stack is reserved for every thread that the device can hold, however few a launch has, and kept until somebody
//! needs the memory. A test can have a neighbour take memory ([`Scarce::hold`]).
//!
//! With `GPU_RUN_TEST_SCARCE=MIB,THREADS,KIB` in the environment, `cpu` is such a device: with MIB of memory, THREADS
//! resident threads, and at most KIB of stack for each.

use crate::memory::Backing;
use crate::{
    Arg, Bell, Buffer, CodeOptions, CodeTarget, Device, Error, Grid, Holder, Module, Properties, Queue, Result,
    Service, Shared, Tray, cpu, patience,
};
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;

const VARIABLE: &str = "GPU_RUN_TEST_SCARCE";
/// Bytes that a kernel takes for each thread beside its stack.
const FRAME: u64 = 512;

#[derive(Debug)]
pub struct Scarce {
    cpu: Arc<dyn Device>,
    properties: Properties,
    memory: Arc<Memory>,
}

#[derive(Debug)]
struct Memory {
    resident_threads: u64,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    total: u64,
    held: u64,
    /// Bytes that a neighbour holds, and whether the neighbour is another gpu-run process.
    taken: u64,
    is_ours: bool,
    /// Bytes reserved for each thread's stack.
    stack: u32,
    running: usize,
}

impl Scarce {
    /// A device with `bytes` of memory that holds `resident_threads` threads of at most `stack_bytes` of stack.
    pub fn new(bytes: u64, resident_threads: u64, stack_bytes: u32) -> Arc<Self> {
        let cpu = cpu::open();
        let id = "scarce".to_owned();
        let properties = Properties {
            id,
            overcommits: false,
            resident_threads,
            stack_bytes,
            memory_bytes: bytes,
            ..cpu.properties().clone()
        };
        let state = Mutex::new(State { total: bytes, ..State::default() });
        Arc::new(Self { cpu, properties, memory: Arc::new(Memory { resident_threads, state }) })
    }

    /// From now on a neighbour holds `bytes`; `is_ours` says whether it is another gpu-run process.
    pub fn hold(&self, bytes: u64, is_ours: bool) {
        let mut state = self.memory.lock();
        (state.taken, state.is_ours) = (bytes, is_ours);
    }
}

/// The device that the environment asks for.
pub(crate) fn planned() -> Option<Arc<dyn Device>> {
    let text = std::env::var(VARIABLE).ok()?;
    let numbers: Vec<u32> = text.split(',').filter_map(|number| number.parse().ok()).collect();
    let [mib, threads, kib] = numbers[..] else {
        tracing::warn!("cannot parse {VARIABLE}={text}: `1024,2048,128` is 1 GiB, 2048 threads, 128 KiB of stack");
        return None;
    };
    Some(Scarce::new(u64::from(mib) << 20, threads.into(), kib << 10))
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn free(&self, state: &State) -> u64 {
        let stacks = match state.stack {
            0 => 0,
            stack => (u64::from(stack) + FRAME) * self.resident_threads,
        };
        state.total.saturating_sub(state.held + state.taken + stacks)
    }

    fn trim(&self, state: &mut State) {
        if state.running == 0 {
            state.stack = 0;
        }
    }

    fn take(self: &Arc<Self>, bytes: u64) -> Result<Held> {
        let mut state = self.lock();
        if self.free(&state) < bytes {
            self.trim(&mut state);
        }
        if self.free(&state) < bytes {
            return Err(Error::OutOfMemory { wanted: bytes });
        }
        state.held += bytes;
        Ok(Held { memory: self.clone(), bytes })
    }

    /// Begins a launch with `stack` bytes of stack for each thread; it runs until the guard is dropped.
    fn begin(self: &Arc<Self>, stack: u32) -> Result<Running> {
        let mut state = self.lock();
        let before = state.stack;
        state.stack = state.stack.max(stack);
        if self.free(&state) == 0 && state.running == 0 {
            state.stack = stack;
        }
        if self.free(&state) == 0 {
            state.stack = before;
            return Err(Error::OutOfMemory { wanted: u64::from(stack) * self.resident_threads });
        }
        state.running += 1;
        Ok(Running(self.clone()))
    }
}

struct Running(Arc<Memory>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.lock().running -= 1;
    }
}

struct Held {
    memory: Arc<Memory>,
    bytes: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.memory.lock().held -= self.bytes;
    }
}

/// Memory of `cpu` that counts as held.
struct Counted {
    buffer: Box<dyn Backing>,
    _held: Held,
}

impl Backing for Counted {
    fn address(&self) -> u64 {
        self.buffer.address()
    }
    fn len(&self) -> u64 {
        self.buffer.len()
    }
    unsafe fn write(&self, at: u64, from: *const u8, len: usize) -> Result<()> {
        // SAFETY: promised by the caller; the same below.
        unsafe { self.buffer.write(at, from, len) }
    }
    unsafe fn read(&self, at: u64, to: *mut u8, len: usize) -> Result<()> {
        // SAFETY: as above.
        unsafe { self.buffer.read(at, to, len) }
    }
    fn device(&self) -> usize {
        self.buffer.device()
    }
    unsafe fn copy(&self, at: u64, from: u64, len: usize) -> Result<()> {
        // SAFETY: as above.
        unsafe { self.buffer.copy(at, from, len) }
    }
    fn zero(&self, at: u64, len: u64) -> Result<()> {
        self.buffer.zero(at, len)
    }
}

impl Device for Scarce {
    fn properties(&self) -> &Properties {
        &self.properties
    }
    fn bell(&self) -> Bell {
        self.cpu.bell()
    }
    fn free_bytes(&self) -> Result<u64> {
        let state = self.memory.lock();
        Ok(self.memory.free(&State { stack: 0, ..*state }))
    }
    fn holders(&self) -> Vec<Holder> {
        let state = self.memory.lock();
        let name = if state.is_ours { patience::own_name() } else { Some("neighbour".into()) };
        vec![Holder { pid: u32::MAX, name, bytes: Some(state.taken) }]
    }
    fn trim(&self) {
        self.memory.trim(&mut self.memory.lock());
    }
    fn allocate(&self, bytes: u64) -> Result<Buffer> {
        let held = self.memory.take(bytes)?;
        Ok(Buffer::new(Counted { buffer: self.cpu.allocate(bytes)?.into_backing(), _held: held }))
    }
    fn share(&self, bytes: u64) -> Result<Shared> {
        self.cpu.share(bytes)
    }
    fn tray(&self, bytes: u64) -> Result<Tray> {
        self.cpu.tray(bytes)
    }
    fn code_target(&self) -> Result<CodeTarget> {
        self.cpu.code_target()
    }
    fn compile(&self, ptx: &str, options: CodeOptions) -> Result<Vec<u8>> {
        self.cpu.compile(ptx, options)
    }
    fn load_code(&self, code: &[u8]) -> Result<Arc<dyn Module>> {
        let held = self.memory.take(code.len() as u64)?;
        Ok(Arc::new(Loaded { module: self.cpu.load_code(code)?, held }))
    }
}

struct Loaded {
    module: Arc<dyn Module>,
    held: Held,
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.module.fmt(f)
    }
}

impl Module for Loaded {
    fn run(&self, kernel: &str, grid: Grid, args: &[Arg], service: Service<'_>) -> Result<()> {
        let _running = self.held.memory.begin(grid.stack_bytes)?;
        self.module.run(kernel, grid, args, service)
    }
    fn run_together(&self, kernel: &str, grid: Grid, args: &[Arg], service: Service<'_>) -> Result<()> {
        let _running = self.held.memory.begin(grid.stack_bytes)?;
        self.module.run_together(kernel, grid, args, service)
    }
    fn most_together(&self, kernel: &str, threads: u32) -> Result<u32> {
        self.module.most_together(kernel, threads)
    }
    fn queue(self: Arc<Self>) -> Result<Box<dyn Queue>> {
        self.module.clone().queue()
    }
}
