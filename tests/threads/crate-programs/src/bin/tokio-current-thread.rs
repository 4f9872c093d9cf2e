//! `tokio-current-thread THREADS`: a runtime on the main thread, fed by other threads; its channels, timers and blocking pool.

use crate_programs::threads;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::sync::{Barrier, Mutex, Notify, RwLock, Semaphore, broadcast, mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};

fn main() {
    let threads = threads();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .max_blocking_threads(4)
        .build()
        .expect("the runtime starts");
    let (sender, receiver) = mpsc::channel(4);
    let feeders: Vec<_> = (0..threads as u64)
        .map(|thread| {
            let sender = sender.clone();
            thread::spawn(move || (0..5).for_each(|i| sender.blocking_send(thread * 5 + i).expect("it is open")))
        })
        .collect();
    drop(sender);
    runtime.block_on(work(receiver));
    feeders.into_iter().for_each(|thread| thread.join().expect("the thread returns"));
}

async fn work(mut receiver: mpsc::Receiver<u64>) {
    let (mut count, mut sum) = (0, 0);
    while let Some(message) = receiver.recv().await {
        count += 1;
        sum += message;
    }
    println!("{count} messages, sum {sum}");

    let (shared, log) = (Arc::new(Mutex::new(0)), Arc::new(RwLock::new(0)));
    let (few, all) = (Arc::new(Semaphore::new(2)), Arc::new(Barrier::new(10)));
    let tasks: Vec<_> = (0..20)
        .map(|i| {
            let (shared, log, few, all) = (shared.clone(), log.clone(), few.clone(), all.clone());
            tokio::spawn(async move {
                let permit = few.acquire().await.expect("it is open");
                *shared.lock().await += i;
                drop(permit);
                *log.write().await += 1;
                all.wait().await;
                i
            })
        })
        .collect();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.expect("the task returns"));
    }
    println!("{} tasks, {} and {}", results.len(), *shared.lock().await, *log.read().await);

    let late = timeout(Duration::from_millis(10), std::future::pending::<()>()).await;
    println!("late: {}", late.is_err());
    let order = async |ms| {
        sleep(Duration::from_millis(ms)).await;
        ms
    };
    println!("joined {:?}", tokio::join!(order(30), order(10), order(20)));
    tokio::select! {
        ms = order(1000) => println!("wrong: {ms}"),
        ms = order(10) => println!("first {ms}"),
    }

    let (answer, question) = oneshot::channel();
    let (announce, mut first) = broadcast::channel(4);
    let mut second = announce.subscribe();
    let (set, mut seen) = watch::channel(0);
    let notify = Arc::new(Notify::new());
    let notified = notify.clone();
    tokio::spawn(async move {
        notified.notified().await;
        answer.send("answer").expect("somebody waits");
        announce.send(7).expect("somebody listens");
        set.send(3).expect("somebody looks");
    });
    notify.notify_one();
    println!("{:?} {:?} {:?}", question.await, first.recv().await, second.recv().await);
    seen.changed().await.expect("it is open");
    println!("watched {}", *seen.borrow());
    let product = tokio::task::spawn_blocking(|| (1..=10u32).product::<u32>()).await;
    println!("blocking {product:?}");
}
