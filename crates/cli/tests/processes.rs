//! Processes that guests start: the programs of `tests/processes`, which must print what their native builds print.
//!
//! `scripts/build-processes` builds the programs; while they are not there, the tests are reported as ignored, with `CI` set they fail.

#[path = "support/tested.rs"]
mod tested;

use libtest_mimic::{Arguments, Failed, Trial};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use tempfile::TempDir;

type Test = fn() -> Result<(), Failed>;

/// The programs that are compared with their native builds, and their arguments.
const PROGRAMS: &[(&str, &[&str])] = &[
    ("make", &[]),
    ("pipeline", &["50000"]),
    ("ends", &[]),
    ("streams", &[]),
    ("surroundings", &[]),
    ("again", &["200"]),
    ("threaded", &[]),
];

const TESTS: &[(&str, Test)] = &[
    ("programs_are_started_by_their_paths", programs_are_started_by_their_paths),
    ("without_an_option_nothing_is_started", without_an_option_nothing_is_started),
    ("a_child_has_no_more_folders_than_its_parent", a_child_has_no_more_folders_than_its_parent),
    ("a_child_that_never_ends_is_killed_with_its_parent", a_child_that_never_ends_is_killed_with_its_parent),
    ("a_child_that_its_parent_left_behind_ends", a_child_that_its_parent_left_behind_ends),
    ("there_are_not_more_at_once_than_allowed", there_are_not_more_at_once_than_allowed),
    ("a_trap_of_a_child_is_told_on_its_stderr", a_trap_of_a_child_is_told_on_its_stderr),
    ("a_trap_of_a_child_shows_its_calls", a_trap_of_a_child_shows_its_calls),
    ("a_trap_of_a_child_leaves_a_core_dump", a_trap_of_a_child_leaves_a_core_dump),
    ("what_the_timeout_stops_leaves_a_core_dump_of_the_first", what_the_timeout_stops_leaves_a_core_dump_of_the_first),
    ("what_outlives_the_timeout_is_told", what_outlives_the_timeout_is_told),
    ("names_that_nobody_could_start_are_refused", names_that_nobody_could_start_are_refused),
    ("a_start_that_takes_something_is_refused", a_start_that_takes_something_is_refused),
    ("names_of_files_are_shown_and_not_obeyed", names_of_files_are_shown_and_not_obeyed),
    ("stats_list_the_processes", stats_list_the_processes),
    ("stats_for_programs_list_the_processes", stats_for_programs_list_the_processes),
    ("top_shows_the_processes", top_shows_the_processes),
    ("a_trace_names_the_process", a_trace_names_the_process),
    ("instances_have_processes_of_their_own", instances_have_processes_of_their_own),
    ("a_program_that_is_none_is_refused", a_program_that_is_none_is_refused),
    ("threads_children_and_sockets_in_one_program", threads_children_and_sockets_in_one_program),
];

/// Those about what processes cost the host where it is the device, too. On a GPU they are ignored.
const CPU_TESTS: &[(&str, Test)] =
    &[("memory_that_no_process_touches_costs_nothing", memory_that_no_process_touches_costs_nothing)];

/// All runs share the compiled programs.
static CACHE: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a temporary folder"));

fn main() {
    let args = Arguments::from_args();
    let is_built = wasm("tool").is_file() && native("tool").is_file();
    let ignored = !is_built && std::env::var_os("CI").is_none();
    let trial = |name: String, run: Box<dyn FnOnce() -> Result<(), Failed> + Send>| {
        let run = move || match is_built {
            true => run(),
            false => Err("the programs are not built: run scripts/build-processes".into()),
        };
        Trial::test(format!("processes::{name}"), run).with_ignored_flag(ignored)
    };
    let programs = PROGRAMS.iter().map(|(name, args)| trial((*name).into(), Box::new(|| is_native(name, args))));
    let tests = TESTS.iter().map(|(name, test)| trial((*name).into(), Box::new(*test)));
    let is_cpu = tested::device() == "cpu";
    let cpu_tests = CPU_TESTS
        .iter()
        .map(|(name, test)| trial((*name).into(), Box::new(*test)).with_ignored_flag(ignored || !is_cpu));
    let conclusion = libtest_mimic::run(&args, programs.chain(tests).chain(cpu_tests).collect());
    _ = std::fs::remove_dir_all(CACHE.path());
    conclusion.exit();
}

fn built() -> PathBuf {
    tested::root().join("tests/processes/target")
}

