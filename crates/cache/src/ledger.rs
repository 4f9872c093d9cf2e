//! The cache's one lock, and its account: the bytes of all entries.
//!
//! A process locks `<cache>/lock` before it adds or removes entries, updates manifests or merges statistics; never
//! while it compiles, and never for a hit. The file also holds the account, so that a write need not look at every
//! entry. A process raises the account before an entry appears and lowers it after an entry is gone. A process killed
//! in between leaves the account too high, which makes the next eviction count the entries again. Errors that a power
//! failure left in the account are found by the daily recount.
//!
//! On a file system without locks, every write counts the entries, and the limit is exceeded at most by what other
//! processes write at the same moment.

use crate::fault::{Oddity, odd};
use crate::trust::FILE;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Maximum wait for the lock. It is held for milliseconds, unless its holder was stopped.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(10);
/// The entries are counted again when the account is older than this.
const GOOD_FOR: Duration = Duration::from_secs(24 * 3600);
/// Bytes of an account. The length is fixed, so that a new account always overwrites the whole of the old one.
const ACCOUNT_BYTES: usize = 60;

/// The held lock, or no lock where the file system has none.
#[derive(Debug)]
pub(crate) struct Ledger {
    file: Option<File>,
    now: SystemTime,
}

impl Ledger {
    /// Waits for the lock. If `locks` is false, takes none.
    pub(crate) fn lock(path: &Path, locks: bool, now: SystemTime) -> io::Result<Self> {
        if !locks {
            return Ok(Self { file: None, now });
        }
        let mut file = OpenOptions::new();
        // Created for its owner alone: whoever can open the file can lock it.
        let file = file.read(true).write(true).create(true).truncate(false).mode(FILE);
        let file = file.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32).open(path)?;
        let began = Instant::now();
        let mut pause = Duration::from_micros(50);
        loop {
            match odd(Oddity::Lock).map_err(TryLockError::Error).and_then(|()| file.try_lock()) {
                Ok(()) => return Ok(Self { file: Some(file), now }),
                Err(TryLockError::WouldBlock) if began.elapsed() < MAX_LOCK_WAIT => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(5));
                }
                Err(TryLockError::WouldBlock) => {
                    let message = format!("{} has been locked for {MAX_LOCK_WAIT:?}", path.display());
                    return Err(io::Error::new(io::ErrorKind::TimedOut, message));
                }
                Err(TryLockError::Error(error)) => {
                    tracing::debug!("cannot lock {}: {error}", path.display());
                    return Ok(Self { file: None, now });
                }
            }
        }
    }

    /// Whether other processes wait: not where the file system has no locks.
    pub(crate) fn is_locked(&self) -> bool {
        self.file.is_some()
    }

    /// Returns the bytes of all entries, if the account is intact and younger than [`GOOD_FOR`].
    pub(crate) fn bytes(&self) -> Option<u64> {
        let mut text = [0; ACCOUNT_BYTES];
        self.file.as_ref()?.read_exact_at(&mut text, 0).ok()?;
        let (bytes, counted) = parse(&text)?;
        let age = self.now.duration_since(counted).unwrap_or(Duration::MAX);
        (age < GOOD_FOR).then_some(bytes)
    }

    /// Writes the account. `counted` says whether the entries have just been counted one by one.
    pub(crate) fn set_bytes(&self, bytes: u64, counted: bool) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let mut text = [0; ACCOUNT_BYTES];
        let before = file.read_exact_at(&mut text, 0).ok().and_then(|()| parse(&text)).map(|(_, counted)| counted);
        let time = if counted { self.now } else { before.unwrap_or(UNIX_EPOCH) };
        file.write_all_at(format(bytes, time).as_bytes(), 0)
    }
}

fn format(bytes: u64, counted: SystemTime) -> String {
    let seconds = counted.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let numbers = format!("{bytes:020} {seconds:020} ");
    let sum = check(&numbers);
    format!("{numbers}{sum:016x} \n")
}

fn parse(text: &[u8; ACCOUNT_BYTES]) -> Option<(u64, SystemTime)> {
    let text = str::from_utf8(text).ok()?;
    let (numbers, sum) = text.split_at_checked(42)?;
    let same = u64::from_str_radix(sum.trim(), 16).ok()? == check(numbers);
    let mut numbers = numbers.split_whitespace();
    let (bytes, seconds) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
    same.then_some((bytes, UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?))
}

fn check(text: &str) -> u64 {
    let hash = blake3::hash(text.as_bytes());
    hash.as_bytes()[..8].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_believed_for_a_day_and_only_if_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let day = |n: u64| UNIX_EPOCH + Duration::from_secs(n * 24 * 3600);
        let at = |n| Ledger::lock(&path, true, day(n)).unwrap();
        assert_eq!(at(9).bytes(), None, "an empty file");
        at(9).set_bytes(7, false).unwrap();
        assert_eq!(at(9).bytes(), None, "never counted");
        at(9).set_bytes(1 << 40, true).unwrap();
        at(9).set_bytes(5, false).unwrap();
        assert_eq!(at(9).bytes(), Some(5));
        assert_eq!(at(10).bytes(), None, "a day old");
        assert_eq!(std::fs::read(&path).unwrap().len(), ACCOUNT_BYTES);
        std::fs::write(&path, std::fs::read_to_string(&path).unwrap().replace('5', "6")).unwrap();
        assert_eq!(at(9).bytes(), None, "its sum is another");
    }

    #[test]
    fn one_at_a_time_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = Ledger::lock(&path, true, UNIX_EPOCH).unwrap();
        let waits = std::thread::spawn(move || Ledger::lock(&path, true, UNIX_EPOCH).map(|_| Instant::now()));
        std::thread::sleep(Duration::from_millis(30));
        let released = Instant::now();
        drop(first);
        assert!(waits.join().unwrap().unwrap() >= released);
    }
}
