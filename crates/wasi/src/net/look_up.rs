//! Looking up names on threads of their own: the resolver blocks, and no host call may.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

use crate::Errno;
use crate::encode::Result;

/// The most look-ups of the process at once. Others wait for their turn.
const MAX_THREADS: usize = 8;
/// The most addresses of a name.
pub(super) const MAX_ADDRESSES: usize = 64;

static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// A look-up that is under way.
pub(super) struct LookUp(Receiver<std::io::Result<Vec<SocketAddr>>>);

impl LookUp {
    /// Begins a look-up; `None` if all threads are busy.
    pub(super) fn start(name: &str, port: u16) -> Result<Option<Self>> {
        let take = |running: usize| (running < MAX_THREADS).then_some(running + 1);
        if RUNNING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
            return Ok(None);
        }
        let place = Place;
        let (sender, receiver) = sync_channel(1);
        let name = name.to_owned();
        std::thread::Builder::new().name("look-up".into()).spawn(move || {
            let _place = place;
            let found = (name.as_str(), port).to_socket_addrs();
            // The instance may have ended meanwhile.
            _ = sender.send(found.map(|addresses| addresses.take(MAX_ADDRESSES).collect()));
        })?;
        Ok(Some(Self(receiver)))
    }

    /// Returns the addresses; `None` if they are not known yet, `noent` if there are none.
    pub(super) fn poll(&self) -> Result<Option<Vec<SocketAddr>>> {
        match self.0.try_recv() {
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

/// A thread's place among [`MAX_THREADS`].
struct Place;

impl Drop for Place {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::Relaxed);
    }
}
