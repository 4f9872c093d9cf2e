//! `std::thread`.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, Builder, JoinHandle, ThreadId};
use std::time::{Duration, Instant};
use uses_std::{kind, show};

thread_local! {
    static COUNTER: Cell<u32> = const { Cell::new(1) };
    static WORDS: RefCell<Vec<&'static str>> = RefCell::new(vec!["first"]);
    static NOTES: Dropped = const { Dropped };
}

static DROPPED: AtomicUsize = AtomicUsize::new(0);

struct Dropped;

impl Drop for Dropped {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

fn main() {
    show!(thread::current().name(), thread::panicking(), thread::available_parallelism().is_ok());
    show!(thread::spawn(|| 6 * 7).join().ok());
    builders();
    ids();
    scopes();
    locals();
    waits();
}

fn builders() {
    let named = Builder::new().name("a name".into()).stack_size(100_000);
    let handle = named.spawn(|| thread::current().name().map(str::to_owned)).expect("a thread");
    show!(handle.thread().name(), handle.join().ok());
    let mut local = 1;
    // SAFETY: it is joined before `local` goes.
    let handle = unsafe { Builder::new().spawn_unchecked(|| local += 1) }.expect("a thread");
    show!(handle.join().is_ok(), local);
}

fn ids() {
    let id: ThreadId = thread::current().id();
    let handle = thread::spawn(|| thread::current().id());
    let other = handle.thread().id();
    show!(id == thread::current().id(), id != other, handle.join().ok() == Some(other));
    let result: thread::Result<u8> = thread::spawn(|| 1).join();
    show!(result.ok());
}

fn scopes() {
    let (mut numbers, sum) = (vec![1, 2, 3], AtomicUsize::new(0));
    let returned = thread::scope(|scope| {
        let handle = scope.spawn(|| numbers.push(4));
        let name = Builder::new().name("scoped".into());
        let named = name.spawn_scoped(scope, || sum.fetch_add(10, Ordering::Relaxed)).expect("a thread");
        scope.spawn(|| sum.fetch_add(1, Ordering::Relaxed));
        show!(named.thread().name());
        while !handle.is_finished() {
            thread::yield_now();
        }
        handle.join().is_ok() && named.join().is_ok()
    });
    show!(returned, numbers, sum);
}

fn locals() {
    show!(COUNTER.get(), COUNTER.replace(5), COUNTER.take());
    COUNTER.set(7);
    show!(thread::spawn(|| COUNTER.get()).join().ok(), COUNTER.with(Cell::get), COUNTER.try_with(Cell::get));
    WORDS.with_borrow_mut(|words| words.push("second"));
    show!(WORDS.with_borrow(Vec::clone), WORDS.take(), WORDS.replace(vec!["third"]));
    WORDS.set(vec!["fourth"]);
    show!(WORDS.with_borrow(Vec::clone));
    thread::spawn(|| NOTES.with(|_| ())).join().expect("it ends");
    show!(DROPPED.load(Ordering::Relaxed));
}

#[allow(deprecated)]
fn waits() {
    let pause = Duration::from_millis(20);
    let took = |wait: &dyn Fn()| {
        let began = Instant::now();
        wait();
        began.elapsed()
    };
    show!(took(&|| thread::sleep(pause)) >= pause, took(&|| thread::sleep_ms(20)) >= pause);
    show!(took(&|| thread::park_timeout(pause)) < Duration::from_secs(5));
    show!(took(&|| thread::park_timeout_ms(20)) < Duration::from_secs(5));
    static GO: AtomicBool = AtomicBool::new(false);
    let waiting: JoinHandle<&str> = thread::spawn(|| {
        while !GO.load(Ordering::Acquire) {
            thread::park();
        }
        "woken"
    });
    show!(waiting.is_finished());
    GO.store(true, Ordering::Release);
    waiting.thread().unpark();
    show!(waiting.join().ok());
    thread::current().unpark();
    show!(took(&thread::park) < Duration::from_secs(5), kind(Ok(())));
}
