//! Loads programs through the cache: a program that was compiled once is not compiled again.
//!
//! One entry holds all that a run needs, machine code and [`stored`]: a hit reads one file and is ready to launch. The
//! PTX in between is not kept: it is two thirds of the bytes, and making it takes no more than a fifth of the time that
//! making machine code takes.

use crate::compile::{CompileOptions, Compiled, default_features};
use crate::content;
use crate::error::Error;
use crate::limit::{self, First};
use crate::program::Program;
use crate::stored;
use gpu_run_cache::{Cache, Destination, Fetch, Found, Got, InUse, Key, Made, Origin, Resident};
use gpu_run_device::{CodeOptions, Device, Pages, Patience};
use gpu_run_wasm::WasmFeatures;
use serde::Serialize;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bytes of machine code that stay loaded beyond the code that is in use.
const MAX_IDLE_CODE_BYTES: u64 = 256 << 20;

/// How often this process has compiled wasm to PTX.
pub(crate) static TO_PTX: AtomicU64 = AtomicU64::new(0);

/// Returns how often this process has compiled wasm to PTX, and PTX to machine code.
pub fn compilations() -> (u64, u64) {
    (TO_PTX.load(Ordering::Relaxed), gpu_run_device::compilations())
}

/// Everything that influences a cache entry. A field that is added to one of the structs in here becomes part of the
/// key by itself.
#[derive(Serialize)]
struct Recipe<'a> {
    version: &'static str,
    build: &'static str,
    wasm: String,
    options: String,
    features: String,
    target: &'a str,
}

/// Compiles programs, keeps them in the cache, and finds them again.
#[derive(Debug)]
pub struct Compiler {
    cache: Arc<Cache>,
    resident: Resident<(Key, usize), Program>,
    limit: Option<Duration>,
}

/// Which program to load, and on which device. Making a request hashes the module; loading it a second time is then a
/// table lookup.
#[derive(Clone, Debug)]
pub struct Request {
    key: Key,
    build: Build,
    /// The time it took to make the request.
    hashing: Duration,
}

impl Request {
    /// Returns the key of the program's cache entry.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Loads a fetched program on the device. An entry that the device does not accept is discarded, and compiled again
    /// the next time.
    pub fn place(&self, cache: &Arc<Cache>, unloaded: Unloaded) -> Result<Program, Error> {
        let placed = self.build.place(unloaded).inspect_err(|_| cache.discard(&self.key))?;
        let took = placed.origin.took();
        Ok(placed.program.kept(cache.clone(), self.key.clone(), placed.in_use, self.build.name.clone(), took))
    }
}

/// How to make a program.
#[derive(Clone, Debug)]
pub(crate) struct Build {
    pub(crate) device: Arc<dyn Device>,
    pub(crate) wasm: Arc<Vec<u8>>,
    pub(crate) options: CompileOptions,
    pub(crate) features: WasmFeatures,
    /// The name in `gpu-run cache list`.
    pub(crate) name: String,
    /// How long compiling may take.
    pub(crate) limit: Option<Duration>,
}

/// How a program came to be loaded.
#[derive(Clone, Debug)]
pub struct Report {
    pub origin: Origin,
    /// How long each step from wasm to PTX took, if the program was compiled.
    pub timings: Vec<(&'static str, Duration)>,
    /// The rest of the time from the module's bytes to a program that can be launched: finding it in the cache or
    /// compiling the PTX to machine code, and loading that.
    pub load: Duration,
}

impl Compiler {
    pub fn new(cache: Cache) -> Self {
        Self { cache: Arc::new(cache), resident: Resident::new(MAX_IDLE_CODE_BYTES), limit: None }
    }

    /// Limits how long compiling a program may take.
    pub fn limited(self, limit: Duration) -> Self {
        Self { limit: Some(limit), ..self }
    }

    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Makes a request. `name` is the program's name in `gpu-run cache list`.
    pub fn request(
        &self,
        device: &Arc<dyn Device>,
        wasm: Arc<Vec<u8>>,
        options: &CompileOptions,
        name: &str,
    ) -> Result<Request, Error> {
        let began = Instant::now();
        let (device, name, features) = (device.clone(), name.to_owned(), default_features());
        let options = options.settled(device.properties());
        let build = Build { device, wasm, options, features, name, limit: self.limit };
        Ok(Request { key: build.key()?, build, hashing: began.elapsed() })
    }

    /// Returns the program from memory, from disk, or compiled. The report says how it came to be loaded; `None` if it
    /// already was.
    pub fn load(&self, request: &Request) -> Result<(Arc<Program>, Option<Report>), Error> {
        let mut report = None;
        let program = self.resident.get_or_make(&place(request), || {
            let (program, mut how, bytes) = request.build.load(&self.cache, &request.key)?;
            how.load += request.hashing;
            report = Some(how);
            Ok::<_, Error>((program, bytes))
        })?;
        Ok((program, report))
    }

