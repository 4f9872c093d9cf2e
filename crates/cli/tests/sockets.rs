//! Ordinary programs with sockets (`tests/sockets`), on the device and natively: both must do the same.
//!
//! `scripts/build-sockets` builds the programs; while they are not there, the tests are reported as ignored, with `CI` set they fail.
//! With `GPU_RUN_TEST_ALL` set, the HTTP server is under load for a minute instead of three seconds. The load comes from wrk if that is
//! installed, else from a client of this file.

#[path = "support/tested.rs"]
mod tested;

use libtest_mimic::{Arguments, Failed, Trial};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, LazyLock};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

type Test = fn() -> Result<(), Failed>;

const TESTS: &[(&str, Test)] = &[
    ("a_thousand_connections::with_a_thread_for_each", || echoes("echo-threads", &[Place::Native, Place::Threads])),
    ("a_thousand_connections::with_a_pool_of_threads", || echoes("echo-pool", &[Place::Native, Place::Threads])),
    ("a_thousand_connections::without_threads", || echoes("echo-poll", &Place::ALL)),
    ("datagrams_between_the_device_and_the_host", datagrams_between_the_device_and_the_host),
    ("http_between_the_device_and_the_host", http_between_the_device_and_the_host),
    ("http_by_a_host_name", http_by_a_host_name),
    ("an_http_server_under_load", an_http_server_under_load),
    ("every_function_does_what_it_does_natively", every_function_does_what_it_does_natively),
    ("a_server_that_waits_costs_no_time", a_server_that_waits_costs_no_time),
    ("what_a_rule_allows", what_a_rule_allows),
    ("a_child_has_its_parents_network", a_child_has_its_parents_network),
];

