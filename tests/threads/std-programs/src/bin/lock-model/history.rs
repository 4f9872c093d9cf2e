//! What threads logged about locks, and whether locks allow it.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Lock,
    Unlock,
    /// For reading.
    Share,
    Unshare,
}

#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// Drawn from one counter while the lock is held.
    pub ticket: u64,
    pub thread: usize,
    pub lock: usize,
    pub action: Action,
}

/// Who has a lock.
#[derive(Clone, Default)]
struct Holders {
    writer: Option<usize>,
    readers: Vec<usize>,
}

/// Replays a log. Returns an error that names the first event that cannot have been.
pub fn check(mut events: Vec<Event>, locks: usize) -> Result<(), String> {
    events.sort_unstable_by_key(|event| event.ticket);
    let mut held = vec![Holders::default(); locks];
    for (ticket, event) in (0..).zip(&events) {
        if event.ticket != ticket {
            return Err(format!("ticket {ticket} is missing or was given twice: {event:?}"));
        }
        let Holders { writer, readers } = &mut held[event.lock];
        let reader = readers.iter().position(|reader| *reader == event.thread);
        let is_legal = match event.action {
            Action::Lock => writer.is_none() && readers.is_empty(),
            Action::Share => writer.is_none() && reader.is_none(),
            Action::Unlock => *writer == Some(event.thread),
            Action::Unshare => reader.is_some(),
        };
        if !is_legal {
            return Err(format!("{event:?}, while {writer:?} has the lock and {readers:?} share it"));
        }
        match (event.action, reader) {
            (Action::Lock, _) => *writer = Some(event.thread),
            (Action::Unlock, _) => *writer = None,
            (Action::Share, _) => readers.push(event.thread),
            (Action::Unshare, at) => drop(at.map(|at| readers.swap_remove(at))),
        }
    }
    match held.iter().position(|lock| lock.writer.is_some() || !lock.readers.is_empty()) {
        Some(lock) => Err(format!("lock {lock} was not given back")),
        None => Ok(()),
    }
}

/// Returns how many of some illegal histories the checker finds: a check that never fails is none.
pub fn illegal_found() -> String {
    use Action::{Lock, Share, Unlock, Unshare};
    let histories: [&[(usize, Action)]; 6] = [
        &[(0, Lock), (1, Lock), (0, Unlock), (1, Unlock)],
        &[(0, Lock), (1, Share), (1, Unshare), (0, Unlock)],
        &[(0, Share), (1, Lock), (1, Unlock), (0, Unshare)],
        &[(0, Lock), (1, Unlock)],
        &[(0, Share), (1, Unshare)],
        &[(0, Lock)],
    ];
    let legal: [&[(usize, Action)]; 2] = [
        &[(0, Share), (1, Share), (0, Unshare), (1, Unshare), (1, Lock), (1, Unlock)],
        &[(0, Lock), (0, Unlock), (1, Lock), (1, Unlock)],
    ];
    let is_refused = |history: &&&[(usize, Action)]| {
        let event = |(ticket, &(thread, action)): (usize, &(usize, Action))| Event {
            ticket: ticket as u64,
            thread,
            lock: 0,
            action,
        };
        check(history.iter().enumerate().map(event).collect(), 1).is_err()
    };
    let found = histories.iter().filter(is_refused).count();
    let wrong = legal.iter().filter(is_refused).count();
    format!("{found} of {}, and {wrong} that are legal", histories.len())
}
