//! Devices: what runs PTX.
//!
//! There are two kinds, and everything above this crate treats them alike. [`cpu`] is built in and needs nothing
//! installed; [`cuda`] drives an NVIDIA GPU. A device has its own memory ([`Buffer`]), memory it shares with the host
//! ([`Shared`]), and kernels loaded from PTX text ([`Module`]).
//!
//! [`Module::run`] blocks until the kernel has finished. While it waits, it calls `service` again and again: there the
//! host answers the kernel's calls on the bus, checks the time and sets the stop word. `service` may be called from any
//! thread, and from several at once. It returns whether it found something to do. A [`Queue`] runs kernels that need no
//! service; nobody blocks.

#![allow(unsafe_code)] // mapped memory, generated code and our own stacks; each block says why it is sound

pub mod code;
pub mod cpu;
pub mod cuda;
mod fault;
mod list;
mod memory;
mod patience;
pub mod scarce;

pub use cpu::Pages;
pub use fault::planned_faults;
pub use list::DeviceList;
pub use memory::{Buffer, Rows, Shared, Tray};
pub use patience::{Patience, describe as describe_holders};

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::time::Instant;

/// What went wrong on a device.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The device does not understand the PTX.
    #[error("PTX line {line}: {message}\n  {text}")]
    Ptx { line: usize, message: String, text: String },
    #[error("no kernel named `{0}` in this module")]
    NoKernel(String),
    #[error("out of device memory: cannot allocate {wanted} bytes")]
    OutOfMemory { wanted: u64 },
    /// The kernel did what no kernel may do. On a GPU this loses the context.
    #[error("the kernel faulted: {0}")]
    Fault(String),
    #[error("{0}")]
    Unavailable(String),
    #[error("code generation failed: {0}")]
    Codegen(String),
    /// Compiling reached its deadline ([`CodeOptions::until`]); names what was being compiled.
    #[error("compiling did not finish in time; it was at {0}")]
    Late(String),
    /// An assembler was killed by a signal.
    #[error(
        "`{tool}` crashed ({how}) on this program's PTX\n  hint: try another release of NVIDIA's tools: set CUDA_HOME to its folder"
    )]
    Crashed { tool: String, how: String },
}

impl Error {
    /// Whether the device is lost: nothing works on it any more. A GPU may stay lost for the rest of the process,
    /// because the driver refuses to open it again.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Fault(_))
    }
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a device is and can do.
#[derive(Clone, Debug)]
pub struct Properties {
    /// `cpu`, `cuda:0`; one of several on the host's cores is `cpu:1`.
    pub id: String,
    /// The name people know it by: `NVIDIA H200`, `x86_64, 16 cores`.
    pub name: String,
    /// The highest PTX target the device accepts: 90 for `sm_90`.
    pub target: u32,
    /// Number of multiprocessors; of cores on `cpu`.
    pub processors: u32,
    pub memory_bytes: u64,
    /// Whether memory costs nothing until it is touched, so that more can be allocated than there is.
    pub overcommits: bool,
    /// Maximum number of threads in a workgroup.
    pub workgroup_threads: u32,
    /// The largest stack a thread should be given, in bytes.
    pub stack_bytes: u32,
    /// Local memory a thread can have beside its stack, in bytes (`.local` in PTX). 0 if it would be too small to be
    /// useful.
    pub local_bytes: u32,
    /// Number of threads that the device reserves stacks and local memory for, however few a launch has: as many as it
    /// can hold at once. 0 if only threads that run cost memory.
    pub resident_threads: u64,
}

impl Properties {
    /// Whether the device is the host's own cores, or some of them.
    pub fn is_cpu(&self) -> bool {
        self.id.split(':').next() == Some(CPU)
    }
}

/// A process that holds device memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    /// The system's name for the process, if visible.
    pub name: Option<String>,
    /// Bytes of device memory it holds, if known.
    pub bytes: Option<u64>,
}

/// What machine code depends on besides the PTX it was made from and the build of gpu-run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeTarget {
    /// The device model: `NVIDIA H200`, `cpu-x86_64`.
    pub model: String,
    /// Everything else, as text: instruction set, versions of driver and tools, options.
    pub details: String,
}

/// Alignment of code that [`Device::load_pages`] can run in place.
pub const CODE_ALIGN: usize = 4096;

/// How to make machine code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeOptions {
    /// Maximum registers of a GPU thread; by default the device chooses. With fewer registers, more threads run at
    /// once.
    pub registers: Option<u32>,
    /// Do not assemble a second time with more registers, even if the code spills: it should be ready soon rather than
    /// be as fast as it can.
    pub once: bool,
    /// Do not check that the device loads the result. On a GPU that check waits for whatever runs there.
    pub untried: bool,
    /// The deadline for compiling.
    pub until: Option<Instant>,
}

