//! Sockets that a guest opens: the program `net` of `tests/wasi`, against sockets of this process.
//!
//! `scripts/build-wasi-programs` builds the program; while it is not there, the tests are reported as ignored, with `CI` set they
//! fail.

use libtest_mimic::{Arguments, Failed, Trial};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

type Test = fn() -> Result<(), Failed>;

const TESTS: &[(&str, Test)] = &[
    ("a_guest_connects", a_guest_connects),
    ("a_guest_listens", a_guest_listens),
    ("datagrams_go_both_ways", datagrams_go_both_ways),
    ("a_client_needs_no_rule_to_bind", a_client_needs_no_rule_to_bind),
    ("a_read_times_out", a_read_times_out),
    ("a_connection_is_refused", a_connection_is_refused),
    ("names_are_looked_up_if_allowed", names_are_looked_up_if_allowed),
    ("everything_is_denied_without_a_rule", everything_is_denied_without_a_rule),
    ("tricks_are_denied", tricks_are_denied),
    ("what_is_denied_is_said_with_v", what_is_denied_is_said_with_v),
    ("guests_that_wait_cost_no_time", guests_that_wait_cost_no_time),
    ("each_instance_has_its_own_sockets", each_instance_has_its_own_sockets),
    ("each_record_has_its_own_sockets", each_record_has_its_own_sockets),
    ("a_rerun_connects_no_second_time", a_rerun_connects_no_second_time),
    ("a_trace_names_the_requests", a_trace_names_the_requests),
    ("a_bad_rule_is_a_usage_error", a_bad_rule_is_a_usage_error),
    ("a_program_without_threads_has_one", a_program_without_threads_has_one),
];

/// All runs share one compiled program.
static CACHE: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a temporary folder"));

fn main() {
    let args = Arguments::from_args();
    let is_built = program().is_file();
    let ignored = !is_built && std::env::var_os("CI").is_none();
    let trials = TESTS.iter().map(|(name, test)| {
        let run = move || match is_built {
            true => test(),
            false => Err("the program is not built: run scripts/build-wasi-programs".into()),
        };
        Trial::test(format!("net::{name}"), run).with_ignored_flag(ignored)
    });
    let conclusion = libtest_mimic::run(&args, trials.collect());
    _ = std::fs::remove_dir_all(CACHE.path());
    conclusion.exit();
}

fn program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/wasi/target/wasm32-wasip1/release/net.wasm")
}

/// `gpu-run`, with these rules. What the program is to do comes behind.
fn command(rules: &[String]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpu-run"));
    command.args(["--device", "cpu", "--timeout", "300s"]).env("GPU_RUN_CACHE", CACHE.path());
    for rule in rules {
        command.args(["--net", rule]);
    }
    command.stdin(Stdio::null());
    command
}

fn start(rules: &[String], args: &[&str]) -> Result<Child, Failed> {
    let mut command = command(rules);
    command.arg(program()).args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(command.spawn()?)
}

fn run(rules: &[String], args: &[&str]) -> Result<String, Failed> {
    printed(start(rules, args)?)
}

fn printed(child: Child) -> Result<String, Failed> {
    let output = child.wait_with_output()?;
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout)?),
        false => Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)).into()),
    }
}

fn equal<T: PartialEq + std::fmt::Debug>(found: T, expected: T) -> Result<(), Failed> {
    if found == expected { Ok(()) } else { Err(format!("expected {expected:?}, got {found:?}").into()) }
}

/// Answers every connection with what it sent, twice.
fn echo() -> Result<String, Failed> {
    Ok(counted_echo()?.0)
}

/// Like [`echo`], and counts the connections.
fn counted_echo() -> Result<(String, Arc<AtomicUsize>), Failed> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let at = listener.local_addr()?.to_string();
    let counted = Arc::new(AtomicUsize::new(0));
    let counter = counted.clone();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            counter.fetch_add(1, Ordering::Relaxed);
            let mut bytes = [0; 100];
            let count = stream.read(&mut bytes).unwrap_or(0);
            _ = stream.write_all(&bytes[..count].repeat(2));
        }
    });
    Ok((at, counted))
}

fn a_guest_connects() -> Result<(), Failed> {
    let at = echo()?;
    equal(run(&[format!("connect={at}")], &["connect", &at, "hey"])?, "connect: ok \"heyhey\"\n".into())
}

fn a_guest_listens() -> Result<(), Failed> {
    let mut child = start(&["listen=127.0.0.1:*".into()], &["listen", "127.0.0.1:0"])?;
    let mut stdout = BufReader::new(child.stdout.take().ok_or("no stdout")?);
    let mut at = String::new();
    stdout.read_line(&mut at)?;
    let mut stream = TcpStream::connect(at.trim())?;
    stream.write_all(b"hey")?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    equal(answer, "HEY".into())?;
    let mut rest = String::new();
    stdout.read_to_string(&mut rest)?;
    child.wait()?;
    equal(rest, "listen: ok \"hey\"\n".into())
}

