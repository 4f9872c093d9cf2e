//! Processes of gpu-run: the host starts them, ends them, and waits for them.

#![forbid(unsafe_op_in_unsafe_fn)]

use super::env::{CommandEnv, CommandEnvs};
use crate::collections::BTreeMap;
pub use crate::ffi::OsString as EnvKey;
use crate::ffi::{OsStr, OsString};
use crate::num::NonZero;
use crate::os::fd::AsRawFd;
use crate::path::{Path, PathBuf};
use crate::process::StdioPipes;
use crate::sys::fd::FileDesc;
use crate::sys::fs::{File, OpenOptions};
use crate::sys::pal::gpu_run::{self, NO_STREAM, ask, fetch, files};
use crate::sys::{IntoInner, cvt_r};
use crate::{env, fmt, fs, io};

/// What the host calls the running program.
const THIS_PROGRAM: &str = "/proc/self/exe";
/// The most bytes of a request, arguments and environment among them, and WASI's number for the error.
const MAX_REQUEST: usize = 1 << 20;
const TOO_BIG: i32 = 1;

pub struct Command {
    program: OsString,
    /// The first one is the program, as it sees itself.
    args: Vec<OsString>,
    env: CommandEnv,
    cwd: Option<OsString>,
    stdin: Option<Stdio>,
    stdout: Option<Stdio>,
    stderr: Option<Stdio>,
}

#[derive(Debug)]
pub enum Stdio {
    Inherit,
    Null,
    MakePipe,
    ParentStdout,
    ParentStderr,
    Fd(FileDesc),
}

impl Command {
    pub fn new(program: &OsStr) -> Command {
        Command {
            program: program.to_owned(),
            args: vec![program.to_owned()],
            env: Default::default(),
            cwd: None,
            stdin: None,
            stdout: None,
            stderr: None,
        }
    }

    pub fn arg(&mut self, arg: &OsStr) {
        self.args.push(arg.to_owned());
    }

    pub fn env_mut(&mut self) -> &mut CommandEnv {
        &mut self.env
    }

    pub fn cwd(&mut self, dir: &OsStr) {
        self.cwd = Some(dir.to_owned());
    }

    pub fn stdin(&mut self, stdin: Stdio) {
        self.stdin = Some(stdin);
    }

    pub fn stdout(&mut self, stdout: Stdio) {
        self.stdout = Some(stdout);
    }

    pub fn stderr(&mut self, stderr: Stdio) {
        self.stderr = Some(stderr);
    }

    pub fn get_program(&self) -> &OsStr {
        &self.program
    }