impl CodeOptions {
    fn check(&self, place: impl FnOnce() -> String) -> Result<()> {
        match self.until {
            Some(until) if Instant::now() >= until => Err(Error::Late(place())),
            _ => Ok(()),
        }
    }
}

static COMPILATIONS: AtomicU64 = AtomicU64::new(0);

/// How often this process has compiled PTX, on all devices.
pub fn compilations() -> u64 {
    COMPILATIONS.load(Ordering::Relaxed)
}

fn count_compilation() {
    COMPILATIONS.fetch_add(1, Ordering::Relaxed);
}

static LAUNCHES: AtomicU64 = AtomicU64::new(0);
static WAITS: AtomicU64 = AtomicU64::new(0);
static COPIES: AtomicU64 = AtomicU64::new(0);

/// How many kernels this process has launched, on all devices.
pub fn launches() -> u64 {
    LAUNCHES.load(Ordering::Relaxed)
}

/// How often this process has waited for a kernel to finish.
pub fn waits() -> u64 {
    WAITS.load(Ordering::Relaxed)
}

/// How often this process has waited for a GPU to copy or clear memory.
pub fn copies() -> u64 {
    COPIES.load(Ordering::Relaxed)
}

fn count_launch() {
    LAUNCHES.fetch_add(1, Ordering::Relaxed);
}

fn count_wait() {
    WAITS.fetch_add(1, Ordering::Relaxed);
}

fn count_copy() {
    COPIES.fetch_add(1, Ordering::Relaxed);
}

/// The id of the device that runs programs on the host's own cores.
const CPU: &str = "cpu";

/// Opens a device by its [`Properties::id`]. [`DeviceList`] opens several, and knows more names.
pub fn open(id: &str) -> Result<Arc<dyn Device>> {
    let mut devices = match id.parse()? {
        list @ (DeviceList::Cpu | DeviceList::Cpus(_) | DeviceList::Cuda(_)) if id != "cuda" => list.open()?,
        _ => Vec::new(),
    };
    match devices.pop() {
        Some(device) if devices.is_empty() => Ok(device),
        _ => Err(Error::Unavailable(format!("`{id}` is not the id of a device, such as `cpu` or `cuda:0`"))),
    }
}

/// One argument of a kernel.
#[derive(Clone, Copy, Debug)]
pub enum Arg {
    U32(u32),
    U64(u64),
}

/// The size of a launch: workgroups, and threads in each.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    pub workgroups: u32,
    pub threads: u32,
    /// Stack of each thread, in bytes. If the device cannot provide it, the launch fails with [`Error::OutOfMemory`].
    pub stack_bytes: u32,
}

/// What is called while a kernel runs; see the crate's documentation. A function that does not rest is one, too.
pub trait Serve: Sync {
    /// Does what there is to do. Returns whether there was anything.
    fn serve(&self) -> bool;
    /// Returns until when there will be nothing to do, unless somebody rings the device's [`Bell`] or the kernel asks for
    /// something; `None` if that is not known.
    fn rests_until(&self) -> Option<Instant> {
        None
    }
}

impl<F: Fn() -> bool + Sync> Serve for F {
    fn serve(&self) -> bool {
        self()
    }
}

pub type Service<'a> = &'a dyn Serve;

/// Has a device call the services that rest, and has the launches look that rest ([`Rest`]).
#[derive(Clone, Default)]
pub struct Bell(Option<Arc<dyn Fn() + Send + Sync>>);

impl Bell {
    pub fn new(ring: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(ring)))
    }

    pub fn ring(&self) {
        if let Some(ring) = &self.0 {
            ring();
        }
    }
}

impl fmt::Debug for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Bell").finish_non_exhaustive()
    }
}

/// Whether the launches of a [`Queue`] may rest: while this is on, whoever changes memory that they look at rings the device's
/// [`Bell`]. Threads that find nothing to do then look only a few times a second.
#[derive(Clone, Debug, Default)]
pub struct Rest(Arc<AtomicBool>);

impl Rest {
    /// Lets launches rest, or not any more. Ring the bell afterwards, in both cases: threads that looked just before look again, so
    /// that they see what somebody changed who did not ring because there was no rest yet.
    pub fn set(&self, on: bool) {
        self.0.store(on, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Whether launches may rest. Whoever asks after changing memory, and is told so, has to ring the bell.
    pub fn is_on(&self) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::SeqCst)
    }
}

