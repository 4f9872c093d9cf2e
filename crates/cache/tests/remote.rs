//! A cache that machines share: what is taken from it, what never is, and what it may cost.
#![allow(clippy::unwrap_used)] // a test that cannot go on says so by panicking

mod support;

use gpu_run_cache::{Cache, END_WAIT, Found, Got, Made, Options, Origin, Remote, RemoteError, RemoteStore, SigningKey};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use support::{key, options, result};

/// Longer than any test takes that passes.
const LONG: Duration = Duration::from_secs(60);
/// What a busy machine may take beside.
const LATE: Duration = Duration::from_secs(20);

/// A store in memory, and what is wrong with it.
#[derive(Clone, Debug, Default)]
struct Shelf(Arc<(Mutex<Content>, Condvar)>);

#[derive(Debug, Default)]
struct Content {
    objects: BTreeMap<String, Vec<u8>>,
    fault: Fault,
    gets: u32,
    puts: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Fault {
    #[default]
    None,
    /// No request ends.
    Silent,
    /// No request that writes ends.
    TakesNothing,
    /// Every request fails.
    Fails,
    /// Every request that writes fails.
    IsFull,
}

impl Shelf {
    fn with<T>(&self, change: impl FnOnce(&mut Content) -> T) -> T {
        let changed = change(&mut self.0.0.lock().unwrap());
        self.0.1.notify_all();
        changed
    }

    fn broken(fault: Fault) -> Self {
        let shelf = Self::default();
        shelf.with(|content| content.fault = fault);
        shelf
    }

    /// Waits while a request hangs, and says whether it fails.
    fn request(&self, hangs: &[Fault], fails: &[Fault]) -> Result<(), RemoteError> {
        let content = self.0.0.lock().unwrap();
        let content = self.0.1.wait_while(content, |content| hangs.contains(&content.fault)).unwrap();
        if fails.contains(&content.fault) { Err("the store is on fire".into()) } else { Ok(()) }
    }

    fn names(&self) -> Vec<String> {
        self.with(|content| content.objects.keys().cloned().collect())
    }
}

impl RemoteStore for Shelf {
    fn name(&self) -> &str {
        "shelf"
    }

    fn get(&self, name: &str, most: usize) -> Result<Option<Vec<u8>>, RemoteError> {
        self.with(|content| content.gets += 1);
        self.request(&[Fault::Silent], &[Fault::Fails])?;
        let found = self.with(|content| content.objects.get(name).cloned());
        assert!(found.as_ref().is_none_or(|found| found.len() <= most));
        Ok(found)
    }

