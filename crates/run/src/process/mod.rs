//! Processes that guests start: the table of them, the programs they run, and how they end.
//!
//! A process is an instance with a launch of its own, beside those that run already, and a host thread that answers its calls.
//! Programs that the user named are *near*: they are loaded on the parent's device before anything runs, and their processes
//! take [`Seat`]s there, so that a start needs no memory, no loading and no waiting. All others are *far*: loaded when they are
//! first started, on a GPU in another context, because a context loads nothing and frees nothing while a kernel runs in it.
//! A program with threads has only far programs there: it is on every multiprocessor, and the contexts take turns.

mod seat;
mod table;
mod workers;

pub use table::{ProcessInfo, ProcessState, ProcessStats};

use crate::outcome::{End, Outcome, RunOptions, RunStats};
use crate::remains::{Examiner, OfProcess};
use crate::threads::{ThreadPlacement, run_threads};
use gpu_run_abi::TrapCode;
use gpu_run_compiler::{Build, Error, Program, Trap, Value, printable};
use gpu_run_device::Device;
use gpu_run_wasi::{Child, Context, Ended, Errno, LastWords, Order, Programs, Wanted};
use parking_lot::{Mutex, MutexGuard, RwLock};
use seat::{Seat, Seats};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::{Duration, Instant};
use table::{Entry, Table};
use workers::Workers;

/// How often an onlooker is shown the processes.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// What a program is called that started itself.
const OWN: &str = "self";
/// The number of the first process.
const FIRST: u32 = 1;
/// How a .wasm file begins.
const MAGIC: &[u8; 4] = b"\0asm";
/// The largest .wasm file that a guest can start, in bytes.
const MAX_FILE: u64 = 128 << 20;
/// The most programs that are loaded because guests started them.
const MAX_FAR: usize = 256;
const MAX_FAR_ON_GPU: usize = 64;
/// How long a far program waits for others to end before it is loaded.
const PATIENCE: Duration = Duration::from_secs(10);
/// Seats that are made for each near program before anything runs, where that takes long beside a kernel that runs.
const SEATS_ON_GPU: usize = 4;
/// Threads that a process with threads can have on a GPU. All of them are there as long as it runs.
const THREADS_ON_GPU: u32 = 256;

/// Compiles what a guest starts.
pub trait Loader: Send + Sync {
    /// Whether these bytes can be a program. An error is a message for the user.
    fn check(&self, wasm: &[u8], name: &str) -> Result<(), String>;
    /// Returns the program, ready to run on the device. An error is a message for the user.
    fn load(&self, wasm: Arc<Vec<u8>>, name: &str, device: &Arc<dyn Device>) -> Result<Loaded, String>;
    /// Returns what the user is told of a trap besides its message, such as which calls led there.
    fn describe(&self, _trap: &Trap) -> String {
        String::new()
    }
}

/// A program, and the function that a process of it runs. If the function has a result, that is the exit code.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub program: Arc<Program>,
    pub function: String,
    pub arguments: Vec<Value>,
}

/// Who looks at the processes of a run while they run.
pub trait ProcessOnlooker: Send + Sync {
    fn is_looking(&self) -> bool;
    fn sees(&self, processes: &[ProcessInfo]);
}

/// Makes the onlooker, when the first process starts.
pub type MakeOnlooker = Box<dyn FnOnce() -> Option<Arc<dyn ProcessOnlooker>> + Send>;

/// The processes of a run.
pub struct Processes {
    shared: Arc<Shared>,
}

struct Shared {
    loader: Box<dyn Loader>,
    device: Arc<dyn Device>,
    /// The .wasm file of the program that the run begins with, if that may start itself again.
    own: Option<Arc<Vec<u8>>>,
    max_memory: Option<u64>,
    deadline: OnceLock<Instant>,
    named: HashMap<String, Arc<Image>>,
    /// Whether named programs are near. If not, they are as far as all others.
    are_near: AtomicBool,
    /// The context of far programs.
    far_device: Mutex<Option<Arc<dyn Device>>>,
    /// Read while a far process runs, and written while a far program is loaded, which a GPU cannot do at the same time.
    far_gate: RwLock<()>,
    /// Whether far programs can be loaded during the run.
    loads_far: AtomicBool,
    /// Held while one is read, compiled and loaded: a guest that starts many has the host do it one after the other.
    far: Mutex<FarPrograms>,
    table: Table,
    workers: Workers,
    /// How many processes were killed at the end of the run.
    outlived: AtomicUsize,
    onlooker: Mutex<Option<MakeOnlooker>>,
    examiner: OnceLock<Arc<dyn Examiner>>,
}

