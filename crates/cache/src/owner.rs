//! Which process something belongs to, and whether that process still runs.
//!
//! The names of temporary files, announcements, leases and statistics contain the name of their process. Another
//! process that finds such a file can tell whether its owner still runs, as long as both run on the same boot of the
//! same machine and in the same process namespace. A process number alone is not enough, because numbers are reused;
//! together with the start time it is unique.

use std::fmt;
use std::fs;
use std::str::FromStr;
use std::sync::OnceLock;

/// One process, on any machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    /// The machine's boot id, or 0 if unknown.
    boot: String,
    /// The process namespace that `process` is a number in.
    namespace: u64,
    process: u32,
    /// Clock ticks after boot when the process started.
    started: u64,
}

/// Whether a process runs, if that can be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Alive,
    Dead,
    /// On another machine, in another container, or before the last boot; or there is no `/proc`.
    OutOfSight,
}

impl Owner {
    /// This process.
    pub(crate) fn this() -> &'static Self {
        static THIS: OnceLock<Owner> = OnceLock::new();
        THIS.get_or_init(|| {
            let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
            let boot: String = boot.chars().filter(char::is_ascii_hexdigit).take(16).collect();
            let namespace = fs::read_link("/proc/self/ns/pid").ok();
            let digits: String =
                namespace.iter().flat_map(|n| n.to_str()).flat_map(str::chars).filter(char::is_ascii_digit).collect();
            let process = std::process::id();
            let boot = if boot.is_empty() { "0".into() } else { boot };
            Self { boot, namespace: digits.parse().unwrap_or(0), process, started: started(process).unwrap_or(0) }
        })
    }

    pub(crate) fn seen(&self) -> Seen {
        let this = Self::this();
        if self.boot != this.boot || self.namespace != this.namespace || this.started == 0 {
            return Seen::OutOfSight;
        }
        match started(self.process) {
            Some(started) if started == self.started => Seen::Alive,
            _ => Seen::Dead,
        }
    }

    /// Parses the owner at the beginning of a file's name, `OWNER.rest`.
    pub(crate) fn of_file(name: &str) -> Option<Self> {
        name.split('.').next()?.parse().ok()
    }
}

/// Returns when a process started, if it exists and is not a zombie.
fn started(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The process's name, in parentheses, may contain anything. Field 3 follows the last parenthesis; field 22 is the
    // start time.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    match fields.next()? {
        "Z" | "X" => None,
        _ => fields.nth(18)?.parse().ok(),
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}-{}", self.boot, self.namespace, self.process, self.started)
    }
}

impl FromStr for Owner {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.trim().split('-');
        let mut next = || parts.next().ok_or(());
        let boot = next()?;
        let (namespace, process, started) = (next()?.parse(), next()?.parse(), next()?.parse());
        if boot.is_empty() || !boot.bytes().all(|b| b.is_ascii_hexdigit()) || parts.next().is_some() {
            return Err(());
        }
        let number = |_| ();
        let (namespace, process) = (namespace.map_err(number)?, process.map_err(number)?);
        Ok(Self { boot: boot.into(), namespace, process, started: started.map_err(number)? })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_again_by_its_name() {
        let this = Owner::this();
        assert_eq!(this.to_string().parse::<Owner>().unwrap(), *this);
        assert_eq!(Owner::of_file(&format!("{this}.17.tmp")).unwrap(), *this);
        for wrong in ["", "x-1-2-3", "ab-1-2", "ab-1-2-3-4", "ab--2-3"] {
            assert!(wrong.parse::<Owner>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_living_the_dead_and_those_out_of_sight_are_told_apart() {
        let this = Owner::this();
        assert_eq!(this.seen(), Seen::Alive);
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let process = child.id();
        let other = Owner { process, started: started(process).unwrap(), ..this.clone() };
        assert_eq!(other.seen(), Seen::Alive);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(other.seen(), Seen::Dead);
        let reused = Owner { process: std::process::id(), started: this.started + 1, ..this.clone() };
        assert_eq!(reused.seen(), Seen::Dead, "the same number is another process");
        assert_eq!(Owner { boot: "abc".into(), ..this.clone() }.seen(), Seen::OutOfSight);
    }
}