    /// Returns the note about a program on such a device, if there is one, see [`Compiler::keep_note`].
    pub fn note(&self, device: &dyn Device, wasm: &Arc<Vec<u8>>, options: &CompileOptions) -> Option<Vec<u8>> {
        self.cache.peek(&note_key(device, wasm, options).ok()?)
    }

    /// Keeps a note about a program beside its builds, for all later runs. Returns whether that worked. All builds
    /// share one note, whose key covers only the options they have in common. `label` is the note's name in
    /// `gpu-run cache list`.
    pub fn keep_note(
        &self,
        device: &dyn Device,
        wasm: &Arc<Vec<u8>>,
        options: &CompileOptions,
        label: &str,
        note: &[u8],
    ) -> Result<bool, Error> {
        let kept = self.cache.put(&note_key(device, wasm, options)?.labelled(label), note, Duration::ZERO);
        self.cache.flush();
        Ok(kept)
    }

    /// Makes sure that the program is on disk, without loading it.
    pub fn prepare(&self, request: &Request) -> Result<Origin, Error> {
        let mut compiled = None;
        Ok(match request.build.find(&self.cache, &request.key, &mut compiled, false)? {
            Got::Read(found) => found.origin,
            Got::Made(found) => found.origin,
        })
    }

    /// Returns the program compiled but not loaded, so that nothing waits for kernels that run on the device.
    pub fn fetch(&self, request: &Request) -> Result<Unloaded, Error> {
        let build = &request.build;
        build.unloaded(build.find(&self.cache, &request.key, &mut None, true)?)
    }

    pub fn shared_cache(&self) -> Arc<Cache> {
        self.cache.clone()
    }

    /// Drops everything on a device, which may be lost.
    pub fn forget(&self, device: &Arc<dyn Device>) {
        let address = Arc::as_ptr(device).addr();
        self.resident.forget(|(_, at)| *at == address);
    }
}

/// Returns the key of what this build of the compiler makes of a module for a device.
fn key(device: &dyn Device, wasm: &Arc<Vec<u8>>, options: String, features: String) -> Result<Key, Error> {
    let target = device.code_target()?;
    let recipe = Recipe {
        version: env!("CARGO_PKG_VERSION"),
        build: env!("GPU_RUN_BUILD"),
        wasm: content::sum(wasm),
        options,
        features,
        target: &target.details,
    };
    Key::new(&target.model, &recipe).map_err(|e| Error::Internal(e.to_string()))
}

fn note_key(device: &dyn Device, wasm: &Arc<Vec<u8>>, options: &CompileOptions) -> Result<Key, Error> {
    let build = options.build.linear();
    let common = CompileOptions { build, registers: None, backtrace: false, ..options.clone() };
    key(device, wasm, format!("tuning {common:?}"), String::new())
}

/// Returns where a program is resident: its key and its device. The device's address is unique while a program holds
/// the device.
fn place(request: &Request) -> (Key, usize) {
    (request.key.clone(), Arc::as_ptr(&request.build.device).addr())
}

impl Build {
    pub(crate) fn key(&self) -> Result<Key, Error> {
        let (options, features) = (format!("{:?}", self.options), format!("{:?}", self.features));
        Ok(key(&*self.device, &self.wasm, options, features)?.labelled(&self.name))
    }

    /// Returns the program's bytes. If it had to be compiled, the result is left in `compiled`.
    fn find(
        &self,
        cache: &Cache,
        key: &Key,
        compiled: &mut Option<Compiled>,
        untried: bool,
    ) -> Result<Got<Held>, Error> {
        cache.get_or_make(key, |fetch| {
            let (build, rival) = (self.clone(), fetch.clone());
            let make = move |until| build.make(untried, until, &rival);
            Ok(match limit::race(&self.name, self.limit, fetch, make)? {
                First::Made((fresh, bytes)) => {
                    *compiled = Some(fresh);
                    Made::Compiled(bytes)
                }
                First::Fetched(arrival) => Made::Fetched(arrival),
            })
        })
    }

    /// Compiles the program, and returns the bytes to keep, unless the remote cache has them before.
    fn make(&self, untried: bool, until: Option<Instant>, rival: &Fetch) -> Result<First<(Compiled, Vec<u8>)>, Error> {
        let began = Instant::now();
        let compiled = Compiled::with_features(&self.wasm, &self.options, self.features, until)?;
        // Assemblers that were started for nothing run on. Assembling takes longer than translating did: a remote cache
        // may take as long again before they are started, and is still not waited for longer than compiling takes.
        if let Some(arrival) = rival.wait(began.elapsed()) {
            return Ok(First::Fetched(arrival));
        }
        // An exact build saves registers around calls that are never made, which looks as if it needed more of them.
        let once = !self.options.build.is_speculative();
        let options = CodeOptions { registers: self.options.registers, once, untried, until };
        let bytes = stored::write(&compiled, &self.device.compile(compiled.ptx(), options)?)?;
        Ok(First::Made((compiled, bytes)))
    }