fn native(name: &str) -> PathBuf {
    built().join("release").join(name)
}

fn wasm(name: &str) -> PathBuf {
    let target = if matches!(name, "threaded" | "line-server") { "wasm32-wasip1-threads" } else { "wasm32-wasip1" };
    built().join(target).join("release").join(name).with_extension("wasm")
}

/// `gpu-run OPTIONS NAME.wasm ARGS`, in a folder.
fn command(folder: &Path, options: &[&str], name: &str, args: &[&str]) -> Command {
    let mut command = tested::gpu_run();
    command.args(["--device", &tested::device()]).args(options).arg(wasm(name)).args(args);
    command.current_dir(folder).env("GPU_RUN_CACHE", CACHE.path()).env_remove("RUST_BACKTRACE").stdin(Stdio::null());
    command
}

fn tool() -> String {
    format!("--program=tool={}", wasm("tool").display())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn check(is_right: bool, output: &Output) -> Result<(), Failed> {
    match is_right {
        true => Ok(()),
        false => Err(format!("{}\n{}\n{}", output.status, text(&output.stdout), text(&output.stderr)).into()),
    }
}

/// Runs a program on both sides, each in a folder of its own.
fn is_native(name: &str, args: &[&str]) -> Result<(), Failed> {
    let (here, there) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let mut path = native("tool").parent().ok_or("no folder")?.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut expected = Command::new(native(name));
    let expected = expected.args(args).env("PATH", path).current_dir(there.path()).stdin(Stdio::null()).output()?;
    check(expected.status.success(), &expected)?;
    let output = command(here.path(), &["--dir=.", "--timeout=100", &tool()], name, args).output()?;
    check(output.status.success() && output.stdout == expected.stdout, &output)
}

fn programs_are_started_by_their_paths() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let output = command(folder.path(), &["--dir=."], "files", &[]).output()?;
    let expected = "again, as [\"again\", \"by its path\"]\nSome(4)\nrefused: true\n";
    check(output.status.success() && text(&output.stdout) == expected, &output)
}

fn without_an_option_nothing_is_started() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    // The program wants to start itself.
    let output = command(folder.path(), &[], "files", &[]).output()?;
    check(!output.status.success() && text(&output.stderr).contains("PermissionDenied"), &output)?;
    // No such name.
    let output = command(folder.path(), &["--dir=."], "make", &[]).output()?;
    check(!output.status.success() && text(&output.stderr).contains("NotFound"), &output)
}

fn a_child_has_no_more_folders_than_its_parent() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("here.txt"), "secret")?;
    let output = command(folder.path(), &[&tool()], "start", &["folder"]).output()?;
    check(output.status.success() && !text(&output.stdout).contains("secret"), &output)?;
    let output = command(folder.path(), &[&tool(), "--dir-ro=."], "start", &["folder"]).output()?;
    check(text(&output.stdout).contains("secret"), &output)
}

fn a_child_that_never_ends_is_killed_with_its_parent() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let began = Instant::now();
    let output = command(folder.path(), &[&tool(), "--timeout=1"], "start", &["spin"]).output()?;
    check(output.status.code() == Some(124) && began.elapsed() < Duration::from_secs(30), &output)
}

fn a_child_that_its_parent_left_behind_ends() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    // What it prints is not lost, although nobody waits for it.
    let output = command(folder.path(), &[&tool(), "--timeout=60"], "start", &["--leave", "sleep-echo"]).output()?;
    check(output.status.success() && text(&output.stdout) == "left\nslept\n", &output)
}

fn there_are_not_more_at_once_than_allowed() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let output = command(folder.path(), &[&tool(), "--max-processes=3"], "start", &["--many", "5"]).output()?;
    check(text(&output.stdout) == "started 3, then WouldBlock\n", &output)
}

fn a_trap_of_a_child_is_told_on_its_stderr() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let output = command(folder.path(), &[&tool()], "start", &["abort"]).output()?;
    let expected = "error: tool (process 2) trapped: unreachable";
    check(output.status.code() == Some(99) && text(&output.stderr).contains(expected), &output)
}

fn a_trap_of_a_child_shows_its_calls() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let mut command = command(folder.path(), &[&tool()], "start", &["abort"]);
    let output = command.env("RUST_BACKTRACE", "1").output()?;
    check(text(&output.stderr).contains("0: tool::main"), &output)
}

