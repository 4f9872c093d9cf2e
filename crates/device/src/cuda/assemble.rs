//! Assembles PTX to a cubin, which a GPU runs.
//!
//! Programs are assembled with `-c`, as if there were more to link: functions then keep to the calling convention
//! instead of being fitted to each other, which assembles hundreds of them five times as fast. Where NVIDIA's tools are
//! installed, they assemble in parts, as many at once as there are cores (`split`). The driver contains the same
//! assembler, on one core, and is always there. Short texts go to the driver first. Tools can be older than the card or
//! newer than the driver, and a driver can come without its assembler, so if one fails the other is tried. The
//! exception is PTX on which a tool crashed: in the driver, it would crash this process.

use super::Assembler;
use super::context::Context;
use super::driver::{Driver, Failure, Handle, JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES, JIT_INPUT_PTX, JIT_MAX_REGISTERS};
use super::split::split;
use crate::{CodeOptions, Error, Result};
use rayon::prelude::*;
use std::collections::HashMap;
use std::env;
use std::ffi::{CString, c_void};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::ptr::null_mut;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum registers of a thread; separately compiled functions use all they may. With 128, a multiprocessor runs 16
/// warps at once, which was measured to be at least as fast as fewer registers.
const USUAL_REGISTERS: u32 = 128;
/// Registers for a program with a function that needs far more, as unrolled arithmetic does: half as many warps at once
/// are then faster than that much spilling.
const MANY_REGISTERS: u32 = 255;
/// Bytes that a function may spill before it is assembled again with more registers. Up to about 160 bytes are
/// registers it saves for its caller, and with 440 twice as many warps were still faster.
const MAX_SPILLED: u32 = 640;
/// PTX of at least this length is assembled only once, even if it spills, and not function by function. A program of
/// this size has an unusual function among thousands; assembling again would take twice as long, and function by
/// function a sixth longer.
const WHOLE_FROM: usize = 4 << 20;
/// Bytes of PTX in a part, unless that makes too many parts. A part takes a tenth of a second, a quarter of it to start
/// ptxas.
const PART_BYTES: usize = 32 << 10;
/// Maximum parts for each core. More than one, because parts do not take equally long.
const PARTS_PER_CORE: usize = 2;
/// Bytes of the driver's log that are kept.
const LOG_BYTES: usize = 16 << 10;
/// Lines of a log that an error shows.
const LOG_LINES: usize = 12;

/// PTX shorter than this goes to the driver first: starting two processes takes longer than the work. Measure again
/// when the driver or the tools change.
const DRIVER_BELOW: usize = 64 << 10;

/// Who assembles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Tools,
    Driver,
}

/// Returns what to try, in order.
fn ways(which: Assembler, ptx_bytes: usize) -> &'static [Way] {
    match which {
        Assembler::Any if ptx_bytes < DRIVER_BELOW => &[Way::Driver, Way::Tools],
        Assembler::Any => &[Way::Tools, Way::Driver],
        Assembler::Tools => &[Way::Tools],
        Assembler::Driver => &[Way::Driver],
    }
}

/// Assembles PTX and gives the cubin to `load`, until one way works. If none does, returns the error of the first way
/// that was available: without tools, the driver's.
pub(super) fn assemble<T>(
    context: &Context,
    which: Assembler,
    target: u32,
    ptx: &str,
    options: CodeOptions,
    load: impl Fn(&[u8]) -> Result<T>,
) -> Result<T> {
    let mut first: Option<Error> = None;
    for way in ways(which, ptx.len()) {
        let start = Instant::now();
        let cubin = match (way, Tools::find()) {
            (Way::Driver, _) => link_with_room(context, ptx, options),
            (Way::Tools, Some(tools)) => tools.assemble(ptx, target, options),
            (Way::Tools, None) => continue,
        };
        match cubin.and_then(|cubin| load(&cubin)) {
            Ok(loaded) => {
                tracing::debug!(bytes = ptx.len(), ?way, time = ?start.elapsed(), "PTX assembled");
                if let Some(error) = first {
                    let (failed, used) = match way {
                        Way::Tools => ("the driver", "`ptxas` and `nvlink`"),
                        Way::Driver => ("`ptxas` and `nvlink`", "the driver"),
                    };
                    tracing::warn!("PTX was assembled by {used}, because {failed} failed: {error}");
                }
                return Ok(loaded);
            }
            Err(error) if error.is_lost() || matches!(error, Error::Crashed { .. } | Error::Late(_)) => {
                return Err(error);
            }
            Err(error) => first = first.or(Some(error)),
        }
    }
    let no_tools =
        || Error::Unavailable("no folder of CUDA_HOME, CUDA_PATH or PATH has both `ptxas` and `nvlink`".into());
    Err(first.unwrap_or_else(no_tools))
}

