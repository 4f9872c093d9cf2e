//! `caught-panics THREADS`: panics that end threads, not the program: by `join`, in a scope, with a lock held, caught, raised again.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Mutex, Once, RwLock};
use std::thread;

/// Counts the values that were dropped, also while a thread unwinds.
struct Counted<'a>(&'a Mutex<usize>);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        *self.0.lock().expect("nobody panics with it") += usize::from(thread::panicking());
    }
}

fn main() {
    let threads = std::env::args().nth(1).map_or(8, |text| text.parse().expect("the number of threads"));
    // The default hook prints the operating system's number of the thread.
    panic::set_hook(Box::new(|_| {}));
    joined(threads);
    in_a_scope(threads);
    with_locks_held();
    caught();
}

/// What a panic was given.
fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref().copied()).unwrap_or("something else")
}

fn joined(threads: usize) {
    let start = |thread: usize| {
        let work = move || {
            if thread.is_multiple_of(2) { thread } else { panic!("{} has enough", thread::current().name().unwrap()) }
        };
        thread::Builder::new().name(format!("worker-{thread}")).spawn(work).expect("the thread starts")
    };
    let running: Vec<_> = (0..threads).map(start).collect();
    for thread in running {
        match thread.join() {
            Ok(number) => println!("{number} returned"),
            Err(payload) => println!("{}", message(&*payload)),
        }
    }
}

fn in_a_scope(threads: usize) {
    let dropped = Mutex::new(0);
    let scope = || {
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let _counted = (Counted(&dropped), Counted(&dropped));
                    panic!("nobody joins");
                });
            }
        });
    };
    let payload = panic::catch_unwind(AssertUnwindSafe(scope)).expect_err("a thread of the scope panicked");
    println!("scope: {}; {} dropped", message(&*payload), dropped.lock().unwrap());
}

fn with_locks_held() {
    let (mutex, lock, once) = (Mutex::new(1), RwLock::new(2), Once::new());
    thread::scope(|scope| {
        let _ = scope
            .spawn(|| {
                let _held = mutex.lock().unwrap();
                panic!()
            })
            .join();
        let _ = scope
            .spawn(|| {
                let _held = lock.read().unwrap();
                panic!()
            })
            .join();
        println!("reader poisons: {}", lock.is_poisoned());
        let _ = scope
            .spawn(|| {
                let _held = lock.write().unwrap();
                panic!()
            })
            .join();
        let _ = scope.spawn(|| once.call_once(|| panic!())).join();
    });
    println!("poisoned: {} {}", mutex.is_poisoned(), lock.is_poisoned());
    println!("still there: {} {}", mutex.lock().unwrap_err().into_inner(), lock.read().unwrap_err().into_inner());
    mutex.clear_poison();
    println!("mended: {}", mutex.lock().is_ok());
    once.call_once_force(|state| println!("once is poisoned: {}", state.is_poisoned()));
    println!("once is done: {}", once.is_completed());
}

fn caught() {
    let outer = panic::catch_unwind(|| {
        let inner = panic::catch_unwind(|| panic::panic_any(42_u32)).expect_err("it panicked");
        println!("inner: {:?}", inner.downcast_ref::<u32>());
        panic::resume_unwind(inner);
    });
    println!("outer: {:?}", outer.unwrap_err().downcast_ref::<u32>());
    let array = [1, 2, 3];
    let index = std::hint::black_box(7);
    println!("{}", message(&*panic::catch_unwind(|| array[index]).expect_err("it is too large")));
}
