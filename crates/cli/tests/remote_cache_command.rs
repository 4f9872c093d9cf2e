//! A cache that machines share: from the command line, in a folder and in a server that behaves as S3 does.
#![allow(dead_code, clippy::unwrap_used)] // the server has more than these tests use; a test that cannot go on says so by panicking

#[path = "objects/proxy.rs"]
mod proxy;
#[path = "objects/server.rs"]
mod server;
#[path = "support/mod.rs"]
mod support;

use libtest_mimic::{Arguments, Failed, Trial};
use proxy::{Faults, Proxy};
use serde_json::Value;
use server::Server;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use support::{Place, Ran, wat};

/// The secret that entries are signed with, and another one.
const SECRET: &str = "ff00a-secret-that-nobody-may-see-00ff";
const OTHER: &str = "another-secret-of-at-least-32-characters";
/// The secret that the server asks for.
const PASSWORD: &str = "a-password-that-nobody-may-see";
/// As if the program took so many milliseconds more to compile: until the remote cache has answered.
const SLOW: (&str, &str) = ("GPU_RUN_TEST_CACHE", "slow:60000");
/// Longer than a run takes whose remote cache is of no use, on a busy machine.
const SOON: Duration = Duration::from_secs(40);

type ServerTest = fn(&Server);

/// Tests in a folder, and in the server.
const IN_A_FOLDER: &[(&str, fn())] = &[
    ("another_machine_compiles_nothing", another_machine_compiles_nothing),
    ("without_a_key_there_is_no_remote_cache", without_a_key_there_is_no_remote_cache),
    ("what_was_not_signed_with_the_key_is_not_run", what_was_not_signed_with_the_key_is_not_run),
    ("what_cannot_be_is_said", what_cannot_be_is_said),
    ("a_folder_that_is_gone_costs_a_line", a_folder_that_is_gone_costs_a_line),
    ("programs_are_sent_ahead", programs_are_sent_ahead),
];
const IN_A_SERVER: &[(&str, ServerTest)] = &[
    ("machines_share_a_bucket", machines_share_a_bucket),
    ("broken_connections_cost_a_line", |server| faults(server, Faults::Broken)),
    ("servers_that_are_too_busy_cost_a_line", |server| faults(server, Faults::Busy)),
    ("slow_answers_cost_nothing", |server| faults(server, Faults::Slow)),
    ("servers_that_are_silent_or_gone_cost_a_line", |_| silence()),
];

fn main() {
    let args = Arguments::from_args();
    let server = Server::start();
    let ignored = server.is_none() && std::env::var_os("CI").is_none();
    // Never dropped: the server ends with this process.
    let server: Option<&'static Server> = server.map(|server| &*Box::leak(Box::new(server)));
    let in_a_folder = IN_A_FOLDER.iter().map(|(name, test)| {
        let test = *test;
        Trial::test(format!("remote_cache::{name}"), move || {
            test();
            Ok(())
        })
    });
    let in_a_server = IN_A_SERVER.iter().map(|(name, test)| {
        let test = *test;
        let run = move || match server {
            Some(server) => {
                test(server);
                Ok(())
            }
            None => Err(Failed::from("there is no server: run scripts/s3-server")),
        };
        Trial::test(format!("remote_cache::{name}"), run).with_ignored_flag(ignored)
    });
    let conclusion = libtest_mimic::run(&args, in_a_folder.chain(in_a_server).collect());
    if let Some(server) = server {
        server.stop();
    }
    conclusion.exit();
}

/// Machines that share a cache: each has a local one of its own.
struct Machines {
    place: Place,
    address: String,
    server: Option<SocketAddr>,
}

impl Machines {
    fn in_a_folder() -> Self {
        let place = Place::new().with("hello.wat", wat!("hello")).with("shared/.here", "");
        let address = format!("file://{}/shared", place.path().display());
        Self { place, address, server: None }
    }

    fn in_a_server(server: SocketAddr, bucket: &str) -> Self {
        let place = Place::new().with("hello.wat", wat!("hello"));
        Self { place, address: format!("s3://{bucket}/some/prefix"), server: Some(server) }
    }

    fn run(&self, machine: &str, line: &str, variables: &[(&str, &str)]) -> Ran {
        let mut command = self.place.command(line);
        command
            .env("GPU_RUN_CACHE", self.place.path().join(machine))
            .env("GPU_RUN_CACHE_REMOTE", &self.address)
            .env("GPU_RUN_CACHE_KEY", SECRET)
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ACCESS_KEY_ID", "AKIAOFSOMEONE")
            .env("AWS_SECRET_ACCESS_KEY", PASSWORD);
        if let Some(server) = self.server {
            command.env("AWS_ENDPOINT_URL", format!("http://{server}"));
        }
        let ran = Ran::from(command.envs(variables.iter().copied()).output().unwrap());
        for secret in [SECRET, OTHER, PASSWORD, "AKIAOFSOMEONE"] {
            assert!(!ran.stderr.contains(secret) && !ran.stdout.contains(secret), "{ran:?}");
        }
        ran
    }

