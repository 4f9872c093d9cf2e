//! Two threads that take the same two locks, each in another order.
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

#[inline(never)]
fn pay(from: &Mutex<i64>, to: &Mutex<i64>, both: &Barrier) {
    let mut from = from.lock().unwrap();
    both.wait();
    let mut to = to.lock().unwrap();
    *from -= 1;
    *to += 1;
}

#[inline(never)]
fn refund(from: &Mutex<i64>, to: &Mutex<i64>, both: &Barrier) {
    let mut to = to.lock().unwrap();
    both.wait();
    let mut from = from.lock().unwrap();
    *from += 1;
    *to -= 1;
}

fn main() {
    let shared = Arc::new((Mutex::new(1), Mutex::new(1), Barrier::new(2)));
    let other = shared.clone();
    let payer = thread::Builder::new().name("payer".into()).spawn(move || pay(&other.0, &other.1, &other.2)).unwrap();
    let other = shared.clone();
    let refunder =
        thread::Builder::new().name("re\u{1b}funder".into()).spawn(move || refund(&other.0, &other.1, &other.2)).unwrap();
    for _ in 0..3 {
        thread::spawn(thread::park);
    }
    thread::spawn(|| thread::sleep(std::time::Duration::from_secs(600)));
    payer.join().unwrap();
    refunder.join().unwrap();
}