/// Answers one datagram with what it said, twice. Returns its address.
fn datagram_echo() -> Result<String, Failed> {
    let ours = UdpSocket::bind("127.0.0.1:0")?;
    let at = ours.local_addr()?.to_string();
    thread::spawn(move || {
        let mut bytes = [0; 100];
        if let Ok((count, from)) = ours.recv_from(&mut bytes) {
            _ = ours.send_to(&bytes[..count].repeat(2), from);
        }
    });
    Ok(at)
}

fn datagrams_go_both_ways() -> Result<(), Failed> {
    let at = datagram_echo()?;
    let rules = [format!("connect={at}"), "listen=127.0.0.1:0".into()];
    equal(run(&rules, &["send", "127.0.0.1:0", &at, "hey"])?, format!("send: ok ({at}, \"heyhey\")\n"))?;

    let ours = UdpSocket::bind("127.0.0.1:0")?;
    let from = ours.local_addr()?.to_string();
    let rules = [format!("connect={from}"), "listen=127.0.0.1:*".into()];
    let mut child = start(&rules, &["hear", "127.0.0.1:0", &from])?;
    let mut stdout = BufReader::new(child.stdout.take().ok_or("no stdout")?);
    let mut at = String::new();
    stdout.read_line(&mut at)?;
    ours.send_to(b"hey", at.trim())?;
    let mut bytes = [0; 100];
    let count = ours.recv(&mut bytes)?;
    equal(&bytes[..count], b"HEY")?;
    let mut rest = String::new();
    stdout.read_to_string(&mut rest)?;
    child.wait()?;
    equal(rest, format!("{from}\nhear: ok 3\n"))
}

fn a_client_needs_no_rule_to_bind() -> Result<(), Failed> {
    let at = datagram_echo()?;
    let sent = run(&[format!("connect={at}")], &["send", "0.0.0.0:0", &at, "hey"])?;
    equal(sent, format!("send: ok ({at}, \"heyhey\")\n"))
}

fn a_read_times_out() -> Result<(), Failed> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let at = listener.local_addr()?.to_string();
    equal(run(&[format!("connect={at}")], &["timeout", &at])?, "set: ok 0\nread: again\n".into())
}

fn a_connection_is_refused() -> Result<(), Failed> {
    let at = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
    equal(run(&["connect=127.0.0.1:*".into()], &["refused", &at])?, "refused: connrefused\n".into())
}

fn names_are_looked_up_if_allowed() -> Result<(), Failed> {
    let rule = |rule: &str| [rule.to_owned()];
    equal(run(&rule("connect=localhost:80"), &["look up", "LOCALHOST."])?, "look up: ok true\n".into())?;
    for (rules, name) in [
        (&[][..], "localhost"),
        (&rule("connect=127.0.0.1:80"), "localhost"),
        (&rule("connect=127.0.0.1:80"), "0x7f.1"),
        (&rule("connect=127.0.0.1:80"), "2130706433"),
        (&rule("connect=example.com:80"), "localhost"),
    ] {
        equal(run(rules, &["look up", name])?, "look up: acces\n".into())?;
    }
    Ok(())
}

fn everything_is_denied_without_a_rule() -> Result<(), Failed> {
    let at = echo()?;
    let expected: String = ["connect", "listen", "bind"].iter().map(|what| format!("{what} {at}: acces\n")).collect();
    equal(run(&[], &["denied", &at])?, expected)?;
    equal(run(&[], &["denied", "0.0.0.0:0"])?, expected_for("0.0.0.0:0"))
}

fn expected_for(address: &str) -> String {
    ["connect", "listen", "bind"].iter().map(|what| format!("{what} {address}: acces\n")).collect()
}

fn tricks_are_denied() -> Result<(), Failed> {
    let at = echo()?;
    let port = at.rsplit(':').next().ok_or("no port")?;
    let tricks = ["127.0.0.1", "0.0.0.0", "[::ffff:127.0.0.1]", "[::ffff:0.0.0.0]", "[::1]", "[::]", "[::1%1]"]
        .map(|trick| format!("{trick}:{port}"));
    let rules = [format!("connect=10.0.0.1:{port}"), format!("listen=127.0.0.2:{port}")];
    let args: Vec<&str> = std::iter::once("denied").chain(tricks.iter().map(String::as_str)).collect();
    equal(run(&rules, &args)?, tricks.iter().map(|trick| expected_for(trick)).collect())
}

