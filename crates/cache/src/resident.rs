//! The memory layer: what is loaded stays, as long as it is used or there is room.
//!
//! A value is made once, however many ask for it at once, and shared from then on: whoever has it holds a reference, and taking one is a look in a table.
//! When all together are more than the limit, those used longest ago go, of those that nobody holds. One that is held is never let go, so that
//! what it stands for, a module on a device, is never loaded twice while it is used.
//!
//! The rule that makes this right: references to a value that is in the table are given out only under the table's lock. One that is seen
//! to have no other reference there has none, and gets none before it is gone.

use super::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;

/// Values by key, shared, within a limit of bytes.
pub struct Resident<K, V> {
    table: Mutex<Table<K, V>>,
    /// A value was made, or could not be.
    made: Condvar,
    limit: u64,
}

struct Table<K, V> {
    places: HashMap<K, Place<V>>,
    bytes: u64,
    /// Counts uses: the greatest is the last.
    clock: u64,
}

enum Place<V> {
    /// Somebody makes it.
    Awaited,
    There {
        value: Arc<V>,
        bytes: u64,
        used: u64,
    },
}

impl<K: Clone + Eq + Hash, V> Resident<K, V> {
    /// `limit` is for what nobody holds and what is held together; what is held can be more.
    pub fn new(limit: u64) -> Self {
        Self { table: Mutex::new(Table { places: HashMap::new(), bytes: 0, clock: 0 }), made: Condvar::new(), limit }
    }

    /// The value, from the table or from `make`, which also says how many bytes it has. Others that ask for the same wait meanwhile; if
    /// it cannot be made, the next of them tries.
    pub fn get_or_make<E>(&self, key: &K, make: impl FnOnce() -> Result<(V, u64), E>) -> Result<Arc<V>, E> {
        let mut table = self.lock();
        loop {
            table.clock += 1;
            let now = table.clock;
            match table.places.get_mut(key) {
                Some(Place::There { value, used, .. }) => {
                    *used = now;
                    return Ok(value.clone());
                }
                Some(Place::Awaited) => table = self.made.wait(table).unwrap_or_else(|e| e.into_inner()),
                None => break,
            }
        }
        table.places.insert(key.clone(), Place::Awaited);
        drop(table);
        let mut awaited = Awaited { resident: self, key: Some(key) };
        let (value, bytes) = make()?;
        awaited.key = None;
        Ok(self.insert(key, value, bytes))
    }

    fn insert(&self, key: &K, value: V, bytes: u64) -> Arc<V> {
        let value = Arc::new(value);
        let mut table = self.lock();
        table.clock += 1;
        let place = Place::There { value: value.clone(), bytes, used: table.clock };
        table.places.insert(key.clone(), place);
        table.bytes += bytes;
        let gone = table.shrink(self.limit);
        drop(table);
        self.made.notify_all();
        // Outside the lock: unloading takes time, and may ask for others.
        drop(gone);
        value
    }

    /// Whether it is there.
    pub fn contains(&self, key: &K) -> bool {
        matches!(self.lock().places.get(key), Some(Place::There { .. }))
    }

    /// Bytes of all that is there.
    pub fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    /// Forgets those of which `which` is true, held or not: who holds one keeps it, and nobody else gets it.
    pub fn forget(&self, which: impl Fn(&K) -> bool) {
        let mut table = self.lock();
        let keys = table.by_use();
        let gone: Vec<_> = keys.iter().filter(|key| which(key)).filter_map(|key| table.remove(key)).collect();
        drop(table);
        drop(gone);
    }

    fn lock(&self) -> MutexGuard<'_, Table<K, V>> {
        self.table.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl<K: Clone + Eq + Hash, V> Table<K, V> {
    /// Takes out what is too much and not held, the one used longest ago first.
    fn shrink(&mut self, limit: u64) -> Vec<Arc<V>> {
        let mut gone = Vec::new();
        if self.bytes <= limit {
            return gone;
        }
        for key in self.by_use() {
            let idle = |place: &Place<V>| matches!(place, Place::There { value, .. } if Arc::strong_count(value) == 1);
            if self.bytes > limit && self.places.get(&key).is_some_and(idle) {
                gone.extend(self.remove(&key));
            }
        }
        gone
    }

    /// The keys of all that is there, the one used longest ago first. An order that does not depend on how keys are hashed: a model check must
    /// meet the same one each time.
    fn by_use(&self) -> Vec<K> {
        let there = |(key, place): (&K, &Place<V>)| match place {
            Place::There { used, .. } => Some((*used, key.clone())),
            Place::Awaited => None,
        };
        let mut keys: Vec<_> = self.places.iter().filter_map(there).collect();
        keys.sort_unstable_by_key(|(used, _)| *used);
        keys.into_iter().map(|(_, key)| key).collect()
    }

    fn remove(&mut self, key: &K) -> Option<Arc<V>> {
        match self.places.remove(key)? {
            Place::There { value, bytes, .. } => {
                self.bytes -= bytes;
                Some(value)
            }
            Place::Awaited => None,
        }
    }
}

/// Takes the announcement back if nothing came of it, by an error or a panic.
struct Awaited<'a, K: Clone + Eq + Hash, V> {
    resident: &'a Resident<K, V>,
    key: Option<&'a K>,
}

impl<K: Clone + Eq + Hash, V> Drop for Awaited<'_, K, V> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.resident.lock().remove(key);
            self.resident.made.notify_all();
        }
    }
}

impl<K, V> fmt::Debug for Resident<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Resident({} bytes at most)", self.limit)
    }
}
