//! `futures-pool THREADS`: the thread pool, channels, `join_all` and `select!` of futures.

use crate_programs::threads;
use futures::channel::{mpsc, oneshot};
use futures::executor::{ThreadPool, block_on};
use futures::future::{join_all, ready};
use futures::lock::Mutex;
use futures::stream::{self, FuturesUnordered};
use futures::task::SpawnExt;
use futures::{SinkExt, StreamExt, join, select};
use std::sync::Arc;

async fn collatz(mut n: u64) -> u64 {
    let mut steps = 0;
    while n != 1 {
        n = if n.is_multiple_of(2) { n / 2 } else { 3 * n + 1 };
        steps += 1;
    }
    steps
}

fn main() {
    let threads = threads();
    let pool = ThreadPool::builder().pool_size(threads).create().expect("the pool starts");
    let spawn = |n| pool.spawn_with_handle(collatz(n)).expect("the pool runs");

    let steps = block_on(join_all((1..=500).map(spawn)));
    println!("{} results, sum {}", steps.len(), steps.iter().sum::<u64>());

    // The results in any order.
    let unordered: FuturesUnordered<_> = (1..=threads as u64).map(spawn).collect();
    println!("unordered {}", block_on(unordered.fold(0, |sum, steps| ready(sum + steps))));

    // Tasks send over a channel with little room.
    let (sender, receiver) = mpsc::channel(2);
    for task in 0..threads as u64 {
        let mut sender = sender.clone();
        pool.spawn_ok(async move {
            for i in 0..5 {
                sender.send(task * 5 + i).await.expect("somebody receives");
            }
        });
    }
    drop(sender);
    println!("sent {}", block_on(receiver.fold(0, |sum, i| ready(sum + i))));

    let shared = Arc::new(Mutex::new(0));
    let adds = (0..200).map(|i| {
        let shared = shared.clone();
        pool.spawn_with_handle(async move { *shared.lock().await += i }).expect("the pool runs")
    });
    block_on(join_all(adds.collect::<Vec<_>>()));
    println!("under the lock {}", block_on(async { *shared.lock().await }));

    let (answer, question) = oneshot::channel();
    let (silent, never) = oneshot::channel::<u32>();
    pool.spawn_ok(async move { answer.send(42).expect("somebody waits") });
    block_on(async {
        let (mut question, mut never) = (question, never);
        select! {
            got = question => println!("got {got:?}"),
            _ = never => println!("nobody sends this"),
        }
    });
    drop(silent);
    let (a, b) = block_on(async { join!(collatz(27), stream::iter(0..10).map(|i| i * i).collect::<Vec<u32>>()) });
    println!("{a} {b:?}");
}