/// What is denied: the rules, the way to the network, and where to.
const DENIED: &[(&str, &[&str], &str, &[&str])] = &[
    ("connecting_without_a_rule", &[], "connect", &["127.0.0.1:9", "[::1]:9", "0.0.0.0:9", "255.255.255.255:9"]),
    ("connecting_in_time_without_a_rule", &[], "connect-soon", &["127.0.0.1:9", "[::1]:9"]),
    ("listening_without_a_rule", &[], "listen", &["127.0.0.1:0", "0.0.0.0:0", "[::]:0", "[::1]:0", "127.0.0.1:9999"]),
    ("a_socket_for_datagrams_without_a_rule", &[], "bind", &["127.0.0.1:0", "0.0.0.0:0", "[::]:0"]),
    ("names_without_a_rule", &[], "look-up", &["localhost:80", "example.com:80", "2130706433:80", "a b:80", "é:80"]),
    ("connecting_by_name_without_a_rule", &[], "connect", &["localhost:80", "LOCALHOST:80", "localhost.:80"]),
    (
        "other_forms_of_an_address",
        &["connect=10.0.0.1:80"],
        "connect",
        &[
            "127.0.0.1:80",
            "0.0.0.0:80",
            "[::]:80",
            "[::1]:80",
            "[::ffff:127.0.0.1]:80",
            "[::ffff:0.0.0.0]:80",
            "[::127.0.0.1]:80",
            "[64:ff9b::127.0.0.1]:80",
            "[::ffff:10.0.0.2]:80",
            "[::1%1]:80",
        ],
    ),
    (
        "numbers_that_a_resolver_takes_for_addresses",
        &["connect=10.0.0.1:80", "connect=localhost:80"],
        "connect",
        &[
            "2130706433:80",
            "0x7f000001:80",
            "0x7f.1:80",
            "127.1:80",
            "0177.0.0.1:80",
            "017700000001:80",
            "127.0.0.1.:80",
        ],
    ),
    ("a_name_of_an_allowed_address", &["connect=127.0.0.1:80", "connect=[::1]:80"], "connect", &["localhost:80"]),
    (
        "the_address_of_a_name_that_nobody_looked_up",
        &["connect=localhost:80"],
        "connect",
        &["127.0.0.1:80", "[::1]:80"],
    ),
    ("a_name_that_begins_or_ends_like_another", &["connect=host:80"], "connect", &["localhost:80", "host.local:80"]),
    ("another_port", &["connect=127.0.0.1:80"], "connect", &["127.0.0.1:81", "127.0.0.1:0", "0.0.0.0:81"]),
    ("another_port_of_a_name", &["connect=localhost:80"], "connect", &["localhost:81", "localhost:0"]),
    ("a_neighbour", &["connect=127.0.0.1:*"], "connect", &["127.0.0.2:80", "127.0.0.0:80", "[::1]:80"]),
    ("connecting_where_listening_is_allowed", &["listen=127.0.0.1:*"], "connect", &["127.0.0.1:80", "localhost:80"]),
    (
        "listening_where_connecting_is_allowed",
        &["connect=*:*"],
        "listen",
        &["127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "localhost:0"],
    ),
    (
        "listening_at_all_addresses",
        &["listen=127.0.0.1:*"],
        "listen",
        &["0.0.0.0:0", "[::]:0", "[::ffff:0.0.0.0]:0", "[::1]:0", "127.0.0.2:0", "localhost:0"],
    ),
    ("listening_at_another_port", &["listen=127.0.0.1:9999"], "listen", &["127.0.0.1:0", "127.0.0.1:9998"]),
    ("listening_at_a_port_of_ones_own", &["listen=127.0.0.1:0"], "listen", &["127.0.0.1:9999", "127.0.0.1:80"]),
    (
        "a_datagram_to_elsewhere",
        &["connect=127.0.0.1:9"],
        "send",
        &["127.0.0.1:10", "127.0.0.2:9", "[::1]:9", "0.0.0.0:10"],
    ),
    (
        "a_datagram_to_everybody",
        &["connect=127.0.0.1:*"],
        "send",
        &["255.255.255.255:9", "127.255.255.255:9", "224.0.0.1:9"],
    ),
    ("a_datagram_by_a_mapped_address", &["connect=10.0.0.1:9"], "send", &["[::ffff:127.0.0.1]:9", "[::1]:9"]),
    (
        "a_datagram_to_a_peer",
        &["connect=127.0.0.1:9"],
        "send-connected",
        &["127.0.0.1:10", "127.0.0.2:9", "0.0.0.0:10"],
    ),
    ("a_datagram_where_listening_is_allowed", &["listen=*:*"], "send", &["127.0.0.1:9", "[::1]:9"]),
    ("a_socket_for_datagrams_where_connecting_is_allowed", &["connect=*:*"], "bind", &["127.0.0.1:0", "0.0.0.0:9999"]),
    ("a_group_where_connecting_is_allowed", &["connect=*:*"], "join", &["239.1.2.3"]),
    ("a_group_where_another_address_is_allowed", &["connect=*:*", "listen=127.0.0.1:*"], "join", &["239.1.2.3"]),
];

/// All runs share the compiled programs.
static CACHE: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a temporary folder"));

fn main() {
    let args = Arguments::from_args();
    let is_built = Place::ALL.iter().all(|place| place.file("api").is_file());
    let ignored = !is_built && std::env::var_os("CI").is_none();
    let trial = |name: String, test: Box<dyn FnOnce() -> Result<(), Failed> + Send>| {
        let run = move || match is_built {
            true => test(),
            false => Err("the programs are not built: run scripts/build-sockets".into()),
        };
        Trial::test(name, run).with_ignored_flag(ignored)
    };
    let denied = DENIED.iter().map(|(name, rules, way, targets)| {
        trial(format!("sockets::denied::{name}"), Box::new(|| is_denied(rules, way, targets)))
    });
    let others = TESTS.iter().map(|(name, test)| trial(format!("sockets::{name}"), Box::new(test)));
    let conclusion = libtest_mimic::run(&args, denied.chain(others).collect());
    _ = std::fs::remove_dir_all(CACHE.path());
    conclusion.exit();
}

/// Where a program runs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Native,
    /// On the device, built for wasm32-wasip1.
    Plain,
    /// On the device, built for wasm32-wasip1-threads.
    Threads,
}

impl Place {
    const ALL: [Place; 3] = [Place::Native, Place::Plain, Place::Threads];

    fn file(self, program: &str) -> PathBuf {
        let folder = tested::root().join("tests/sockets/target");
        match self {
            Place::Native => folder.join("release").join(program),
            Place::Plain => folder.join(format!("wasm32-wasip1/release/{program}.wasm")),
            Place::Threads => folder.join(format!("wasm32-wasip1-threads/release/{program}.wasm")),
        }
    }

    /// The program's command, on the device with these rules.
    fn command(self, program: &str, rules: &[&str], args: &[&str]) -> Command {
        let mut command = match self {
            Place::Native => Command::new(self.file(program)),
            Place::Plain | Place::Threads => {
                let mut command = tested::gpu_run();
                command.args(["--device", &tested::device(), "--timeout", "300s"]).env("GPU_RUN_CACHE", CACHE.path());
                if self == Place::Threads {
                    command.args(["--threads", "128"]);
                }
                command.args(rules.iter().flat_map(|rule| ["--net", rule])).arg(self.file(program));
                command
            }
        };
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(self, program: &str, rules: &[&str], args: &[&str]) -> Result<String, Failed> {
        printed(&mut self.command(program, rules, args))
    }
}

fn printed(command: &mut Command) -> Result<String, Failed> {
    let output = command.output()?;
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout)?),
        false => Err(format!("{command:?}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr)).into()),
    }
}