/// What the folder of core dumps has in it: the names of files that are core dumps.
fn dumps(folder: &Path) -> Result<Vec<String>, Failed> {
    let mut names = Vec::new();
    for entry in folder.join("dumps").read_dir()? {
        let entry = entry?;
        let bytes = std::fs::read(entry.path())?;
        assert!(bytes.starts_with(b"\0asm") && bytes.windows(9).any(|word| word == b"corestack"), "{entry:?}");
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    Ok(names)
}

fn a_trap_of_a_child_leaves_a_core_dump() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let output = command(folder.path(), &[&tool(), "--coredump=dumps"], "start", &["abort"]).output()?;
    let expected = "note: the core dump of tool (process 2) is dumps/tool.";
    check(output.status.code() == Some(99) && text(&output.stderr).contains(expected), &output)?;
    let names = dumps(folder.path())?;
    check(names.len() == 1 && names[0].ends_with(".2.coredump"), &output)?;
    // Of its children, one aborts; those that it kills leave none.
    let folder = tempfile::tempdir()?;
    let output = command(folder.path(), &[&tool(), "--coredump=dumps"], "ends", &[]).output()?;
    check(output.status.success() && dumps(folder.path())?.len() == 1, &output)
}

fn what_the_timeout_stops_leaves_a_core_dump_of_the_first() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let options = [&tool(), "--coredump=dumps", "--timeout=1"];
    let output = command(folder.path(), &options, "start", &["spin"]).output()?;
    let names = dumps(folder.path())?;
    check(output.status.code() == Some(124) && names.len() == 1 && names[0].starts_with("start."), &output)
}

fn what_outlives_the_timeout_is_told() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let output = command(folder.path(), &[&tool(), "--timeout=5"], "start", &["--leave", "spin"]).output()?;
    let expected = "1 child process did not finish within 5.00 s and was stopped";
    check(output.status.code() == Some(124) && text(&output.stderr).contains(expected), &output)
}

/// A module that runs until it is stopped, with nearly all the memory that there can be.
const LARGE: &str = r#"(module (memory 65535) (data (i32.const 8) "data") (func (export "_start") (loop (br 0))))"#;

fn memory_that_no_process_touches_costs_nothing() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("large.wat"), LARGE)?;
    let options = ["--program=tool=large.wat", "--timeout=60"];
    let mut running = Killed(command(folder.path(), &options, "start", &[]).stderr(Stdio::null()).spawn()?);
    // Long enough to start: the most memory that it had is known at any time.
    std::thread::sleep(Duration::from_secs(5));
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.0.id()))?;
    assert!(running.0.try_wait()?.is_none(), "it ended");
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    match most.ok_or("no VmHWM")?.parse::<u64>()? {
        ..0x8_0000 => Ok(()),
        kib => Err(format!("{kib} KiB").into()),
    }
}

fn names_that_nobody_could_start_are_refused() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let option = format!("--program=tool.wasm={}", wasm("tool").display());
    let output = command(folder.path(), &[&option], "start", &["echo"]).output()?;
    let expected = "what ends in `.wasm` is the name of a file";
    check(output.status.code() == Some(2) && text(&output.stderr).contains(expected), &output)?;
    // A folder of programs: what is no file is left out.
    std::fs::create_dir_all(folder.path().join("programs/folder.wasm"))?;
    std::os::unix::fs::symlink("nowhere", folder.path().join("programs/link.wasm"))?;
    std::fs::copy(wasm("tool"), folder.path().join("programs/tool.wasm"))?;
    let output = command(folder.path(), &["--program=programs"], "start", &["echo", "one"]).output()?;
    check(output.status.success() && text(&output.stdout) == "one\n", &output)
}

fn a_start_that_takes_something_is_refused() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("odd.wat"), r#"(module (func (export "_start") (param i32)))"#)?;
    let output = command(folder.path(), &["--program=tool=odd.wat"], "start", &["echo"]).output()?;
    check(output.status.code() == Some(2) && text(&output.stderr).contains("_start"), &output)
}

fn names_of_files_are_shown_and_not_obeyed() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let name = "red\u{1b}[31m.wasm";
    std::fs::write(folder.path().join(name), "no program")?;
    let output = command(folder.path(), &["--dir=."], "start", &["--other", name]).output()?;
    let stderr = text(&output.stderr);
    check(!stderr.contains('\u{1b}') && stderr.contains("it is not a WebAssembly module"), &output)
}

