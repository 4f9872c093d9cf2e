//! What a program asks about the calls that it has noted: std's `Backtrace` is made of the answers.
//!
//! The calls are read from the caller's slot while it waits for the answer. Functions and lines are looked up once for each place,
//! for as long as the module's debug information may take: a guest can ask again and again, and others wait for the same thread.

use crate::slots;
use gpu_run_compiler::{Compiled, NotedCalls, PlacedFunction};
use gpu_run_device::Buffer;
use gpu_run_wasi::{CallsFetch, Errno, Out, Reply};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How long debug information is read for the instances that share slots, all in all.
const MAX_TIME: Duration = Duration::from_secs(1);
/// How many places are remembered.
const MAX_PLACES: usize = 4096;

/// The calls that instances have noted.
pub(crate) struct OwnCalls {
    compiled: Arc<Compiled>,
    slots: Arc<Buffer>,
    slot_bytes: u64,
    known: Mutex<Known>,
}

struct Known {
    /// The functions at each place that was asked for, or will be, as the guest gets them.
    places: HashMap<u32, Option<Arc<[u8]>>>,
    /// How long debug information may still be read.
    left: Duration,
}

impl OwnCalls {
    /// Returns the calls in these slots; none if the program does not note them.
    pub(crate) fn new(compiled: &Arc<Compiled>, slots: &Arc<Buffer>, slot_bytes: u64) -> Option<Self> {
        let known = Mutex::new(Known { places: HashMap::new(), left: MAX_TIME });
        let is_noted = compiled.slots.calls.is_noted();
        is_noted.then(|| Self { compiled: compiled.clone(), slots: slots.clone(), slot_bytes, known })
    }

    /// Answers the instance in a slot.
    pub(crate) fn answer(&self, slot: u32, request: CallsFetch, room: u64, out: &mut Out) -> Reply {
        match request {
            CallsFetch::Calls => {
                let place = self.compiled.slots.calls;
                let (slots, bytes) = (&self.slots, self.slot_bytes);
                let words = slots::read_words(&self.compiled, slots, bytes, slot.into(), place.depth, place.words());
                let Some(calls) = words.ok().and_then(|words| NotedCalls::of_words(&words)) else {
                    return Reply::Done(Errno::Io);
                };
                let places = self.compiled.own_calls(&calls);
                self.known.lock().expect(places);
                let bytes: Vec<u8> = places.iter().flat_map(|place| place.to_le_bytes()).collect();
                CallsFetch::put(&bytes, room, out);
            }
            CallsFetch::Functions { at } => {
                let functions = self.known.lock().functions(&self.compiled, at);
                CallsFetch::put(&functions, room, out);
            }
        }
        Reply::Done(Errno::Success)
    }
}

impl Known {
    /// Takes note of places that will be asked for.
    fn expect(&mut self, places: &[u32]) {
        if self.places.len() + places.len() > MAX_PLACES {
            self.places.clear();
        }
        for place in places {
            self.places.entry(*place).or_default();
        }
    }

    /// Returns the functions at a place. All places that are expected are looked up together, since most of the time goes into
    /// finding the way through the debug information.
    fn functions(&mut self, compiled: &Compiled, at: u32) -> Arc<[u8]> {
        if let Some(Some(functions)) = self.places.get(&at) {
            return functions.clone();
        }
        self.expect(&[at]);
        let wanted: Vec<u32> = self.places.iter().filter(|(_, known)| known.is_none()).map(|(at, _)| *at).collect();
        let (found, took) = compiled.functions_at(&wanted, self.left);
        self.left = self.left.saturating_sub(took);
        for (place, functions) in wanted.iter().zip(found) {
            self.places.insert(*place, Some(encode(&functions).into()));
        }
        self.places.get(&at).cloned().flatten().unwrap_or_default()
    }
}

/// Returns functions as the guest gets them.
fn encode(functions: &[PlacedFunction]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for PlacedFunction { name, file, line, column } in functions {
        for text in [name, file] {
            bytes.extend((text.len() as u32).to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        bytes.extend([line, column].into_iter().flat_map(|number| number.to_le_bytes()));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_encoded_as_the_protocol_says() {
        let function = PlacedFunction { name: "app::f".into(), file: "a.rs".into(), line: 7, column: 0x0102 };
        let bytes = encode(&[function, PlacedFunction::default()]);
        assert_eq!(bytes, [&b"\x06\0\0\0app::f\x04\0\0\0a.rs\x07\0\0\0\x02\x01\0\0"[..], &[0; 16]].concat());
    }

    #[test]
    fn a_guest_does_not_have_the_host_remember_more_and_more() {
        let mut known = Known { places: HashMap::new(), left: MAX_TIME };
        for at in 0..3 * MAX_PLACES as u32 {
            known.expect(&[at]);
            assert!(known.places.len() <= MAX_PLACES);
        }
    }
}
