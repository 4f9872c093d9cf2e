//! `refused THREADS`: starts threads until one is refused; when they have ended, new ones start again.

use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std_programs::threads;

fn main() {
    let wanted = threads();
    let open = Arc::new((Mutex::new(false), Condvar::new()));
    let mut running = Vec::new();
    let error = loop {
        let open = open.clone();
        let waiting = thread::Builder::new().spawn(move || {
            let guard = open.0.lock().expect("nobody panics");
            drop(open.1.wait_while(guard, |open| !*open).expect("nobody panics"));
        });
        match waiting {
            Ok(thread) => running.push(thread),
            Err(error) => break error,
        }
        assert!(running.len() < 100 * wanted, "no thread was refused");
    };
    println!("as many as asked for: {}", running.len() >= wanted);
    println!("then {:?}", error.kind());
    *open.0.lock().expect("nobody panics") = true;
    open.1.notify_all();
    let count = running.len();
    running.into_iter().for_each(|thread| thread.join().expect("the thread returns"));
    for _ in 0..2 {
        let again: Vec<_> = (0..count).map_while(|i| thread::Builder::new().spawn(move || i).ok()).collect();
        println!("as many again: {}", again.len() == count);
        let sum: usize = again.into_iter().map(|thread| thread.join().expect("the thread returns")).sum();
        assert_eq!(sum, count * (count - 1) / 2);
    }
}