    /// Returns the program on its device, how it came there, and the bytes of its code. Waits while the device is short
    /// of memory.
    pub(crate) fn load(&self, cache: &Arc<Cache>, key: &Key) -> Result<(Program, Report, u64), Error> {
        let mut patience = Patience::default();
        loop {
            match self.try_load(cache, key) {
                Err(error) if error.is_shortage() && patience.wait(&*self.device) => {}
                result => return result,
            }
        }
    }

    fn try_load(&self, cache: &Arc<Cache>, key: &Key) -> Result<(Program, Report, u64), Error> {
        let began = Instant::now();
        let mut compiled = None;
        let found = self.find(cache, key, &mut compiled, false)?;
        let was_read = match &found {
            Got::Read(_) => true,
            Got::Made(found) => matches!(found.origin, Origin::Fetched { .. }),
        };
        let placed = match self.unloaded(found).and_then(|unloaded| self.place(unloaded)) {
            // The entry is intact, but this device does not accept it: the program is compiled again, once.
            Err(error) if was_read => {
                if error.is_device_lost() || error.is_shortage() {
                    return Err(error);
                }
                tracing::warn!("compiling {} again: {error}", self.name);
                cache.discard(key);
                self.place(self.unloaded(self.find(cache, key, &mut compiled, false)?)?)
            }
            placed => placed,
        };
        let Placed { program, bytes, origin, in_use } = placed?;
        // The cache's counts are written now, because a signal may stop the run.
        cache.flush();
        let timings = compiled.map_or_else(Vec::new, |compiled| compiled.timings().to_vec());
        let load = began.elapsed().saturating_sub(timings.iter().map(|(_, time)| *time).sum());
        let took = match origin {
            Origin::Hit { saved } | Origin::Fetched { saved } => saved,
            Origin::Miss { .. } => began.elapsed(),
        };
        let program = program.kept(cache.clone(), key.clone(), in_use, self.name.clone(), took);
        Ok((program, Report { origin, timings, load }, bytes))
    }

    /// Reads the part of a program that the host needs.
    fn unloaded(&self, got: Got<Held>) -> Result<Unloaded, Error> {
        let read = |bytes: &[u8]| -> Result<(Compiled, Range<usize>), Error> {
            let (compiled, code) = stored::read(bytes, self.wasm.clone(), &self.options, self.features)?;
            // The code is the last thing there.
            Ok((compiled, bytes.len() - code.len()..bytes.len()))
        };
        let (compiled, code, origin, in_use) = match got {
            Got::Read(Found { bytes: Held { pages, length }, origin, in_use }) => {
                let (compiled, range) = read(pages.as_ref().get(..length).unwrap_or_default())?;
                (compiled, Code::Pages(pages, range), origin, in_use)
            }
            Got::Made(Found { bytes, origin, in_use }) => {
                let (compiled, range) = read(&bytes)?;
                (compiled, Code::Bytes(bytes, range), origin, in_use)
            }
        };
        Ok(Unloaded { compiled: Arc::new(compiled), code, origin, in_use })
    }

    fn place(&self, unloaded: Unloaded) -> Result<Placed, Error> {
        let Unloaded { compiled, code, origin, in_use } = unloaded;
        let (module, bytes) = match code {
            Code::Pages(pages, range) => {
                let bytes = range.len();
                (self.device.load_pages(pages, range)?, bytes)
            }
            Code::Bytes(bytes, range) => (self.device.load_code(&bytes[range.clone()])?, range.len()),
        };
        let program = Program::new(self.device.clone(), module, compiled);
        Ok(Placed { program, bytes: bytes as u64, origin, in_use })
    }
}

/// A program in the host's memory.
#[derive(Debug)]
pub struct Unloaded {
    pub compiled: Arc<Compiled>,
    code: Code,
    origin: Origin,
    in_use: InUse,
}

/// Machine code, and its range in the bytes that hold it.
#[derive(Debug)]
enum Code {
    /// Pages that the code may run in.
    Pages(Pages, Range<usize>),
    Bytes(Vec<u8>, Range<usize>),
}

/// A program on its device.
struct Placed {
    program: Program,
    /// Bytes of its code.
    bytes: u64,
    origin: Origin,
    in_use: InUse,
}

/// The memory that a cache entry is read into.
#[derive(Debug)]
struct Held {
    pages: Pages,
    /// Length of the entry; the pages may be longer.
    length: usize,
}

impl Destination for Held {
    fn with_length(length: usize) -> io::Result<Self> {
        Ok(Self { pages: Pages::new(length).map_err(io::Error::other)?, length })
    }
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        self.pages.as_ref()
    }
}

impl AsMut<[u8]> for Held {
    fn as_mut(&mut self) -> &mut [u8] {
        self.pages.as_mut()
    }
}
