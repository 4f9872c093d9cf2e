//! The built-in device: PTX becomes native code, and every GPU thread a fibre of its own.
//!
//! ```text
//! parse     PTX text ▶ ast
//! compile   ast ▶ CLIF ▶ machine code, all functions in parallel
//! pool      the host's threads that run launches; `launch` is what they share
//! schedule  one worker: workgroups and threads taking turns on a core; `workgroup` tracks which threads wait for which
//! together  instead of `schedule`, for threads that wait for each other: any thread on any worker
//! fiber     one GPU thread; `context` is its data and the functions it calls, `stack` where it runs
//! queue     launches that nobody has to wait for
//! mapping   pages from the system
//! ```
//!
//! Addresses on this device are addresses of the process: a kernel's accesses are not checked beyond what the kernel
//! checks itself. `GPU_RUN_CPU_LATE_FROM`, or [`Options::late_from`], sets from how many bytes of PTX on functions are
//! compiled when they are first called (`compile/late.rs`). With `GPU_RUN_CPU_STRICT=1`, or [`Options::strict`], a
//! misaligned access stops the launch, as on a GPU.

mod ast;
mod compile;
mod context;
mod deal;
mod fiber;
mod launch;
mod mapping;
mod parse;
mod pool;
mod queue;
mod schedule;
mod stack;
mod together;
mod workgroup;

use crate::fault::{self, Lost};
use crate::{
    Arg, Bell, Buffer, CodeOptions, CodeTarget, Device, Error, Grid, Module, Properties, Queue, Rest, Result, Service,
    Shared, Tray,
};
use compile::{Kernel, Object, Program};
use launch::Launch;
pub use mapping::Pages;
use mapping::{DeviceMemory, Mapping};
use pool::Pool;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;
use together::Together;

/// Maximum number of threads in a workgroup, as on every NVIDIA GPU.
const WORKGROUP_THREADS: u32 = 1024;
/// Maximum threads of a grid that can be in progress together. Each takes two entries in the system's table of mappings,
/// which has 65,530.
const MAX_THREADS: u32 = 28 << 10;
/// Stack of a thread, in bytes: as much as a process's main thread usually has. Pages cost memory only once they are
/// touched. A sixteenth of the stack is left for the frame of one function, and the loop of an interpreter has a frame
/// of hundreds of kilobytes.
pub const STACK_BYTES: u32 = 8 << 20;
/// Local memory of a thread that programs are told of, in bytes: as much as on a large GPU.
const LOCAL_BYTES: u32 = 256 << 10;

/// Bytes of PTX from which on functions are compiled when they are first called: some seconds of work. A shorter
/// program is compiled at once, on all cores, and its functions call each other directly.
const LATE_FROM: u64 = 16 << 20;

/// How to open the device.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Host threads that run kernels; 0 for one per core.
    pub workers: u32,
    /// Whether a misaligned access fails the launch with [`Error::Fault`], as on a GPU. Costs a test at every access.
    pub strict: bool,
    /// Bytes of PTX from which on functions are compiled when they are first called; `None` for the default, 16 MiB.
    pub late_from: Option<u64>,
    /// Set if the process has several such devices.
    pub part: Option<Part>,
}

/// One of several devices that divide the cores of the host.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The number in the device's id: `cpu:1`.
    pub number: u32,
    /// How many there are.
    pub of: u32,
}

/// Maximum number of devices that divide the cores. With more, they would have few threads in progress each.
pub const MAX_DEVICES: u32 = 64;

/// Bytes of address space that memory may take.
const ADDRESSABLE: u64 = 1 << 42;

/// Opens the device, with one worker per core.
pub fn open() -> Arc<dyn Device> {
    open_with(usual())
}

/// Opens devices with these numbers, at most [`MAX_DEVICES`], that divide the cores: each has at least one worker.
pub fn open_several(numbers: &[u32]) -> Vec<Arc<dyn Device>> {
    let (cores, of) = (cores(), numbers.len() as u32);
    let device = |(at, number): (u32, &u32)| {
        // Some have one more than others; all together have all.
        let workers = ((cores + at) / of).max(1);
        open_with(Options { workers, part: Some(Part { number: *number, of }), ..usual() })
    };
    (0..).zip(numbers).map(device).collect()
}

fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
}

fn usual() -> Options {
    let strict = std::env::var_os("GPU_RUN_CPU_STRICT").is_some_and(|v| v == "1");
    let late_from = std::env::var("GPU_RUN_CPU_LATE_FROM").ok().and_then(|bytes| bytes.parse().ok());
    Options { workers: 0, strict, late_from, part: None }
}

pub fn open_with(options: Options) -> Arc<dyn Device> {
    let workers = if options.workers == 0 { cores() } else { options.workers };
    let plural = if workers == 1 { "" } else { "s" };
    let properties = Properties {
        id: options.part.map_or(crate::CPU.into(), |part| format!("{}:{}", crate::CPU, part.number)),
        name: format!("{}, {workers} core{plural}", std::env::consts::ARCH),
        target: 90,
        processors: workers,
        memory_bytes: memory_bytes(),
        workgroup_threads: WORKGROUP_THREADS,
        overcommits: true,
        stack_bytes: STACK_BYTES,
        local_bytes: LOCAL_BYTES,
        resident_threads: 0,
    };
    let late_from = options.late_from.unwrap_or(LATE_FROM);
    let pool = Arc::new(Pool::new(workers, options.part.map_or(1, |part| part.of)));
    let options = compile::Options { strict: options.strict, late_from };
    Arc::new(Cpu { properties, options, pool, lost: Arc::default() })
}

/// Bytes of the machine's memory.
fn memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram as u64 * info.mem_unit as u64
}

#[derive(Debug)]
struct Cpu {
    properties: Properties,
    options: compile::Options,
    pool: Arc<Pool>,
    lost: Arc<Lost>,
}

impl Device for Cpu {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn bell(&self) -> Bell {
        let pool = Arc::downgrade(&self.pool);
        Bell::new(move || _ = pool.upgrade().inspect(|pool| pool.ring()))
    }

    /// As much as a process can address, because memory costs nothing until it is touched.
    fn free_bytes(&self) -> Result<u64> {
        Ok(ADDRESSABLE)
    }

    fn allocate(&self, bytes: u64) -> Result<Buffer> {
        self.lost.check()?;
        Ok(Buffer::new(DeviceMemory { mapping: Mapping::new(bytes)?, len: bytes, lost: self.lost.clone() }))
    }

    fn share(&self, bytes: u64) -> Result<Shared> {
        self.lost.check()?;
        let mapping = Mapping::new(bytes)?;
        // SAFETY: the mapping is at least that long and page-aligned, `Shared` owns it, and no reference into it
        // exists.
        Ok(unsafe { Shared::new(mapping.base(), bytes, mapping.address(), mapping) })
    }

    fn tray(&self, bytes: u64) -> Result<Tray> {
        Ok(Tray::new(vec![0; bytes as usize]))
    }

    fn code_target(&self) -> Result<CodeTarget> {
        let model = format!("cpu-{}", std::env::consts::ARCH);
        Ok(CodeTarget { model, details: compile::target(self.options)? })
    }

    fn compile(&self, ptx: &str, how: CodeOptions) -> Result<Vec<u8>> {
        self.lost.check()?;
        let start = Instant::now();
        crate::count_compilation();
        let object = compile::compile(ptx, self.options, how)?;
        tracing::debug!(bytes = ptx.len(), time = ?start.elapsed(), "PTX compiled");
        object.to_bytes()
    }

    fn load_code(&self, code: &[u8]) -> Result<Arc<dyn Module>> {
        self.lost.check()?;
        Ok(self.loaded(Object::from_bytes(code)?.place(self.options)?))
    }

    fn load_pages(&self, pages: Pages, code: Range<usize>) -> Result<Arc<dyn Module>> {
        self.lost.check()?;
        Ok(self.loaded(Object::place_in(pages.0, code, self.options)?))
    }
}

impl Cpu {
    fn loaded(&self, program: Program) -> Arc<dyn Module> {
        Arc::new(Loaded { program: Arc::new(program), pool: self.pool.clone(), lost: self.lost.clone() })
    }
}