/// `ptxas` and `nvlink` of one release.
#[derive(Debug)]
pub(super) struct Tools {
    folder: PathBuf,
}

impl Tools {
    pub(super) fn find() -> Option<Self> {
        let home = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(env::var_os).map(|h| Path::new(&h).join("bin"));
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = home.chain(env::split_paths(&path)).chain([PathBuf::from("/usr/local/cuda/bin")]);
        let both = |folder: &PathBuf| folder.join("ptxas").is_file() && folder.join("nvlink").is_file();
        Some(Self { folder: folders.into_iter().find(both)? })
    }

    /// Assembles in parts, on all cores.
    pub(super) fn assemble(&self, ptx: &str, target: u32, options: CodeOptions) -> Result<Vec<u8>> {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        let count = (ptx.len() / PART_BYTES).clamp(1, PARTS_PER_CORE * cores);
        let texts = split(ptx, count).unwrap_or_else(|| vec![ptx.to_owned()]);
        let is_large = ptx.len() >= WHOLE_FROM;
        let may_spill = options.registers.is_some() || options.once || is_large;
        let registers = options.registers.unwrap_or(USUAL_REGISTERS);
        let how = How { target, registers, may_spill, apart: !is_large, until: options.until };
        self.assemble_parts(&texts, how)
    }

    fn assemble_parts(&self, texts: &[String], how: How) -> Result<Vec<u8>> {
        let place =
            tempfile::Builder::new().prefix("gpu-run-").tempdir().map_err(|e| failed("a temporary folder", e))?;
        let part = |n: usize| Part { tools: self, how, text: &texts[n], name: place.path().join(format!("part{n}")) };
        let assemble = |n: usize| {
            part(n).write()?;
            let again = most_spilled(&part(n).assemble(how.registers)?) > MAX_SPILLED && !how.may_spill;
            if again {
                part(n).assemble(MANY_REGISTERS)?;
            }
            Ok((n, again))
        };
        // `par_bridge` takes the parts in order, one at a time.
        let done = (0..texts.len()).par_bridge().map(assemble).collect::<Result<HashMap<_, _>>>()?;
        // nvlink refuses a function with more registers than the kernel that calls it may have, by address too. So the
        // kernels, which are in part 0, get as many.
        if done.values().any(|again| *again) && done.get(&0) == Some(&false) {
            part(0).assemble(MANY_REGISTERS)?;
        }
        let objects: Vec<_> = (0..texts.len()).map(|n| part(n).object()).collect();
        self.nvlink(how, &objects, place.path()).map_err(|complaint| complaint.about(&texts[0]))
    }

    fn nvlink(&self, how: How, objects: &[PathBuf], place: &Path) -> Result<Vec<u8>, Complaint> {
        let cubin = place.join("program.cubin");
        run(self.command("nvlink", how.target).arg("-o").arg(&cubin).args(objects), how.until)?;
        std::fs::read(&cubin).map_err(|e| Complaint::Refused(format!("{}: {e}", cubin.display())))
    }

