//! Wakes whoever waits for descriptors.
//!
//! A host whose guests all wait need not ask the system for each of them again and again: it leaves their sockets to its [`Watch`] and
//! rests until it is rung for. One thread of the process waits for the sockets of all watches. What is no socket rings as well, when
//! it happens in this process: bytes for standard input, the addresses of a name, a change of a pipe, the end of a guest. For everything
//! else, whoever rests must look from time to time.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::Mutex;
use rustix::event::epoll;

/// Events that the thread takes at a time.
const MAX_EVENTS: usize = 64;

/// How many watches somebody relies on.
static ARMED: AtomicUsize = AtomicUsize::new(0);

/// A socket that a call waits for.
#[derive(Clone, Debug)]
pub struct Awaited {
    pub(crate) fd: Arc<OwnedFd>,
    pub(crate) reads: bool,
}

/// Rings when one of the sockets is ready that were left to it.
pub struct Watch {
    signal: Arc<Signal>,
    set: Mutex<Option<Set>>,
}

struct Signal {
    rung: AtomicBool,
    armed: AtomicBool,
    ring: Box<dyn Fn() + Send + Sync>,
}

/// The sockets of a watch.
struct Set {
    number: u64,
    epoll: OwnedFd,
    /// What the kernel has of us. It forgets a socket that is closed, and its descriptor may then be another's.
    known: HashMap<RawFd, (Weak<OwnedFd>, epoll::EventFlags)>,
}

/// All watches, and the thread that waits for them.
struct Hub {
    epoll: OwnedFd,
    signals: Mutex<HashMap<u64, Weak<Signal>>>,
    next: AtomicU64,
}

static HUB: LazyLock<Option<Hub>> = LazyLock::new(|| {
    let hub =
        Hub { epoll: epoll::create(epoll::CreateFlags::CLOEXEC).ok()?, signals: Mutex::default(), next: 0.into() };
    std::thread::Builder::new().name("wasi-watch".into()).spawn(run).ok()?;
    Some(hub)
});

/// Rings for every event, for ever.
fn run() {
    let Some(hub) = &*HUB else { return };
    let mut events = Vec::with_capacity(MAX_EVENTS);
    loop {
        if epoll::wait(&hub.epoll, rustix::buffer::spare_capacity(&mut events), None).is_ok() {
            for event in events.drain(..) {
                let number = event.data.u64();
                let signal = hub.signals.lock().get(&number).and_then(Weak::upgrade);
                signal.inspect(|signal| signal.ring());
            }
        }
    }
}

/// Returns whether anybody rests.
pub(crate) fn is_anybody_resting() -> bool {
    ARMED.load(Ordering::SeqCst) != 0
}

/// Something has happened that those who rest may wait for.
pub(crate) fn ring_all() {
    if is_anybody_resting()
        && let Some(hub) = &*HUB
    {
        let signals: Vec<_> = hub.signals.lock().values().filter_map(Weak::upgrade).collect();
        signals.iter().filter(|signal| signal.armed.load(Ordering::SeqCst)).for_each(|signal| signal.ring());
    }
}

impl Signal {
    fn ring(&self) {
        self.rung.store(true, Ordering::SeqCst);
        (self.ring)();
    }
}

impl Watch {
    /// `ring` is called by any thread, and must not wait for whoever uses the watch.
    pub fn new(ring: impl Fn() + Send + Sync + 'static) -> Self {
        let signal = Signal { rung: false.into(), armed: false.into(), ring: Box::new(ring) };
        Self { signal: Arc::new(signal), set: Mutex::default() }
    }

    /// Returns whether the watch has rung since the last call.
    pub fn has_rung(&self) -> bool {
        self.signal.rung.load(Ordering::Relaxed) && self.signal.rung.swap(false, Ordering::SeqCst)
    }

    /// From here on the watch rings when one of these sockets is ready, and for everything else in this process, until it is
    /// disarmed. Whoever calls this must look once more before it rests. Returns `false` if the system denies it.
    pub fn arm(&self, awaited: &[Awaited]) -> bool {
        let Some(hub) = &*HUB else { return false };
        let mut set = self.set.lock();
        let set = match &mut *set {
            Some(set) => set,
            none => {
                let Some(new) = Set::new(hub, &self.signal) else { return false };
                none.insert(new)
            }
        };
        set.leave(awaited);
        // Each event is for one time: from then on, the host looks itself.
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ONESHOT;
        if epoll::modify(&hub.epoll, &set.epoll, epoll::EventData::new_u64(set.number), flags).is_err() {
            return false;
        }
        if !self.signal.armed.swap(true, Ordering::SeqCst) {
            ARMED.fetch_add(1, Ordering::SeqCst);
        }
        true
    }