fn stats_for_programs_list_the_processes() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let output = command(folder.path(), &[&tool(), "--stats=json"], "start", &["exit", "3"]).output()?;
    let stats: serde_json::Value = serde_json::from_slice(&output.stderr)?;
    let processes = &stats["processes"];
    let last = &processes["last"][0];
    let is_right = processes["started"] == 1 && last["name"] == "tool" && last["exit_code"] == 3 && last["parent"] == 1;
    check(is_right && last["host_calls"].as_u64() > Some(0), &output)
}

fn stats_list_the_processes() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let output = command(folder.path(), &[&tool(), "--stats"], "start", &["exit", "3"]).output()?;
    let stderr = text(&output.stderr);
    check(stderr.contains("1 started, at most 1 at once") && stderr.contains("2 of 1: tool, exited 3 after"), &output)
}

fn top_shows_the_processes() -> Result<(), Failed> {
    let (folder, runtime) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let mut command = command(folder.path(), &[&tool(), "--timeout=60"], "start", &["sleep", "30000"]);
    let mut running = Killed(command.env("XDG_RUNTIME_DIR", runtime.path()).stderr(Stdio::null()).spawn()?);
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let mut top = tested::gpu_run();
        let output = top.args(["top", "--once"]).env("XDG_RUNTIME_DIR", runtime.path()).output()?;
        if text(&output.stdout).contains("2 of 1: tool, runs for") {
            return Ok(());
        }
        if Instant::now() > until || running.0.try_wait()?.is_some() {
            return check(false, &output);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

fn a_trace_names_the_process() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let output = command(folder.path(), &[&tool(), "--trace=wasi"], "start", &["echo", "hello"]).output()?;
    let stderr = text(&output.stderr);
    let lines = ["process_start(\"tool\", [\"tool\", \"echo\", \"hello\"]) = 0 (2)", "[process 2] fd_write(1"];
    check(lines.iter().all(|line| stderr.contains(line)), &output)
}

fn instances_have_processes_of_their_own() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let output = command(folder.path(), &[&tool(), "--instances=4"], "start", &["echo", "one of four"]).output()?;
    check(output.status.success() && text(&output.stdout) == "one of four\n".repeat(4), &output)
}

fn a_program_that_is_none_is_refused() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("none.wasm"), "none")?;
    let file = folder.path().join("none.wasm");
    for program in
        [format!("--program=tool={}", file.display()), "--program=tool=missing.wasm".into(), "--program==x".into()]
    {
        let output = command(folder.path(), &[&program], "start", &["echo"]).output()?;
        check(output.status.code() == Some(2) && text(&output.stderr).starts_with("error: "), &output)?;
    }
    Ok(())
}

/// The example of `docs/together.md`: each client has a thread of the server, and each thread a child process.
fn threads_children_and_sockets_in_one_program() -> Result<(), Failed> {
    const CLIENTS: usize = 12;
    let folder = tempfile::tempdir()?;
    let filter = format!("--program=line-filter={}", wasm("line-filter").display());
    let options = ["--net=listen=127.0.0.1:0", "--threads=64", "--timeout=100", &filter];
    let mut server = command(folder.path(), &options, "line-server", &["127.0.0.1:0", &CLIENTS.to_string()]);
    let mut server = Killed(server.stdout(Stdio::piped()).spawn()?);
    let mut stdout = BufReader::new(server.0.stdout.take().ok_or("no stdout")?);
    let mut line = String::new();
    stdout.read_line(&mut line)?;
    let address = line.trim().strip_prefix("listening on ").ok_or_else(|| format!("it says {line:?}"))?;
    let client = |client: usize| -> std::io::Result<bool> {
        let mut stream = TcpStream::connect(address)?;
        let lines = 100 * client;
        for line in 0..lines {
            writeln!(stream, "client {client} says {line}")?;
        }
        stream.shutdown(Shutdown::Write)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let expected: String =
            (0..lines).map(|line| format!("{:>4}  CLIENT {client} SAYS {line}\n", line + 1)).collect();
        Ok(answer == expected)
    };
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|number| scope.spawn(move || client(number))).collect();
        clients.into_iter().try_for_each(|client| match client.join() {
            Ok(Ok(true)) => Ok(()),
            other => Err(Failed::from(format!("{other:?}"))),
        })
    })?;
    let mut rest = String::new();
    stdout.read_to_string(&mut rest)?;
    match server.0.wait()?.success() && rest == "served a client\n".repeat(CLIENTS) {
        true => Ok(()),
        false => Err(rest.into()),
    }
}