/// Far programs that were loaded, by their files.
type FarPrograms = HashMap<Arc<Vec<u8>>, Arc<Image>>;

/// A program that processes run.
struct Image {
    loaded: Loaded,
    /// `None`: a program with threads, whose processes make what they need.
    seats: Option<Seats>,
}

/// What a run of processes is given.
pub struct ProcessSettings {
    pub device: Arc<dyn Device>,
    /// The .wasm file of the program that the run begins with, if that may start itself again.
    pub own: Option<Arc<Vec<u8>>>,
    /// Bytes that each process may have.
    pub max_memory: Option<u64>,
    /// How many run at once, besides the first.
    pub max_processes: usize,
}

impl Processes {
    /// Prepares for a program that may start these others by their names. They are loaded on its device.
    pub fn new(settings: ProcessSettings, named: Vec<(String, Loaded)>, loader: Box<dyn Loader>) -> Self {
        let ProcessSettings { device, own, max_memory, max_processes } = settings;
        let is_gpu = device.is_gpu();
        let mut images: Vec<Arc<Image>> = Vec::new();
        // Several names may stand for one program, which has its seats once.
        let mut image = |loaded: Loaded| {
            let is_same = |image: &&Arc<Image>| Arc::ptr_eq(&image.loaded.program, &loaded.program);
            let known = images.iter().find(is_same).cloned();
            known.unwrap_or_else(|| {
                images.push(Arc::new(Image::new(loaded, max_memory)));
                images[images.len() - 1].clone()
            })
        };
        let named = named.into_iter().map(|(name, loaded)| (name, image(loaded))).collect();
        let shared = Shared {
            loader,
            device,
            own,
            max_memory,
            deadline: OnceLock::new(),
            named,
            // Only a GPU minds what is loaded or freed while a kernel runs.
            are_near: AtomicBool::new(!is_gpu),
            far_device: Mutex::default(),
            far_gate: RwLock::default(),
            loads_far: AtomicBool::new(true),
            far: Mutex::default(),
            table: Table::new(FIRST, max_processes),
            workers: Workers::default(),
            outlived: AtomicUsize::new(0),
            onlooker: Mutex::default(),
            examiner: OnceLock::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// From the first process on, the onlooker is shown the processes now and then.
    pub fn set_onlooker(&self, make: MakeOnlooker) {
        *self.shared.onlooker.lock() = Some(make);
    }

    /// The examiner looks at what trapped processes leave behind.
    pub fn set_examiner(&self, examiner: Arc<dyn Examiner>) {
        // There is one run.
        let _ = self.shared.examiner.set(examiner);
    }

    /// Whether there are programs that can be started by their names.
    pub fn has_named(&self) -> bool {
        !self.shared.named.is_empty()
    }

    /// What contexts are built with.
    pub fn programs(&self) -> Arc<dyn Programs> {
        Arc::new(Starter(self.shared.clone()))
    }

    /// Runs the program that the run begins with beside those that it may start by their names: it keeps its seat until all
    /// of them have ended.
    pub fn run_first(
        &self,
        loaded: &Loaded,
        context: Context,
        options: &RunOptions,
    ) -> Result<(Outcome, RunStats), Error> {
        let mut seat = Seat::new(&loaded.program, options.max_memory, None, options.common_of(&loaded.program)?)?;
        self.prepare(SEATS_ON_GPU)?;
        let began = Instant::now();
        let ran = seat.run(loaded, context, options);
        self.finish(options);
        let (outcome, hostcalls) = ran?;
        let stats = RunStats {
            instances: 1,
            launches: 1,
            hostcalls,
            run: began.elapsed(),
            device_bytes: seat.device_bytes(),
            ..RunStats::default()
        };
        Ok((outcome, stats))
    }

    /// Starts a program that the user named, beside others, as if the first process had started it.
    pub fn start(&self, name: &str, context: Context) -> Result<Arc<dyn Child>, Errno> {
        let (program, stderr) = (Wanted::Named(name.to_owned()), LastWords::of_the_host());
        Starter(self.shared.clone()).start(Order { program, context, parent: FIRST, stderr })
    }

    /// Makes the named programs near. From here on, the device loads and frees nothing until the run is over: whatever the
    /// processes need is there before the first kernel runs. On a GPU, each program has so many seats then.
    pub fn prepare(&self, seats: usize) -> Result<(), Error> {
        if self.shared.device.is_gpu() {
            self.shared.named.values().try_for_each(|image| image.prepare(seats))?;
        }
        self.shared.are_near.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// For a run whose first program is not near: loads the named programs now, and nothing later. While a kernel is on every
    /// multiprocessor of a GPU, the driver makes no other context.
    pub fn prepare_far(&self) -> Result<(), Error> {
        if !self.shared.device.is_gpu() {
            return Ok(());
        }
        for (name, image) in &self.shared.named {
            let wasm = image.loaded.program.compiled().wasm.clone();
            self.shared.load(name, || Ok(wasm)).map_err(Error::Limit)?;
        }
        self.shared.loads_far.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// When processes are stopped that still run.
    pub fn set_deadline(&self, deadline: Option<Instant>) {
        if let Some(deadline) = deadline {
            // There is one run.
            let _ = self.shared.deadline.set(deadline);
        }
    }

    /// Waits for the processes that still run, as the program that started them did not. They are killed at the deadline, and when
    /// the run is interrupted.
    pub fn finish(&self, options: &RunOptions) {
        let killed = self.shared.table.wait_for_all(options.deadline, options.interrupt.as_deref());
        self.shared.outlived.fetch_add(killed, Ordering::Relaxed);
    }

    /// Returns how many processes were killed because they ran when the run had to end.
    pub fn outlived(&self) -> usize {
        self.shared.outlived.load(Ordering::Relaxed)
    }

    pub fn stats(&self) -> ProcessStats {
        self.shared.table.stats()
    }

    /// The processes that guests started: those that run, and the last ones that ended.
    pub fn list(&self) -> Vec<ProcessInfo> {
        self.shared.table.list()
    }
}

impl std::fmt::Debug for Processes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Processes").field("programs", &self.shared.named.len()).finish_non_exhaustive()
    }
}

impl Image {
    fn new(loaded: Loaded, max_memory: Option<u64>) -> Self {
        let has_threads = matches!(loaded.program.compiled().options.build, Build::Threads);
        let seats = (!has_threads).then(|| Seats::new(loaded.program.clone(), max_memory));
        Self { loaded, seats }
    }

    fn prepare(&self, seats: usize) -> Result<(), Error> {
        self.seats.as_ref().map_or(Ok(()), |own| own.prepare(seats))
    }
}

/// Where a process finds its program.
enum Place {
    Near(Arc<Image>),
    Far(Arc<Vec<u8>>, String),
    File(File, String),
}

/// Starts processes for guests.
struct Starter(Arc<Shared>);

impl Programs for Starter {
    fn first_process(&self) -> u32 {
        FIRST
    }

    fn start(&self, order: Order) -> Result<Arc<dyn Child>, Errno> {
        let Order { program, mut context, parent, stderr } = order;
        let (place, name) = self.0.find(program)?;
        let entry = self.0.table.add(parent, &name)?;
        if let Some(make) = self.0.onlooker.lock().take() {
            show(Arc::downgrade(&self.0), make);
        }
        context.set_process(entry.id);
        if let Place::Near(_) = place {
            // Nothing can be wrong with its program any more.
            entry.set_started(Ok(()));
        }
        let (shared, own) = (self.0.clone(), entry.clone());
        let begun = self.0.workers.run(Box::new(move || shared.run(place, &own, context, stderr)));
        if begun.is_err() {
            entry.set_ended(Ended::Killed);
            return Err(Errno::Again);
        }
        Ok(entry)
    }
}

/// Shows the processes to the onlooker, on a thread of its own, as long as there is a run.
fn show(shared: Weak<Shared>, make: MakeOnlooker) {
    let look = move || {
        let Some(onlooker) = make() else { return };
        while let Some(shared) = shared.upgrade() {
            if onlooker.is_looking() {
                onlooker.sees(&shared.table.list());
            }
            drop(shared);
            thread::sleep(LOOK_EVERY);
        }
    };
    // Without the thread, nobody sees the processes, and they run as well.
    _ = thread::Builder::new().name("gpu-run looks".into()).spawn(look);
}

impl Shared {
    fn find(&self, program: Wanted) -> Result<(Place, String), Errno> {
        match program {
            Wanted::Named(name) => {
                let image = self.named.get(&name).ok_or(Errno::Noent)?;
                let place = match self.are_near.load(Ordering::Relaxed) {
                    true => Place::Near(image.clone()),
                    false => Place::Far(image.loaded.program.compiled().wasm.clone(), name.clone()),
                };
                Ok((place, name))
            }
            Wanted::File(file, name) => Ok((Place::File(file, name.clone()), name)),
            Wanted::Own(process) => match self.table.program(process) {
                Some((image, name)) => Ok((Place::Near(image), name)),
                None => {
                    let own = self.own.clone().ok_or(Errno::Acces)?;
                    Ok((Place::Far(own, OWN.into()), OWN.into()))
                }
            },
        }
    }

    /// Runs a process from its beginning to its end, on a thread of its own.
    fn run(&self, place: Place, entry: &Arc<Entry>, context: Context, stderr: LastWords) {
        let end = Ending(entry);
        let is_far = !matches!(place, Place::Near(_));
        let name = printable::name(&entry.name);
        let image = match place {
            Place::Near(image) => Ok(image),
            Place::Far(wasm, name) => self.load(&name, || Ok(wasm)),
            Place::File(file, name) => self.load(&name, || read(&file).map(Arc::new)),
        };
        let image = match image {
            Ok(image) => image,
            Err(reason) => {
                stderr.say(&format!("gpu-run: cannot start {name}: {reason}\n"));
                drop(context);
                entry.set_started(Err(Errno::Noexec));
                return end.is(Ended::Killed);
            }
        };
        let _running = (is_far && self.device.is_gpu()).then(|| self.far_gate.read_recursive());
        entry.runs(image.clone());
        let options = RunOptions {
            deadline: self.deadline.get().copied(),
            interrupt: Some(entry.kill.clone()),
            examiner: self.examiner.get().map(|examiner| {
                let (examiner, process, program) = (examiner.clone(), entry.id, entry.name.clone());
                Arc::new(OfProcess { examiner, process, program }) as Arc<dyn Examiner>
            }),
            max_memory: self.max_memory,
            ..RunOptions::default()
        };
        let Loaded { program, function, arguments } = &image.loaded;
        let (ran, seat) = match &image.seats {
            Some(seats) => match seats.take() {
                Ok(mut seat) => (seat.run(&image.loaded, context, &options), Some((seats, seat))),
                Err(error) => (Err(error), None),
            },
            None => {
                let threads = self.device.is_gpu().then_some(THREADS_ON_GPU);
                let placement = ThreadPlacement::Auto;
                let ran = run_threads(program, function, arguments, context, threads, placement, &options);
                (ran.map(|(outcome, stats)| (outcome, stats.hostcalls)), None)
            }
        };
        match ran {
            Ok((mut outcome, calls)) => {
                outcome.exit_as_main_says();
                entry.calls(calls);
                let ended = ended(&outcome.end);
                match (&outcome.end, ended) {
                    (End::Trapped(trap), Ended::Trapped(_)) => {
                        let more = self.loader.describe(trap);
                        stderr.say(&format!("error: {name} (process {}) trapped: {trap}{more}\n", entry.id));
                    }
                    // Whoever is told that it ended finds the end of this stream, too.
                    _ => drop(stderr),
                }
                end.is(ended);
            }
            Err(error) => {
                stderr.say(&format!("error: {name} (process {}): {error}\n", entry.id));
                end.is(Ended::Trapped(TrapCode::HostCall));
            }
        }
        // The parent need not wait for this.
        if let Some((seats, seat)) = seat {
            seats.give_back(seat);
        }
    }

    /// Returns the device for far programs. On a GPU, all of them share one context: beside a kernel that runs, the driver
    /// makes one more context, and no third one.
    fn far_device(&self) -> Result<Arc<dyn Device>, gpu_run_device::Error> {
        if !self.device.is_gpu() {
            return Ok(self.device.clone());
        }
        let mut device = self.far_device.lock();
        match &*device {
            Some(device) => Ok(device.clone()),
            None => Ok(device.insert(gpu_run_device::open(&self.device.properties().id)?).clone()),
        }
    }

    /// Loads a far program, once.
    fn load(&self, name: &str, wasm: impl FnOnce() -> Result<Arc<Vec<u8>>, String>) -> Result<Arc<Image>, String> {
        let mut far = self.far.lock();
        let wasm = wasm()?;
        if let Some(image) = far.get(&wasm) {
            return Ok(image.clone());
        }
        self.loader.check(&wasm, name)?;
        let most = if self.device.is_gpu() { MAX_FAR_ON_GPU } else { MAX_FAR };
        if far.len() >= most {
            return Err(format!("a run can load {most} different .wasm files, and has done that"));
        }
        if !self.loads_far.load(Ordering::Relaxed) {
            let why = "on a GPU, a program with threads, or one of several instances, starts only what --program names";
            return Err(why.to_owned());
        }
        let _alone = match self.device.is_gpu() {
            // Meanwhile, those that are loaded can be started.
            true => Some(MutexGuard::unlocked(&mut far, || self.far_gate.try_write_for(PATIENCE)).ok_or(
                "other programs that are no --program of this run are running, and a GPU loads nothing beside them",
            )?),
            false => None,
        };
        if let Some(image) = far.get(&wasm) {
            return Ok(image.clone());
        }
        let device = self.far_device().map_err(|error| error.to_string())?;
        let image = Image::new(self.loader.load(wasm.clone(), name, &device)?, self.max_memory);
        image.prepare(1).map_err(|error| error.to_string())?;
        let image = Arc::new(image);
        far.insert(wasm, image.clone());
        Ok(image)
    }
}

/// Says how a process ended, also if its thread panicked.
struct Ending<'a>(&'a Arc<Entry>);

impl Ending<'_> {
    fn is(self, ended: Ended) {
        self.0.set_ended(ended);
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.set_ended(Ended::Trapped(TrapCode::HostCall));
    }
}

