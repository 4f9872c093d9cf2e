//! `crossbeam-channel THREADS`: bounded, unbounded and rendezvous channels, `select!`, and channels of timers.

use crate_programs::threads;
use crossbeam::channel::{Receiver, Sender, after, bounded, never, select, tick, unbounded};
use crossbeam::thread;
use std::time::{Duration, Instant};

/// Half the threads send, half receive.
fn run(what: &str, (sender, receiver): (Sender<u64>, Receiver<u64>), pairs: u64) {
    let messages = (1024 / pairs).clamp(2, 20);
    let (count, sum) = thread::scope(|scope| {
        for thread in 0..pairs {
            let sender = sender.clone();
            scope.spawn(move |_| (0..messages).for_each(|i| sender.send(thread * messages + i).expect("it is open")));
        }
        drop(sender);
        let consumers: Vec<_> = (0..pairs)
            .map(|_| {
                let receiver = receiver.clone();
                scope.spawn(move |_| receiver.iter().fold((0, 0), |(count, sum), i| (count + 1, sum + i)))
            })
            .collect();
        let results = consumers.into_iter().map(|thread| thread.join().expect("the thread returns"));
        results.fold((0, 0), |sum: (u64, u64), result| (sum.0 + result.0, sum.1 + result.1))
    })
    .expect("no thread panics");
    println!("{what}: {count} messages, sum {sum}");
}

fn main() {
    let pairs = threads().div_ceil(2) as u64;
    run("bounded", bounded(8), pairs);
    run("rendezvous", bounded(0), pairs);
    run("unbounded", unbounded(), pairs);

    // Two channels at once, until both are closed.
    let ((even, evens), (odd, odds)) = (bounded(4), unbounded());
    let (mut even_sum, mut odd_sum) = (0, 0);
    thread::scope(|scope| {
        for thread in 0..pairs * 2 {
            let sender = if thread % 2 == 0 { even.clone() } else { odd.clone() };
            scope.spawn(move |_| sender.send(thread).expect("it is open"));
        }
        drop((even, odd));
        let (mut evens, mut odds) = (evens, odds);
        let mut open = 2;
        while open > 0 {
            select! {
                recv(evens) -> message => match message {
                    Ok(thread) => even_sum += thread,
                    Err(_) => (evens, open) = (never(), open - 1),
                },
                recv(odds) -> message => match message {
                    Ok(thread) => odd_sum += thread,
                    Err(_) => (odds, open) = (never(), open - 1),
                },
            }
        }
    })
    .expect("no thread panics");
    println!("select: even {even_sum}, odd {odd_sum}");

    let start = Instant::now();
    let ticks = tick(Duration::from_millis(10));
    (0..3).for_each(|_| _ = ticks.recv());
    _ = after(Duration::from_millis(20)).recv();
    let (_sender, receiver) = bounded::<()>(0);
    println!("nobody sends: {:?}", receiver.recv_timeout(Duration::from_millis(10)));
    println!("60 ms are over: {}", start.elapsed() >= Duration::from_millis(60));
}
