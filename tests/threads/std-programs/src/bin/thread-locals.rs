//! `thread-locals THREADS`: every thread has its own values, and their destructors run when it ends.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std_programs::threads;

static DROPPED: AtomicUsize = AtomicUsize::new(0);
static DROPPED_SUM: AtomicUsize = AtomicUsize::new(0);

struct Counted(usize);

impl Drop for Counted {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Ordering::Relaxed);
        DROPPED_SUM.fetch_add(self.0, Ordering::Relaxed);
    }
}

thread_local! {
    static PLAIN: Cell<usize> = const { Cell::new(7) };
    static LIST: RefCell<Vec<Counted>> = const { RefCell::new(Vec::new()) };
    static LAZY: RefCell<String> = RefCell::new("fresh".to_owned());
}

fn work(thread: usize) -> usize {
    for i in 0..3 {
        PLAIN.set(PLAIN.get() + thread);
        LIST.with_borrow_mut(|list| list.push(Counted(thread + i)));
        thread::yield_now();
    }
    LAZY.with_borrow_mut(|text| text.push_str(&thread.to_string()));
    assert_eq!(LAZY.with_borrow(String::clone), format!("fresh{thread}"));
    PLAIN.get()
}

fn main() {
    let threads = threads();
    PLAIN.set(1);
    let running: Vec<_> = (0..threads).map(|thread| thread::spawn(move || work(thread))).collect();
    let sum: usize = running.into_iter().map(|thread| thread.join().expect("the thread returns")).sum();
    println!("sum {sum}, the main thread's {}", PLAIN.get());
    println!("dropped {}, their sum {}", DROPPED.load(Ordering::Relaxed), DROPPED_SUM.load(Ordering::Relaxed));
    println!("{}", LAZY.with_borrow(String::clone));
}
