//! Loads kernels, launches them, and waits for them while the host serves their calls.

use super::context::{Context, Running, Stream};
use super::driver::{FUNCTION_LOCAL_BYTES, FUNCTION_MAX_THREADS_PER_BLOCK, Handle};
use super::entry::{Entry, entries};
use super::split::launched;
use super::{Assembler, assemble};
use crate::code::{pack, unpack};
use crate::{Arg, CodeOptions, Error, Grid, Module, Properties, Queue, Result, Service, fault};
use std::collections::HashMap;
use std::ffi::{CString, c_int, c_void};
use std::fmt;
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Rounds of service between two queries of the stream, while there is something to serve.
const BUSY_ROUNDS: u32 = 64;
/// The driver accepts a cubin at any address.
const CUBIN_ALIGN: usize = 1;

/// The kernels of one PTX text, loaded on the GPU.
pub(super) struct Loaded {
    context: Arc<Context>,
    image: Image,
    kernels: HashMap<String, Kernel>,
    properties: Properties,
}

struct Kernel {
    entry: Entry,
    function: Handle,
    /// Maximum threads in a workgroup, given the registers the kernel takes.
    threads: u32,
    /// Bytes of local memory that each thread has beside its stack.
    local: u32,
}

/// A module of the driver; unloaded when dropped.
struct Image {
    context: Arc<Context>,
    handle: Handle,
}

// SAFETY: the driver's handles may be used from any thread, and from several at once; the rest is plain data.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

impl Drop for Image {
    fn drop(&mut self) {
        let _alone = self.context.alone();
        if let Ok(driver) = self.context.enter() {
            // SAFETY: entered; loaded once and unloaded only here, when no `run` borrows it. A failure leaks.
            let _ = unsafe { driver.cuModuleUnload(self.handle) };
        }
    }
}

impl Image {
    fn load(context: &Arc<Context>, cubin: &[u8]) -> Result<Self> {
        context.with_room(|| Self::try_load(context, cubin))
    }

    fn try_load(context: &Arc<Context>, cubin: &[u8]) -> Result<Self> {
        let _alone = context.alone();
        let mut handle = null_mut();
        // SAFETY: entered; `cubin` is whole, as an assembler made it (`Device::load_code` requires that), and its
        // header contains its length.
        unsafe { context.enter()?.cuModuleLoadData(&mut handle, cubin.as_ptr().cast()) }
            .map_err(|e| e.taking(cubin.len() as u64))?;
        Ok(Self { context: context.clone(), handle })
    }

    fn kernel(&self, entry: Entry) -> Result<Kernel> {
        let name = CString::new(entry.name.as_str()).map_err(|_| Error::NoKernel(entry.name.clone()))?;
        let driver = self.context.enter()?;
        let (mut function, mut threads, mut local) = (null_mut(), 0, 0);
        // SAFETY: entered; the module is loaded, the name a string, and one handle is written.
        unsafe { driver.cuModuleGetFunction(&mut function, self.handle, name.as_ptr()) }?;
        // SAFETY: entered; one `int` is written.
        unsafe { driver.cuFuncGetAttribute(&mut threads, FUNCTION_MAX_THREADS_PER_BLOCK, function) }?;
        // SAFETY: as above.
        unsafe { driver.cuFuncGetAttribute(&mut local, FUNCTION_LOCAL_BYTES, function) }?;
        Ok(Kernel { entry, function, threads: threads.max(0) as u32, local: local.max(0) as u32 })
    }
}

/// Compiles PTX to a cubin, packed with the parameters of its kernels. Unless `untried`, checks that this GPU loads the
/// cubin.
pub(super) fn compile(
    context: &Arc<Context>,
    which: Assembler,
    target: u32,
    ptx: &str,
    options: CodeOptions,
) -> Result<Vec<u8>> {
    crate::count_compilation();
    let mut entries = entries(ptx)?;
    let launched = launched(ptx);
    let ptx = launched.as_ref().map_or(ptx, |(text, bytes)| {
        entries.iter_mut().for_each(|entry| entry.shared_bytes = *bytes);
        text
    });
    let loads = |cubin: &[u8]| {
        if !options.untried {
            Image::load(context, cubin)?;
        }
        Ok(cubin.to_vec())
    };
    pack(&entries, &assemble::assemble(context, which, target, ptx, options, loads)?, CUBIN_ALIGN)
}