    /// The host looks by itself again.
    pub fn disarm(&self) {
        if self.signal.armed.load(Ordering::Relaxed) && self.signal.armed.swap(false, Ordering::SeqCst) {
            ARMED.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.disarm();
        if let (Some(hub), Some(set)) = (&*HUB, self.set.get_mut()) {
            hub.signals.lock().remove(&set.number);
        }
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl Set {
    fn new(hub: &Hub, signal: &Arc<Signal>) -> Option<Self> {
        let number = hub.next.fetch_add(1, Ordering::Relaxed);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).ok()?;
        epoll::add(&hub.epoll, &epoll, epoll::EventData::new_u64(number), epoll::EventFlags::ONESHOT).ok()?;
        hub.signals.lock().insert(number, Arc::downgrade(signal));
        Some(Self { number, epoll, known: HashMap::new() })
    }

    /// Makes these sockets those that the kernel looks at.
    fn leave(&mut self, awaited: &[Awaited]) {
        let mut wanted: HashMap<RawFd, (&Arc<OwnedFd>, epoll::EventFlags)> = HashMap::with_capacity(awaited.len());
        for Awaited { fd, reads } in awaited {
            let events = if *reads { epoll::EventFlags::IN } else { epoll::EventFlags::OUT };
            wanted.entry(fd.as_raw_fd()).or_insert((fd, epoll::EventFlags::empty())).1 |= events;
        }
        self.known.retain(|number, (of, _)| {
            let Some(fd) = of.upgrade() else { return false };
            let stays = wanted.contains_key(number);
            if !stays {
                _ = epoll::delete(&self.epoll, &fd);
            }
            stays
        });
        let none = epoll::EventData::new_u64(0);
        for (number, (fd, events)) in wanted {
            let left = match self.known.get(&number) {
                Some((_, known)) if *known == events => continue,
                Some(_) => epoll::modify(&self.epoll, fd, none, events),
                None => epoll::add(&self.epoll, fd, none, events),
            };
            // What cannot be watched is looked at from time to time.
            if left.is_ok() {
                self.known.insert(number, (Arc::downgrade(fd), events));
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // In a test, that is an assertion.
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::time::{Duration, Instant};

    struct Bell(Watch, Arc<AtomicUsize>);

    impl Bell {
        fn new() -> Self {
            let rings = Arc::new(AtomicUsize::new(0));
            let counted = rings.clone();
            Self(Watch::new(move || _ = counted.fetch_add(1, Ordering::SeqCst)), rings)
        }

        fn rings_for(&self, what: &str) {
            let began = Instant::now();
            while !self.0.has_rung() {
                assert!(began.elapsed() < Duration::from_secs(60), "nobody rings for {what}");
                std::thread::sleep(Duration::from_micros(100));
            }
        }

        fn is_quiet(&self) -> bool {
            std::thread::sleep(Duration::from_millis(20));
            !self.0.has_rung()
        }
    }

    fn pair() -> (UnixStream, Arc<OwnedFd>) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (ours, Arc::new(theirs.into()))
    }

    fn reads(fd: &Arc<OwnedFd>) -> Awaited {
        Awaited { fd: fd.clone(), reads: true }
    }

    #[test]
    fn a_socket_that_becomes_ready_rings_once() {
        let (mut ours, theirs) = pair();
        let bell = Bell::new();
        assert!(bell.0.arm(&[reads(&theirs)]));
        assert_eq!(bell.1.load(Ordering::SeqCst), 0);
        ours.write_all(b"a").unwrap();
        bell.rings_for("a byte");
        ours.write_all(b"b").unwrap();
        // Nobody has armed it again; others may ring for everybody.
        bell.0.disarm();
        bell.0.has_rung();
        assert!(bell.is_quiet());
        assert!(bell.0.arm(&[reads(&theirs)]));
        bell.rings_for("what is there already");
    }

    #[test]
    fn a_descriptor_that_is_anothers_now_rings_too() {
        let bell = Bell::new();
        for round in 0..3 {
            let (mut ours, theirs) = pair();
            assert!(bell.0.arm(&[reads(&theirs)]));
            ours.write_all(b"a").unwrap();
            bell.rings_for(&format!("round {round}"));
            bell.0.disarm();
            // Nothing here keeps the socket open.
            drop(theirs);
            assert_eq!(ours.read(&mut [0]).unwrap_or(0), 0);
        }
    }

    #[test]
    fn two_watches_of_one_socket_both_ring() {
        let (mut ours, theirs) = pair();
        let (one, other) = (Bell::new(), Bell::new());
        assert!(one.0.arm(&[reads(&theirs)]) && other.0.arm(&[reads(&theirs)]));
        ours.write_all(b"a").unwrap();
        one.rings_for("one");
        other.rings_for("the other");
    }
}
