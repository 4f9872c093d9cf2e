//! Every order in which threads can come to the memory layer, by loom: the code is the crate's own, on loom's locks and references.
#![allow(clippy::unwrap_used)]

/// What `resident` is built on, here.
mod sync {
    pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
}
#[allow(dead_code, unreachable_pub)] // the crate's file, as it is
#[path = "../src/resident.rs"]
mod resident;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;
use resident::Resident;

/// Says when it is gone.
struct Module {
    gone: std::sync::Arc<AtomicBool>,
}

impl Drop for Module {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::SeqCst);
    }
}

fn module() -> (Module, std::sync::Arc<AtomicBool>) {
    let gone = std::sync::Arc::new(AtomicBool::new(false));
    (Module { gone: gone.clone() }, gone)
}

#[test]
fn two_that_ask_for_the_same_make_it_once() {
    loom::model(|| {
        let resident = Arc::new(Resident::<u32, u32>::new(10));
        let made = Arc::new(AtomicUsize::new(0));
        let ask = |resident: Arc<Resident<u32, u32>>, made: Arc<AtomicUsize>| {
            move || {
                let make = || {
                    made.fetch_add(1, Ordering::SeqCst);
                    Ok::<_, ()>((7, 5))
                };
                assert_eq!(*resident.get_or_make(&1, make).unwrap(), 7);
            }
        };
        let other = thread::spawn(ask(resident.clone(), made.clone()));
        ask(resident.clone(), made.clone())();
        other.join().unwrap();
        assert_eq!(made.load(Ordering::SeqCst), 1);
        assert_eq!(resident.bytes(), 5);
    });
}

#[test]
fn what_is_held_is_never_let_go_and_what_is_not_makes_room() {
    loom::model(|| {
        let resident = Arc::new(Resident::<u32, Module>::new(10));
        let (first, gone) = module();
        let held = resident.get_or_make(&1, || Ok::<_, ()>((first, 6))).unwrap();
        let other = {
            let resident = resident.clone();
            thread::spawn(move || {
                // Too much together: whether the first may go depends on who holds it just now.
                drop(resident.get_or_make(&2, || Ok::<_, ()>((module().0, 6))).unwrap());
            })
        };
        assert!(!gone.load(Ordering::SeqCst), "it is held");
        drop(held);
        let again = resident.get_or_make(&1, || Ok::<_, ()>((module().0, 6))).unwrap();
        assert!(!again.gone.load(Ordering::SeqCst), "it is held again");
        other.join().unwrap();
        assert!(!again.gone.load(Ordering::SeqCst), "and still");
        drop(again);
        drop(resident.get_or_make(&3, || Ok::<_, ()>((module().0, 1))).unwrap());
        assert!(resident.bytes() <= 10, "nothing is held but there are {} bytes", resident.bytes());
    });
}

#[test]
fn one_that_fails_lets_the_next_try() {
    loom::model(|| {
        let resident = Arc::new(Resident::<u32, u32>::new(10));
        let other = {
            let resident = resident.clone();
            thread::spawn(move || drop(resident.get_or_make(&1, || Err(()))))
        };
        assert_eq!(resident.get_or_make(&1, || Ok::<_, ()>((7, 5))).map(|v| *v), Ok(7));
        other.join().unwrap();
        assert!(resident.contains(&1));
    });
}

#[test]
fn forgetting_while_another_asks_leaves_the_account_right() {
    loom::model(|| {
        let resident = Arc::new(Resident::<u32, u32>::new(10));
        let other = {
            let resident = resident.clone();
            thread::spawn(move || resident.forget(|key| *key == 1))
        };
        let value = resident.get_or_make(&1, || Ok::<_, ()>((7, 5))).unwrap();
        other.join().unwrap();
        assert_eq!(*value, 7);
        assert_eq!(resident.bytes(), if resident.contains(&1) { 5 } else { 0 });
    });
}
