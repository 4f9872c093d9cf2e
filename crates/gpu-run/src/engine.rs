//! A device or several, and the cache of what was compiled for it.

use crate::error::{Error, Result};
use gpu_run_cache::{Cache, Options, Remote, SigningKey};
use gpu_run_compiler::{CompileOptions, Compiler, Program};
use gpu_run_device::{Device, DeviceList, Properties, cpu, cuda};
use gpu_run_objects::Folder;
use std::env;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long compiling a program may take, unless a [`Config`] says otherwise.
const COMPILE_TIMEOUT: Duration = Duration::from_secs(300);

/// What an [`Engine`] is made with.
#[derive(Clone, Debug)]
pub struct Config {
    device: String,
    cache: Option<PathBuf>,
    cache_limit: u64,
    /// A remote cache, or why there cannot be one.
    remote: Result<Option<Remote>, String>,
    compile_timeout: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

impl Config {
    /// The first GPU, or `cpu` where there is none; the cache that the command `gpu-run` uses, and the remote one of
    /// [`GPU_RUN_CACHE_REMOTE`](Config::remote_cache).
    pub fn new() -> Self {
        let (device, cache_limit, compile_timeout) = ("auto".to_owned(), Options::LIMIT, COMPILE_TIMEOUT);
        Self { device, cache: Self::usual_cache(), cache_limit, remote: usual_remote(), compile_timeout }
    }

    /// The device: `auto`, `cpu`, or a GPU as in `cuda:0`. Or several: `cuda:all`, `cuda:0,2`, or `cpu:0,1`, which divide the cores. A
    /// [`Mapper`](crate::Mapper) uses all of them, everything else the first one.
    pub fn device(mut self, id: impl Into<String>) -> Self {
        self.device = id.into();
        self
    }

    /// The folder in which compiled programs are kept.
    pub fn cache(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cache = Some(folder.into());
        self
    }

    /// Keeps compiled programs only in memory, and uses no remote cache.
    pub fn no_cache(mut self) -> Self {
        self.cache = None;
        self
    }

    /// A cache that machines share, such as `s3://bucket/prefix`, `gs://bucket/prefix` or `file:///folder`; credentials
    /// come from the environment. It is asked for what the folder of [`Config::cache`] lacks, while the program is
    /// compiled: whichever is there first is used. Entries are code, so they are signed with `secret`, a text of at
    /// least 32 characters that only these machines know; an entry without the right signature is never used.
    ///
    /// If it fails, it is not asked again, and nothing else fails. Dropping the last part of an engine waits at most
    /// three seconds for entries that are being sent.
    ///
    /// Unless this is called, the variables `GPU_RUN_CACHE_REMOTE` and `GPU_RUN_CACHE_KEY` say so, as for the command;
    /// without the second one there is no remote cache.
    pub fn remote_cache(mut self, address: &str, secret: &str) -> Self {
        self.remote = remote(address, secret).map(Some);
        self
    }

    /// Uses no remote cache, whatever the environment says.
    pub fn no_remote_cache(mut self) -> Self {
        self.remote = Ok(None);
        self
    }

    /// The most bytes in the cache's folder: 1 GiB unless this is called.
    pub fn cache_limit(mut self, bytes: u64) -> Self {
        self.cache_limit = bytes;
        self
    }

    /// Returns the folder of the cache of the command `gpu-run`, without its options; `None` if the environment turns it off or names no place.
    pub fn usual_cache() -> Option<PathBuf> {
        if let Some(place) = env::var_os("GPU_RUN_CACHE") {
            let is_off = place.is_empty() || place == "off" || place == "0";
            return (!is_off).then(|| std::path::absolute(&place).ok()).flatten();
        }
        let folder = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")));
        base.map(|base| base.join("gpu-run"))
    }

    /// How long compiling a program may take: five minutes unless this is called.
    pub fn compile_timeout(mut self, limit: Duration) -> Self {
        self.compile_timeout = limit;
        self
    }
}

fn remote(address: &str, secret: &str) -> Result<Remote, String> {
    let folder = Folder::open(address).map_err(|error| format!("the remote cache: {error}"))?;
    // The secret itself is not repeated.
    let key =
        SigningKey::new(secret).map_err(|error| format!("the secret of the remote cache is too short: {error}"))?;
    Ok(Remote::new(folder, key))
}

fn usual_remote() -> Result<Option<Remote>, String> {
    let given = |name| env::var(name).ok().filter(|value| !value.trim().is_empty());
    match given("GPU_RUN_CACHE_REMOTE").filter(|address| address != "off") {
        Some(address) => match given("GPU_RUN_CACHE_KEY") {
            Some(secret) => remote(&address, &secret).map(Some),
            None => {
                tracing::warn!("not using the cache of GPU_RUN_CACHE_REMOTE: GPU_RUN_CACHE_KEY is not set");
                Ok(None)
            }
        },
        None => Ok(None),
    }
}

/// A device of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// As in `cuda:0`, for [`Config::device`].
    pub id: String,
    pub name: String,
    /// What it is compiled for, as in 90 for `sm_90`.
    pub target: u32,
    pub processors: u32,
    pub memory_bytes: u64,
}