    fn command(&self, tool: &str, target: u32) -> Command {
        let mut command = Command::new(self.folder.join(tool));
        command.arg(format!("-arch=sm_{target}"));
        command
    }
}

/// How to assemble a program.
#[derive(Clone, Copy)]
struct How {
    target: u32,
    registers: u32,
    /// Whether to leave a part as it is, however much it spills.
    may_spill: bool,
    /// Whether to assemble each function on its own: its code then does not depend on the others in its part, and takes
    /// fewer registers, so that more threads run at once.
    apart: bool,
    until: Option<Instant>,
}

/// One of the texts of a program.
struct Part<'a> {
    tools: &'a Tools,
    how: How,
    text: &'a str,
    /// The path of its files, without the extension.
    name: PathBuf,
}

impl Part<'_> {
    fn file(&self) -> PathBuf {
        self.name.with_extension("ptx")
    }

    fn object(&self) -> PathBuf {
        self.name.with_extension("o.cubin")
    }

    fn write(&self) -> Result<()> {
        std::fs::write(self.file(), self.text).map_err(|e| failed(&self.file().display().to_string(), e))
    }

    /// Assembles the part and returns ptxas's log about its functions. If ptxas crashes, tries once more without
    /// optimisations and ignores what that spills: one function in a thousand is known to need it.
    fn assemble(&self, registers: u32) -> Result<String> {
        let log = match self.ptxas(registers, &[]) {
            Err(Complaint::Crashed { tool, how }) => {
                tracing::warn!("`{tool}` crashed ({how}); part of the program runs without its optimisations");
                self.ptxas(registers, &["-O0"]).map(|_| String::new())
            }
            result => result,
        };
        log.map_err(|complaint| complaint.about(self.text))
    }

    fn ptxas(&self, registers: u32, more: &[&str]) -> Result<String, Complaint> {
        let ptxas = |apart: &[&str]| {
            let mut ptxas = self.tools.command("ptxas", self.how.target);
            ptxas.args(["-c", "-v"]).arg(format!("-maxrregcount={registers}")).args(apart).args(more);
            run(ptxas.arg("-o").arg(self.object()).arg(self.file()), self.how.until)
        };
        match ptxas(if self.how.apart { &["--split-compile=2"] } else { &[] }) {
            // CUDA 11 does not have this option.
            Err(Complaint::Refused(log)) if log.contains("split-compile") => ptxas(&[]),
            result => result,
        }
    }
}

/// The driver's own version, if the system shows it.
pub(super) fn driver_build() -> String {
    std::fs::read_to_string("/sys/module/nvidia/version")
        .map_or_else(|_| "unknown".into(), |text| text.trim().to_owned())
}

/// Identifies the installed tools by path, size and time; asking for their versions would start two processes.
pub(super) fn tools_identity() -> String {
    let Some(tools) = Tools::find() else { return "none".into() };
    let identity = |tool: &str| {
        let path = tools.folder.join(tool);
        let path = path.canonicalize().unwrap_or(path);
        let changed = |m: &std::fs::Metadata| m.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok();
        let (bytes, time) = path.metadata().map_or((0, None), |m| (m.len(), changed(&m)));
        format!("{} {bytes} {}", path.display(), time.unwrap_or_default().as_nanos())
    };
    format!("{}, {}", identity("ptxas"), identity("nvlink"))
}

/// Returns the most bytes that a function spills, from lines like `… bytes stack frame, 580 bytes spill stores, …`.
fn most_spilled(log: &str) -> u32 {
    let before = log.split(" bytes spill stores").map(|part| part.rsplit(' ').next());
    before.filter_map(|number| number?.parse().ok()).max().unwrap_or(0)
}

/// Why a tool failed.
enum Complaint {
    /// The tool's log.
    Refused(String),
    Crashed {
        tool: String,
        how: String,
    },
    /// The tool was killed at the deadline.
    Late(String),
}

