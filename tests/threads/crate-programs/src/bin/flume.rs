//! `flume THREADS`: channels with many senders and receivers, for threads and for futures, and a Selector.

use crate_programs::threads;
use futures_lite::{StreamExt, future};
use std::thread;
use std::time::Duration;

fn main() {
    let pairs = threads().div_ceil(2) as u64;
    for bound in [Some(0), Some(4), None] {
        let (sender, receiver) = bound.map_or_else(flume::unbounded, flume::bounded);
        let sum: u64 = thread::scope(|scope| {
            for thread in 0..pairs {
                let sender = sender.clone();
                scope.spawn(move || (0..10).for_each(|i| sender.send(thread * 10 + i).expect("it is open")));
            }
            drop(sender);
            let consumers: Vec<_> = (0..pairs)
                .map(|thread| {
                    let receiver = receiver.clone();
                    scope.spawn(move || match thread % 2 {
                        0 => receiver.iter().sum::<u64>(),
                        _ => future::block_on(receiver.into_stream().fold(0, |sum, i| sum + i)),
                    })
                })
                .collect();
            consumers.into_iter().map(|thread| thread.join().expect("the thread returns")).sum()
        });
        println!("bound {bound:?}: sum {sum}");
    }
    let ((silent, never), (sender, receiver)) = (flume::unbounded::<u32>(), flume::unbounded());
    let other = thread::spawn(move || sender.send(5).expect("it is open"));
    let got = flume::Selector::new().recv(&never, |_| None).recv(&receiver, |got| got.ok()).wait();
    other.join().expect("the thread returns");
    println!("selected {got:?}, then {:?}", receiver.recv());
    println!("nobody sends: {:?}", never.recv_timeout(Duration::from_millis(10)));
    drop(silent);
}
