//! `mpsc THREADS`: many producers send strings over one unbounded channel to one consumer.

use std::sync::mpsc;
use std::thread;
use std_programs::threads;

fn main() {
    let threads = threads();
    let messages = (2048 / threads).clamp(2, 20);
    let (sender, receiver) = mpsc::channel();
    let producers: Vec<_> = (0..threads)
        .map(|thread| {
            let sender = sender.clone();
            thread::spawn(move || {
                for message in 0..messages {
                    sender.send((thread, format!("{thread}/{message}"))).expect("the consumer is there");
                }
            })
        })
        .collect();
    // The loop ends when the last producer has gone.
    drop(sender);
    let mut next = vec![0; threads];
    let mut bytes = 0;
    for (thread, text) in receiver {
        // The messages of one producer arrive in their order.
        assert_eq!(text, format!("{thread}/{}", next[thread]));
        next[thread] += 1;
        bytes += text.len();
    }
    producers.into_iter().for_each(|producer| producer.join().expect("the producer returns"));
    println!("{} messages from {threads} threads, {bytes} bytes", next.iter().sum::<usize>());
}
