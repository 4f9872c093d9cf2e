//! Processes that a guest starts: what it asks for, and what a child is given.
//!
//! This module makes a child's [`Context`] of its parent's; who implements [`Programs`] knows programs and runs them. A child
//! has the folders that its parent was given, its parent's rules for sockets, and the three streams that the request names.

use std::fmt;
use std::fs::File;
use std::sync::Arc;

use gpu_run_abi::TrapCode;
use gpu_run_abi::extension::ended;

use crate::descriptor::{Descriptor, Table};
use crate::encode::{Out, Result, Stop};
use crate::extension::{ProcessAsk, ProcessFetch, StartRequest, put_fetched};
use crate::pipe::{PipeSpace, pipe};
use crate::stdio::{Null, inherit};
use crate::{Context, Errno, builder::Strings};

/// The name by which a program starts itself again.
pub const OWN_PROGRAM: &str = "/proc/self/exe";

/// The most children that a process has at once, those that ended and were not waited for included. As many as Linux has processes.
const MAX_CHILDREN: usize = 1 << 15;

/// Runs programs for guests. No call may block.
pub trait Programs: Send + Sync {
    /// Returns the number of a process that was not started by a guest.
    fn first_process(&self) -> u32;
    /// Begins to start a program.
    fn start(&self, order: Order) -> std::result::Result<Arc<dyn Child>, Errno>;
}

/// A process to be started.
#[derive(Debug)]
pub struct Order {
    pub program: Wanted,
    /// Arguments, environment and descriptors.
    pub context: Context,
    pub parent: u32,
    /// Another way to the child's standard error, for a message about its end.
    pub stderr: LastWords,
}

/// Which program a guest wants to start.
#[derive(Debug)]
pub enum Wanted {
    Named(String),
    /// A .wasm file, and what the guest calls it.
    File(File, String),
    /// The program that the guest runs itself, by the number of its process.
    Own(u32),
}

/// A process, as its parent sees it.
pub trait Child: Send + Sync {
    fn id(&self) -> u32;
    /// Whether the program was found, compiled if need be, and started; `None` while that is not known.
    fn started(&self) -> Option<std::result::Result<(), Errno>>;
    /// How the process ended; `None` while it runs.
    fn ended(&self) -> Option<Ended>;
    fn kill(&self);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Exited(u32),
    Trapped(TrapCode),
    Killed,
}

impl Ended {
    fn words(self) -> [u32; 2] {
        match self {
            // As everywhere, a parent sees eight bits.
            Ended::Exited(code) => [ended::EXITED, code & 0xff],
            Ended::Trapped(code) => [ended::TRAPPED, code as u32],
            Ended::Killed => [ended::KILLED, 0],
        }
    }
}

/// Writes a message to a process's standard error after the process itself is gone.
pub struct LastWords(Descriptor);

impl fmt::Debug for LastWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LastWords").finish_non_exhaustive()
    }
}

impl LastWords {
    /// The host's own standard error.
    pub fn of_the_host() -> Self {
        Self(Descriptor::output(Box::new(inherit::stderr())))
    }

    /// Writes as much as there is room for.
    pub fn say(self, text: &str) {
        // Nobody is left to hear of an error.
        _ = match self.0 {
            Descriptor::Output(output) => output.lock().write(text.as_bytes()).is_ok(),
            Descriptor::Pipe(end) => end.write(text.as_bytes()).is_ok(),
            Descriptor::File(mut file) => file.write(text.as_bytes()).is_ok(),
            Descriptor::Socket(socket) => crate::socket::send_bytes(&socket, text.as_bytes()).is_ok(),
            Descriptor::Input(_) | Descriptor::Directory(_) => false,
        };
    }
}

/// A process and its children.
pub(crate) struct Process {
    programs: Option<Arc<dyn Programs>>,
    id: u32,
    /// The folder it began in, if not the root.
    folder: String,
    children: Vec<Arc<dyn Child>>,
    /// Children whose programs are being compiled, and the requests that their parents repeat meanwhile.
    starting: Vec<(Vec<u8>, Arc<dyn Child>)>,
    /// For the pipes of the whole run.
    pipes: Arc<PipeSpace>,
}

impl Process {
    pub(crate) fn new(programs: Option<Arc<dyn Programs>>, pipes: Arc<PipeSpace>) -> Self {
        let id = programs.as_ref().map_or(1, |programs| programs.first_process());
        Self { programs, id, folder: String::new(), children: Vec::new(), starting: Vec::new(), pipes }
    }

    fn child(&self, id: u32) -> Result<usize> {
        self.children.iter().position(|child| child.id() == id).ok_or_else(|| Errno::Child.into())
    }

