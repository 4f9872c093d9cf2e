//! An NVIDIA GPU, through the driver's own interface.
//!
//! ```text
//! driver    the driver's functions, found at run time: building needs nothing of CUDA
//! context   what belongs together on the GPU; every call enters it
//! memory    device memory, and host memory that the GPU sees
//! assemble  PTX ▶ cubin, by NVIDIA's tools where they are installed, else by the driver
//! split     one PTX text as several, to be assembled side by side
//! entry     the parameters of a PTX text's kernels
//! launch    a loaded module: run a kernel, serve it, wait for it
//! holders   which processes hold the GPU's memory; asked when it is short
//! queue     kernels that run without service, one after the other
//! ```
//!
//! While a kernel runs, memory may be read, written and allocated. The following wait for the kernel to finish, so a
//! `service` must not do them: dropping a [`Buffer`], a [`Shared`] or a [`Tray`]; [`Buffer::zero`], if the kernel fills
//! the GPU; [`Device::load_code`]; [`Device::compile`], unless it is `untried`; a launch with another stack size.
//!
//! A fault loses the context and everything in it: every later call on the device fails with the same error. On a real
//! card so does [`open`], and this process cannot use the GPU any more; another process can.

mod assemble;
mod context;
mod driver;
mod entry;
mod holders;
mod launch;
mod memory;
mod queue;
mod split;

use crate::{
    Buffer, CodeOptions, CodeTarget, Device, Error, Holder, Module, Patience, Properties, Result, Shared, Tray,
    describe_holders,
};
use context::Context;
use driver::{
    COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR, Driver, MAX_THREADS_PER_BLOCK, MAX_THREADS_PER_MULTIPROCESSOR,
    MULTIPROCESSOR_COUNT, Ordinal,
};
use launch::Loaded;
use std::ffi::{CStr, c_int};
use std::sync::Arc;

const NO_GPU: &str = "the NVIDIA driver finds no GPU";
/// The oldest supported target, sm_70: on older cards, the threads of a warp could not wait for each other.
const OLDEST_CARD: u32 = 70;
/// The least and the most local memory of a thread, in bytes. A program built by rustc begins with up to 64 KiB of data
/// and as much heap.
const MIN_LOCAL_BYTES: u64 = 128 << 10;
const MAX_LOCAL_BYTES: u64 = 256 << 10;
/// Bounds of the largest stack a thread is given, in bytes: for deep recursion on a card with little and with much
/// memory.
const MIN_STACK: u64 = 8 << 10;
const MAX_STACK: u64 = 128 << 10;

/// What assembles PTX to machine code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Assembler {
    /// NVIDIA's tools if they are installed and succeed, else the driver; in the opposite order for short PTX.
    #[default]
    Any,
    /// Only `ptxas` and `nvlink`: they use all cores.
    Tools,
    /// Only the driver: nothing else needs to be installed.
    Driver,
}

/// How to open a device.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    pub assembler: Assembler,
}

/// Opens the GPU with the driver's number `ordinal`, in a new context. The environment variable `GPU_RUN_ASSEMBLER` can
/// be `tools` or `driver`.
pub fn open(ordinal: usize) -> Result<Arc<dyn Device>> {
    let assembler = match std::env::var("GPU_RUN_ASSEMBLER").as_deref() {
        Ok("tools") => Assembler::Tools,
        Ok("driver") => Assembler::Driver,
        _ => Assembler::Any,
    };
    open_with(ordinal, Options { assembler })
}

