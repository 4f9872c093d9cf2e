//! `async-executor THREADS`: threads run the tasks of one executor, with channels, locks and barriers.

use async_executor::Executor;
use async_lock::{Barrier, Mutex, RwLock, Semaphore};
use crate_programs::threads;
use futures_lite::{StreamExt, future, stream};
use std::sync::Arc;
use std::thread;

fn main() {
    let threads = threads();
    let executor = Executor::new();
    let (stop, stopped) = async_channel::bounded::<()>(1);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| future::block_on(executor.run(stopped.recv())));
        }
        future::block_on(work(&executor, threads));
        drop(stop);
    });
}

async fn work(executor: &Executor<'static>, tasks: usize) {
    let (sender, receiver) = async_channel::bounded(4);
    for task in 0..tasks {
        let sender = sender.clone();
        executor.spawn(async move { sender.send(task * task).await.expect("somebody receives") }).detach();
    }
    drop(sender);
    let mut received: Vec<_> = receiver.collect().await;
    received.sort_unstable();
    println!("{} received, sum {}", received.len(), received.iter().sum::<usize>());

    let (counter, log) = (Arc::new(Mutex::new(0)), Arc::new(RwLock::new(Vec::new())));
    let (few, together) = (Arc::new(Semaphore::new(3)), Arc::new(Barrier::new(4)));
    let running: Vec<_> = (0..40)
        .map(|task| {
            let (counter, log, few, together) = (counter.clone(), log.clone(), few.clone(), together.clone());
            executor.spawn(async move {
                let permit = few.acquire().await;
                *counter.lock().await += task;
                drop(permit);
                future::yield_now().await;
                if task % 10 == 0 {
                    log.write().await.push(task);
                }
                together.wait().await.is_leader()
            })
        })
        .collect();
    let mut leaders = 0;
    for task in running {
        leaders += usize::from(task.await);
    }
    let mut log = log.read().await.clone();
    log.sort_unstable();
    println!("counter {}, log {log:?}, {leaders} leaders", *counter.lock().await);
    println!("zipped {:?}", future::zip(async { 1 }, stream::iter([2, 3]).last()).await);

    // What would block a thread of the executor runs on one of its own.
    let (answer, question) = async_channel::bounded(1);
    let own = thread::spawn(move || future::block_on(answer.send((1..=10u32).product::<u32>())));
    println!("unblocked {:?}", question.recv().await);
    own.join().expect("the thread returns").expect("somebody waited");
}