struct Loaded {
    program: Arc<Program>,
    pool: Arc<Pool>,
    lost: Arc<Lost>,
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut kernels: Vec<_> = self.program.kernels.keys().collect();
        kernels.sort();
        f.debug_tuple("Module").field(&kernels).finish()
    }
}

impl Module for Loaded {
    fn grown(&self) -> Option<Vec<u8>> {
        self.program.grown()
    }

    fn run(&self, kernel: &str, grid: Grid, args: &[Arg], service: Service<'_>) -> Result<()> {
        crate::count_wait();
        self.execute(kernel, grid, args, service, Workgroups::Apart)
    }

    fn run_together(&self, kernel: &str, grid: Grid, args: &[Arg], service: Service<'_>) -> Result<()> {
        crate::count_wait();
        self.execute(kernel, grid, args, service, Workgroups::Together)
    }

    fn most_together(&self, _: &str, threads: u32) -> Result<u32> {
        Ok(MAX_THREADS / threads.max(1))
    }

    fn queue(self: Arc<Self>) -> Result<Box<dyn Queue>> {
        Ok(Box::new(queue::ThreadQueue::new(self)?))
    }
}

/// How the threads of a launch depend on each other.
#[derive(Clone, Copy, Debug)]
enum Workgroups<'r> {
    /// Only threads of one workgroup wait for each other.
    Apart,
    /// Workgroups wait for each other; their threads have barriers and warp operations. Nobody answers them.
    Whole(&'r Rest),
    /// Any thread may wait for any other, by `await_word`.
    Together,
}

impl Loaded {
    /// Runs a kernel.
    fn execute(&self, kernel: &str, grid: Grid, args: &[Arg], service: Service<'_>, how: Workgroups<'_>) -> Result<()> {
        let Some(found) = self.program.kernels.get(kernel) else { return Err(Error::NoKernel(kernel.to_owned())) };
        if grid.workgroups == 0 || grid.threads == 0 || grid.threads > WORKGROUP_THREADS {
            let message =
                format!("{grid:?}: a launch needs at least one workgroup, of 1 to {WORKGROUP_THREADS} threads");
            return Err(Error::Unavailable(message));
        }
        let parameters = parameters(kernel, found, args)?;
        self.lost.check()?;
        if fault::due() {
            return Err(self.lost.lose());
        }
        // SAFETY: the compiler gave every kernel this signature.
        let entry = unsafe { std::mem::transmute::<usize, fiber::Entry>(found.address) };
        let parts = if matches!(how, Workgroups::Together) { grid.workgroups * grid.threads } else { grid.workgroups };
        let helpers = self.pool.helpers(parts);
        let program = self.program.clone();
        // SAFETY: `parameters` were checked against the kernel's; `Pool::run` closes the launch before it returns.
        let mut launch = unsafe { Launch::new(program, entry, parameters, grid, helpers, service) };
        match how {
            Workgroups::Apart => {}
            Workgroups::Whole(rest) => launch.whole = Some(rest.clone()),
            Workgroups::Together => launch.together = Some(Together::new(grid, launch.shared_bytes)),
        }
        let launch = Arc::new(launch);
        crate::count_launch();
        self.pool.run(&launch, helpers);
        launch.outcome()
    }
}

/// Returns the arguments in cells of eight bytes, if they match the kernel's parameters.
fn parameters(name: &str, kernel: &Kernel, args: &[Arg]) -> Result<Box<[u64]>> {
    let bytes = |arg: &Arg| match arg {
        Arg::U32(_) => 4,
        Arg::U64(_) => 8,
    };
    let same = args.len() == kernel.parameters.len()
        && args.iter().zip(&kernel.parameters).all(|(arg, ty)| bytes(arg) == ty.bytes());
    if !same {
        let message = format!("the kernel `{name}` takes {:?}, but was given {args:?}", kernel.parameters);
        return Err(Error::Unavailable(message));
    }
    let cell = |arg: &Arg| match *arg {
        Arg::U32(n) => n as u64,
        Arg::U64(n) => n,
    };
    Ok(args.iter().map(cell).collect())
}
