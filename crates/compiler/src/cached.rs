//! Programs through the cache: what was compiled once is not compiled again.
//!
//! One entry holds all that a run takes, machine code and [`stored`]: a hit reads one file and is ready to launch. The PTX between is not kept: it is
//! two thirds of the bytes, and no more than a fifth of the time it takes to make machine code.

use crate::compile::{CompileOptions, Compiled, default_features};
use crate::content;
use crate::error::Error;
use crate::limit;
use crate::program::Program;
use crate::stored;
use gpu_run_cache::{Cache, Destination, Found, Got, InUse, Key, Origin, Resident};
use gpu_run_device::{CodeOptions, Device, Pages, Patience};
use gpu_run_wasm::WasmFeatures;
use serde::Serialize;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bytes of machine code that stay loaded beyond what is used.
const MAX_IDLE_CODE_BYTES: u64 = 256 << 20;

/// Times this process has compiled wasm to PTX.
pub(crate) static TO_PTX: AtomicU64 = AtomicU64::new(0);

/// How often this process has compiled anything: wasm to PTX, and PTX to machine code.
pub fn compilations() -> (u64, u64) {
    (TO_PTX.load(Ordering::Relaxed), gpu_run_device::compilations())
}

/// Everything that has an influence on what is kept. A field that is added to one of the structs in here is in the key by itself.
#[derive(Serialize)]
struct Recipe<'a> {
    version: &'static str,
    build: &'static str,
    wasm: String,
    options: String,
    features: String,
    target: &'a str,
}

/// Compiles programs, keeps them, and finds them again.
#[derive(Debug)]
pub struct Compiler {
    cache: Arc<Cache>,
    resident: Resident<(Key, usize), Program>,
    limit: Option<Duration>,
}

/// What is to be loaded, and where. Making it hashes the module; loading it again is then a look in a table.
#[derive(Clone, Debug)]
pub struct Request {
    key: Key,
    build: Build,
    /// What making it took.
    hashing: Duration,
}

impl Request {
    /// What its entry is called.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Loads what was fetched. What the device does not take was of no use, and is made again another time.
    pub fn place(&self, cache: &Arc<Cache>, unloaded: Unloaded) -> Result<Program, Error> {
        let placed = self.build.place(unloaded).inspect_err(|_| cache.discard(&self.key))?;
        let (Origin::Hit { saved: took } | Origin::Miss { took, .. }) = placed.origin;
        Ok(placed.program.kept(cache.clone(), self.key.clone(), placed.in_use, self.build.name.clone(), took))
    }
}

/// How a program is made.
#[derive(Clone, Debug)]
pub(crate) struct Build {
    pub(crate) device: Arc<dyn Device>,
    pub(crate) wasm: Arc<Vec<u8>>,
    pub(crate) options: CompileOptions,
    pub(crate) features: WasmFeatures,
    /// For people who look into the cache.
    pub(crate) name: String,
    /// How long compiling may take.
    pub(crate) limit: Option<Duration>,
}

/// How a program came to be loaded.
#[derive(Clone, Debug)]
pub struct Report {
    pub origin: Origin,
    /// Steps from wasm to PTX, if they were taken.
    pub timings: Vec<(&'static str, Duration)>,
    /// The rest, from the bytes of the module to a program that can be launched: finding it in the cache or making machine code of the PTX, and
    /// loading that.
    pub load: Duration,
}

impl Compiler {
    pub fn new(cache: Cache) -> Self {
        Self { cache: Arc::new(cache), resident: Resident::new(MAX_IDLE_CODE_BYTES), limit: None }
    }

    /// Compiling a program may take so long.
    pub fn limited(self, limit: Duration) -> Self {
        Self { limit: Some(limit), ..self }
    }

    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// `name` is what `gpu-run cache list` calls it.
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

    /// The program, from memory, from disk, or compiled. The report is of how it came to be loaded, `None` if it was.
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

    /// What was noted about a program on such a device, if anything was: see [`Compiler::keep_note`].
    pub fn note(&self, device: &dyn Device, wasm: &Arc<Vec<u8>>, options: &CompileOptions) -> Option<Vec<u8>> {
        self.cache.peek(&note_key(device, wasm, options).ok()?)
    }

    /// Keeps a note about a program beside its builds, for all runs that come; whether that worked. All builds have one note: of `options` counts what they have in common.
    /// `label` is what `gpu-run cache list` calls it.
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

    /// Sees to it that the program is on disk, without loading it.
    pub fn prepare(&self, request: &Request) -> Result<Origin, Error> {
        let mut compiled = None;
        Ok(match request.build.find(&self.cache, &request.key, &mut compiled, false)? {
            Got::Read(found) => found.origin,
            Got::Made(found) => found.origin,
        })
    }