impl Complaint {
    fn about(self, ptx: &str) -> Error {
        match self {
            Self::Refused(log) => refusal(&log, ptx),
            Self::Crashed { tool, how } => Error::Crashed { tool, how },
            Self::Late(tool) => Error::Late(format!("`{tool}`")),
        }
    }
}

/// Runs a tool, kills it if it is not done by `until`, and returns its log.
fn run(command: &mut Command, until: Option<Instant>) -> Result<String, Complaint> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = output(command, until).map_err(|e| Complaint::Refused(format!("cannot start {name}: {e}")))?;
    let Some(output) = output else { return Err(Complaint::Late(name)) };
    let mut log = String::from_utf8_lossy(&output.stderr).into_owned();
    log.push_str(&String::from_utf8_lossy(&output.stdout));
    match output.status.code() {
        Some(0) => {
            tracing::trace!(name, log, "assembler");
            Ok(log)
        }
        Some(code) if log.trim().is_empty() => Err(Complaint::Refused(format!("{name} ended with exit code {code}"))),
        Some(_) => Err(Complaint::Refused(log)),
        None => Err(Complaint::Crashed { tool: name, how: output.status.to_string() }),
    }
}

/// Interval at which a tool with a deadline is checked.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Returns what a command wrote and its exit status; `None` if it was killed at the deadline.
fn output(command: &mut Command, until: Option<Instant>) -> std::io::Result<Option<Output>> {
    let Some(until) = until else { return command.output().map(Some) };
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (stdout, stderr) = (drained(child.stdout.take()), drained(child.stderr.take()));
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() >= until {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(LOOK_EVERY);
    };
    let read = |thread: JoinHandle<Vec<u8>>| thread.join().unwrap_or_default();
    Ok(Some(Output { status, stdout: read(stdout), stderr: read(stderr) }))
}