    pub fn get_args(&self) -> CommandArgs<'_> {
        CommandArgs { iter: self.args[1..].iter() }
    }

    pub fn get_envs(&self) -> CommandEnvs<'_> {
        self.env.iter()
    }

    pub fn get_env_clear(&self) -> bool {
        self.env.does_clear()
    }

    pub fn get_current_dir(&self) -> Option<&Path> {
        self.cwd.as_ref().map(Path::new)
    }

    pub fn spawn(&mut self, default: Stdio, needs_stdin: bool) -> io::Result<(Process, StdioPipes)> {
        // Where there are no processes, that is what is said, whatever else is wrong.
        self.start(&default, needs_stdin).map_err(|error| match gpu_run::process_id() {
            Err(unsupported) if unsupported.kind() == io::ErrorKind::Unsupported => unsupported,
            _ => error,
        })
    }

    fn start(&self, default: &Stdio, needs_stdin: bool) -> io::Result<(Process, StdioPipes)> {
        let variables = self.env.capture();
        self.check(&variables)?;
        let folder = self.folder()?;
        let default_stdin = if needs_stdin { default } else { &Stdio::Null };
        let stdin = Stream::new(self.stdin.as_ref().unwrap_or(default_stdin), 0)?;
        let stdout = Stream::new(self.stdout.as_ref().unwrap_or(default), 1)?;
        let stderr = Stream::new(self.stderr.as_ref().unwrap_or(default), 2)?;
        let mut request = Vec::new();
        for stream in [&stdin, &stdout, &stderr] {
            put_number(&mut request, stream.childs);
        }
        put_text(&mut request, &self.program);
        put_text(&mut request, folder.as_os_str());
        put_number(&mut request, self.args.len() as u32);
        self.args.iter().for_each(|arg| put_text(&mut request, arg));
        put_number(&mut request, variables.len() as u32);
        for (name, value) in &variables {
            let mut variable = name.clone();
            variable.push("=");
            variable.push(value);
            put_text(&mut request, &variable);
        }
        if request.len() > MAX_REQUEST {
            return Err(io::Error::from_raw_os_error(TOO_BIG));
        }
        let id = self.start_as(&request, &folder, variables.get(OsStr::new("PATH")))?;
        let pipes = StdioPipes { stdin: stdin.ours, stdout: stdout.ours, stderr: stderr.ours };
        Ok((Process { id, status: None }, pipes))
    }

    /// A program with a path is opened here, so that the sandbox decides; any other name is one that the user gave a program, or
    /// that of a file in a folder of the child's `PATH`.
    fn start_as(&self, request: &[u8], folder: &Path, path: Option<&OsString>) -> io::Result<u32> {
        let by_file = |file: File| gpu_run::start(file.as_raw_fd() as u32, request);
        let name = self.program.as_encoded_bytes();
        let is_path = name.contains(&b'/') || name.ends_with(b".wasm");
        if is_path && self.program != THIS_PROGRAM {
            return by_file(open(&folder.join(&self.program))?);
        }
        match gpu_run::start(0, request) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && !is_path => {
                let folders = path.into_iter().flat_map(env::split_paths).filter(|_| !name.is_empty());
                let mut files = folders.map(|place| folder.join(place).join(&self.program));
                // As natively: a folder, or a file that cannot be opened, is not the one that is meant.
                let is_file = |file: &PathBuf| fs::metadata(file).is_ok_and(|about| about.is_file());
                let found = files.find_map(|file| is_file(&file).then(|| open(&file).ok()).flatten());
                found.map_or(Err(error), by_file)
            }
            started => started,
        }
    }

    /// The folder that the child begins in. The host does not know in which one this process is.
    fn folder(&self) -> io::Result<PathBuf> {
        let own = env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        let Some(cwd) = &self.cwd else { return Ok(own) };
        if cwd.is_empty() {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        let folder = files::without_leading_dots(&own.join(cwd)).into_owned();
        if fs::metadata(&folder)?.is_dir() {
            Ok(folder)
        } else {
            Err(io::Error::from(io::ErrorKind::NotADirectory))
        }
    }

    fn check(&self, variables: &BTreeMap<OsString, OsString>) -> io::Result<()> {
        let mut texts = self.args.iter().chain(&self.cwd).chain(variables.keys()).chain(variables.values());
        if texts.any(|text| text.as_encoded_bytes().contains(&0)) {
            return Err(io::const_error!(io::ErrorKind::InvalidInput, "nul byte found in provided data"));
        }
        Ok(())
    }
}

fn open(file: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    File::open(file, &options)
}

fn put_number(request: &mut Vec<u8>, number: u32) {
    request.extend_from_slice(&number.to_le_bytes());
}

fn put_text(request: &mut Vec<u8>, text: &OsStr) {
    put_number(request, text.len() as u32);
    request.extend_from_slice(text.as_encoded_bytes());
}

/// A standard stream of a child.
struct Stream {
    /// The descriptor that the child gets.
    childs: u32,
    /// Of a new pipe, the child's end, which is closed here when the child has it, and the other one.
    _pipe: Option<FileDesc>,
    ours: Option<FileDesc>,
}

impl Stream {
    fn new(stdio: &Stdio, inherited: u32) -> io::Result<Stream> {
        let childs = match stdio {
            Stdio::Inherit => inherited,
            Stdio::Null => NO_STREAM,
            Stdio::ParentStdout => 1,
            Stdio::ParentStderr => 2,
            Stdio::Fd(fd) => fd.as_raw_fd() as u32,
            Stdio::MakePipe => {
                let (reader, writer) = gpu_run::pipe()?;
                let (pipe, ours) = if inherited == 0 { (reader, writer) } else { (writer, reader) };
                return Ok(Stream { childs: pipe.as_raw_fd() as u32, _pipe: Some(pipe), ours: Some(ours) });
            }
        };
        Ok(Stream { childs, _pipe: None, ours: None })
    }
}