fn equal<T: PartialEq + std::fmt::Debug>(found: T, expected: T) -> Result<(), Failed> {
    if found == expected { Ok(()) } else { Err(format!("expected {expected:?}, got {found:?}").into()) }
}

/// A server that has said where it listens.
struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    at: SocketAddr,
}

impl Server {
    fn start(place: Place, program: &str, args: &[&str]) -> Result<Self, Failed> {
        let args = [&["127.0.0.1:0"], args].concat();
        let mut child = place.command(program, &["listen=127.0.0.1:0", "connect=127.0.0.1:*"], &args).spawn()?;
        let mut stdout = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        let mut line = String::new();
        stdout.read_line(&mut line)?;
        match line.trim().strip_prefix("listening on ").map(str::parse) {
            Some(at) => Ok(Self { child, stdout, at: at? }),
            None => Err(format!("{program} {place:?}: {line:?}, {:?}", child.wait_with_output()?).into()),
        }
    }

    /// Waits for the server's end. Returns what else it printed.
    fn end(mut self) -> Result<String, Failed> {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest)?;
        let mut errors = String::new();
        self.child.stderr.take().ok_or("no stderr")?.read_to_string(&mut errors)?;
        match self.child.wait()? {
            status if status.success() => Ok(rest),
            status => Err(format!("{status}: {rest}{errors}").into()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn connect(at: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(at)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

const AT_ONCE: usize = 100;
const ROUNDS: usize = 10;
const MESSAGES: [usize; 3] = [1, 1000, 10_000];

/// 1,000 connections, 100 of them at once.
fn echoes(program: &str, places: &[Place]) -> Result<(), Failed> {
    let connections = AT_ONCE * ROUNDS;
    let expected = format!("{connections} connections, {} bytes\n", connections * MESSAGES.iter().sum::<usize>());
    for place in places {
        let server = Server::start(*place, program, &[&connections.to_string()])?;
        let (at, together) = (server.at, &Barrier::new(AT_ONCE));
        thread::scope(|scope| {
            let clients: Vec<_> =
                (0..AT_ONCE).map(|client| scope.spawn(move || rounds(client, at, together))).collect();
            clients.into_iter().try_for_each(|client| client.join().map_err(|_| io::Error::other("a panic"))?)
        })
        .map_err(|error| format!("{place:?}: {error}"))?;
        equal(server.end()?, expected.clone())?;
    }
    Ok(())
}

/// Connects again and again, each time together with all others.
fn rounds(client: usize, at: SocketAddr, together: &Barrier) -> io::Result<()> {
    let mut result = Ok(());
    for round in 0..ROUNDS {
        let stream = connect(at);
        // Everybody comes here, whatever happens.
        together.wait();
        let exchanged = stream.and_then(|stream| exchange(stream, (client + round) as u8));
        result = result.and(exchanged);
    }
    result
}

fn exchange(mut stream: TcpStream, seed: u8) -> io::Result<()> {
    for length in MESSAGES {
        let sent: Vec<u8> = (0..length).map(|at| (at as u8).wrapping_mul(31).wrapping_add(seed)).collect();
        let mut received = vec![0; length];
        stream.write_all(&sent)?;
        stream.read_exact(&mut received)?;
        if sent != received {
            return Err(io::Error::other(format!("{length} bytes came back changed")));
        }
    }
    stream.shutdown(Shutdown::Write)?;
    match stream.read(&mut [0; 1])? {
        0 => Ok(()),
        _ => Err(io::Error::other("more came back than was sent")),
    }
}

/// Each of a server and a client on the device and natively.
fn pairs(servers: Place, clients: &[Place]) -> Vec<(Place, Place)> {
    [Place::Native, servers].iter().flat_map(|server| clients.iter().map(|client| (*server, *client))).collect()
}

fn datagrams_between_the_device_and_the_host() -> Result<(), Failed> {
    let mut expected = None;
    for (server, client) in pairs(Place::Plain, &Place::ALL) {
        let server = Server::start(server, "udp-echo", &["100"])?;
        let at = server.at.to_string();
        let printed = client.run("udp-client", &[&format!("connect={at}")], &[&at, "100"])?;
        let both = (server.end()?, printed);
        equal(both.clone(), expected.get_or_insert(both).clone())?;
    }
    Ok(())
}

fn stop(at: SocketAddr) -> io::Result<()> {
    let mut stream = connect(at)?;
    stream.write_all(b"GET /stop HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n")?;
    stream.read_to_end(&mut Vec::new()).map(drop)
}

fn http_between_the_device_and_the_host() -> Result<(), Failed> {
    let mut expected = None;
    for (server, client) in pairs(Place::Threads, &Place::ALL) {
        let server = Server::start(server, "http-server", &[])?;
        let rules = [&*format!("connect={}", server.at)];
        let printed: [String; 2] = ["/", "/large"].map(|page| format!("http://{}{page}", server.at)).map(|url| {
            client.run("http-get", &rules, &[&url]).unwrap_or_else(|error| format!("{client:?}: {error:?}"))
        });
        stop(server.at)?;
        let all = (server.end()?, printed);
        if !all.1[0]
            .starts_with("200 OK Some(\"text/plain\")\n16 bytes, Some(\"hello from here\")\n\"6 bytes: posted\"\n")
        {
            return Err(format!("{all:?}").into());
        }
        equal(all.clone(), expected.get_or_insert(all).clone())?;
    }
    Ok(())
}

fn http_by_a_host_name() -> Result<(), Failed> {
    let server = Server::start(Place::Native, "http-server", &[])?;
    let port = server.at.port();
    let url = format!("http://localhost:{port}/");
    let expected = Place::Native.run("http-get", &[], &[&url])?;
    equal(Place::Plain.run("http-get", &[&format!("connect=localhost:{port}")], &[&url])?, expected)?;
    let denied = Place::Plain.run("http-get", &[&format!("connect=127.0.0.1:{port}")], &[&url])?;
    match denied.lines().all(|line| line.contains("denied")) && denied.lines().count() == 3 {
        true => Ok(()),
        false => Err(format!("not denied: {denied}").into()),
    }
}

fn an_http_server_under_load() -> Result<(), Failed> {
    let seconds = if std::env::var_os("GPU_RUN_TEST_ALL").is_some() { 60 } else { 3 };
    let server = Server::start(Place::Threads, "http-server", &[])?;
    let url = format!("http://{}/", server.at);
    let mut wrk = Command::new("wrk");
    wrk.args(["--threads=2", "--connections=20", "--timeout=20s"]).arg(format!("--duration={seconds}s")).arg(url);
    let requests = match wrk.output() {
        Ok(output) => judged(&String::from_utf8(output.stdout)?)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => load(server.at, Duration::from_secs(seconds))?,
        Err(error) => return Err(error.into()),
    };
    stop(server.at)?;
    let answered: u64 = server.end()?.trim().trim_end_matches(" requests").parse()?;
    // The last answers may come when wrk has gone.
    match requests >= 100 * seconds && answered >= requests {
        true => Ok(()),
        false => Err(format!("{requests} requests in {seconds} s, {answered} of them answered").into()),
    }
}

/// Returns how many requests wrk made, if there were no errors.
fn judged(report: &str) -> Result<u64, Failed> {
    let requests = report.lines().find_map(|line| line.trim().split_once(" requests in ")?.0.parse().ok());
    match requests {
        Some(requests) if !report.contains("errors") && !report.contains("Non-2xx") => Ok(requests),
        _ => Err(report.into()),
    }
}

/// Asks for pages on 20 connections at once. Returns how many came; every one must.
fn load(at: SocketAddr, time: Duration) -> Result<u64, Failed> {
    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: here\r\n\r\n";
    const PAGE: &[u8] = b"hello from here\n";
    let (until, requests) = (Instant::now() + time, AtomicU64::new(0));
    let client = || -> io::Result<()> {
        let mut stream = connect(at)?;
        let mut answer = Vec::new();
        while Instant::now() < until {
            stream.write_all(REQUEST)?;
            answer.clear();
            while !answer.ends_with(PAGE) {
                let mut bytes = [0; 1024];
                match stream.read(&mut bytes)? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    count => answer.extend(&bytes[..count]),
                }
            }
            if !answer.starts_with(b"HTTP/1.1 200 OK\r\n") {
                return Err(io::Error::other(String::from_utf8_lossy(&answer)));
            }
            requests.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..20).map(|_| scope.spawn(client)).collect();
        clients.into_iter().try_for_each(|client| client.join().map_err(|_| io::Error::other("a panic"))?)
    })?;
    Ok(requests.into_inner())
}

fn every_function_does_what_it_does_natively() -> Result<(), Failed> {
    let expected = Place::Native.run("api", &[], &[])?;
    for place in [Place::Plain, Place::Threads] {
        let found = place.run("api", &["connect=*:*", "listen=*:*"], &[])?;
        for (found, expected) in found.lines().zip(expected.lines()) {
            equal(found, expected)?;
        }
        equal(found.lines().count(), expected.lines().count())?;
    }
    Ok(())
}

fn is_denied(rules: &[&str], way: &str, targets: &[&str]) -> Result<(), Failed> {
    let args = [&[way], targets].concat();
    let expected: String = targets.iter().map(|target| format!("{way} {target}: PermissionDenied\n")).collect();
    equal(Place::Plain.run("denied", rules, &args)?, expected)
}

/// The same requests that are denied elsewhere: it is the rule that makes the difference.
fn what_a_rule_allows() -> Result<(), Failed> {
    // Nobody can listen there without being the system's administrator, and nobody does.
    const REFUSED: &str = "ConnectionRefused";
    for (rule, way, target, expected) in [
        ("connect=127.0.0.1:1", "connect", "127.0.0.1:1", REFUSED),
        ("connect=127.0.0.1:1", "connect-soon", "127.0.0.1:1", REFUSED),
        ("connect=127.0.0.1:1", "connect", "[::ffff:127.0.0.1]:1", REFUSED),
        ("connect=127.0.0.1:1", "connect", "0.0.0.0:1", REFUSED),
        ("connect=127.0.0.1:*", "connect", "127.0.0.1:1", REFUSED),
        ("connect=*:1", "connect", "127.0.0.1:1", REFUSED),
        ("connect=localhost:1", "connect", "localhost:1", REFUSED),
        ("connect=localhost:1", "look-up", "LocalHost.:1", "ok"),
        // No file is missing.
        ("connect=*:1", "look-up", "a..b:1", "Uncategorized"),
        ("connect=127.0.0.1:1", "send", "127.0.0.1:1", "ok"),
        ("connect=127.0.0.1:1", "send-connected", "127.0.0.1:1", "ok"),
        ("listen=127.0.0.1:0", "listen", "127.0.0.1:0", "ok"),
        ("listen=127.0.0.1:0", "listen", "[::ffff:127.0.0.1]:0", "ok"),
        ("listen=127.0.0.1:*", "bind", "127.0.0.1:0", "ok"),
        ("listen=*:*", "join", "239.1.2.3", "ok"),
    ] {
        equal(Place::Plain.run("denied", &[rule], &[way, target])?, format!("{way} {target}: {expected}\n"))?;
    }
    Ok(())
}

fn a_child_has_its_parents_network() -> Result<(), Failed> {
    let child = |rules: &[&str], args: &[&str]| {
        let mut command = Place::Plain.command("denied", rules, &[&["child"], args].concat());
        // Options come before the program.
        let args: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        let mut with_program = Command::new(command.get_program());
        with_program.arg("--program").arg(Place::Plain.file("denied")).args(args).env("GPU_RUN_CACHE", CACHE.path());
        command = with_program;
        printed(command.stdin(Stdio::null()))
    };
    equal(child(&[], &["connect", "127.0.0.1:1"])?, "connect 127.0.0.1:1: PermissionDenied\n".into())?;
    equal(child(&[], &["listen", "127.0.0.1:0"])?, "listen 127.0.0.1:0: PermissionDenied\n".into())?;
    let rules = ["connect=127.0.0.1:1"];
    let expected = "connect 127.0.0.1:1: ConnectionRefused\nconnect 127.0.0.1:2: PermissionDenied\n";
    equal(child(&rules, &["connect", "127.0.0.1:1", "127.0.0.1:2"])?, expected.into())
}

/// Threads that wait for clients leave the cores to others.
fn a_server_that_waits_costs_no_time() -> Result<(), Failed> {
    let server = Server::start(Place::Threads, "http-server", &[])?;
    let used = || -> Result<u64, Failed> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.child.id()))?;
        let (_, fields) = stat.rsplit_once(')').ok_or("no process")?;
        // User and system time, in hundredths of a second.
        Ok(fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum())
    };
    let before = used()?;
    thread::sleep(Duration::from_secs(2));
    let used = used()? - before;
    // A tenth of a core.
    if used <= 20 { Ok(()) } else { Err(format!("{used} hundredths of a second in 2 s").into()) }
}
