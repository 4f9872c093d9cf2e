//! `no-threads THREADS`: a program that starts no thread, built for a target that has them.

use std::sync::Mutex;
use std_programs::threads;

static SUM: Mutex<usize> = Mutex::new(0);

fn main() {
    (0..threads()).for_each(|i| *SUM.lock().expect("nobody panics") += i);
    println!("sum {}", SUM.lock().expect("nobody panics"));
}