pub fn output(command: &mut Command) -> io::Result<(ExitStatus, Vec<u8>, Vec<u8>)> {
    let (mut process, mut pipes) = command.spawn(Stdio::MakePipe, false)?;
    drop(pipes.stdin.take());
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    match (pipes.stdout.take(), pipes.stderr.take()) {
        (None, None) => {}
        (Some(out), None) => _ = out.read_to_end(&mut stdout)?,
        (None, Some(err)) => _ = err.read_to_end(&mut stderr)?,
        (Some(out), Some(err)) => read_output(out, &mut stdout, err, &mut stderr)?,
    }
    Ok((process.wait()?, stdout, stderr))
}

pub type ChildPipe = crate::sys::pipe::Pipe;

/// Reads both at the same time: a child that fills one of them must not wait for the other one.
pub fn read_output(
    out: ChildPipe,
    stdout: &mut Vec<u8>,
    err: ChildPipe,
    stderr: &mut Vec<u8>,
) -> io::Result<()> {
    out.set_nonblocking(true)?;
    err.set_nonblocking(true)?;
    let wait = |pipe: &ChildPipe| libc::pollfd { fd: pipe.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    loop {
        let mut fds = [wait(&out), wait(&err)];
        // SAFETY: there are two descriptors.
        cvt_r(|| unsafe { libc::poll(fds.as_mut_ptr(), 2, -1) })?;
        if fds[0].revents != 0 && is_at_end(out.read_to_end(stdout))? {
            err.set_nonblocking(false)?;
            return err.read_to_end(stderr).map(drop);
        }
        if fds[1].revents != 0 && is_at_end(err.read_to_end(stderr))? {
            out.set_nonblocking(false)?;
            return out.read_to_end(stdout).map(drop);
        }
    }
}

fn is_at_end(read: io::Result<usize>) -> io::Result<bool> {
    match read {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}

impl From<ChildPipe> for Stdio {
    fn from(pipe: ChildPipe) -> Stdio {
        Stdio::Fd(pipe)
    }
}

impl From<io::Stdout> for Stdio {
    fn from(_: io::Stdout) -> Stdio {
        Stdio::ParentStdout
    }
}

impl From<io::Stderr> for Stdio {
    fn from(_: io::Stderr) -> Stdio {
        Stdio::ParentStderr
    }
}

impl From<File> for Stdio {
    fn from(file: File) -> Stdio {
        Stdio::Fd(file.into_inner())
    }
}

/// As on Unix: what a shell would be told.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            let mut command = f.debug_struct("Command");
            command.field("program", &self.program).field("args", &self.args);
            if !self.env.is_unchanged() {
                command.field("env", &self.env);
            }
            if self.cwd.is_some() {
                command.field("cwd", &self.cwd);
            }
            for (name, stream) in [("stdin", &self.stdin), ("stdout", &self.stdout), ("stderr", &self.stderr)] {
                if stream.is_some() {
                    command.field(name, stream);
                }
            }
            return command.finish();
        }
        if let Some(cwd) = &self.cwd {
            write!(f, "cd {cwd:?} && ")?;
        }
        if self.env.does_clear() {
            f.write_str("env -i ")?;
        } else {
            let mut is_first = true;
            for (name, _) in self.get_envs().filter(|(_, value)| value.is_none()) {
                write!(f, "{}-u {} ", if is_first { "env " } else { "" }, name.to_string_lossy())?;
                is_first = false;
            }
        }
        for (name, value) in self.get_envs() {
            if let Some(value) = value {
                write!(f, "{}={value:?} ", name.to_string_lossy())?;
            }
        }
        write!(f, "{:?}", self.args[0])?;
        self.args[1..].iter().try_for_each(|arg| write!(f, " {arg:?}"))
    }
}

pub struct Process {
    id: u32,
    /// How it ended, once that is known: the host says it once.
    status: Option<ExitStatus>,
}

impl Process {
    pub fn id(&self) -> u32 {
        self.id
    }