pub trait Device: fmt::Debug + Send + Sync {
    fn properties(&self) -> &Properties;
    /// Whether programs run elsewhere than on the host's own cores.
    fn is_gpu(&self) -> bool {
        !self.properties().is_cpu()
    }
    /// The bell of this device. One that does not rest itself needs none.
    fn bell(&self) -> Bell {
        Bell::default()
    }
    /// Bytes that could be allocated now, in view of what other processes hold. Memory that the device keeps for later
    /// launches counts as free.
    fn free_bytes(&self) -> Result<u64>;
    /// The processes that hold the device's memory, if that can be found out.
    fn holders(&self) -> Vec<Holder> {
        Vec::new()
    }
    /// Releases the memory that the device keeps for later launches, if none runs now.
    fn trim(&self) {}
    /// Allocates device memory, zeroed.
    fn allocate(&self, bytes: u64) -> Result<Buffer>;
    /// Allocates device memory without clearing it: while a kernel fills a GPU, nothing can run there that clears
    /// memory.
    fn allocate_uncleared(&self, bytes: u64) -> Result<Buffer> {
        self.allocate(bytes)
    }
    /// Allocates device memory that contains `bytes`.
    fn allocate_filled(&self, bytes: &[u8]) -> Result<Buffer> {
        let buffer = self.allocate_uncleared(bytes.len() as u64)?;
        buffer.write(0, bytes)?;
        Ok(buffer)
    }
    /// Allocates memory that host and device both see, zeroed.
    fn share(&self, bytes: u64) -> Result<Shared>;
    /// Allocates host memory to copy device memory to.
    fn tray(&self, bytes: u64) -> Result<Tray>;
    /// What the device's machine code depends on.
    fn code_target(&self) -> Result<CodeTarget>;
    /// Compiles PTX text to machine code that can be kept.
    fn compile(&self, ptx: &str, options: CodeOptions) -> Result<Vec<u8>>;
    /// Loads machine code. The bytes must be exactly what [`Device::compile`] returned on a device with the same
    /// [`CodeTarget`].
    fn load_code(&self, code: &[u8]) -> Result<Arc<dyn Module>>;
    /// Loads the machine code in the range `code` of `pages`. A device that can run code in place does so if the range
    /// begins at a multiple of [`CODE_ALIGN`]; otherwise the code is copied.
    fn load_pages(&self, pages: Pages, code: Range<usize>) -> Result<Arc<dyn Module>> {
        let outside = || code::not_ours("it is outside the file");
        self.load_code(pages.as_ref().get(code).ok_or_else(outside)?)
    }
    /// Compiles PTX text and loads it.
    fn load(&self, ptx: &str) -> Result<Arc<dyn Module>> {
        self.load_code(&self.compile(ptx, CodeOptions::default())?)
    }
}

pub trait Module: fmt::Debug + Send + Sync {
    /// Runs a kernel until it finishes. An `Err` means that the launch failed as a whole; a guest's trap is not an
    /// error.
    fn run(&self, kernel: &str, grid: Grid, args: &[Arg], service: Service<'_>) -> Result<()>;
    /// Like [`Module::run`], with all workgroups on the device together, so that they can wait for each other. A grid that
    /// is too large for that is refused.
    fn run_together(&self, kernel: &str, grid: Grid, args: &[Arg], service: Service<'_>) -> Result<()>;
    /// Returns how many workgroups of so many threads can be on the device together, see [`Module::run_together`].
    fn most_together(&self, kernel: &str, threads: u32) -> Result<u32>;
    /// Returns the module's machine code if functions were compiled since it was loaded. The result can replace what
    /// [`Device::compile`] returned, and contains those functions from the start.
    fn grown(&self) -> Option<Vec<u8>> {
        None
    }
    /// Returns a queue of launches that run without service, one after the other.
    fn queue(self: Arc<Self>) -> Result<Box<dyn Queue>>;
}

/// Launches that nobody waits for. Dropping the queue waits for all of them, so a kernel that runs until it is told to
/// stop must be told before.
pub trait Queue: fmt::Debug + Send {
    /// Appends a launch to the queue and returns at once. All workgroups of the launch are on the device together, so
    /// that they can wait for each other; a grid that is too large for that is refused.
    fn launch(&mut self, kernel: &str, grid: Grid, args: &[Arg]) -> Result<Box<dyn Launched>>;
    /// Makes `rest` say when launches may rest that follow. A device that does not rest ignores it.
    fn rest_with(&mut self, _rest: &Rest) {}
}

/// A launch in a [`Queue`].
pub trait Launched: fmt::Debug + Send + Sync {
    /// Whether the launch has finished. An `Err` means that it failed as a whole.
    fn is_done(&self) -> Result<bool>;
    /// Waits until the launch has finished.
    fn wait(&self) -> Result<()>;
}