impl Loaded {
    fn new(context: &Arc<Context>, which: Assembler, properties: &Properties, ptx: &str) -> Result<Self> {
        Self::from_code(context, properties, &compile(context, which, properties.target, ptx, CodeOptions::default())?)
    }

    /// Loads what [`compile`] returned.
    pub(super) fn from_code(context: &Arc<Context>, properties: &Properties, code: &[u8]) -> Result<Self> {
        let (declared, cubin) = unpack::<Vec<Entry>>(code, CUBIN_ALIGN)?;
        let image = Image::load(context, cubin)?;
        let kernel = |entry: Entry| Ok((entry.name.clone(), image.kernel(entry)?));
        let kernels = declared.into_iter().map(kernel).collect::<Result<_>>()?;
        Ok(Self { context: context.clone(), image, kernels, properties: properties.clone() })
    }

    /// Launches a kernel; it runs while the guard is held.
    fn launch(&self, kernel: &Kernel, grid: Grid, cells: &mut [u64], stream: Handle) -> Result<Running> {
        self.context.with_room(|| self.try_launch(kernel, grid, cells, stream))
    }

    fn try_launch(&self, kernel: &Kernel, grid: Grid, cells: &mut [u64], stream: Handle) -> Result<Running> {
        let mut parameters: Vec<*mut c_void> = cells.iter_mut().map(|cell| (&raw mut *cell).cast()).collect();
        let mut stacks = self.context.stack(grid.stack_bytes, self.properties.resident_threads)?;
        let running = self.context.running(kernel.local, &mut stacks);
        let driver = self.context.enter()?;
        // SAFETY: entered; `Entry::cells` made as many cells as the kernel has parameters. A cell has eight bytes; a
        // 32-bit value is at its start, since host and GPU are both little-endian. The driver copies the cells before
        // it returns. `image` keeps the function loaded.
        let launched = unsafe {
            driver.cuLaunchKernel(
                kernel.function,
                grid.workgroups,
                1,
                1,
                grid.threads,
                1,
                1,
                kernel.entry.shared_bytes,
                stream,
                parameters.as_mut_ptr(),
                null_mut(),
            )
        };
        if let Err(failure) = launched {
            stacks.forget_kernels();
            return Err(failure.taking(u64::from(stacks.limit) * self.properties.resident_threads));
        }
        crate::count_launch();
        Ok(running)
    }
}

impl Module for Loaded {
    fn run(&self, kernel: &str, grid: Grid, args: &[Arg], service: Service<'_>) -> Result<()> {
        if fault::due() {
            return self.lose(grid);
        }
        crate::count_wait();
        self.execute(kernel, grid, args, service)
    }

    fn run_together(&self, kernel: &str, grid: Grid, args: &[Arg], service: Service<'_>) -> Result<()> {
        self.fits(kernel, grid)?;
        self.run(kernel, grid, args, service)
    }

    fn most_together(&self, kernel: &str, threads: u32) -> Result<u32> {
        let kernel = self.kernel(kernel, Grid { workgroups: 1, threads, stack_bytes: 0 })?;
        let mut fitting = 0;
        // SAFETY: entered; one `int` is written, and `image` keeps the function loaded.
        unsafe {
            self.context.enter()?.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &mut fitting,
                kernel.function,
                threads as c_int,
                kernel.entry.shared_bytes as usize,
            )
        }?;
        Ok(fitting.max(0) as u32 * self.properties.processors)
    }

    fn queue(self: Arc<Self>) -> Result<Box<dyn Queue>> {
        Ok(Box::new(super::queue::StreamQueue::new(self)?))
    }
}

impl Loaded {
    pub(super) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Launches a kernel on a stream.
    pub(super) fn start(&self, kernel: &str, grid: Grid, args: &[Arg], stream: Handle) -> Result<Running> {
        let kernel = self.kernel(kernel, grid)?;
        self.launch(kernel, grid, &mut kernel.entry.cells(args)?, stream)
    }

    /// Fails unless all workgroups of a grid can be on the GPU at once.
    pub(super) fn fits(&self, kernel: &str, grid: Grid) -> Result<()> {
        self.kernel(kernel, grid)?;
        let most = self.most_together(kernel, grid.threads)?;
        if grid.workgroups > most {
            return Err(Error::Unavailable(format!(
                "{} workgroups of {} threads do not fit on {} at once: at most {most} do, and a workgroup may wait for any other",
                grid.workgroups, grid.threads, self.properties.id
            )));
        }
        Ok(())
    }