    /// Runs the program. Returns `hit`, `fetched` or `miss`, how often something was compiled, and all warnings.
    fn hello(&self, machine: &str, variables: &[(&str, &str)]) -> (String, u64, Vec<String>) {
        let ran = self.run(machine, "--device cpu --stats=json hello.wat", variables).gives(0, "hello\n");
        let (stats, warnings): (Vec<_>, Vec<_>) = ran.stderr.lines().partition(|line| line.starts_with('{'));
        let object: Value = serde_json::from_str(stats[0]).unwrap();
        let (cache, count) = (object["cache"].as_str().unwrap(), object["compilations"].as_u64().unwrap());
        (cache.to_owned(), count, warnings.into_iter().map(str::to_owned).collect())
    }

    /// The files of the shared folder.
    fn shared(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.place.path().join("shared")];
        while let Some(folder) = folders.pop() {
            for file in std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()) {
                match file.is_dir() {
                    true => folders.push(file),
                    false if !file.ends_with(".here") => found.push(file),
                    false => {}
                }
            }
        }
        found
    }
}

fn another_machine_compiles_nothing() {
    let machines = Machines::in_a_folder();
    assert_eq!(machines.hello("a", &[]), ("miss".into(), 2, vec![]));
    let shared = machines.shared();
    assert_eq!(shared.len(), 1, "{shared:?}");
    let path = shared[0].display().to_string();
    assert!(path.contains("/shared/cpu-") && path.ends_with(".signed"), "{path}");
    assert_eq!(machines.hello("b", &[SLOW]), ("fetched".into(), 0, vec![]));
    assert_eq!(machines.hello("b", &[SLOW]), ("hit".into(), 0, vec![]));
    let text = machines.run("c", "--device cpu --stats hello.wat", &[SLOW]).gives(0, "hello\n");
    text.says(&["cache    fetched, saved", "compile  nothing"]);
    let ran = machines.run("b", "cache stats", &[]);
    assert!(ran.stdout.contains(&format!("remote: {}, 1 fetched, 0 sent\n", machines.address)), "{ran:?}");
    let ran = machines.run("a", "cache stats --json", &[]);
    let stats: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        (&stats["remote"], &stats["sent"], &stats["fetched"]),
        (&machines.address[..].into(), &1.into(), &0.into())
    );
    // What came is an entry as any other.
    machines.run("b", "cache verify", &[]).gives(0, "1 intact, 0 damaged\n");
    // A run without a cache uses none.
    let ran = machines.run("d", "--device cpu --stats --no-cache hello.wat", &[SLOW]).gives(0, "hello\n");
    ran.says(&["cache    off"]);
    assert_eq!(machines.shared(), shared);
}

fn without_a_key_there_is_no_remote_cache() {
    let machines = Machines::in_a_folder();
    for key in ["", " \n"] {
        let (cache, _, warnings) = machines.hello(&format!("a{}", key.len()), &[("GPU_RUN_CACHE_KEY", key)]);
        assert_eq!((cache.as_str(), warnings.len()), ("miss", 1));
        assert!(warnings[0].contains("GPU_RUN_CACHE_KEY is not set"), "{warnings:?}");
    }
    assert_eq!(machines.shared(), [""; 0].map(PathBuf::from));
    assert_eq!(machines.hello("b", &[("GPU_RUN_CACHE_REMOTE", "off"), ("GPU_RUN_CACHE_KEY", "")]).2, [""; 0]);
}

fn what_was_not_signed_with_the_key_is_not_run() {
    let machines = Machines::in_a_folder();
    machines.hello("a", &[]);
    let file = machines.shared().remove(0);
    let whole = std::fs::read(&file).unwrap();
    let is_refused = |machine: &str, variables: &[(&str, &str)]| {
        let before = std::fs::read(&file).unwrap();
        let (cache, compilations, warnings) = machines.hello(machine, variables);
        assert_eq!((cache.as_str(), compilations, warnings.len()), ("miss", 2, 1), "{warnings:?}");
        assert!(warnings[0].contains("its signature is wrong") && warnings[0].contains(".signed"), "{warnings:?}");
        assert!(std::fs::read(&file).unwrap() == before, "it was overwritten");
    };
    is_refused("another-key", &[SLOW, ("GPU_RUN_CACHE_KEY", OTHER)]);
    for at in [0, 20, 60, whole.len() / 2, whole.len() - 1] {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        std::fs::write(&file, changed).unwrap();
        is_refused(&format!("changed-{at}"), &[SLOW]);
    }
    std::fs::write(&file, &whole[..whole.len() - 1]).unwrap();
    is_refused("cut", &[SLOW]);
    std::fs::write(&file, "").unwrap();
    is_refused("empty", &[SLOW]);
    // The entry of another program, under this one's name.
    std::fs::write(&file, &whole).unwrap();
    let other = Place::new().with("hello.wat", wat!("map/cat")).with("shared/.here", "");
    let address = format!("file://{}/shared", other.path().display());
    let others = Machines { place: other, address, server: None };
    others.run("a", "--device cpu hello.wat", &[]).gives(0, "");
    std::fs::copy(others.shared().remove(0), &file).unwrap();
    is_refused("replayed", &[SLOW]);
}

