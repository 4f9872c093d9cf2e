//! `condvar-ping-pong THREADS`: pairs of threads take turns with a Condvar; the main thread starts all of them with `notify_all`.

use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;
use std_programs::threads;

const TURNS: u32 = 20;

#[derive(Default)]
struct Table {
    ball: Mutex<u32>,
    hit: Condvar,
}

/// Hits the ball whenever its number is even (`parity` 0) or odd (1).
fn play(table: &Table, parity: u32) -> u32 {
    let mut hits = 0;
    let mut ball = table.ball.lock().expect("nobody panics");
    while *ball < TURNS {
        if *ball % 2 == parity {
            *ball += 1;
            hits += 1;
            table.hit.notify_one();
        } else {
            ball = table.hit.wait(ball).expect("nobody panics");
        }
    }
    // The other one may still wait for the last hit.
    table.hit.notify_one();
    hits
}

fn main() {
    let pairs = threads().div_ceil(2);
    let start = Arc::new((Mutex::new(false), Condvar::new()));
    let running: Vec<_> = (0..pairs)
        .map(|_| {
            let table = Arc::new(Table::default());
            [0, 1].map(|parity| {
                let (table, start) = (table.clone(), start.clone());
                thread::spawn(move || {
                    let started = start.0.lock().expect("nobody panics");
                    drop(start.1.wait_while(started, |started| !*started).expect("nobody panics"));
                    play(&table, parity)
                })
            })
        })
        .collect();
    *start.0.lock().expect("nobody panics") = true;
    start.1.notify_all();
    let (mut ping, mut pong) = (0, 0);
    for [a, b] in running {
        ping += a.join().expect("the thread returns");
        pong += b.join().expect("the thread returns");
    }
    println!("{pairs} pairs: {ping} pings, {pong} pongs");

    // Nobody notifies: the wait ends by itself.
    let (lock, condvar) = (Mutex::new(()), Condvar::new());
    let guard = lock.lock().expect("nobody panics");
    let (_guard, result) =
        condvar.wait_timeout_while(guard, Duration::from_millis(10), |()| true).expect("nobody panics");
    println!("timed out: {}", result.timed_out());
}
