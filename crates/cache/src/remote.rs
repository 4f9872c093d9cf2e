//! A cache that machines share: signed entries in a store beyond this machine.
//!
//! The remote cache is asked for what the local one lacks, by a thread of its own, while this process compiles:
//! whichever is there first is used, so nobody waits for the remote cache longer than compiling takes. If the remote
//! cache lacks the entry too, the same thread sends what was compiled. An entry that is there is never overwritten.
//!
//! Nothing that the remote cache does is a failure of a run. After its first failure a process asks it for nothing
//! more, and prints one warning; one more warning tells of an entry whose signature is wrong.

use crate::entry::{self, About};
use crate::key::Key;
use crate::signature::{SEAL_BYTES, SigningKey};
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long the end of a process waits for entries that are being sent.
pub const END_WAIT: Duration = Duration::from_secs(3);
/// The largest entry that is sent or read, in bytes of its file.
const MAX_ENTRY: usize = 256 << 20;
/// Bytes of entries that may wait to be sent, all together; others are not sent.
const MAX_WAITING: usize = 256 << 20;
/// Entries that are sent at once.
const MAX_AT_ONCE: usize = 4;

/// Why a store failed. The text contains no credentials.
pub type RemoteError = Box<dyn std::error::Error + Send + Sync>;

/// Where the entries of a remote cache lie.
pub trait RemoteStore: fmt::Debug + Send + Sync {
    /// The store's name in messages.
    fn name(&self) -> &str;
    /// Returns what lies under a name, such as `NVIDIA-H200/ab/ab….signed`; `None` if nothing does. More than `most`
    /// bytes are an error.
    fn get(&self, name: &str, most: usize) -> Result<Option<Vec<u8>>, RemoteError>;
    /// Puts bytes under a name. Others see all of them or none.
    fn put(&self, name: &str, bytes: Vec<u8>) -> Result<(), RemoteError>;
}

/// A cache that machines share. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Remote(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Box<dyn RemoteStore>,
    key: SigningKey,
    /// Whether it has failed.
    is_broken: AtomicBool,
    /// Whether a wrong signature was reported.
    is_reported: AtomicBool,
    sending: Mutex<Sending>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Sending {
    /// Entries that wait to be sent or are being sent, and their bytes.
    entries: usize,
    bytes: usize,
    /// How many of them are being sent.
    under_way: usize,
    /// Entries that were sent and not counted yet, by model.
    sent: BTreeMap<String, u64>,
    /// Names of entries that this machine cannot use.
    refused: HashSet<String>,
}

/// An entry from the remote cache: its signature was right, and it is whole.
#[derive(Clone, Debug)]
pub struct Arrival(Arc<Arrived>);

#[derive(Clone, Debug)]
pub(crate) struct Arrived {
    pub(crate) about: About,
    pub(crate) file: Vec<u8>,
    pub(crate) payload: Vec<u8>,
}

impl Arrival {
    pub(crate) fn take(self) -> Arrived {
        Arc::unwrap_or_clone(self.0)
    }
}

/// A lookup in the remote cache, as whoever compiles meanwhile sees it. Clones are the same lookup.
#[derive(Clone, Debug, Default)]
pub struct Fetch(Option<Arc<Lookup>>);

#[derive(Debug, Default)]
struct Lookup {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    answer: Option<Answer>,
    /// Called if the entry arrives.
    then: Option<Box<dyn FnOnce(Arrival) + Send>>,
    offer: Offer,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("answer", &self.answer).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug)]
enum Answer {
    Entry(Arrival),
    Missing,
    /// It cannot be said, or the entry is not to be trusted.
    Failed,
}

/// The entry's file that was compiled here.
#[derive(Default)]
enum Offer {
    #[default]
    Compiling,
    File(Vec<u8>),
    /// There is none to send, or it is not wanted.
    Closed,
}

impl Fetch {
    /// Whether the remote cache has yet to answer.
    pub fn is_open(&self) -> bool {
        self.0.as_ref().is_some_and(|lookup| lookup.state.lock().answer.is_none())
    }