/// What the parent is told.
fn ended(end: &End) -> Ended {
    match end {
        End::Returned => Ended::Exited(0),
        End::Exited(code) => Ended::Exited(*code),
        End::Trapped(trap) if trap.code == TrapCode::Interrupted => Ended::Killed,
        End::Trapped(trap) => Ended::Trapped(trap.code),
    }
}

/// Reads a program's file from its beginning. An error is a message for the user.
fn read(file: &File) -> Result<Vec<u8>, String> {
    let said = |error: std::io::Error| error.to_string();
    let about = file.metadata().map_err(said)?;
    if !about.is_file() {
        return Err("it is not an ordinary file".to_owned());
    }
    if about.len() > MAX_FILE {
        return Err(format!("it is larger than {} MiB", MAX_FILE >> 20));
    }
    // Of a file that is no program, no more is read.
    let mut magic = [0; MAGIC.len()];
    if file.read_exact_at(&mut magic, 0).is_err() || magic != *MAGIC {
        return Err("it is not a WebAssembly module".to_owned());
    }
    // A guest may change the file meanwhile: what is read has the length of the buffer, or is an error.
    let mut wasm = vec![0; about.len() as usize];
    file.read_exact_at(&mut wasm, 0).map_err(said)?;
    Ok(wasm)
}