pub fn open_with(ordinal: usize, options: Options) -> Result<Arc<dyn Device>> {
    let driver = Driver::get()?;
    let count = driver.count()?;
    if ordinal >= count {
        let there = match count {
            0 => NO_GPU.to_owned(),
            1 => "there is one GPU, cuda:0".to_owned(),
            _ => format!("there are {count} GPUs, cuda:0 to cuda:{}", count - 1),
        };
        return Err(Error::Unavailable(format!("no device cuda:{ordinal}: {there}")));
    }
    let card = Card::find(driver, ordinal)?;
    card.supported()?;
    let mut patience = Patience::default();
    let context = loop {
        match Context::new(driver, card.device) {
            Err(Error::OutOfMemory { .. }) if patience.wait_for(card.holders()) => {}
            Err(Error::OutOfMemory { wanted }) => {
                let Properties { id, name, .. } = &card.properties;
                let held = card.holders();
                let who =
                    if held.is_empty() { String::new() } else { format!(": in use by {}", describe_holders(&held)) };
                return Err(Error::Unavailable(format!(
                    "{id} ({name}) has less than {} MiB of free memory{who}",
                    wanted >> 20
                )));
            }
            made => break Arc::new(made?),
        }
    };
    tracing::debug!(id = card.properties.id, name = card.properties.name, "GPU opened");
    Ok(Arc::new(Cuda { card, options, context }))
}

/// Opens the first usable GPU. If there is none, returns the first GPU's error.
pub fn first() -> Result<Arc<dyn Device>> {
    let mut reason = None;
    for ordinal in 0..Driver::get()?.count()? {
        match open(ordinal) {
            Ok(device) => return Ok(device),
            Err(error) => reason = reason.or(Some(error)),
        }
    }
    Err(reason.unwrap_or_else(|| Error::Unavailable(NO_GPU.into())))
}

/// Whether this machine has an NVIDIA driver or card: if so, the user expects it to be used.
pub fn is_expected() -> bool {
    const CARDS: [&str; 2] = ["/dev/nvidia0", "/proc/driver/nvidia"];
    CARDS.iter().any(|path| std::path::Path::new(path).exists()) || Driver::is_installed()
}

/// Returns all supported GPUs.
pub fn probe() -> Result<Vec<Properties>> {
    let driver = Driver::get()?;
    let mut found = Vec::new();
    for ordinal in 0..driver.count()? {
        let card = Card::find(driver, ordinal)?;
        match card.supported() {
            Ok(()) => found.push(card.properties),
            Err(error) => tracing::warn!("{error}"),
        }
    }
    Ok(found)
}

/// What is known about a GPU before a context exists on it.
#[derive(Debug)]
struct Card {
    device: Ordinal,
    properties: Properties,
}

/// The largest stack of a thread: a quarter of the card's memory divided by the threads that can be resident, within
/// bounds.
fn stack_bytes(memory: u64, resident: u64) -> u32 {
    (memory / 4 / resident.max(1)).clamp(MIN_STACK, MAX_STACK) as u32 / 1024 * 1024
}

/// The local memory of a thread: half of the card's memory divided by the threads that can be resident. Less than
/// [`MIN_LOCAL_BYTES`] is useless (0), and more than [`MAX_LOCAL_BYTES`] a GPU cannot address together with a stack.
fn local_bytes(memory: u64, resident: u64) -> u32 {
    let share = memory / 2 / resident.max(1);
    if share < MIN_LOCAL_BYTES { 0 } else { share.min(MAX_LOCAL_BYTES) as u32 / 1024 * 1024 }
}