fn what_cannot_be_is_said() {
    let machines = Machines::in_a_folder();
    for (name, value, why) in [
        ("GPU_RUN_CACHE_REMOTE", "ftp://host/cache", "it must begin with s3://, gs:// or file://"),
        ("GPU_RUN_CACHE_REMOTE", "/shared/cache", "file:///folder"),
        ("GPU_RUN_CACHE_REMOTE", "s3://AKIAOFSOMEONE:a-password-that-nobody-may-see@bucket", "a name or a password"),
        ("GPU_RUN_CACHE_KEY", "ff00a-secret", "at least 32"),
    ] {
        machines.run("a", "--device cpu hello.wat", &[(name, value)]).gives(2, "").says(&[name, why]);
    }
    let short = machines.run("a", "--device cpu hello.wat", &[("GPU_RUN_CACHE_KEY", "tell-nobody")]);
    assert!(!short.stderr.contains("tell-nobody"), "{short:?}");
}

fn a_folder_that_is_gone_costs_a_line() {
    let machines = Machines::in_a_folder();
    std::fs::remove_file(machines.place.path().join("shared/.here")).unwrap();
    std::fs::remove_dir(machines.place.path().join("shared")).unwrap();
    let (cache, _, warnings) = machines.hello("a", &[SLOW]);
    assert_eq!((cache.as_str(), warnings.len()), ("miss", 1), "{warnings:?}");
    assert!(warnings[0].contains("going on without the remote cache"), "{warnings:?}");
    assert!(!machines.place.path().join("shared").exists(), "it was not mounted, and is written to");
    assert_eq!(machines.hello("a", &[]), ("hit".into(), 0, vec![]));
}

fn programs_are_sent_ahead() {
    let machines = Machines::in_a_folder();
    machines.run("a", "cache preload --device cpu hello.wat", &[]).says(&[]);
    assert_eq!(machines.shared().len(), 1);
    let ran = machines.run("b", "cache preload --device cpu hello.wat", &[SLOW]);
    assert!(ran.stdout.contains("fetched from the remote cache"), "{ran:?}");
    assert_eq!(machines.hello("b", &[]).0, "hit");
}

fn machines_share_a_bucket(server: &Server) {
    let bucket = server.bucket();
    let machines = Machines::in_a_server(server.address(), &bucket);
    assert_eq!(machines.hello("a", &[SLOW]), ("miss".into(), 2, vec![]));
    assert_eq!(machines.hello("b", &[SLOW]), ("fetched".into(), 0, vec![]));
    let (cache, _, warnings) = machines.hello("c", &[SLOW, ("GPU_RUN_CACHE_KEY", OTHER)]);
    assert_eq!((cache.as_str(), warnings.len()), ("miss", 1), "{warnings:?}");
    assert!(warnings[0].contains("its signature is wrong") && warnings[0].contains(&machines.address), "{warnings:?}");
}

fn faults(server: &Server, faults: Faults) {
    let bucket = server.bucket();
    let proxy = Proxy::start(server.address(), faults);
    let machines = Machines::in_a_server(proxy.address(), &bucket);
    // Whether one fails is a matter of chance: most find the entry there, and ask once.
    for machine in (0..60).map(|number| format!("m{number}")) {
        if proxy.requests() > 8 && proxy.faults() > 0 {
            break;
        }
        let began = Instant::now();
        // Most are tried again; one that is not costs no more than a line.
        let (_, _, warnings) = machines.hello(&machine, &[]);
        assert!(warnings.len() <= 1 && began.elapsed() < SOON, "{warnings:?} {:?}", began.elapsed());
    }
    assert!(proxy.faults() > 0, "the test shows nothing: {} requests", proxy.requests());
    // What is there is whole, or it would not be taken.
    let direct = Machines { place: Place::new().with("hello.wat", wat!("hello")), ..machines };
    let direct = Machines { server: Some(server.address()), ..direct };
    assert_eq!(direct.hello("e", &[SLOW]).2, [""; 0]);
    assert_eq!(direct.hello("f", &[SLOW]), ("fetched".into(), 0, vec![]));
}

fn silence() {
    // One that accepts connections and answers none, and one where nobody listens.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (at, said) in [(silent.local_addr().unwrap(), "was not sent"), (gone, "going on without")] {
        let (machines, began) = (Machines::in_a_server(at, "bucket"), Instant::now());
        let (cache, _, warnings) = machines.hello("a", &[]);
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
        assert_eq!((cache.as_str(), warnings.len()), ("miss", 1), "{warnings:?}");
        assert!(warnings[0].contains(said), "{warnings:?}");
        assert_eq!(machines.hello("a", &[]), ("hit".into(), 0, vec![]), "a hit asks nobody");
    }
}
