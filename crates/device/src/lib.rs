//! A device is something that runs PTX.
//!
//! There are two, and everything above this crate is the same for both: [`cpu`] is built in and needs nothing installed;
//! [`cuda`] drives an NVIDIA GPU. A device has memory of its own ([`Buffer`]), memory it shares with the host
//! ([`Shared`]), and kernels loaded from PTX text ([`Module`]).
//!
//! [`Module::run`] blocks until the kernel has ended. While it waits it calls `service` again and again: that is where the
//! host answers what the kernel asks over the bus, looks at the clock and raises the stop word. `service` is called from any
//! thread, also from several at once, and says whether it found something to do. A [`Queue`] is for kernels that need no service: nobody blocks.

#![allow(unsafe_code)] // mapped memory, generated code and stacks of our own; each block says why it holds

pub mod code;
pub mod cpu;
pub mod cuda;
mod fault;
mod memory;
mod patience;
pub mod scarce;

pub use cpu::Pages;
pub use fault::planned_faults;
pub use memory::{Buffer, Rows, Shared, Tray};
pub use patience::{Patience, describe as describe_holders};

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// What went wrong on a device.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The PTX is not what this device understands.
    #[error("PTX line {line}: {message}\n  {text}")]
    Ptx { line: usize, message: String, text: String },
    #[error("no kernel named `{0}` in this module")]
    NoKernel(String),
    #[error("out of device memory: {wanted} bytes asked for")]
    OutOfMemory { wanted: u64 },
    /// The kernel did what no kernel may do. On a GPU the context is lost with it.
    #[error("the kernel faulted: {0}")]
    Fault(String),
    #[error("{0}")]
    Unavailable(String),
    #[error("code generation failed: {0}")]
    Codegen(String),
    /// Compiling has to end ([`CodeOptions::until`]), and was at this.
    #[error("compiling did not end in time, and was at {0}")]
    Late(String),
    /// An assembler ended in a way it never should, by a signal.
    #[error(
        "`{tool}` crashed ({how}) on this program's PTX\n  hint: another release of NVIDIA's tools may not: set CUDA_HOME to its folder"
    )]
    Crashed { tool: String, how: String },
}

impl Error {
    /// Whether nothing on this device works any more. In this process a GPU may stay lost: the driver then refuses to open it again.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Fault(_))
    }
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a device is.
#[derive(Clone, Debug)]
pub struct Properties {
    /// `cpu`, `cuda:0`
    pub id: String,
    /// What a person calls it: `NVIDIA H200`, `x86_64, 16 cores`.
    pub name: String,
    /// PTX target: the highest this device takes, as in `sm_90`.
    pub target: u32,
    /// Multiprocessors; cores on `cpu`.
    pub processors: u32,
    pub memory_bytes: u64,
    /// Whether memory costs nothing until it is touched, so that more than there is can be set aside.
    pub overcommits: bool,
    /// Threads in a block at most.
    pub block_threads: u32,
    /// The most stack a thread should be given, in bytes.
    pub stack_bytes: u32,
    /// Memory a thread can have to itself beside its stack, in bytes (`.local` in PTX). 0 if that is not worth having.
    pub local_bytes: u32,
    /// Threads that the device sets stacks and local memory aside for, however few a launch has: all that it can hold at once. 0 where only those cost
    /// something that run.
    pub resident_threads: u64,
}

/// A process that holds memory of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    /// What the system calls it, where that can be seen.
    pub name: Option<String>,
    /// How much, where that is known.
    pub bytes: Option<u64>,
}

/// What machine code depends on, beside the PTX it was made from and the build of this program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeTarget {
    /// The kind of device: `NVIDIA H200`, `cpu-x86_64`.
    pub model: String,
    /// Everything else, as text: instruction set, versions of driver and tools, options.
    pub details: String,
}

/// See [`Device::load_pages`].
pub const CODE_ALIGN: usize = 4096;

/// How machine code is to be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeOptions {
    /// Registers a thread of a GPU may have; the device chooses if nobody does. With fewer, more threads are under way.
    pub registers: Option<u32>,
    /// Not assembled again with more registers, should it turn out that it wants some: it is to be there soon rather than fast for many.
    pub once: bool,
    /// The device is not asked whether it loads the result, which on a GPU waits for whatever runs there.
    pub untried: bool,
    /// When it has to end.
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

/// How often this process has waited for a kernel to end.
pub fn waits() -> u64 {
    WAITS.load(Ordering::Relaxed)
}

/// How often it has waited for a GPU to copy or clear memory.
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

/// The id of the device that is the host's own cores.
const CPU: &str = "cpu";