    pub(crate) fn fetch(&mut self, table: &mut Table, room: u64, request: &ProcessFetch, out: &mut Out) -> Result {
        match *request {
            ProcessFetch::Pipe => {
                let (reads, writes) = pipe(&self.pipes)?;
                let reads = table.insert(Descriptor::Pipe(reads))?;
                let writes = match table.insert(Descriptor::Pipe(writes)) {
                    Ok(writes) => writes,
                    Err(full) => {
                        crate::descriptor::close(table, reads.into())?;
                        return Err(full);
                    }
                };
                put_fetched(out, room, &words([reads, writes]));
            }
            ProcessFetch::End { id, waits } => {
                let at = self.child(id)?;
                match self.children[at].ended() {
                    Some(ended) => {
                        self.children.swap_remove(at);
                        put_fetched(out, room, &words(ended.words()));
                    }
                    None if waits => return Err(Stop::Again(None)),
                    None => put_fetched(out, room, &[]),
                }
            }
            ProcessFetch::CurrentDir => put_fetched(out, room, self.folder.as_bytes()),
            ProcessFetch::Executable if self.programs.is_none() => return Err(Errno::Notsup.into()),
            ProcessFetch::Executable => put_fetched(out, room, OWN_PROGRAM.as_bytes()),
        }
        Ok(())
    }
}

fn words(words: [u32; 2]) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

impl Context {
    /// Answers a request about processes. `is_repeated`: it could not be answered the last time.
    pub(crate) fn ask_process(&mut self, asked: &[u8], request: ProcessAsk<'_>, out: &mut Out) -> Result {
        let result = match request {
            ProcessAsk::Start(request) => self.start(asked, &request)?,
            ProcessAsk::Kill { id } => {
                let at = self.process.child(id)?;
                self.process.children[at].kill();
                0
            }
            ProcessAsk::Id => self.process.id,
        };
        out.put_u32(result);
        Ok(())
    }

    /// Returns the number of the child. A program that has to be compiled takes a while: the request is found again by its bytes.
    fn start(&mut self, asked: &[u8], request: &StartRequest<'_>) -> Result<u32> {
        let starting = &mut self.process.starting;
        let at = self.since.and_then(|_| starting.iter().position(|(own, _)| own == asked));
        let child = match at {
            Some(at) => starting.swap_remove(at).1,
            None => self.begin(request)?,
        };
        match child.started() {
            None => {
                self.since.get_or_insert_with(std::time::Instant::now);
                self.process.starting.push((asked.to_vec(), child));
                Err(Stop::Again(None))
            }
            Some(started) => {
                started?;
                let id = child.id();
                self.process.children.push(child);
                Ok(id)
            }
        }
    }

    fn begin(&mut self, request: &StartRequest<'_>) -> Result<Arc<dyn Child>> {
        let Some(programs) = self.process.programs.clone() else { return Err(Errno::Notsup.into()) };
        if self.process.children.len() + self.process.starting.len() >= MAX_CHILDREN {
            return Err(Errno::Again.into());
        }
        let program = match (request.file, request.program) {
            (0, OWN_PROGRAM) => Wanted::Own(self.process.id),
            (0, name) => Wanted::Named(name.to_owned()),
            (fd, name) => {
                let file = match self.table.get(fd)? {
                    Descriptor::File(file) => file,
                    _ => return Err(Errno::Acces.into()),
                };
                if !file.readable {
                    return Err(Errno::Acces.into());
                }
                Wanted::File(file.file.try_clone()?, name.to_owned())
            }
        };
        let (context, stderr) = self.of_child(&programs, request)?;
        Ok(programs.start(Order { program, context, parent: self.process.id, stderr })?)
    }

    fn of_child(&mut self, programs: &Arc<dyn Programs>, request: &StartRequest<'_>) -> Result<(Context, LastWords)> {
        let mut table = Table::default();
        for (number, fd) in request.streams.into_iter().enumerate() {
            // A standard stream that the parent has closed is nothing for the child.
            let open = fd.filter(|fd| *fd as usize != number || self.table.get(u64::from(*fd)).is_ok());
            let stream = match (open, number) {
                (Some(fd), _) => self.table.get(fd.into())?.share(),
                (None, 0) => Descriptor::input(Box::new(Null)),
                (None, _) => Descriptor::output(Box::new(Null)),
            };
            table.insert(stream)?;
        }
        let stderr = LastWords(table.get(2)?.share());
        for folder in self.table.directories().filter(|folder| folder.preopen.is_some()) {
            table.insert(Descriptor::Directory(folder.share()))?;
        }
        let folder = if request.folder.is_empty() { &self.process.folder } else { request.folder }.to_owned();
        let strings = |texts: &[&[u8]]| Strings::of(texts).map(Arc::new).map_err(|_| Stop::from(Errno::Inval));
        let context = Context {
            args: strings(&request.args)?,
            env: strings(&request.env)?,
            table,
            net: self.net.of_child()?,
            // Who starts it says its number.
            process: Process {
                programs: Some(programs.clone()),
                id: 0,
                folder,
                children: Vec::new(),
                starting: Vec::new(),
                pipes: self.process.pipes.clone(),
            },
            embedder: self.embedder.of_child(),
            since: None,
            trace: self.trace.clone(),
        };
        Ok((context, stderr))
    }

    /// Sets the number of a process that was started for a guest.
    pub fn set_process(&mut self, id: u32) {
        self.process.id = id;
        self.name_caller(|| format!("[process {id}] "));
    }
}
