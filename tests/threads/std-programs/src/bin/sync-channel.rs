//! `sync-channel THREADS`: half the threads send over a bounded channel, the other half receive; also over a channel without a buffer.

use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std_programs::threads;

/// Takes messages until the channel is closed.
fn consume(receiver: &Mutex<Receiver<u64>>) -> (u64, u64) {
    let (mut count, mut sum) = (0, 0);
    loop {
        let message = receiver.lock().expect("no consumer panics").recv();
        let Ok(message) = message else { return (count, sum) };
        count += 1;
        sum += message;
    }
}

fn run(bound: usize, pairs: u64) {
    let messages = (1024 / pairs).clamp(2, 24);
    let (sender, receiver) = sync_channel(bound);
    let receiver = Arc::new(Mutex::new(receiver));
    let consumers: Vec<_> = (0..pairs)
        .map(|_| {
            let receiver = receiver.clone();
            thread::spawn(move || consume(&receiver))
        })
        .collect();
    let producers: Vec<_> = (0..pairs)
        .map(|thread| {
            let sender = sender.clone();
            thread::spawn(move || {
                (0..messages).for_each(|i| sender.send(thread * messages + i).expect("a consumer is there"));
            })
        })
        .collect();
    drop(sender);
    producers.into_iter().for_each(|producer| producer.join().expect("the producer returns"));
    let (mut count, mut sum) = (0, 0);
    for consumer in consumers {
        let (c, s) = consumer.join().expect("the consumer returns");
        count += c;
        sum += s;
    }
    println!("bound {bound}: {count} messages, sum {sum}");
}

fn main() {
    let pairs = threads().div_ceil(2) as u64;
    run(4, pairs);
    run(0, pairs);
}
