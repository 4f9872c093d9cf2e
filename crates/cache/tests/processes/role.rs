//! What the processes do.
#![allow(clippy::unwrap_used)]

use super::support::{ask, key, options, result};
use gpu_run_cache::{Cache, Options};
use std::convert::Infallible;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ROLE: &str = "GPU_RUN_CACHE_TEST_ROLE";

/// A process of this binary. The words are its role and what that takes.
pub(crate) fn start(dir: &Path, role: &str) -> Child {
    command(dir, role).spawn().unwrap()
}

pub(crate) fn command(dir: &Path, role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(ROLE, role).env("GPU_RUN_CACHE_TEST_DIR", dir);
    command.env_remove("GPU_RUN_TEST_CACHE").stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// The lines a process has written, once it has ended; whether it ended well.
pub(crate) fn finish(mut child: Child) -> (Vec<String>, bool) {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok).collect();
    (lines, child.wait().unwrap().success())
}

/// Key `n`'s length in these tests: 100 bytes to 20 KB.
pub(crate) fn length(n: u64) -> usize {
    100 + fastrand::Rng::with_seed(n).usize(..20_000)
}

/// Plays the role this process was started for, if it was.
pub(crate) fn play() -> bool {
    let Ok(role) = std::env::var(ROLE) else { return false };
    let dir = std::env::var_os("GPU_RUN_CACHE_TEST_DIR").unwrap();
    let words: Vec<&str> = role.split_whitespace().collect();
    let number = |at: usize| words[at].parse::<u64>().unwrap();
    let options = Options { durable: words[0] != "work", ..options(Path::new(&dir)) };
    match words[0] {
        "write" => write(options, number(1), number(2)),
        "work" => work(options, number(1), number(2), number(3), number(4), words[5] == "locks"),
        "once" => once(options, number(1), Duration::from_millis(300)),
        "stuck" => once(options, number(1), Duration::from_secs(600)),
        "hold" => hold(options, number(1)),
        other => panic!("there is no role {other}"),
    }
    true
}

fn say(line: String) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}

/// Asks for keys from `first` on, and says of each that is on disk that it is.
fn write(options: Options, first: u64, count: u64) {
    let cache = Cache::open(options);
    for n in first..first + count {
        ask(&cache, n, length(n));
        say(format!("kept {n}"));
    }
}

/// Asks for random keys below `keys` for so long, and checks each; now and then keeps one in use, prunes, or starts anew.
fn work(options: Options, seed: u64, milliseconds: u64, keys: u64, limit: u64, locks: bool) {
    let mut random = fastrand::Rng::with_seed(seed);
    let open = || Cache::open(Options { limit, locks, ..options.clone() });
    let (mut cache, mut held) = (open(), Vec::new());
    let end = Instant::now() + Duration::from_millis(milliseconds);
    let mut asked = 0u64;
    while Instant::now() < end {
        // Some keys are asked for far more often than others.
        let n = random.u64(..keys).min(random.u64(..keys));
        let (found, _) = ask(&cache, n, length(n));
        asked += 1;
        match random.u64(..200) {
            0..20 => held.push(found),
            20..60 if !held.is_empty() => drop(held.swap_remove(0)),
            60 => drop(cache.prune(None, None).unwrap()),
            61 => cache = open(),
            _ => {}
        }
        held.truncate(1);
    }
    cache.flush();
    let counts = cache.counts();
    say(format!("asked {asked} hits {} evictions {} repaired {}", counts.hits, counts.evictions, counts.repaired));
}

/// Asks for one key, which takes so long to compile, and says if it did.
fn once(options: Options, n: u64, takes: Duration) {
    let compile = || {
        say("compiled".into());
        std::thread::sleep(takes);
        Ok::<_, Infallible>(result(n, length(n)))
    };
    let found = Cache::open(options).get_or_compile(&key(n), compile).unwrap();
    assert!(found.bytes == result(n, length(n)));
    say("done".into());
}

/// Uses a key until it is killed.
fn hold(options: Options, n: u64) {
    let cache = Cache::open(options);
    let _found = ask(&cache, n, length(n)).0;
    say("holds".into());
    std::thread::sleep(Duration::from_secs(600));
}