    /// Waits for the answer, at most so long. Returns the entry if it is there.
    pub fn wait(&self, most: Duration) -> Option<Arrival> {
        let lookup = self.0.as_ref()?;
        let mut state = lookup.state.lock();
        lookup.changed.wait_while_for(&mut state, |state| state.answer.is_none(), most);
        match &state.answer {
            Some(Answer::Entry(arrival)) => Some(arrival.clone()),
            _ => None,
        }
    }

    /// Calls `then` when the entry arrives, or now if it has. If it does not come, `then` is dropped.
    pub fn then(&self, then: impl FnOnce(Arrival) + Send + 'static) {
        let Some(lookup) = &self.0 else { return };
        let mut state = lookup.state.lock();
        match &state.answer {
            None => state.then = Some(Box::new(then)),
            Some(Answer::Entry(arrival)) => {
                let arrival = arrival.clone();
                drop(state);
                then(arrival);
            }
            Some(_) => {}
        }
    }
}

/// The cache's end of a lookup. Dropped without an offer, nothing is sent.
#[derive(Debug)]
pub(crate) struct Fetching<'a> {
    remote: &'a Remote,
    lookup: Arc<Lookup>,
}

impl Fetching<'_> {
    pub(crate) fn fetch(&self) -> Fetch {
        Fetch(Some(self.lookup.clone()))
    }

    /// Sends an entry's file, unless the remote cache has the entry or fails.
    pub(crate) fn offer(self, file: Vec<u8>) {
        let mut state = self.lookup.state.lock();
        if matches!(state.offer, Offer::Compiling) && self.remote.has_room(&file) {
            state.offer = Offer::File(file);
        }
    }
}

impl Drop for Fetching<'_> {
    fn drop(&mut self) {
        let mut state = self.lookup.state.lock();
        if matches!(state.offer, Offer::Compiling) {
            state.offer = Offer::Closed;
        }
        self.lookup.changed.notify_all();
    }
}

impl Remote {
    pub fn new(store: impl RemoteStore + 'static, key: SigningKey) -> Self {
        let (is_broken, is_reported) = (AtomicBool::new(false), AtomicBool::new(false));
        let (sending, changed) = (Mutex::default(), Condvar::new());
        Self(Arc::new(Inner { store: Box::new(store), key, is_broken, is_reported, sending, changed }))
    }

    /// Where it is, for messages.
    pub fn name(&self) -> &str {
        self.0.store.name()
    }