/// Opens a device by its [`Properties::id`], with nothing on it.
pub fn open(id: &str) -> Result<Arc<dyn Device>> {
    match id.strip_prefix("cuda:").map(str::parse) {
        _ if id == CPU => Ok(scarce::planned().unwrap_or_else(cpu::open)),
        Some(Ok(ordinal)) => cuda::open(ordinal),
        _ => Err(Error::Unavailable(format!("there is no device `{id}`: devices are `cpu` and `cuda:N`"))),
    }
}

/// One argument of a kernel.
#[derive(Clone, Copy, Debug)]
pub enum Arg {
    U32(u32),
    U64(u64),
}

/// How many threads a launch has.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    pub blocks: u32,
    pub threads: u32,
    /// Stack for each thread, in bytes. A launch that cannot be given so much is [`Error::OutOfMemory`].
    pub stack_bytes: u32,
}

/// Called while a kernel runs; see the module's documentation.
pub type Service<'a> = &'a (dyn Fn() -> bool + Sync);

pub trait Device: fmt::Debug + Send + Sync {
    fn properties(&self) -> &Properties;
    /// Whether programs run elsewhere than on the host's own cores.
    fn is_gpu(&self) -> bool {
        self.properties().id != CPU
    }
    /// Bytes that could be allocated now, beside what others hold; what it keeps for later launches is given back for that.
    fn free_bytes(&self) -> Result<u64>;
    /// Who holds its memory, as far as that can be found out.
    fn holders(&self) -> Vec<Holder> {
        Vec::new()
    }
    /// Gives back memory that it keeps for later launches, if none runs now.
    fn trim(&self) {}
    /// Device memory, zeroed.
    fn allocate(&self, bytes: u64) -> Result<Buffer>;
    /// The same with whatever is in it: a GPU that a kernel fills has room for nothing that clears it.
    fn allocate_uncleared(&self, bytes: u64) -> Result<Buffer> {
        self.allocate(bytes)
    }
    /// The same with these bytes in it.
    fn allocate_filled(&self, bytes: &[u8]) -> Result<Buffer> {
        let buffer = self.allocate_uncleared(bytes.len() as u64)?;
        buffer.write(0, bytes)?;
        Ok(buffer)
    }
    /// Memory that host and device both see, zeroed.
    fn share(&self, bytes: u64) -> Result<Shared>;
    /// Memory of the host for what is copied out of the device.
    fn tray(&self, bytes: u64) -> Result<Tray>;
    /// What its machine code depends on.
    fn code_target(&self) -> Result<CodeTarget>;
    /// Compiles PTX text to machine code that can be kept.
    fn compile(&self, ptx: &str, options: CodeOptions) -> Result<Vec<u8>>;
    /// Loads what [`Device::compile`] made, on this device or one with the same [`CodeTarget`]: the bytes must be exactly those.
    fn load_code(&self, code: &[u8]) -> Result<Arc<dyn Module>>;
    /// The same from pages that are given away, where the code is in this range of them: a device that can, runs it there. It can if the range begins at a multiple
    /// of [`CODE_ALIGN`]; it is loaded in any case.
    fn load_pages(&self, pages: Pages, code: Range<usize>) -> Result<Arc<dyn Module>> {
        let outside = || code::not_ours("it is not there");
        self.load_code(pages.as_ref().get(code).ok_or_else(outside)?)
    }
    /// Compiles PTX text and loads it.
    fn load(&self, ptx: &str) -> Result<Arc<dyn Module>> {
        self.load_code(&self.compile(ptx, CodeOptions::default())?)
    }
}

pub trait Module: fmt::Debug + Send + Sync {
    /// Runs a kernel to its end. An `Err` means the launch failed as a whole; a guest's trap is not one.
    fn run(&self, kernel: &str, grid: Grid, args: &[Arg], service: Service<'_>) -> Result<()>;
    /// Its machine code as it is now, as [`Device::compile`] would have made it, if there is more of it than when it was loaded: what was compiled since is then there
    /// from the start.
    fn grown(&self) -> Option<Vec<u8>> {
        None
    }
    /// A queue of launches that run by themselves, one after the other.
    fn queue(self: Arc<Self>) -> Result<Box<dyn Queue>>;
}

/// Launches that nobody waits for. Dropping it waits for all of them: a kernel that runs until it is told has to be told before.
pub trait Queue: fmt::Debug + Send {
    /// Puts a launch behind those before it, and returns at once. All of its blocks are on the device together, so that they can wait for each other; a grid that is too
    /// large for that is refused.
    fn launch(&mut self, kernel: &str, grid: Grid, args: &[Arg]) -> Result<Box<dyn Launched>>;
}

/// A launch in a [`Queue`].
pub trait Launched: fmt::Debug + Send + Sync {
    /// Whether it has ended. An `Err` means it failed as a whole.
    fn is_done(&self) -> Result<bool>;
    /// Waits for its end.
    fn wait(&self) -> Result<()>;
}