fn what_is_denied_is_said_with_v() -> Result<(), Failed> {
    let mut command = command(&["connect=10.0.0.1:80".into()]);
    command.arg("-v").arg(program()).args(["denied", "127.0.0.1:7001"]);
    let stderr = String::from_utf8(command.output()?.stderr)?;
    for line in [
        "denied: connect to 127.0.0.1:7001; --net connect=127.0.0.1:7001 would allow it",
        "denied: listen at 127.0.0.1:7001; --net listen=127.0.0.1:7001 would allow it",
    ] {
        if !stderr.contains(line) {
            return Err(format!("no {line:?} in:\n{stderr}").into());
        }
    }
    let mut command = self::command(&[]);
    command.arg("-v").arg(program()).args(["look up", "example.com"]);
    let stderr = String::from_utf8(command.output()?.stderr)?;
    match stderr.contains("denied: look up \"example.com\"; --net connect=example.com:80 would allow it") {
        true => Ok(()),
        false => Err(stderr.into()),
    }
}

/// Eight guests that wait for a server which says nothing; then it does, and they go on at once.
fn guests_that_wait_cost_no_time() -> Result<(), Failed> {
    const GUESTS: usize = 8;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let at = listener.local_addr()?.to_string();
    let mut command = command(&[format!("connect={at}")]);
    command.args(["--instances", &GUESTS.to_string()]).arg(program()).args(["connect", &at, "hey"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut streams = Vec::new();
    for _ in 0..GUESTS {
        let (mut stream, _) = listener.accept()?;
        stream.read_exact(&mut [0; 3])?;
        streams.push(stream);
    }
    let used = || -> Result<u64, Failed> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id()))?;
        let (_, fields) = stat.rsplit_once(')').ok_or("no process")?;
        // User and system time, in hundredths of a second.
        Ok(fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum())
    };
    // Of several times, the quietest counts: a busy machine's clocks count what others do.
    let mut least = u64::MAX;
    for _ in 0..6 {
        let before = used()?;
        thread::sleep(Duration::from_secs(1));
        least = least.min(used()? - before);
    }
    for mut stream in streams {
        stream.write_all(b"heyhey")?;
    }
    equal(printed(child)?, "connect: ok \"heyhey\"\n".repeat(GUESTS))?;
    // A twentieth of a core.
    if least <= 5 { Ok(()) } else { Err(format!("{least} hundredths of a second in each second").into()) }
}

fn each_instance_has_its_own_sockets() -> Result<(), Failed> {
    let at = echo()?;
    let mut command = command(&[format!("connect={at}")]);
    command.args(["--instances", "5"]).arg(program()).args(["connect", &at, "hey"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    equal(printed(child)?, "connect: ok \"heyhey\"\n".repeat(5))
}

/// Runs a map of three records, which connect here. Returns what it prints, and what it says about that.
fn map(at: &str, what: &str) -> Result<[String; 2], Failed> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpu-run"));
    command.args(["map", "-vv", "--device", "cpu", "--layout", "interleaved", "--net", &format!("connect={at}")]);
    command.env("GPU_RUN_CACHE", CACHE.path()).arg(program()).args(["--", what, at, "{}"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    child.stdin.take().ok_or("no stdin")?.write_all(b"a\nb\nc\n")?;
    let output = child.wait_with_output()?;
    Ok([String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?])
}

fn each_record_has_its_own_sockets() -> Result<(), Failed> {
    let expected = ["a", "b", "c"].map(|text| format!("connect: ok \"{text}{text}\"\n")).concat();
    equal(map(&echo()?, "connect")?[0].clone(), expected)
}

/// What the speculative build cannot finish is rerun, with the answers that it got.
fn a_rerun_connects_no_second_time() -> Result<(), Failed> {
    let (at, connections) = counted_echo()?;
    let [printed, said] = map(&at, "connect and stray")?;
    equal(printed, ["a", "b", "c"].map(|text| format!("connect: ok (\"{text}{text}\", inf)\n")).concat())?;
    equal(connections.load(Ordering::Relaxed), 3)?;
    if said.contains("rerunning count=3") { Ok(()) } else { Err(format!("no rerun:\n{said}").into()) }
}

fn a_trace_names_the_requests() -> Result<(), Failed> {
    let at = echo()?;
    let mut command = command(&[format!("connect={at}")]);
    command.args(["--trace", "wasi"]).arg(program()).args(["connect", &at, "hey"]);
    let stderr = String::from_utf8(command.output()?.stderr)?;
    let line = format!("tcp_connect({at}) = 0 (");
    if stderr.contains(&line) { Ok(()) } else { Err(format!("no {line:?} in:\n{stderr}").into()) }
}

fn a_bad_rule_is_a_usage_error() -> Result<(), Failed> {
    for (rule, why) in [("localhost:80", "connect=HOST:PORT"), ("connect=*.org:80", "`*` stands for a whole host")] {
        let output = command(&[rule.into()]).arg(program()).output()?;
        let stderr = String::from_utf8(output.stderr)?;
        equal(output.status.code(), Some(2))?;
        let is_clear = [rule, why, "--net", "listen=ADDRESS:PORT"].iter().all(|part| stderr.contains(part));
        if !is_clear {
            return Err(stderr.into());
        }
    }
    Ok(())
}

fn a_program_without_threads_has_one() -> Result<(), Failed> {
    equal(run(&[], &["parallelism"])?, "parallelism: ok 1\n".into())
}