    fn put(&self, name: &str, bytes: Vec<u8>) -> Result<(), RemoteError> {
        self.with(|content| content.puts += 1);
        self.request(&[Fault::Silent, Fault::TakesNothing], &[Fault::Fails, Fault::IsFull])?;
        self.with(|content| content.objects.insert(name.to_owned(), bytes));
        Ok(())
    }
}

fn secret(n: u32) -> SigningKey {
    SigningKey::new(&format!("the secret of all machines, number {n}")).unwrap()
}

/// A machine whose local cache is in `dir`.
fn machine(dir: &Path, shelf: &Shelf) -> Cache {
    Cache::open(Options { remote: Some(Remote::new(shelf.clone(), secret(1))), ..options(dir) })
}

/// Asks for key `n`. Compiling begins with a wait for the remote cache, at most so long.
fn ask(cache: &Cache, n: u64, patience: Duration) -> Found {
    let compile = |fetch: &gpu_run_cache::Fetch| match fetch.wait(patience) {
        Some(arrival) => Ok::<_, Infallible>(Made::Fetched(arrival)),
        None => Ok(Made::Compiled(result(n, 5000))),
    };
    let found = match cache.get_or_make(&key(n), compile).unwrap() {
        Got::Read(found) | Got::Made(found) => found,
    };
    assert!(found.bytes == result(n, 5000), "key {n} names another's bytes");
    found
}

fn is_compiled(found: &Found) -> bool {
    matches!(found.origin, Origin::Miss { .. })
}

/// A store that has the entry of key `n`.
fn filled(n: u64) -> Shelf {
    let (dir, shelf) = (tempfile::tempdir().unwrap(), Shelf::default());
    assert!(is_compiled(&ask(&machine(dir.path(), &shelf), n, Duration::ZERO)));
    assert_eq!(shelf.names().len(), 1, "a machine that ends has sent what it made");
    shelf
}

#[test]
fn another_machine_takes_the_entry_instead_of_compiling() {
    let (dir, shelf) = (tempfile::tempdir().unwrap(), filled(1));
    let cache = machine(dir.path(), &shelf);
    assert!(matches!(ask(&cache, 1, LONG).origin, Origin::Fetched { .. }));
    assert_eq!((cache.counts().fetched, cache.counts().misses), (1, 0));
    // From then on it is here: the store is not asked.
    let gets = shelf.with(|content| content.gets);
    assert!(matches!(ask(&cache, 1, LONG).origin, Origin::Hit { .. }));
    drop(cache);
    assert!(matches!(ask(&machine(dir.path(), &Shelf::broken(Fault::Fails)), 1, LONG).origin, Origin::Hit { .. }));
    assert_eq!(shelf.with(|content| (content.gets, content.puts)), (gets, 1));
    let stats = machine(dir.path(), &shelf).stats().unwrap();
    assert_eq!((stats.total.entries, stats.total.counts.fetched, stats.total.counts.hits), (1, 1, 2));
    assert_eq!(stats.total.hit_rate, Some(1.0));
}

#[test]
fn who_sent_it_counts_it() {
    let (dir, shelf) = (tempfile::tempdir().unwrap(), Shelf::default());
    let cache = machine(dir.path(), &shelf);
    ask(&cache, 1, Duration::ZERO);
    assert_eq!(cache.wait_until_sent(LONG), 0);
    assert_eq!(cache.stats().unwrap().total.counts.sent, 1);
}

#[test]
fn a_machine_that_can_keep_nothing_takes_it_too() {
    let (dir, shelf) = (tempfile::tempdir().unwrap(), filled(1));
    std::fs::write(dir.path().join("file"), "").unwrap();
    let cache = machine(&dir.path().join("file"), &shelf);
    assert_eq!(cache.path(), None);
    assert!(matches!(ask(&cache, 1, LONG).origin, Origin::Fetched { .. }));
    assert!(is_compiled(&ask(&cache, 2, LONG)));
    drop(cache);
    assert_eq!(shelf.names().len(), 2);
}

#[test]
fn an_entry_without_the_right_signature_is_neither_used_nor_overwritten() {
    let shelf = filled(1);
    let name = shelf.names().remove(0);
    let whole = shelf.with(|content| content.objects[&name].clone());
    let is_refused = |bytes: Vec<u8>, signer: u32, what: &str| {
        let dir = tempfile::tempdir().unwrap();
        shelf.with(|content| content.objects.insert(name.clone(), bytes.clone()));
        let remote = Some(Remote::new(shelf.clone(), secret(signer)));
        let cache = Cache::open(Options { remote, ..options(dir.path()) });
        assert!(is_compiled(&ask(&cache, 1, LONG)), "{what} was used");
        drop(cache);
        assert!(shelf.with(|content| content.objects[&name] == bytes), "{what} was overwritten");
    };
    for at in (0..whole.len()).step_by(97).chain(0..48) {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        is_refused(changed, 1, &format!("an entry with another byte {at}"));
    }
    for length in [0, 1, 39, 40, 41, whole.len() - 1] {
        is_refused(whole[..length].to_vec(), 1, &format!("an entry cut to {length} bytes"));
    }
    // The file of a local cache: right in all but that nobody has signed it.
    is_refused(whole[40..].to_vec(), 1, "an unsigned entry");
    is_refused(whole.clone(), 2, "an entry that was signed with another key");
}

#[test]
fn a_signed_entry_does_not_pass_for_that_of_another_key() {
    let (dir, shelf, other) = (tempfile::tempdir().unwrap(), filled(1), filled(2));
    let (name, replayed) = (shelf.names().remove(0), other.with(|content| content.objects.pop_first().unwrap().1));
    shelf.with(|content| content.objects.insert(name, replayed));
    assert!(is_compiled(&ask(&machine(dir.path(), &shelf), 1, LONG)));
}

#[test]
fn compiling_waits_for_no_server() {
    let (dir, shelf) = (tempfile::tempdir().unwrap(), Shelf::broken(Fault::Silent));
    let (cache, began) = (machine(dir.path(), &shelf), Instant::now());
    assert!(is_compiled(&ask(&cache, 1, Duration::ZERO)));
    assert!(began.elapsed() < LATE, "{:?}", began.elapsed());
    // Nor does the end of the process, for long.
    drop(cache);
    assert!(began.elapsed() < END_WAIT + 2 * LATE, "{:?}", began.elapsed());
    assert_eq!(shelf.with(|content| content.puts), 0);
    // It is here, and what came meanwhile was not lost.
    assert!(matches!(ask(&machine(dir.path(), &shelf), 1, LONG).origin, Origin::Hit { .. }));
    shelf.with(|content| content.fault = Fault::None);
}

#[test]
fn a_server_that_takes_nothing_is_waited_for_as_long_as_was_said() {
    let (dir, shelf) = (tempfile::tempdir().unwrap(), Shelf::broken(Fault::TakesNothing));
    let cache = machine(dir.path(), &shelf);
    ask(&cache, 1, LONG);
    let began = Instant::now();
    drop(cache);
    let waited = began.elapsed();
    assert!(waited >= END_WAIT && waited < END_WAIT + LATE, "{waited:?}");
    shelf.with(|content| content.fault = Fault::None);
}

#[test]
fn a_server_that_fails_is_asked_once_and_costs_nothing() {
    let (dir, shelf) = (tempfile::tempdir().unwrap(), Shelf::broken(Fault::Fails));
    let cache = machine(dir.path(), &shelf);
    for n in 0..5 {
        assert!(is_compiled(&ask(&cache, n, LONG)));
    }
    assert_eq!(cache.wait_until_sent(LATE), 0, "the end would wait");
    assert_eq!(shelf.with(|content| (content.gets, content.puts)), (1, 0));
}

#[test]
fn a_server_that_is_full_is_asked_to_take_one_entry() {
    let (dir, shelf) = (tempfile::tempdir().unwrap(), Shelf::broken(Fault::IsFull));
    let cache = machine(dir.path(), &shelf);
    for n in 0..5 {
        assert!(is_compiled(&ask(&cache, n, LONG)));
        assert_eq!(cache.wait_until_sent(LONG), 0);
    }
    assert_eq!(shelf.with(|content| content.puts), 1);
    assert_eq!(cache.stats().unwrap().total.counts.sent, 0);
}

#[test]
fn what_this_machine_cannot_use_is_not_taken_again() {
    let (dir, shelf) = (tempfile::tempdir().unwrap(), filled(1));
    let cache = machine(dir.path(), &shelf);
    assert!(matches!(ask(&cache, 1, LONG).origin, Origin::Fetched { .. }));
    cache.discard(&key(1));
    assert!(is_compiled(&ask(&cache, 1, LONG)));
}

#[test]
fn what_does_not_compile_is_not_sent() {
    let (dir, shelf) = (tempfile::tempdir().unwrap(), Shelf::default());
    let cache = machine(dir.path(), &shelf);
    for _ in 0..3 {
        assert_eq!(cache.get_or_compile(&key(1), || Err("no")).unwrap_err(), "no");
    }
    drop(cache);
    assert_eq!(shelf.names(), [""; 0]);
}

#[test]
fn who_is_told_of_an_entry_is_told_once() {
    let (dir, shelf) = (tempfile::tempdir().unwrap(), filled(1));
    let (cache, told) = (machine(dir.path(), &shelf), Arc::new(Mutex::new(0)));
    let compile = |fetch: &gpu_run_cache::Fetch| {
        let counted = told.clone();
        fetch.then(move |_| *counted.lock().unwrap() += 1);
        let arrival = fetch.wait(LONG).unwrap();
        let counted = told.clone();
        fetch.then(move |_| *counted.lock().unwrap() += 1);
        assert!(!fetch.is_open());
        Ok::<_, Infallible>(Made::Fetched(arrival))
    };
    cache.get_or_make::<Vec<u8>, _>(&key(1), compile).unwrap();
    let began = Instant::now();
    // The first one is told by the thread that looked.
    while *told.lock().unwrap() < 2 && began.elapsed() < LONG {
        std::thread::yield_now();
    }
    assert_eq!(*told.lock().unwrap(), 2);
}

#[test]
fn many_at_once_are_all_sent() {
    let (dir, shelf) = (tempfile::tempdir().unwrap(), Shelf::default());
    let cache = machine(dir.path(), &shelf);
    std::thread::scope(|scope| {
        for n in 0..20 {
            let cache = &cache;
            scope.spawn(move || ask(cache, n, Duration::ZERO));
        }
    });
    assert_eq!(cache.wait_until_sent(LONG), 0);
    assert_eq!(shelf.names().len(), 20);
}
