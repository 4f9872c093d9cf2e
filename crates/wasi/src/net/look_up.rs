//! Looking up names on threads of their own: the resolver blocks, and no host call may.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::Mutex;

use crate::encode::Result;
use crate::{Errno, watch};

/// The most look-ups of the process at once. Others wait for their turn, in the order in which they were asked for.
const MAX_THREADS: usize = 256;
/// The most addresses of a name.
pub(super) const MAX_ADDRESSES: usize = 64;

type Found = io::Result<Vec<SocketAddr>>;
type Resolve = dyn Fn(&str, u16) -> Found + Send + Sync;

/// Who looks up names.
pub(super) struct Resolver {
    resolve: Box<Resolve>,
    threads: Mutex<Threads>,
}

#[derive(Default)]
struct Threads {
    running: usize,
    waiting: VecDeque<Job>,
}

/// A name, and who wants to know its addresses.
struct Job {
    name: String,
    port: u16,
    wanted: Weak<()>,
    sender: SyncSender<Found>,
}

/// A look-up that is under way.
pub(super) struct LookUp {
    found: Receiver<Found>,
    /// As long as this is there, somebody waits.
    _wanted: Arc<()>,
}

impl Resolver {
    pub(super) fn new(resolve: impl Fn(&str, u16) -> Found + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { resolve: Box::new(resolve), threads: Mutex::default() })
    }

    /// Returns this machine's resolver, which all instances share.
    pub(super) fn of_the_host() -> Arc<Self> {
        static HOST: LazyLock<Arc<Resolver>> = LazyLock::new(|| {
            Resolver::new(|name, port| Ok((name, port).to_socket_addrs()?.take(MAX_ADDRESSES).collect()))
        });
        HOST.clone()
    }

    /// Begins a look-up, now or when a thread is free.
    pub(super) fn start(self: &Arc<Self>, name: &str, port: u16) -> Result<LookUp> {
        let (sender, found) = sync_channel(1);
        let wanted = Arc::new(());
        let job = Job { name: name.to_owned(), port, wanted: Arc::downgrade(&wanted), sender };
        let mut threads = self.threads.lock();
        if threads.running >= MAX_THREADS {
            threads.waiting.push_back(job);
        } else {
            let resolver = self.clone();
            std::thread::Builder::new().name("look-up".into()).spawn(move || resolver.work(job))?;
            threads.running += 1;
        }
        Ok(LookUp { found, _wanted: wanted })
    }

    /// Looks up a name, and those that wait for a thread.
    fn work(&self, first: Job) {
        let mut next = Some(first);
        while let Some(job) = next {
            // The instance may have ended meanwhile.
            if job.wanted.strong_count() > 0 {
                _ = job.sender.send((self.resolve)(&job.name, job.port));
                watch::ring_all();
            }
            let mut threads = self.threads.lock();
            next = threads.waiting.pop_front();
            if next.is_none() {
                threads.running -= 1;
            }
        }
    }
}

impl LookUp {
    /// Returns the addresses; `None` if they are not known yet, `noent` if there are none.
    pub(super) fn poll(&self) -> Result<Option<Vec<SocketAddr>>> {
        match self.found.try_recv() {
            Ok(Ok(addresses)) if addresses.is_empty() => Err(Errno::Noent.into()),
            Ok(Ok(addresses)) => Ok(Some(addresses)),
            // The resolver's own errors have no errno.
            Ok(Err(error)) if error.raw_os_error().is_none() => Err(Errno::Noent.into()),
            Ok(Err(error)) => Err(error.into()),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(Errno::Io.into()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // In a test, that is an assertion.
#[path = "look_up_tests.rs"]
mod tests;
