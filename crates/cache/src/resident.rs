//! The memory layer: a loaded value stays as long as somebody holds it or the limit allows.
//!
//! A value is made once, however many threads ask for it at once, and shared from then on. Its users hold references,
//! and getting one is a lookup in a table. When all values together exceed the limit, the least recently used ones that
//! nobody holds are dropped. A value that is held is never dropped, so that a module on a device is never loaded twice
//! while it is in use.
//!
//! This is right because references to a value in the table are handed out only under the table's lock: a value that
//! has no other reference while the lock is held gets none before it is removed.

use super::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;

/// Shared values by key, with a limit on their bytes.
pub struct Resident<K, V> {
    table: Mutex<Table<K, V>>,
    /// Signalled when a value was made or could not be made.
    made: Condvar,
    limit: u64,
}

struct Table<K, V> {
    places: HashMap<K, Place<V>>,
    bytes: u64,
    /// Counts uses; the most recently used value has the greatest number.
    clock: u64,
}

enum Place<V> {
    /// Some thread is making the value.
    Awaited,
    There {
        value: Arc<V>,
        bytes: u64,
        used: u64,
    },
}

impl<K: Clone + Eq + Hash, V> Resident<K, V> {
    /// `limit` bounds the bytes of all values, held or not. Values that are held stay even if they exceed it.
    pub fn new(limit: u64) -> Self {
        Self { table: Mutex::new(Table { places: HashMap::new(), bytes: 0, clock: 0 }), made: Condvar::new(), limit }
    }

    /// Returns the value, from the table or from `make`, which also returns its size in bytes. Other threads that ask
    /// for the same key wait; if `make` fails, the next of them tries.
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
        // Dropped outside the lock: unloading takes time, and may ask for other values.
        drop(gone);
        value
    }

    /// Whether the key's value is in the table.
    pub fn contains(&self, key: &K) -> bool {
        matches!(self.lock().places.get(key), Some(Place::There { .. }))
    }

    /// Bytes of all values in the table.
    pub fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    /// Removes the values whose key `which` is true for, held or not. Their holders keep them, but nobody else gets
    /// them.
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
    /// Removes values that nobody holds, least recently used first, until the limit is met.
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

    /// Returns the keys of all values, least recently used first. The order does not depend on how keys are hashed: a
    /// model check must meet the same order each time.
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

/// Removes the `Awaited` mark if making the value failed or panicked.
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