    pub fn kill(&mut self) -> io::Result<()> {
        match self.status {
            Some(_) => Ok(()),
            None => gpu_run::ask_about(self.id, ask::PROCESS_KILL, 0, [&[], &[]]).map(drop),
        }
    }

    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            match self.end(true) {
                Ok(Some(status)) => return Ok(status),
                Ok(None) => {}
                Err(error) if error.is_interrupted() => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.end(false)
    }

    fn end(&mut self, waits: bool) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            let (mut how, mut code) = ([0; 4], [0; 4]);
            let argument = if waits { 0 } else { 1 };
            let count = gpu_run::fetch_about(self.id, fetch::PROCESS_END, argument, &mut how, &mut code)?;
            if count == 8 {
                let (how, code) = (u32::from_le_bytes(how), u32::from_le_bytes(code));
                self.status = Some(ExitStatus { how, code });
            }
        }
        Ok(self.status)
    }
}

/// How a process ended, by the host's numbers.
mod ended {
    pub const EXITED: u32 = 0;
    pub const TRAPPED: u32 = 1;
}

#[derive(PartialEq, Eq, Clone, Copy, Debug, Default)]
pub struct ExitStatus {
    how: u32,
    code: u32,
}

impl ExitStatus {
    pub fn exit_ok(&self) -> Result<(), ExitStatusError> {
        if *self == ExitStatus::default() { Ok(()) } else { Err(ExitStatusError(*self)) }
    }

    pub fn code(&self) -> Option<i32> {
        (self.how == ended::EXITED).then_some(self.code as i32)
    }
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.how {
            ended::EXITED => write!(f, "exit status: {}", self.code as i32),
            ended::TRAPPED => match trap(self.code) {
                Some(name) => write!(f, "trap: {name}"),
                None => write!(f, "trap: {}", self.code),
            },
            _ => f.write_str("killed"),
        }
    }
}

fn trap(code: u32) -> Option<&'static str> {
    Some(match code {
        1 => "unreachable",
        2 => "out of bounds memory access",
        3 => "out of bounds table access",
        4 => "uninitialized element",
        5 => "indirect call type mismatch",
        6 => "integer divide by zero",
        7 => "integer overflow",
        8 => "invalid conversion to integer",
        9 => "call stack exhausted",
        10 => "interrupted",
        11 => "host call failed",
        12 => "null reference",
        13 => "undefined element",
        15 => "unaligned atomic",
        16 => "expected shared memory",
        20 => "null function reference",
        21 => "null exception reference",
        22 => "uncaught exception",
        24 => "a host function was given a misaligned pointer",
        _ => return None,
    })
}

#[derive(PartialEq, Eq, Clone, Copy, Debug)]
pub struct ExitStatusError(ExitStatus);

impl Into<ExitStatus> for ExitStatusError {
    fn into(self) -> ExitStatus {
        self.0
    }
}

impl ExitStatusError {
    pub fn code(self) -> Option<NonZero<i32>> {
        self.0.code().and_then(NonZero::new)
    }
}

#[derive(PartialEq, Eq, Clone, Copy, Debug)]
pub struct ExitCode(u8);

impl ExitCode {
    pub const SUCCESS: ExitCode = ExitCode(0);
    pub const FAILURE: ExitCode = ExitCode(1);

    pub fn as_i32(&self) -> i32 {
        self.0 as i32
    }
}

impl From<u8> for ExitCode {
    fn from(code: u8) -> Self {
        Self(code)
    }
}

pub struct CommandArgs<'a> {
    iter: crate::slice::Iter<'a, OsString>,
}

impl<'a> Iterator for CommandArgs<'a> {
    type Item = &'a OsStr;
    fn next(&mut self) -> Option<&'a OsStr> {
        self.iter.next().map(|os| &**os)
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.iter.size_hint()
    }
}

impl<'a> ExactSizeIterator for CommandArgs<'a> {
    fn len(&self) -> usize {
        self.iter.len()
    }
    fn is_empty(&self) -> bool {
        self.iter.is_empty()
    }
}

impl<'a> fmt::Debug for CommandArgs<'a> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter.clone()).finish()
    }
}

#[allow(dead_code)] // Rust 1.95 asks elsewhere.
pub fn getpid() -> u32 {
    gpu_run::process_id().expect("this host has no processes")
}