/// Reads all of a pipe on a thread of its own: a tool would block on a full pipe.
fn drained(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

/// Stack for the driver's assembler, in bytes. It recurses as deep as a program's loops and branches nest, and when the
/// stack overflows it takes the process down. Only the pages it uses take memory.
const LINK_STACK: usize = 512 << 20;

fn link_with_room(context: &Context, ptx: &str, wanted: CodeOptions) -> Result<Vec<u8>> {
    std::thread::scope(|scope| {
        let assembler = std::thread::Builder::new().name("assembler".into()).stack_size(LINK_STACK);
        match assembler.spawn_scoped(scope, || link(context, ptx, wanted)) {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // There is no memory for such a stack; most programs do not need it.
            Err(_) => link(context, ptx, wanted),
        }
    })
}

/// Assembles with the driver's own assembler and linker.
fn link(context: &Context, ptx: &str, wanted: CodeOptions) -> Result<Vec<u8>> {
    let text =
        CString::new(ptx).map_err(|e| Error::Codegen(format!("the PTX has a zero byte at {}", e.nul_position())))?;
    let driver = context.enter()?;
    let mut log = vec![0u8; LOG_BYTES];
    let mut options = [JIT_MAX_REGISTERS, JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES];
    // Numbers are passed in place of pointers. The driver overwrites the log's capacity with its length.
    let registers = wanted.registers.unwrap_or(USUAL_REGISTERS) as usize;
    let mut values = [registers as *mut c_void, log.as_mut_ptr().cast(), LOG_BYTES as *mut c_void];
    let mut linker = null_mut();
    // SAFETY: entered; three options with three values. Both arrays and the log outlive the linker, which is destroyed
    // below.
    unsafe { driver.cuLinkCreate_v2(3, options.as_mut_ptr(), values.as_mut_ptr(), &mut linker) }?;
    // SAFETY: entered; `linker` was just created, and `complete` copies its result.
    let result = unsafe { complete(driver, linker, &text) };
    // SAFETY: entered; nobody uses the linker afterwards, and the driver keeps no pointer to the log.
    let _ = unsafe { driver.cuLinkDestroy(linker) };
    result.map_err(|failure| {
        let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
        let log = String::from_utf8_lossy(&log[..end]);
        refusal(&format!("{}\n{failure}", log.trim()), ptx)
    })
}

/// # Safety
/// The linker's context is current.
unsafe fn complete(driver: &Driver, linker: Handle, text: &CString) -> Result<Vec<u8>, Failure> {
    let bytes = text.as_bytes_with_nul();
    let (data, none) = (bytes.as_ptr().cast_mut().cast(), null_mut());
    // SAFETY: the data is a string with its zero byte, which the driver only reads; no options, and a name that is a string.
    unsafe {
        driver.cuLinkAddData_v2(linker, JIT_INPUT_PTX, data, bytes.len(), c"program".as_ptr(), 0, null_mut(), none)
    }?;
    let (mut image, mut len) = (null_mut(), 0);
    // SAFETY: one pointer and one length are written.
    unsafe { driver.cuLinkComplete(linker, &mut image, &mut len) }?;
    // SAFETY: the linker owns `len` bytes there until it is destroyed.
    Ok(unsafe { std::slice::from_raw_parts(image.cast::<u8>(), len) }.to_vec())
}

/// Turns an assembler's log into an error: about a line of PTX if the log names one, as in `… line 17; error   : …`.
fn refusal(log: &str, ptx: &str) -> Error {
    let said: Vec<_> = log.lines().map(str::trim_end).filter(|l| !l.is_empty()).collect();
    let shown = said.iter().take(LOG_LINES).copied().chain((said.len() > LOG_LINES).then_some("…"));
    let message = shown.collect::<Vec<_>>().join("\n");
    let numbered = said.iter().find_map(|l| l.split_once(", line ")?.1.split_once(';')?.0.parse::<usize>().ok());
    match numbered {
        Some(line) => {
            let text = line.checked_sub(1).and_then(|n| ptx.lines().nth(n)).unwrap_or_default();
            Error::Ptx { line, message, text: text.trim().into() }
        }
        None => Error::Codegen(message),
    }
}

fn failed(what: &str, error: std::io::Error) -> Error {
    Error::Codegen(format!("{what}: {error}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::split::tests::PROGRAM;
    use super::*;

    fn how(may_spill: bool) -> How {
        How { target: 90, registers: USUAL_REGISTERS, may_spill, apart: true, until: None }
    }

    #[test]
    fn short_texts_start_no_processes() {
        assert_eq!(ways(Assembler::Any, DRIVER_BELOW - 1), [Way::Driver, Way::Tools]);
        assert_eq!(ways(Assembler::Any, DRIVER_BELOW), [Way::Tools, Way::Driver]);
        assert_eq!(ways(Assembler::Tools, 1), [Way::Tools]);
        assert_eq!(ways(Assembler::Driver, DRIVER_BELOW), [Way::Driver]);
    }

    #[test]
    fn what_a_function_spills_is_read_from_what_ptxas_says() {
        let log = "ptxas info    : Function properties for f9\n    620 bytes stack frame, 580 bytes spill stores, 584 bytes spill loads\n\
                   ptxas info    : Function properties for f10\n    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n";
        assert_eq!((most_spilled(log), most_spilled("")), (580, 0));
    }

    #[test]
    fn an_assemblers_complaint_becomes_an_error_of_its_line() {
        let ptx = ".version 7.8\n.target sm_75\n    addd.u64 %d0, %d1, %d2;\n";
        let log = "ptxas application ptx input, line 3; error   : Not a name of any known instruction: 'addd'\n\
                   ptxas fatal   : Ptx assembly aborted due to errors\n";
        let Error::Ptx { line, message, text } = refusal(log, ptx) else { panic!("no line") };
        assert_eq!((line, text.as_str()), (3, "addd.u64 %d0, %d1, %d2;"));
        assert!(message.contains("'addd'") && message.contains("aborted"), "{message}");
        assert!(
            matches!(refusal("nvlink error   : Undefined reference to 'f'", ptx), Error::Codegen(m) if m.contains("'f'"))
        );
        assert!(matches!(refusal("x, line 99; error : y", ptx), Error::Ptx { line: 99, text, .. } if text.is_empty()));
    }

    #[test]
    fn a_tool_that_crashes_is_named_and_its_log_is_not_taken_for_a_complaint() {
        let mut tool = Command::new("sh");
        let Err(complaint) = run(tool.args(["-c", "echo 'ptxas info    : all is well' >&2; kill -SEGV $$"]), None)
        else {
            panic!("a crash is no success")
        };
        let error = complaint.about("");
        assert!(matches!(&error, Error::Crashed { tool, how } if tool == "sh" && how.contains("11")), "{error}");
        assert!(
            matches!(run(Command::new("sh").args(["-c", "exit 3"]), None), Err(Complaint::Refused(log)) if log.contains('3'))
        );
    }

    #[test]
    fn a_tool_that_takes_too_long_is_ended() {
        let until = Instant::now() + Duration::from_millis(20);
        // It has to be killed: nobody waits for its sleep.
        let ended = run(Command::new("sleep").arg("1000"), Some(until));
        assert!(matches!(ended, Err(Complaint::Late(tool)) if tool == "sleep"));
        let far = Instant::now() + Duration::from_secs(1000);
        let said = run(Command::new("sh").args(["-c", "echo so; echo much >&2"]), Some(far));
        assert!(matches!(said, Ok(log) if log == "much\nso\n"));
    }

    /// Tools that are scripts, in a folder that lives as long. `nvlink` joins its inputs, and `$copy` is the same for `ptxas`.
    #[cfg(unix)]
    fn scripts(ptxas: &str) -> (tempfile::TempDir, Tools) {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let copy = r#"while [ "$1" != -o ]; do shift; done; out=$2; shift 2; cat "$@" > "$out""#;
        for (name, script) in [("nvlink", copy.to_owned()), ("ptxas", format!("for last; do :; done; {ptxas}; {copy}"))]
        {
            let file = folder.path().join(name);
            std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let tools = Tools { folder: folder.path().into() };
        (folder, tools)
    }

    /// Parts that are one function each.
    #[cfg(unix)]
    fn parts(functions: &[(&str, &str)]) -> Vec<String> {
        let part = |(name, body): &(&str, &str)| format!(".func {name} ()\n{{\n    {body}\n    ret;\n}}\n");
        functions.iter().map(part).collect()
    }

    #[cfg(unix)]
    #[test]
    fn what_the_assembler_crashes_at_is_assembled_without_optimisation() {
        let (folder, tools) = scripts(
            r#"case "$*" in *-O0*) echo unoptimised >> "$last";; *) grep -q brx "$last" && kill -SEGV $$;; esac"#,
        );
        let texts = parts(&[("f1", "brx.idx %r0, $T;"), ("f2", "bar.sync 0;")]);
        let linked = String::from_utf8(tools.assemble_parts(&texts, how(false)).unwrap()).unwrap();
        assert_eq!(linked, format!("{}unoptimised\n{}", texts[0], texts[1]));
        let whole = tools.assemble(&texts.concat(), 90, CodeOptions::default()).unwrap();
        assert!(whole.ends_with(b"unoptimised\n"));
        drop(folder);
        let (_folder, tools) = scripts("kill -SEGV $$");
        let error = tools.assemble(&texts.concat(), 90, CodeOptions::default()).unwrap_err();
        assert!(matches!(error, Error::Crashed { .. }), "{error}");
    }

    /// A script for which a function with a loop spills, and which says how often it was asked, with how many registers.
    #[cfg(unix)]
    #[test]
    fn only_a_part_that_spills_and_the_kernels_get_more_registers() {
        let (_folder, tools) = scripts(
            r#"case "$*" in *=255*) echo 255 >> "$last";; *) echo 128 >> "$last";; esac; \
               grep -q loop "$last" && echo '    8 bytes stack frame, 900 bytes spill stores, 9 bytes spill loads' >&2"#,
        );
        let linked = |texts: &[String], may_spill| {
            let linked = tools.assemble_parts(texts, how(may_spill)).unwrap();
            String::from_utf8(linked)
                .unwrap()
                .replace(".func ", "")
                .replace(" ()\n{\n    ", " ")
                .replace("\n    ret;\n}", "")
        };
        let texts = parts(&[("k", "call f;"), ("f", "bra loop;"), ("g", "bar.sync 0;")]);
        assert_eq!(linked(&texts, false), "k call f;\n128\n255\nf bra loop;\n128\n255\ng bar.sync 0;\n128\n");
        assert_eq!(linked(&texts, true), "k call f;\n128\nf bra loop;\n128\ng bar.sync 0;\n128\n");
        assert_eq!(linked(&texts[1..], false), "f bra loop;\n128\n255\ng bar.sync 0;\n128\n", "once more, not twice");
        assert_eq!(linked(&texts[2..], false), "g bar.sync 0;\n128\n");
    }

    #[test]
    fn an_error_shows_the_line_of_its_part() {
        let Some(tools) = Tools::find() else { return };
        let mut texts = split(PROGRAM, 8).unwrap();
        let bad = texts.iter_mut().find(|text| text.contains("add.u32 %out")).unwrap();
        *bad = bad.replace("add.u32", "addd.u32");
        let error = tools.assemble_parts(&texts, how(false)).unwrap_err();
        assert!(matches!(&error, Error::Ptx { text, .. } if text == "addd.u32 %out, %a1, 1;"), "{error}");
    }

    /// A function that no 128 registers are enough for, called by name and by address from kernels that need few.
    #[test]
    fn kernels_have_the_registers_of_what_they_call() {
        let Some(tools) = Tools::find() else { return };
        let each = |line: &dyn Fn(usize) -> String| (0..200).map(line).collect::<String>();
        let body = [
            "{\n    .reg .b32 %r<400>;\n".into(),
            each(&|n| format!("    ld.volatile.global.u32 %r{n}, [%a0+{}];\n", 4 * n)),
            each(&|n| format!("    mad.lo.u32 %r{}, %r{}, %r{}, %a1;\n", 200 + n, n * 7 % 200, (n * 13 + 5) % 200)),
            each(&|n| format!("    st.volatile.global.u32 [%a0+{}], %r{};\n", 4 * n, 200 + n)),
            each(&|n| format!("    st.volatile.global.u32 [%a0+{}], %r{n};\n", 4 * n)),
            "    mov.u32 %out, 0;\n    ret;\n}".into(),
        ];
        let ptx = PROGRAM.replace("{\n    add.u32 %out, %a1, 1;\n    ret;\n}", &body.concat());
        let texts = split(&ptx, 8).unwrap();
        let cubin = tools.assemble_parts(&texts, how(false)).unwrap();
        assert!(cubin.starts_with(b"\x7fELF"));
        assert!(tools.assemble_parts(&texts, how(true)).unwrap() != cubin, "it does spill");
    }

    #[test]
    fn installed_tools_make_a_cubin_and_name_the_line_they_refuse() {
        let Some(tools) = Tools::find() else { return };
        let kernel = |body: &str| {
            format!(".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k ()\n{{\n{body}\nret;\n}}\n")
        };
        let cubin = tools.assemble(&kernel("bar.sync 0;"), 90, CodeOptions::default()).unwrap();
        assert!(cubin.starts_with(b"\x7fELF"), "{} bytes", cubin.len());
        let parts = tools.assemble_parts(&split(PROGRAM, 8).unwrap(), how(false));
        assert!(parts.unwrap().starts_with(b"\x7fELF"), "functions of several parts call each other");
        let error = tools.assemble(&kernel("nothing.like.this;"), 90, CodeOptions::default()).unwrap_err();
        assert!(matches!(error, Error::Ptx { line: 6, .. }), "{error}");
    }
}