    /// Begins to look for an entry.
    pub(crate) fn fetch(&self, key: &Key) -> Fetching<'_> {
        let lookup = Arc::new(Lookup::default());
        let (remote, key, answered) = (self.clone(), key.clone(), lookup.clone());
        let thread = std::thread::Builder::new().name("remote cache".into());
        if let Err(error) = thread.spawn(move || remote.serve(&key, &answered)) {
            tracing::debug!("cannot start a thread for the remote cache: {error}");
            lookup.answer(Answer::Failed);
        }
        Fetching { remote: self, lookup }
    }

    /// Does not take this entry again: this machine cannot use it.
    pub(crate) fn refuse(&self, key: &Key) {
        self.0.sending.lock().refused.insert(name(key));
    }

    /// Waits until everything was sent, at most so long. Returns how many entries are left.
    pub(crate) fn finish(&self, most: Duration) -> usize {
        let until = Instant::now() + most;
        let mut sending = self.0.sending.lock();
        while sending.entries > 0 && !self.0.changed.wait_until(&mut sending, until).timed_out() {}
        sending.entries
    }

    /// Returns how many entries were sent since the last call, by model.
    pub(crate) fn take_sent(&self) -> BTreeMap<String, u64> {
        std::mem::take(&mut self.0.sending.lock().sent)
    }

    /// Looks for an entry, and sends it if there is none and this process has made it.
    fn serve(&self, key: &Key, lookup: &Lookup) {
        let name = name(key);
        let answer = self.look_up(key, &name);
        let is_missing = matches!(answer, Answer::Missing);
        lookup.answer(answer);
        let Some(file) = lookup.offered() else { return };
        let is_sent = is_missing && self.send(&name, &file);
        let mut sending = self.0.sending.lock();
        sending.entries -= 1;
        sending.bytes -= file.len();
        if is_sent {
            *sending.sent.entry(key.model().to_owned()).or_default() += 1;
        }
        self.0.changed.notify_all();
    }

    fn look_up(&self, key: &Key, name: &str) -> Answer {
        if self.is_broken() || self.0.sending.lock().refused.contains(name) {
            return Answer::Failed;
        }
        let sealed = match self.0.store.get(name, SEAL_BYTES + MAX_ENTRY) {
            Ok(Some(sealed)) => sealed,
            Ok(None) => return Answer::Missing,
            Err(error) => return self.fail(&error),
        };
        let Some(file) = self.0.key.open(name, &sealed) else {
            if !self.0.is_reported.swap(true, Ordering::Relaxed) {
                tracing::warn!(
                    "not using {name} of the remote cache {}: its signature is wrong; it was signed with another key, \
                     or somebody has changed it",
                    self.name()
                );
            }
            return Answer::Failed;
        };
        match entry::decode(file, file.len() as u64, key.hash()) {
            Ok((about, payload)) => Answer::Entry(Arrival(Arc::new(Arrived { about, file: file.to_vec(), payload }))),
            Err(entry::Failure::Damage(damage)) => self.fail(&damage),
            Err(entry::Failure::Io(error)) => self.fail(&error),
        }
    }

    fn send(&self, name: &str, file: &[u8]) -> bool {
        let mut sending = self.0.sending.lock();
        self.0.changed.wait_while(&mut sending, |sending| sending.under_way >= MAX_AT_ONCE);
        sending.under_way += 1;
        drop(sending);
        let sent = match self.is_broken() {
            true => Ok(false),
            false => self.0.store.put(name, self.0.key.seal(name, file)).map(|()| true),
        };
        self.0.sending.lock().under_way -= 1;
        self.0.changed.notify_all();
        sent.unwrap_or_else(|error| {
            self.fail(&error);
            false
        })
    }

    fn is_broken(&self) -> bool {
        self.0.is_broken.load(Ordering::Relaxed)
    }

    fn fail(&self, error: &(impl fmt::Display + ?Sized)) -> Answer {
        if !self.0.is_broken.swap(true, Ordering::Relaxed) {
            tracing::warn!("going on without the remote cache {}: {error}", self.name());
        }
        Answer::Failed
    }

    /// Notes an entry's file as one to be sent, if that is not too much.
    fn has_room(&self, file: &[u8]) -> bool {
        let mut sending = self.0.sending.lock();
        let has_room = file.len() <= MAX_ENTRY && sending.bytes + file.len() <= MAX_WAITING;
        if has_room {
            sending.entries += 1;
            sending.bytes += file.len();
        } else {
            tracing::info!("an entry of {} bytes is not sent to the remote cache {}", file.len(), self.name());
        }
        has_room
    }
}

impl Lookup {
    fn answer(&self, answer: Answer) {
        let mut state = self.state.lock();
        let then = state.then.take();
        state.answer = Some(answer.clone());
        drop(state);
        self.changed.notify_all();
        if let (Some(then), Answer::Entry(arrival)) = (then, answer) {
            then(arrival);
        }
    }

    /// Waits for the entry's file that is compiled meanwhile. Not if it is not wanted.
    fn offered(&self) -> Option<Vec<u8>> {
        let mut state = self.state.lock();
        let may_come =
            |state: &mut State| matches!((&state.answer, &state.offer), (Some(Answer::Missing), Offer::Compiling));
        self.changed.wait_while(&mut state, may_come);
        match std::mem::replace(&mut state.offer, Offer::Closed) {
            Offer::File(file) => Some(file),
            _ => None,
        }
    }
}

/// Returns an entry's name in a store.
fn name(key: &Key) -> String {
    let hex = key.hex();
    format!("{}/{}/{hex}.signed", key.model(), &hex[..2])
}
