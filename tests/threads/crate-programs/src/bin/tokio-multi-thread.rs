//! `tokio-multi-thread THREADS`: the runtime that steals work between threads.

use crate_programs::threads;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

fn main() {
    let threads = threads();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .max_blocking_threads(2)
        .enable_time()
        .build()
        .expect("the runtime starts");
    runtime.block_on(async move {
        let shared = Arc::new(Mutex::new(0u64));
        let (sender, mut receiver) = mpsc::channel(16);
        let mut tasks = JoinSet::new();
        for task in 0..400u64 {
            let (shared, sender) = (shared.clone(), sender.clone());
            tasks.spawn(async move {
                tokio::task::yield_now().await;
                *shared.lock().await += task;
                // A task starts another one.
                let squared = tokio::spawn(async move { task * task }).await.expect("the task returns");
                sender.send(squared).await.expect("somebody receives");
                1
            });
        }
        drop(sender);
        let mut sum = 0;
        while let Some(squared) = receiver.recv().await {
            sum += squared;
        }
        let ended: i32 = tasks.join_all().await.into_iter().sum();
        println!("{ended} tasks, {} and {sum}", *shared.lock().await);
        tokio::time::sleep(Duration::from_millis(10)).await;
        let product = tokio::task::spawn_blocking(|| (1..=10u32).product::<u32>()).await;
        println!("slept, then blocking {product:?}");
    });
    // Waits for its threads.
    drop(runtime);
    println!("shut down");
}