impl Card {
    /// Reads a GPU's properties. `ordinal` is less than the driver's count.
    fn find(driver: &Driver, ordinal: usize) -> Result<Self> {
        let (mut device, mut memory, mut name) = (0, 0usize, [0u8; 256]);
        // SAFETY: one device is written.
        unsafe { driver.cuDeviceGet(&mut device, ordinal as c_int) }?;
        // SAFETY: writes at most `name.len()` bytes, with a zero byte at the end.
        unsafe { driver.cuDeviceGetName(name.as_mut_ptr().cast(), name.len() as c_int, device) }?;
        // SAFETY: one size is written.
        unsafe { driver.cuDeviceTotalMem_v2(&mut memory, device) }?;
        let attribute = |attribute| -> Result<u32> {
            let mut value = 0;
            // SAFETY: one `int` is written.
            unsafe { driver.cuDeviceGetAttribute(&mut value, attribute, device) }?;
            Ok(value.max(0) as u32)
        };
        let processors = attribute(MULTIPROCESSOR_COUNT)?;
        let resident = u64::from(processors) * u64::from(attribute(MAX_THREADS_PER_MULTIPROCESSOR)?);
        let properties = Properties {
            id: format!("cuda:{ordinal}"),
            name: CStr::from_bytes_until_nul(&name).unwrap_or_default().to_string_lossy().into_owned(),
            target: attribute(COMPUTE_CAPABILITY_MAJOR)? * 10 + attribute(COMPUTE_CAPABILITY_MINOR)?,
            processors,
            memory_bytes: memory as u64,
            workgroup_threads: attribute(MAX_THREADS_PER_BLOCK)?,
            overcommits: false,
            stack_bytes: stack_bytes(memory as u64, resident),
            local_bytes: local_bytes(memory as u64, resident),
            resident_threads: resident,
        };
        Ok(Self { device, properties })
    }

    fn holders(&self) -> Vec<Holder> {
        let mut bus = [0u8; 32];
        let found = Driver::get().is_ok_and(|driver| {
            // SAFETY: writes at most `bus.len()` bytes, with a zero byte at the end.
            unsafe { driver.cuDeviceGetPCIBusId(bus.as_mut_ptr().cast(), bus.len() as c_int, self.device) }.is_ok()
        });
        match CStr::from_bytes_until_nul(&bus) {
            Ok(bus) if found => holders::holders(bus),
            _ => Vec::new(),
        }
    }

    fn supported(&self) -> Result<()> {
        let Properties { id, name, target, .. } = &self.properties;
        if *target < OLDEST_CARD {
            let message =
                format!("{id} ({name}) is too old: it is sm_{target}, but gpu-run needs sm_{OLDEST_CARD} or newer");
            return Err(Error::Unavailable(message));
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Cuda {
    card: Card,
    options: Options,
    context: Arc<Context>,
}

impl Device for Cuda {
    fn properties(&self) -> &Properties {
        &self.card.properties
    }

    fn free_bytes(&self) -> Result<u64> {
        self.context.free_bytes(self.card.properties.resident_threads)
    }

    fn holders(&self) -> Vec<Holder> {
        self.card.holders()
    }

    fn trim(&self) {
        self.context.release_stacks();
    }

    fn allocate(&self, bytes: u64) -> Result<Buffer> {
        Ok(Buffer::new(memory::DeviceMemory::new(&self.context, bytes)?))
    }

    fn allocate_uncleared(&self, bytes: u64) -> Result<Buffer> {
        Ok(Buffer::new(memory::DeviceMemory::uncleared(&self.context, bytes)?))
    }

    fn share(&self, bytes: u64) -> Result<Shared> {
        memory::share(&self.context, bytes)
    }

    fn tray(&self, bytes: u64) -> Result<Tray> {
        memory::tray(&self.context, bytes)
    }

    fn code_target(&self) -> Result<CodeTarget> {
        let Properties { name, target, .. } = &self.card.properties;
        let mut version = 0;
        // SAFETY: writes one `int`.
        unsafe { Driver::get()?.cuDriverGetVersion(&mut version) }?;
        let (driver, tools) = (assemble::driver_build(), assemble::tools_identity());
        let assembler = self.options.assembler;
        Ok(CodeTarget {
            model: name.clone(),
            details: format!("sm_{target}, CUDA {version}, driver {driver}, {assembler:?}, tools {tools}"),
        })
    }

    fn compile(&self, ptx: &str, options: CodeOptions) -> Result<Vec<u8>> {
        launch::compile(&self.context, self.options.assembler, self.card.properties.target, ptx, options)
    }

    fn load_code(&self, code: &[u8]) -> Result<Arc<dyn Module>> {
        Ok(Arc::new(Loaded::from_code(&self.context, &self.card.properties, code)?))
    }
}
