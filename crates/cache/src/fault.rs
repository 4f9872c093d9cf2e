//! Faults on purpose, for tests of what must survive them.
//!
//! Each step of a write is a [`point`]. The environment variable `GPU_RUN_TEST_CACHE` chooses a fault: `kill:7` kills
//! the process at the seventh point it reaches; with `fail:1`, every point from the first on fails as on a full disk.
//!
//! Network file systems are [`odd`] in ways of their own. `odd:lock` has no locks, `odd:link` no symbolic links,
//! `odd:time` sets no times, `odd:sync` does not sync folders, and `odd:stale` fails every third read of an entry with
//! a stale handle. With `odd:rename`, every other rename is done but reported as failed, as when the server's reply is
//! lost and the request sent again.
//!
//! With `slow:500`, compiling takes half a second longer: time for a remote cache to answer, as with large programs.
//!
//! Only this file knows the variable, and reads it once.

use rustix::io::Errno;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const VARIABLE: &str = "GPU_RUN_TEST_CACHE";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    None,
    Kill(u64),
    Fail(u64),
    Odd(Oddity),
    Slow(Duration),
}

/// What a network file system can lack or do wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Oddity {
    Lock,
    Link,
    Time,
    Sync,
    Stale,
    Rename,
}

fn plan() -> Plan {
    static PLAN: OnceLock<Plan> = OnceLock::new();
    *PLAN.get_or_init(|| {
        let text = std::env::var(VARIABLE).unwrap_or_default();
        parse(&text).unwrap_or_else(|| {
            tracing::warn!("cannot parse {VARIABLE}={text}: `kill:3` kills at the third step of a write");
            Plan::None
        })
    })
}

/// Called at an operation that a network file system may fail at; fails if the variable asks for that oddity.
pub(crate) fn odd(what: Oddity) -> io::Result<()> {
    static TIMES: AtomicU64 = AtomicU64::new(0);
    if plan() != Plan::Odd(what) {
        return Ok(());
    }
    let time = TIMES.fetch_add(1, Ordering::Relaxed) + 1;
    let number = match what {
        Oddity::Stale if time.is_multiple_of(3) => Errno::STALE,
        Oddity::Rename if time.is_multiple_of(2) => Errno::NOENT,
        Oddity::Stale | Oddity::Rename => return Ok(()),
        Oddity::Lock => Errno::NOLCK,
        Oddity::Link | Oddity::Time => Errno::PERM,
        Oddity::Sync => Errno::INVAL,
    };
    Err(number.into())
}

/// Called before a step of a write; fails or kills the process if the variable asks for it.
pub(crate) fn point(step: &'static str) -> io::Result<()> {
    static POINTS: AtomicU64 = AtomicU64::new(0);
    let plan = plan();
    if matches!(plan, Plan::None | Plan::Odd(_) | Plan::Slow(_)) {
        return Ok(());
    }
    let number = POINTS.fetch_add(1, Ordering::Relaxed) + 1;
    match plan {
        Plan::Kill(at) if at == number => kill(),
        Plan::Fail(from) if number >= from => {
            let message = format!("no space left, as {VARIABLE} asks (step {number}, {step})");
            Err(io::Error::new(io::ErrorKind::StorageFull, message))
        }
        _ => Ok(()),
    }
}

/// Returns how much longer compiling is to take.
pub(crate) fn slowness() -> Duration {
    match plan() {
        Plan::Slow(time) => time,
        _ => Duration::ZERO,
    }
}

/// Kills the process at once: no destructor and no signal handler runs.
fn kill() -> io::Result<()> {
    use rustix::process::{Signal, getpid, kill_process};
    kill_process(getpid(), Signal::KILL)?;
    loop {
        std::thread::park();
    }
}

fn parse(text: &str) -> Option<Plan> {
    let number = |text: &str| text.parse().ok().filter(|n| *n > 0);
    match text.split_once(':') {
        Some(("kill", n)) => number(n).map(Plan::Kill),
        Some(("fail", n)) => number(n).map(Plan::Fail),
        Some(("slow", n)) => number(n).map(|milliseconds| Plan::Slow(Duration::from_millis(milliseconds))),
        Some(("odd", what)) => Some(Plan::Odd(match what {
            "lock" => Oddity::Lock,
            "link" => Oddity::Link,
            "time" => Oddity::Time,
            "sync" => Oddity::Sync,
            "stale" => Oddity::Stale,
            "rename" => Oddity::Rename,
            _ => return None,
        })),
        _ => text.is_empty().then_some(Plan::None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_a_death_or_a_full_disk() {
        assert_eq!(parse(""), Some(Plan::None));
        assert_eq!(parse("kill:3"), Some(Plan::Kill(3)));
        assert_eq!(parse("fail:1"), Some(Plan::Fail(1)));
        assert_eq!(parse("odd:stale"), Some(Plan::Odd(Oddity::Stale)));
        assert_eq!(parse("slow:20"), Some(Plan::Slow(Duration::from_millis(20))));
        for wrong in ["kill", "slow:", "kill:", "kill:0", "fail:x", "odd:man", "3"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