    /// The program, compiled and not loaded: nothing waits for what runs on the device.
    pub fn fetch(&self, request: &Request) -> Result<Unloaded, Error> {
        let build = &request.build;
        build.unloaded(build.find(&self.cache, &request.key, &mut None, true)?)
    }

    pub fn shared_cache(&self) -> Arc<Cache> {
        self.cache.clone()
    }

    /// Lets go of everything on a device, which may be lost.
    pub fn forget(&self, device: &Arc<dyn Device>) {
        let address = Arc::as_ptr(device).addr();
        self.resident.forget(|(_, at)| *at == address);
    }
}

/// The key of what is made of a module for a device by this build of the compiler.
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
    let common = CompileOptions { build: options.build.linear(), registers: None, ..options.clone() };
    key(device, wasm, format!("tuning {common:?}"), String::new())
}

/// A program is resident on one device. Its address is no other's while a program there holds it.
fn place(request: &Request) -> (Key, usize) {
    (request.key.clone(), Arc::as_ptr(&request.build.device).addr())
}

impl Build {
    pub(crate) fn key(&self) -> Result<Key, Error> {
        let (options, features) = (format!("{:?}", self.options), format!("{:?}", self.features));
        Ok(key(&*self.device, &self.wasm, options, features)?.labelled(&self.name))
    }

    /// The program's bytes. What was compiled for them, if anything was, is left in `compiled`.
    fn find(
        &self,
        cache: &Cache,
        key: &Key,
        compiled: &mut Option<Compiled>,
        untried: bool,
    ) -> Result<Got<Held>, Error> {
        cache.get_or_make(key, || {
            let build = self.clone();
            let (fresh, bytes) = limit::within(&self.name, self.limit, move |until| build.make(untried, until))?;
            *compiled = Some(fresh);
            Ok(bytes)
        })
    }

    /// Compiles it, and gives what is kept of it.
    fn make(&self, untried: bool, until: Option<Instant>) -> Result<(Compiled, Vec<u8>), Error> {
        let compiled = Compiled::with_features(&self.wasm, &self.options, self.features, until)?;
        // An exact build saves registers for calls that are never made, which looks as if more of them were needed.
        let once = !self.options.build.is_speculative();
        let options = CodeOptions { registers: self.options.registers, once, untried, until };
        let bytes = stored::write(&compiled, &self.device.compile(compiled.ptx(), options)?)?;
        Ok((compiled, bytes))
    }

    /// The program on its device, how it came there, and the bytes of its code.
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
        let was_read = matches!(found, Got::Read(_));
        let placed = match self.unloaded(found).and_then(|unloaded| self.place(unloaded)) {
            // Whole, and yet this device does not take it: it is made again, once.
            Err(error) if was_read => {
                if error.is_device_lost() || error.is_shortage() {
                    return Err(error);
                }
                tracing::warn!("{} is compiled again: {error}", self.name);
                cache.discard(key);
                self.place(self.unloaded(self.find(cache, key, &mut compiled, false)?)?)
            }
            placed => placed,
        };
        let Placed { program, bytes, origin, in_use } = placed?;
        // Counts are written now: the run may end by a signal.
        cache.flush();
        let timings = compiled.map_or_else(Vec::new, |compiled| compiled.timings().to_vec());
        let load = began.elapsed().saturating_sub(timings.iter().map(|(_, time)| *time).sum());
        let took = match origin {
            Origin::Hit { saved } => saved,
            _ => began.elapsed(),
        };
        let program = program.kept(cache.clone(), key.clone(), in_use, self.name.clone(), took);
        Ok((program, Report { origin, timings, load }, bytes))
    }

    /// What was found, read as far as the host needs it.
    fn unloaded(&self, got: Got<Held>) -> Result<Unloaded, Error> {
        let read = |bytes: &[u8]| -> Result<(Compiled, Range<usize>), Error> {
            let (compiled, code) = stored::read(bytes, self.wasm.clone(), &self.options, self.features)?;
            // It is the last thing there.
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

/// Machine code, and where it is in what is held of it.
#[derive(Debug)]
enum Code {
    /// It may run there.
    Pages(Pages, Range<usize>),
    Bytes(Vec<u8>, Range<usize>),
}

/// A program on its device.
struct Placed {
    program: Program,
    /// Of its code.
    bytes: u64,
    origin: Origin,
    in_use: InUse,
}

/// What an entry is read into.
#[derive(Debug)]
struct Held {
    pages: Pages,
    /// Whole pages may be more.
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