impl DeviceInfo {
    /// The device `cpu`.
    pub fn cpu() -> Self {
        Self::of(cpu::open().properties())
    }

    /// The GPUs of this machine, or why none can be used.
    ///
    /// ```
    /// use gpu_run::{Config, DeviceInfo};
    /// let gpus = DeviceInfo::gpus().unwrap_or_default();
    /// let fastest = gpus.iter().max_by_key(|gpu| gpu.processors);
    /// let config = Config::new().device(fastest.map_or("cpu", |gpu| &gpu.id));
    /// ```
    pub fn gpus() -> Result<Vec<Self>> {
        let found = cuda::probe().map_err(|error| Error::Device(error.to_string()))?;
        Ok(found.iter().map(Self::of).collect())
    }

    fn of(device: &Properties) -> Self {
        Self {
            id: device.id.clone(),
            name: device.name.clone(),
            target: device.target,
            processors: device.processors,
            memory_bytes: device.memory_bytes,
        }
    }
}

/// A device or several, and the cache of what was compiled for them. Clones are the same engine.
///
/// ```
/// use gpu_run::{Config, Engine};
/// let engine = Engine::new(&Config::new().device("cpu"))?;
/// assert_eq!(engine.device(), "cpu");
/// # Ok::<(), gpu_run::Error>(())
/// ```
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    /// At least one.
    devices: Vec<Arc<dyn Device>>,
    compiler: Compiler,
    compile_timeout: Duration,
}

impl Engine {
    /// Opens the device or devices. Where `auto` finds no GPU, the device is `cpu`.
    pub fn new(config: &Config) -> Result<Self> {
        let devices = config.device.parse().and_then(|list: DeviceList| list.open());
        let devices = devices.map_err(|error| Error::Device(format!("{}: {error}", config.device)))?;
        let remote = config.remote.clone().map_err(Error::Cache)?;
        let cache = match &config.cache {
            Some(folder) => Cache::open(Options { limit: config.cache_limit, remote, ..Options::new(folder) }),
            None => Cache::off("the engine was made without one"),
        };
        let compiler = Compiler::new(cache).limited(config.compile_timeout);
        Ok(Self { inner: Arc::new(Inner { devices, compiler, compile_timeout: config.compile_timeout }) })
    }

    /// The device's name: `cpu`, or a GPU as in `cuda:0`; of several, the first one's.
    pub fn device(&self) -> &str {
        &self.raw_device().properties().id
    }

    /// The names of all devices.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        self.inner.devices.iter().map(|device| &device.properties().id[..])
    }

    pub fn is_gpu(&self) -> bool {
        self.raw_device().is_gpu()
    }

    pub(crate) fn compile_timeout(&self) -> Duration {
        self.inner.compile_timeout
    }

    pub(crate) fn raw_device(&self) -> &Arc<dyn Device> {
        &self.inner.devices[0]
    }

    pub(crate) fn raw_devices(&self) -> &[Arc<dyn Device>] {
        &self.inner.devices
    }

    /// Loads a program from the cache, or compiles it.
    pub(crate) fn program(&self, name: &str, wasm: &Arc<Vec<u8>>, options: &CompileOptions) -> Result<Arc<Program>> {
        self.program_on(self.raw_device(), name, wasm, options)
    }

    pub(crate) fn program_on(
        &self,
        device: &Arc<dyn Device>,
        name: &str,
        wasm: &Arc<Vec<u8>>,
        options: &CompileOptions,
    ) -> Result<Arc<Program>> {
        let failed = |error| Error::of_compiler(name, error);
        let compiler = &self.inner.compiler;
        let options = options.settled(device.properties());
        let request = compiler.request(device, wasm.clone(), &options, name).map_err(failed)?;
        Ok(compiler.load(&request).map_err(failed)?.0)
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("devices", &self.devices().collect::<Vec<_>>()).finish_non_exhaustive()
    }
}
