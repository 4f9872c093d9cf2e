//! Waiting for device memory that other gpu-run processes hold.
//!
//! Another gpu-run process exits, or needs less memory at its next launch; a training run or a desktop does neither. So
//! a process that finds no memory waits while processes of its own name hold some, and gives up when nothing has
//! changed among them for a while.

use crate::{Device, Holder};
use std::time::{Duration, Instant};

/// How long to wait while nothing changes among the other processes.
const MAX_STANDSTILL: Duration = Duration::from_secs(60);
/// How long to wait if the other processes cannot be seen.
const MAX_UNSEEN_WAIT: Duration = Duration::from_secs(5);
/// How long to wait before a message is printed.
const SAYS_AFTER: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(100);

/// One wait for memory.
#[derive(Debug)]
pub struct Patience {
    seen: Option<Vec<Holder>>,
    changed: Instant,
    /// When the wait began, and whether the message was printed.
    since: Option<Instant>,
    is_said: bool,
}

impl Default for Patience {
    fn default() -> Self {
        Self { seen: None, changed: Instant::now(), since: None, is_said: false }
    }
}

impl Patience {
    /// Releases the memory that the device keeps for later launches, and waits a moment. Returns whether it is worth
    /// trying again.
    pub fn wait(&mut self, device: &dyn Device) -> bool {
        device.trim();
        self.wait_for(device.holders())
    }

    pub(crate) fn wait_for(&mut self, holders: Vec<Holder>) -> bool {
        let (own, name) = (std::process::id(), own_name());
        let is_hidden = holders.is_empty();
        let others: Vec<_> = holders
            .into_iter()
            .filter(|holder| holder.pid != own && holder.name.is_some() && holder.name == name)
            .collect();
        if others.is_empty() && !is_hidden {
            // A holder may have released its memory since the attempt: try once more.
            return self.seen.replace(others).is_none_or(|seen| !seen.is_empty());
        }
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        if waited > SAYS_AFTER && !self.is_said && !others.is_empty() {
            self.is_said = true;
            tracing::warn!("waiting for device memory, in use by {}", describe(&others));
        }
        if self.seen.as_ref() != Some(&others) {
            (self.seen, self.changed) = (Some(others), Instant::now());
        }
        let patience = if is_hidden { MAX_UNSEEN_WAIT } else { MAX_STANDSTILL };
        let goes_on = self.changed.elapsed() < patience;
        if goes_on {
            std::thread::sleep(PAUSE);
        }
        goes_on
    }
}

/// The system's name for this process.
pub(crate) fn own_name() -> Option<String> {
    std::fs::read_to_string("/proc/self/comm").ok().map(|name| name.trim_end().to_owned())
}

/// Describes in words who holds how much, for the first few holders.
pub fn describe(holders: &[Holder]) -> String {
    const MAX_NAMED: usize = 5;
    let mut words: Vec<String> = holders.iter().take(MAX_NAMED).map(ToString::to_string).collect();
    if holders.len() > MAX_NAMED {
        words.push(format!("{} more", holders.len() - MAX_NAMED));
    }
    words.join(", ")
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A process chooses its own name, so control characters, which a terminal would act on, are replaced.
        let name: String =
            self.name.as_deref().unwrap_or("process").chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        write!(f, "{name} (pid {}", self.pid)?;
        match self.bytes {
            Some(bytes) => write!(f, ", {} MiB)", bytes >> 20),
            None => f.write_str(")"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(pid: u32, name: &str, bytes: u64) -> Holder {
        Holder { pid, name: Some(name.into()), bytes: Some(bytes) }
    }

    #[test]
    fn it_waits_for_others_of_ours_and_for_nobody_else() {
        let ours = own_name().unwrap_or_default();
        let me = holder(std::process::id(), &ours, 1 << 30);
        assert!(Patience::default().wait_for(vec![me.clone(), holder(1, &ours, 1)]));
        let (mut patience, training) = (Patience::default(), vec![me, holder(1, "training", 1)]);
        assert!(patience.wait_for(training.clone()), "who held it when it was tried may have left");
        assert!(!patience.wait_for(training));
        assert!(Patience::default().wait_for(Vec::new()), "who the others are may be hidden");
    }

    #[test]
    fn who_holds_memory_is_named_without_control_characters() {
        let all: Vec<_> = (0..7).map(|pid| holder(pid, "a\x1b[2J", 3 << 20)).collect();
        let text = describe(&all);
        assert!(text.starts_with("a?[2J (pid 0, 3 MiB), ") && text.ends_with(", 2 more"), "{text}");
    }
}
