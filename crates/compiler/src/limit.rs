//! Stops compiling that takes too long.
//!
//! The compiler checks the clock between two functions, and kills the assemblers it has started. A single function can
//! take longer than the limit, so a thread of its own does all the compiling, and is abandoned when its time is over.

use crate::error::Error;
use gpu_run_cache::{Arrival, Fetch};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

/// How long compiling may take by default.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);
/// How long past the limit the compiler may take to report which step it was at.
const GRACE: Duration = Duration::from_millis(500);
/// Bytes of the compiling thread's stack.
const STACK_BYTES: usize = 16 << 20;

/// What came first.
#[derive(Debug)]
pub(crate) enum First<T> {
    Made(T),
    /// The entry, from the remote cache.
    Fetched(Arrival),
}

/// Runs `compile` within `limit`, and passes it the time by which it has to finish. `name` is what is compiled.
pub(crate) fn within<T: Send + 'static>(
    name: &str,
    limit: Option<Duration>,
    compile: impl FnOnce(Option<Instant>) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let limit = ending(limit);
    if limit.is_none() {
        return compile(None);
    }
    let (sender, receiver) = mpsc::sync_channel(1);
    start(name, limit, sender, compile)?;
    first(name, limit, &receiver)
}

/// Like [`within`], while the remote cache is asked for the result. Whatever comes second is left to itself.
pub(crate) fn race<T: Send + 'static>(
    name: &str,
    limit: Option<Duration>,
    fetch: &Fetch,
    compile: impl FnOnce(Option<Instant>) -> Result<First<T>, Error> + Send + 'static,
) -> Result<First<T>, Error> {
    if !fetch.is_open() {
        return within(name, limit, compile);
    }
    let limit = ending(limit);
    // Both have room there: the second one finds nobody, and does not wait.
    let (sender, receiver) = mpsc::sync_channel(2);
    let arrived = sender.clone();
    fetch.then(move |arrival| drop(arrived.send(Ok(First::Fetched(arrival)))));
    start(name, limit, sender, compile)?;
    first(name, limit, &receiver)
}

/// A limit, and when it ends.
type Limit = Option<(Duration, Instant)>;

fn ending(limit: Option<Duration>) -> Limit {
    limit.and_then(|limit| Some((limit, Instant::now().checked_add(limit)?)))
}

fn start<T: Send + 'static>(
    name: &str,
    limit: Limit,
    sender: SyncSender<Result<T, Error>>,
    compile: impl FnOnce(Option<Instant>) -> Result<T, Error> + Send + 'static,
) -> Result<(), Error> {
    let thread = std::thread::Builder::new().name("compiler".into()).stack_size(STACK_BYTES);
    let spawned = thread.spawn(move || drop(sender.send(compile(limit.map(|(_, until)| until)))));
    spawned.map(drop).map_err(|error| Error::Internal(format!("cannot start a thread to compile {name}: {error}")))
}

/// Waits for the first result.
fn first<T>(name: &str, limit: Limit, receiver: &Receiver<Result<T, Error>>) -> Result<T, Error> {
    let (limit, received) = match limit {
        Some((limit, _)) => (limit, receiver.recv_timeout(limit.saturating_add(GRACE))),
        None => (Duration::MAX, receiver.recv().map_err(|_| RecvTimeoutError::Disconnected)),
    };
    match received {
        Ok(Err(Error::Late(place))) => Err(late(name, limit, &format!("; it was at {place}"))),
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => Err(late(name, limit, "")),
        Err(RecvTimeoutError::Disconnected) => Err(Error::Internal(format!("the compiler failed on {name}"))),
    }
}

fn late(name: &str, limit: Duration, place: &str) -> Error {
    Error::CompileTimeout(format!("compiling {name} took longer than {limit:?}{place}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_run_cache::{Cache, Got, Key, Made, Options, Origin, Remote, RemoteError, RemoteStore, SigningKey};
    use parking_lot::Mutex;
    use std::sync::Arc;

    #[test]
    fn a_compiler_that_does_not_end_is_left_to_itself() {
        let (_never, waits) = mpsc::channel::<()>();
        let error = within("a.wasm", Some(Duration::from_millis(1)), move |_| {
            let _ = waits.recv();
            Ok(())
        });
        let error = error.expect_err("it does not end").to_string();
        assert!(error.contains("a.wasm"), "{error}");
    }

    /// A store that has one entry, whatever it is asked for.
    #[derive(Clone, Debug, Default)]
    struct Shelf(Arc<Mutex<Option<Vec<u8>>>>);

    impl RemoteStore for Shelf {
        fn name(&self) -> &str {
            "shelf"
        }

        fn get(&self, _: &str, _: usize) -> Result<Option<Vec<u8>>, RemoteError> {
            Ok(self.0.lock().clone())
        }

        fn put(&self, _: &str, bytes: Vec<u8>) -> Result<(), RemoteError> {
            *self.0.lock() = Some(bytes);
            Ok(())
        }
    }

    #[test]
    fn what_the_remote_cache_has_is_not_waited_for_by_the_compiler() {
        let (shelf, key) = (Shelf::default(), Key::new("cpu", &1).expect("a key"));
        let secret = SigningKey::new(&"secret".repeat(9)).expect("long enough");
        for limit in [None, None, Some(Duration::from_secs(600))] {
            let folder = tempfile::tempdir().expect("a folder");
            let remote = Some(Remote::new(shelf.clone(), secret.clone()));
            let cache = Cache::open(Options { remote, durable: false, ..Options::new(folder.path()) });
            let is_there = shelf.0.lock().is_some();
            let (_never, waits) = mpsc::channel::<()>();
            let got = cache.get_or_make::<Vec<u8>, Error>(&key, |fetch| {
                let compile = move |_: Option<Instant>| {
                    let _ = !is_there || waits.recv().is_ok();
                    Ok(First::Made(b"code".to_vec()))
                };
                Ok(match race("a.wasm", limit, fetch, compile)? {
                    First::Made(bytes) => Made::Compiled(bytes),
                    First::Fetched(arrival) => Made::Fetched(arrival),
                })
            });
            let Ok(Got::Made(found)) = got else { panic!("{got:?}") };
            assert_eq!((found.bytes, matches!(found.origin, Origin::Fetched { .. })), (b"code".to_vec(), is_there));
            drop(cache);
            assert!(shelf.0.lock().is_some(), "it was not sent");
        }
    }

    #[test]
    fn one_that_notices_says_what_it_was_at() {
        let error = within::<()>("a.wasm", Some(Duration::from_secs(600)), |until| {
            assert!(until.is_some());
            Err(Error::Late("function 7".into()))
        });
        assert!(error.expect_err("it was late").to_string().contains("was at function 7"));
        assert!(within("a.wasm", None, |until| Ok(until.is_none())).expect("no limit"));
    }
}