    fn kernel(&self, kernel: &str, grid: Grid) -> Result<&Kernel> {
        let Some(kernel) = self.kernels.get(kernel) else { return Err(Error::NoKernel(kernel.to_owned())) };
        if grid.workgroups == 0 || grid.threads == 0 || grid.threads > kernel.threads {
            let (name, id, most) = (&kernel.entry.name, &self.properties.id, kernel.threads);
            let message =
                format!("{grid:?}: a launch of `{name}` on {id} needs at least one workgroup, of 1 to {most} threads");
            return Err(Error::Unavailable(message));
        }
        Ok(kernel)
    }

    fn execute(&self, kernel: &str, grid: Grid, args: &[Arg], service: Service<'_>) -> Result<()> {
        let kernel = self.kernel(kernel, grid)?;
        let mut cells = kernel.entry.cells(args)?;
        let mut stream = self.context.stream()?;
        let _running = self.launch(kernel, grid, &mut cells, stream.handle())?;
        wait(&mut stream, service)
    }

    /// Loses the context, by a kernel that stores to an invalid address. See `crate::fault`.
    fn lose(&self, grid: Grid) -> Result<()> {
        let broken = Self::new(&self.context, Assembler::Driver, &self.properties, POKE)?;
        let grid = Grid { workgroups: 1, threads: 1, ..grid };
        broken.execute("poke", grid, &[Arg::U64(NOWHERE)], &|| false)?;
        Err(Error::Unavailable("a kernel that stores where nothing is was expected to fault, and did not".into()))
    }
}

/// An address that is never mapped.
const NOWHERE: u64 = 0x10;
/// A kernel that stores a word at the address it is given.
const POKE: &str = ".version 7.8
.target sm_70
.address_size 64
.visible .entry poke (.param .u64 at)
{
    .reg .b64 %d<1>;
    ld.param.u64 %d0, [at];
    st.global.u64 [%d0], %d0;
    ret;
}
";

/// Serves until the stream is done.
///
/// A query to the driver takes as long as answering a host call. So the driver is queried now and then, and the service
/// called in between. The longer there was nothing to do, the longer the pauses; while a kernel only computes, waiting
/// takes a few per cent of a core.
fn wait(stream: &mut Stream<'_>, service: Service<'_>) -> Result<()> {
    let mut now = Instant::now();
    // When there was last something to do, and when the driver was last queried.
    let (mut active, mut asked) = (now, None);
    loop {
        let mut rounds = 0;
        while rounds < BUSY_ROUNDS && service.serve() {
            rounds += 1;
        }
        now = Instant::now();
        if rounds > 0 {
            active = now;
        }
        let idle = now - active;
        if asked.is_none_or(|asked| now - asked >= (idle / 8).clamp(ASK_SOONEST, ASK_LATEST)) {
            asked = Some(now);
            if stream.is_done()? {
                // The kernel may have made its last requests since the last round of service.
                service.serve();
                return Ok(());
            }
        }
        if rounds == 0 {
            pause(idle);
        }
    }
}

/// Bounds of the interval at which the driver is queried whether a kernel has finished.
const ASK_SOONEST: Duration = Duration::from_micros(1);
const ASK_LATEST: Duration = Duration::from_micros(10);
/// What to do after nothing happened for some time: up to the first bound, call the service again at once; up to the
/// second, yield to other threads in between; beyond it, sleep.
const SPIN_UNTIL: Duration = Duration::from_micros(50);
const YIELD_UNTIL: Duration = Duration::from_micros(200);
/// Bounds of one sleep, which is a thirty-second of the time waited so far.
const MIN_SLEEP: Duration = Duration::from_micros(20);
const MAX_SLEEP: Duration = Duration::from_micros(250);

pub(super) fn pause(idle: Duration) {
    if idle < SPIN_UNTIL {
        std::hint::spin_loop();
    } else if idle < YIELD_UNTIL {
        std::thread::yield_now();
    } else {
        std::thread::sleep((idle / 32).clamp(MIN_SLEEP, MAX_SLEEP));
    }
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut kernels: Vec<_> = self.kernels.keys().collect();
        kernels.sort();
        write!(f, "Module({kernels:?} on {}, {:?})", self.properties.id, self.image.handle)
    }
}
